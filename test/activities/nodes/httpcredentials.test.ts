import { createHash, createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { authorizeWith, listAllowedHosts } from '../../../activities/credentials/authorize.ts'
import { CREDENTIAL_HEADERS } from '../../../db/credentials/requests.ts'
import type { CredentialData } from '../../../db/credentials/seal.ts'
import type { CredentialType } from '../../../db/credentials/types.ts'
import { type ExecutionBody, nodeOf } from '../../support/client.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'
import { startWorld } from '../../support/servers/world.ts'
import { until } from '../../support/until.ts'

const KEY = 'canary/Sesame+77=x'
const JSON_TYPE = { 'content-type': 'application/json' }

type Seen = { method: string; url: string; headers: Record<string, string>; body: string }
const seen: Seen[] = []

const host = await keep(shareRunning())
const away = await keep(
  startWorld({
    '/x': ({ request, response }) => {
      seen.push({ method: 'AWAY', url: request.url!, headers: request.headers as never, body: '' })
      response.end('there')
    },
  }),
)
const world = await keep(
  startWorld({
    '/away': ({ request, response }) => {
      const { search } = new URL(request.url!, 'http://a')
      response.writeHead(307, { location: `${away.url}/x${search}` }).end()
    },
    '/near': ({ response }) => response.writeHead(307, { location: '/echo?a=%20b&c' }).end(),
    '/echo': ({ request, body, response }) => {
      const { method = '', url = '', headers } = request
      seen.push({ method, url, headers: headers as never, body })
      response.writeHead(200, JSON_TYPE).end(JSON.stringify({ method, url, headers, body }))
    },
    '/token': ({ response }) => response.writeHead(200, JSON_TYPE).end('{"access_token":"a-token-of-use"}'),
    '/big': ({ request, response }) => {
      const { headers } = request
      // As PHP writes JSON.
      const text = JSON.stringify({ headers, key: KEY, fill: 'x'.repeat(400_000), end: KEY })
      response.writeHead(200, JSON_TYPE).end(text.replaceAll('/', '\\/'))
    },
    '/wide': ({ response }) => {
      const text = JSON.stringify({ key: KEY, fill: 'x'.repeat(200_000) })
      response
        .writeHead(200, { 'content-type': 'application/json; charset=utf-16le' })
        .end(Buffer.from(text, 'utf16le'))
    },
    '/busy': ({ request, response }) =>
      response.writeHead(503).end(`no: ${' '.repeat(4_000)}${request.headers.authorization}`),
    '/file': ({ request, response }) => {
      const type = new URL(request.url!, 'http://a').searchParams.get('type')!
      const name = `attachment; filename="${KEY.replaceAll('/', '')}.txt"`
      response.writeHead(200, { 'content-type': type, 'content-disposition': name })
      response.write(`got ${KEY.slice(0, 4)}`)
      setImmediate(() => response.end(`${KEY.slice(4)}, ${request.headers.authorization}.`))
    },
    '/cut': ({ response }) => response.writeHead(500).end('y'.repeat(16_380) + KEY),
  }),
)

let made = 0
async function make(type: string, data: object): Promise<string> {
  const input = { name: `${type} ${made++}`, type, teamId: host.teamId, data }
  return (await host.ask<{ id: string }>('POST', '/api/credentials', input)).id
}

const graph = (config: Record<string, unknown>, more: object = {}) => ({
  nodes: [
    { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
    { id: 'call', type: 'HTTP_REQUEST', retry: { maxAttempts: 1 }, config, ...more },
  ],
  edges: edges('start -> call'),
})

const run = (config: Record<string, unknown>, data = {}) => host.run(graph(config), data)

/** What the server got of a request with the credential. */
async function sent(
  type: string,
  data: object,
  config: Record<string, unknown> = {},
  input = {},
): Promise<Seen> {
  seen.length = 0
  const credentialId = await make(type, data)
  const ended = await run({ url: `${world.url}/echo`, ...config, credentialId }, input)
  expect([ended.status, nodeOf(ended, 'call').errorMessage]).toEqual(['SUCCESS', null])
  return seen[0]!
}

async function faultsOf(graphOf: object): Promise<string[]> {
  const json = { name: `refused ${made++}`, teamId: host.teamId, ...graphOf }
  const response = await host.request('/api/workflows', { method: 'POST', as: host.admin, json })
  expect(response.status).toBe(400)
  const { errors } = (await response.json()) as { errors: { path: string; message: string }[] }
  return errors.map(({ path, message }) => `${path} ${message}`)
}

const failed = (ended: ExecutionBody) => {
  const { status, errorMessage } = nodeOf(ended, 'call')
  expect(status).toBe('FAILED')
  return errorMessage ?? ''
}

describe('a request is sent with', () => {
  const baseUrl = world.url
  const basic = Buffer.from(`me:${KEY}`).toString('base64')
  test.each<[string, object, Record<string, string>]>([
    ['HTTP_BASIC', { username: 'me', password: KEY }, { authorization: `Basic ${basic}` }],
    ['HTTP_BEARER', { token: KEY }, { authorization: `Bearer ${KEY}` }],
    ['HTTP_HEADER', { name: 'X-Odd', value: KEY }, { 'x-odd': KEY }],
    [
      'OPENAI',
      { apiKey: KEY, organization: 'o', baseUrl },
      { authorization: `Bearer ${KEY}`, 'openai-organization': 'o' },
    ],
    ['ANTHROPIC', { apiKey: KEY, baseUrl }, { 'x-api-key': KEY, 'anthropic-version': '2023-06-01' }],
    ['AZURE_OPENAI', { apiKey: KEY, endpoint: baseUrl }, { 'api-key': KEY }],
    ['GOOGLE_AI', { apiKey: KEY, baseUrl }, { 'x-goog-api-key': KEY }],
    ['OPENAI_COMPATIBLE', { apiKey: KEY, baseUrl }, { authorization: `Bearer ${KEY}` }],
    ['SLACK', { botToken: KEY, baseUrl }, { authorization: `Bearer ${KEY}` }],
    ['DISCORD', { botToken: KEY, baseUrl }, { authorization: `Bot ${KEY}` }],
    ['NOTION', { apiKey: KEY, baseUrl }, { authorization: `Bearer ${KEY}`, 'notion-version': '2022-06-28' }],
    ['AIRTABLE', { apiKey: KEY, baseUrl }, { authorization: `Bearer ${KEY}` }],
  ])('%s', async (type, data, headers) => {
    expect((await sent(type, data)).headers).toMatchObject(headers)
  })

  test('HTTP_CUSTOM: all of its headers and parameters, masked wherever they turn up', async () => {
    const data = {
      headers: [`apikey: ${KEY}`, 'Authorization:Bearer of-the-bearer'],
      query: ['k=a&b=c', 't=ü'],
    }
    const { url, headers } = await sent('HTTP_CUSTOM', data, { query: { q: '1' } })
    expect(headers).toMatchObject({ apikey: KEY, authorization: 'Bearer of-the-bearer' })
    expect(url).toBe('/echo?q=1&k=a%26b%3Dc&t=%C3%BC')
    const credentialId = await make('HTTP_CUSTOM', {
      headers: [`X-One: ${KEY}`, 'Authorization: Bearer another-secret-of-it'],
    })
    const ended = await run({ url: `${world.url}/busy`, credentialId })
    expect(JSON.stringify(ended)).not.toContain('another-secret-of-it')
    const echoed = await run({ url: `${world.url}/echo`, credentialId })
    expect(JSON.stringify(echoed)).toContain('authorization')
    for (const secret of [KEY, 'another-secret-of-it']) expect(JSON.stringify(echoed)).not.toContain(secret)
  })

  test('HTTP_CUSTOM, whose lines must be pairs', async () => {
    const data = {
      headers: ['X-Key: a', 'no pair', 'x-key: b', 'Bad Name: c', 'X-Line: a\nX-More: b', 'X-None:'],
      query: ['=a', 'b', 'c=', 'd=1'],
    }
    const json = { name: 'lines', type: 'HTTP_CUSTOM', teamId: host.teamId, data }
    const response = await host.request('/api/credentials', { method: 'POST', as: host.admin, json })
    expect(response.status).toBe(400)
    const { errors } = (await response.json()) as { errors: { path: string; message: string }[] }
    expect(errors.map(({ path, message }) => `${path} ${message}`)).toEqual([
      ...[1, 3, 4, 5].map((at) => `data.headers[${at}] must be written as Name: value`),
      'data.headers must not have a name twice',
      ...[0, 1, 2].map((at) => `data.query[${at}] must be written as name=value`),
    ])
    const twice = { ...json, data: { headers: ['X-Key: a', 'x-key: b'] } }
    expect(
      (await host.request('/api/credentials', { method: 'POST', as: host.admin, json: twice })).status,
    ).toBe(400)
    const none = await host.request('/api/credentials', {
      ...{ method: 'POST', as: host.admin, json: { ...json, data: {} } },
    })
    expect(await none.json()).toMatchObject({
      errors: [{ path: 'data.headers', message: 'is required unless query is given' }],
    })
  })

  test('HTTP_QUERY, beside what is there', async () => {
    const { url } = await sent('HTTP_QUERY', { name: 'key', value: KEY }, { query: { q: 'a b' } })
    expect(url).toBe(`/echo?q=a+b&key=${encodeURIComponent(KEY)}`)
  })

  test('a version that the node sets itself', async () => {
    const headers = { 'Anthropic-Version': '2099-01-01' }
    expect((await sent('ANTHROPIC', { apiKey: KEY, baseUrl }, { headers })).headers).toMatchObject({
      'anthropic-version': '2099-01-01',
      'x-api-key': KEY,
    })
    const url = `${world.url}/echo?api-version=mine`
    const azure = { apiKey: KEY, endpoint: baseUrl, apiVersion: 'usual' }
    expect((await sent('AZURE_OPENAI', azure, { url })).url).toBe('/echo?api-version=mine')
    expect((await sent('AZURE_OPENAI', azure)).url).toBe('/echo?api-version=usual')
  })

  test('the header of the credential, if a name that is computed is the same', async () => {
    const { headers } = await sent(
      'HTTP_HEADER',
      { name: 'X-Odd', value: KEY },
      { headers: { 'x-odd': 'mine' } },
    )
    expect(headers['x-odd']).toBe(KEY)
  })
})

describe('AWS', () => {
  const data = {
    accessKeyId: 'AKIDEXAMPLE',
    secretAccessKey: KEY,
    region: 'eu-central-1',
    baseUrl: world.url,
  }

  /** The signature that the server expects, by AWS's own description of it. */
  function sign({ method, url, headers, body }: Seen, service: string, asItIs = false): string {
    const { authorization = '' } = headers
    const [, scope = '', names = ''] =
      /Credential=[^/]+\/([^,]+), SignedHeaders=([^,]+)/.exec(authorization) ?? []
    const encode = (text: string) =>
      encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
    const [path = '', search = ''] = url.split('?')
    const pairs = search.split('&').filter((pair) => pair !== '')
    const query = pairs
      .map((pair) => {
        const [name = '', value = ''] = pair.split('=')
        const read = (text: string) => encode(decodeURIComponent(text.replaceAll('+', ' ')))
        return `${read(name)}=${read(value)}`
      })
      .sort()
    const hash = (text: string) => createHash('sha256').update(text).digest('hex')
    const canonical = [
      method,
      path
        .split('/')
        .map((part) => (asItIs ? encode(decodeURIComponent(part)) : encode(part)))
        .join('/'),
      query.join('&'),
      ...names.split(';').map((name) => `${name}:${headers[name]}`),
      '',
      names,
      hash(body),
    ].join('\n')
    expect(headers['x-amz-content-sha256']).toBe(hash(body))
    const text = ['AWS4-HMAC-SHA256', headers['x-amz-date'], scope, hash(canonical)].join('\n')
    const [date = '', region = ''] = scope.split('/')
    const key = [date, region, service, 'aws4_request'].reduce<string | Buffer>(
      (made, part) => createHmac('sha256', made).update(part).digest(),
      `AWS4${KEY}`,
    )
    return createHmac('sha256', key).update(text).digest('hex')
  }
  const signatureOf = ({ headers }: Seen) => /Signature=(\w+)$/.exec(headers.authorization ?? '')?.[1]

  test('signs path, query, headers and body', async () => {
    const request = await sent(
      'AWS',
      { ...data, service: 'execute-api', sessionToken: 'a-session-token' },
      {
        method: 'POST',
        url: `${world.url}/echo?z=1&a=%C3%BC`,
        query: { 'b c': 'x y', list: ['2', '1'] },
        headers: { 'X-Amz-Target': 'Service.Do', 'X-Other': 'o' },
        body: { text: 'ä' },
      },
    )
    expect(signatureOf(request)).toBe(sign(request, 'execute-api'))
    expect(request.headers).toMatchObject({ 'x-amz-security-token': 'a-session-token', 'x-other': 'o' })
    const { authorization } = request.headers
    expect(authorization).toContain(
      'content-type;host;x-amz-content-sha256;x-amz-date;x-amz-security-token;x-amz-target',
    )
  })

  test('signs again for a redirect at the same origin, and an empty body', async () => {
    const request = await sent('AWS', { ...data, service: 'sqs' }, { url: `${world.url}/near` })
    expect(request.url).toBe('/echo?a=%20b&c')
    expect(signatureOf(request)).toBe(sign(request, 'sqs'))
  })

  test('takes the path of S3 as it is', async () => {
    const opened = {
      id: '',
      teamId: '',
      name: '',
      type: 'AWS' as const,
      revision: 1,
      expiresAt: null,
      broken: null,
    }
    const told: string[] = []
    const { authorize } = await authorizeWith(
      { ...opened, data: { ...data, baseUrl: '' } },
      { tell: (secret) => void told.push(secret) },
    )
    const url = new URL('https://bucket.s3.eu-central-1.amazonaws.com/a%20b/c:d+e?list-type=2')
    const { headers = {} } = (await authorize?.({ method: 'GET', url, headers: {}, body: null })) ?? {}
    const request = {
      method: 'GET',
      url: url.pathname + url.search,
      headers: { ...headers, host: url.host },
      body: '',
    }
    expect(signatureOf(request)).toBe(sign(request, 's3', true))
    expect(told).toEqual([signatureOf(request)])
  })
})

describe('a credential stays where it belongs', () => {
  test('a redirect to another origin gets nothing of it', async () => {
    for (const [type, data] of [
      ['HTTP_HEADER', { name: 'X-Odd', value: KEY }],
      ['HTTP_QUERY', { name: 'key', value: KEY }],
      ['HTTP_CUSTOM', { headers: [`X-Odd: ${KEY}`, `Authorization: ${KEY}`], query: [`key=${KEY}`] }],
      ['HTTP_BASIC', { username: 'u', password: KEY }],
      ['AWS', { accessKeyId: 'AKID', secretAccessKey: KEY, region: 'x', service: 's', baseUrl: world.url }],
    ] as const) {
      seen.length = 0
      const credentialId = await make(type, data)
      const ended = await run({ url: `${world.url}/away?a=1`, credentialId })
      if (type === 'AWS') {
        expect(failed(ended)).toContain('the credential must not be sent to')
        expect(seen).toEqual([])
        continue
      }
      expect(seen).toMatchObject([{ method: 'AWAY', url: '/x?a=1' }])
      const { headers } = seen[0]!
      expect(Object.keys(headers)).not.toEqual(expect.arrayContaining(['x-odd']))
      expect(headers.authorization).toBeUndefined()
    }
  })

  test('nor does one to a host that it does not allow: the node fails, and is not tried again', async () => {
    const credentialId = await make('HTTP_BEARER', { token: KEY, allowedHosts: [new URL(world.url).host] })
    seen.length = 0
    const ended = await host.run(
      graph({ url: `${world.url}/away`, credentialId }, { retry: { maxAttempts: 3 } }),
    )
    expect(failed(ended)).toBe(`GET failed: the credential must not be sent to ${new URL(away.url).host}`)
    expect([nodeOf(ended, 'call').retryCount, seen.length]).toEqual([0, 0])
  })

  test('a vendor’s key goes to the vendor only, and not without TLS', () => {
    const hosts = (type: CredentialType, data: CredentialData) => listAllowedHosts({ type, data })
    expect(hosts('OPENAI', { apiKey: 'k' })).toEqual(['api.openai.com:443'])
    expect(hosts('OPENAI', { apiKey: 'k', baseUrl: 'http://proxy.test:81/v1' })).toEqual(['proxy.test:81'])
    expect(hosts('AZURE_OPENAI', { apiKey: 'k', endpoint: 'https://x.test/' })).toEqual(['x.test:443'])
    expect(hosts('AWS', {})).toEqual(['*.amazonaws.com:443', '*.amazonaws.com.cn:443'])
    expect(hosts('HTTP_BEARER', { token: 't' })).toBeUndefined()
  })

  test.each([
    ['{{ $input.url }}', false],
    ['http://{{ $input.host }}/echo', false],
    ['http://127.0.0.1{{ $input.rest }}', false],
    ['http://me:{{ $input.rest }}@127.0.0.1/', false],
    ['={{ $json.url }}', false],
    ['=http://127.0.0.1:{{ $json.port }}/x', false],
    ['http://127.0.0.1/{{ $input.rest }}', true],
    ['=http://127.0.0.1?a={{ $json.a }}', true],
    ['http://127.0.0.1/echo', true],
  ])('%s may be saved with a credential for anywhere: %s', async (url, fits) => {
    const anywhere = await make('HTTP_BEARER', { token: KEY })
    const bound = await make('HTTP_BEARER', { token: KEY, allowedHosts: ['127.0.0.1'] })
    const draw = (credentialId: string) => ({ ...graph({ url, credentialId }), expressions: 2 as const })
    await host.create(draw(bound))
    if (fits) await host.create(draw(anywhere))
    else
      expect(await faultsOf(draw(anywhere))).toEqual([
        expect.stringMatching(/^nodes\[1\]\.config\.url must have its host written in it/),
      ])
  })

  test('an open host is refused too if the hosts are taken away after the save', async () => {
    const credentialId = await make('HTTP_BEARER', { token: KEY, allowedHosts: ['127.0.0.1'] })
    const id = await host.create(graph({ url: '{{ $input.url }}', credentialId }))
    const data = { url: `${world.url}/echo` }
    expect((await host.ended(await host.execute(id, data))).status).toBe('SUCCESS')
    await host.ask('PUT', `/api/credentials/${credentialId}`, {
      data: { token: KEY, allowedHosts: null },
    })
    expect(failed(await host.ended(await host.execute(id, data)))).toContain(
      'url must have its host written in it',
    )
  })

  test('a header that both would set is refused where it can be seen', async () => {
    const credentialId = await make('HTTP_BEARER', { token: KEY })
    const headers = { AUTHORIZATION: '{{ $input.a }}', 'X-Other': 'x' }
    expect(await faultsOf(graph({ url: world.url, credentialId, headers }))).toEqual([
      'nodes[1].config.headers.AUTHORIZATION is set by the credential: leave it out',
    ])
  })

  test('the headers that are refused are those that the types set', async () => {
    const opened = { id: '', teamId: '', name: '', revision: 1, expiresAt: null, broken: null }
    const url = new URL('https://a.test')
    for (const [type, names] of Object.entries(CREDENTIAL_HEADERS)) {
      if (type === 'OAUTH2' || type === 'GOOGLE_SERVICE_ACCOUNT') continue
      const data = {
        ...{ token: 't', apiKey: 'k', botToken: 'b', organization: 'o', username: 'u', password: 'p' },
        ...{ accessKeyId: 'a', secretAccessKey: 's', sessionToken: 't', region: 'r', service: 's' },
      }
      const { authorize } = await authorizeWith(
        { ...opened, type: type as CredentialType, data },
        { tell() {} },
      )
      const { headers = {} } = (await authorize?.({ method: 'GET', url, headers: {}, body: null })) ?? {}
      const own = Object.keys(headers).filter((name) => !/-version$|content-sha256$/.test(name))
      expect([type, own.sort()]).toEqual([type, [...(names ?? [])].sort()])
    }
  })

  test('values stay within their part of the path or query', async () => {
    const config = { url: `${world.url}/echo?user={{ $input.user }}&to={{ $input.to }}` }
    const input = { user: 'a&key=b#c', to: 'ä/?' }
    expect((await sent('HTTP_BEARER', { token: KEY }, config, input)).url).toBe(
      '/echo?user=a%26key%3Db%23c&to=%C3%A4%2F%3F',
    )
    const credentialId = await make('HTTP_BEARER', { token: KEY })
    seen.length = 0
    for (const part of ['..', '.', '%2e%2e', '.%2E']) {
      const ended = await run({ url: `${world.url}/a/{{ $input.part }}/echo`, credentialId }, { part })
      // A percent sign is encoded itself, so that only the plain dots are left.
      if (part.includes('%')) expect(failed(ended)).toContain('404')
      else expect(failed(ended)).toContain('has a part of its path that is . or ..')
    }
    for (const part of ['../echo', 'x/../../echo', '\\..\\echo', '@evil.test/', '\t/'])
      expect(
        failed(await run({ url: `${world.url}/a/{{ $input.part }}`, credentialId }, { part })),
      ).toContain('404')
    expect(seen).toEqual([])
  })

  test('a request that needs one and names none is never sent: a warning says so, and the node', async () => {
    seen.length = 0
    const config = { url: `${world.url}/echo`, needsCredential: 'the key of the shop' }
    const json = { name: `needs ${made++}`, teamId: host.teamId, ...graph(config) }
    const workflow = await host.ask<{ id: string; warnings: object[] }>('POST', '/api/workflows', json)
    const warning = {
      path: 'nodes[1].config.credentialId',
      message: 'must be set before the request can be sent: it needs the key of the shop',
    }
    expect(workflow.warnings).toContainEqual(warning)
    expect((await host.ask<{ warnings: object[] }>('GET', `/api/workflows/${workflow.id}`)).warnings).toEqual(
      [warning],
    )
    expect(failed(await run(config))).toBe(
      'Nothing was sent, because no credential is chosen. It needs the key of the shop',
    )
    expect(seen).toEqual([])
    const credentialId = await make('HTTP_BEARER', { token: KEY })
    expect((await run({ ...config, credentialId })).status).toBe('SUCCESS')
    expect(seen).toHaveLength(1)
  })

  test('an id that is none, or that is deleted, fails without another try', async () => {
    const credentialId = await make('HTTP_BEARER', { token: KEY })
    const id = await host.create(
      graph({ url: `${world.url}/echo`, credentialId }, { retry: { maxAttempts: 3 } }),
    )
    await host.ask('DELETE', `/api/credentials/${credentialId}?force=true`)
    seen.length = 0
    const ended = await host.ended(await host.execute(id))
    expect(failed(ended)).toBe('The credential no longer exists')
    expect([nodeOf(ended, 'call').retryCount, seen.length]).toEqual([0, 0])
  })
})

describe('what a call leaves behind', () => {
  const forms = [KEY, encodeURIComponent(KEY), JSON.stringify(KEY).replaceAll('/', '\\/').slice(1, -1)]
  const expectNothing = (value: unknown) => {
    const text = JSON.stringify(value)
    for (const form of forms) expect(text).not.toContain(form)
    return text
  }
  const requestsOf = (ended: ExecutionBody) =>
    until(() => host.ask<{ content: Record<string, unknown>[] }>('GET', requestsPath(ended)), {
      holds: ({ content }) => content.length > 0 && content.every(({ durationMs }) => durationMs !== null),
    })
  const requestsPath = (ended: ExecutionBody) =>
    `/api/executions/${ended.id}/nodes/${nodeOf(ended, 'call').id}/requests`

  test('an echo is masked in the output and in the request, and a token of a login stays of use', async () => {
    const credentialId = await make('HTTP_BEARER', { token: KEY })
    const ended = await run({ url: `${world.url}/echo`, credentialId })
    expect(expectNothing(ended)).toContain('Bearer [redacted]')
    expect(expectNothing(await requestsOf(ended))).toContain('"authorization":"[redacted]"')
    const login = await run({ url: `${world.url}/token`, credentialId })
    expect(nodeOf(login, 'call').outputData).toMatchObject({ body: { access_token: 'a-token-of-use' } })
  })

  test('in a large output too, however the server writes JSON and in whatever character set', async () => {
    const credentialId = await make('HTTP_BEARER', { token: KEY })
    for (const path of ['big', 'wide']) {
      const id = await host.create({
        nodes: [
          ...graph({ url: `${world.url}/${path}`, credentialId }).nodes,
          { id: 'read', type: 'SET', config: { values: { key: '{{ $nodes.call.body.key }}' } } },
        ],
        edges: edges('start -> call', 'call -> read'),
      })
      const ended = await host.ended(await host.execute(id))
      expect([path, ended.status]).toEqual([path, 'SUCCESS'])
      expect(nodeOf(ended, 'read').outputData).toMatchObject({ key: '[redacted]' })
      expectNothing(ended)
    }
  })

  test('in a file of text that an answer becomes, but not in one of other bytes', async () => {
    const credentialId = await make('HTTP_BEARER', { token: KEY })
    async function fetchFile(type: string) {
      const url = `${world.url}/file?type=${encodeURIComponent(type)}`
      const ended = await run({ url, credentialId, responseType: 'file' })
      const { body } = nodeOf(ended, 'call').outputData as {
        body: { file: { id: string; bytes: number; mimeType: string } }
      }
      const response = await host.request(`/api/executions/${ended.id}/files/${body.file.id}`, {
        as: host.admin,
      })
      const text = await response.text()
      expect(text).toHaveLength(body.file.bytes)
      return text
    }
    for (const type of [
      'text/plain; charset=utf-8',
      'application/x-yaml',
      'application/problem+xml',
      'text/csv',
    ])
      expect([type, await fetchFile(type)]).toEqual([type, 'got [redacted], Bearer [redacted].'])
    expect(await fetchFile('application/zip')).toBe(`got ${KEY}, Bearer ${KEY}.`)
  })

  test('in errors, while the node is tried again too, and where a text is cut', async () => {
    const credentialId = await make('HTTP_BEARER', { token: KEY })
    const retry = { maxAttempts: 2, initialIntervalMs: 1_000 }
    const id = await host.execute(
      await host.create(graph({ url: `${world.url}/busy`, credentialId }, { retry })),
    )
    const waiting = await host.until(id, (one) =>
      one.nodeExecutions.some((node) => node.nextAttemptAt !== null),
    )
    expect(nodeOf(waiting, 'call').errorMessage).toMatch(/503: no: Bearer \[redacted\]$/)
    expectNothing(await host.ended(id))
    const cut = failed(await run({ url: `${world.url}/cut`, credentialId }))
    expect(cut).toContain('responded with 500')
    expect(cut).not.toContain('canary')
  })
})
