import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, describe, expect, test } from 'vitest'
import { CREDENTIAL_CHECKS } from '../../../activities/credentials/checks/checks.ts'
import { createOutsides } from '../../../activities/egress/outside.ts'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

const outside = createOutsides({ allowLoopback: true, allow: [] })
afterAll(() => outside.close())
const service = await keep(startService({ rateLimits: false, outside }))
const { store, teamId, call } = service
const builder = await service.signUp('BUILDER')
const operator = await service.signUp('OPERATOR')
const stranger = await service.otherTeam()

type Seen = { method: string; url: string; headers: IncomingMessage['headers']; body: string }
type Answer = (seen: Seen, response: ServerResponse) => unknown

/** A server that answers as `answer` says, until the next test. */
const seen: Seen[] = []
let answer: Answer = (_, response) => response.end('{}')
const server = createServer(async (request, response) => {
  const { method = '', url = '', headers } = request
  const one = { method, url, headers, body: await text(request) }
  seen.push(one)
  answer(one, response)
}).listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address() as AddressInfo
const base = `http://127.0.0.1:${port}`
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

const json = (value: unknown, status = 200) => {
  const given: Answer = (_, response) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
  return given
}

let made = 0
async function make(type: string, data: object): Promise<string> {
  const input = { name: `${type} ${made++}`, type, teamId, data }
  const { status, body, text: said } = await call('POST', '/api/credentials', builder.cookie, input)
  expect([status, said]).toEqual([201, expect.anything()])
  return body.id
}

const tryOut = (id: string, as = builder.cookie, team = teamId) =>
  call('POST', `/api/credentials/${id}/test?teamId=${team}`, as)

async function check(type: string, data: object, given: Answer) {
  answer = given
  seen.length = 0
  const id = await make(type, data)
  const { status, body } = await tryOut(id)
  expect(status).toBe(200)
  expect(body).toEqual({
    status: expect.stringMatching(/^(SUCCESS|FAILED)$/),
    message: expect.any(String),
    testedAt: expect.stringMatching(/Z$/),
  })
  const stored = await call('GET', `/api/credentials/${id}`, builder.cookie)
  expect(stored.body).toMatchObject({
    testStatus: body.status,
    testMessage: body.message,
    lastTestedAt: body.testedAt,
  })
  return { id, status: body.status as string, message: body.message as string, request: seen[0] }
}

const KEY = 'canary-5f2c7a90b1'

/** How each vendor is asked, and what it answers if it takes the credential. */
const VENDORS: [string, object, unknown, Partial<Seen>, string][] = [
  [
    'OPENAI',
    { apiKey: KEY, baseUrl: `${base}/v1/`, organization: 'org-1' },
    { data: [{ id: 'a' }, { id: 'b' }] },
    {
      method: 'GET',
      url: '/v1/models',
      headers: { authorization: `Bearer ${KEY}`, 'openai-organization': 'org-1' },
    },
    'Signed in: 2 models',
  ],
  [
    'ANTHROPIC',
    { apiKey: KEY, baseUrl: base },
    { data: [{ id: 'a' }] },
    { url: '/v1/models', headers: { 'x-api-key': KEY, 'anthropic-version': '2023-06-01' } },
    'Signed in: 1 model',
  ],
  [
    'AZURE_OPENAI',
    { apiKey: KEY, endpoint: base, apiVersion: '2025-01-01' },
    { data: [] },
    { url: '/openai/models?api-version=2025-01-01', headers: { 'api-key': KEY } },
    'Signed in: 0 models',
  ],
  [
    'GOOGLE_AI',
    { apiKey: KEY, baseUrl: base },
    { models: [{}] },
    { url: '/v1beta/models', headers: { 'x-goog-api-key': KEY } },
    'Signed in: 1 model',
  ],
  [
    'OPENAI_COMPATIBLE',
    { apiKey: KEY, baseUrl: `${base}/v1` },
    { data: [] },
    { url: '/v1/models', headers: { authorization: `Bearer ${KEY}` } },
    'Signed in: 0 models',
  ],
  [
    'SLACK',
    { botToken: KEY, baseUrl: `${base}/api` },
    { ok: true, user: 'robot', team: 'Acme' },
    { method: 'POST', url: '/api/auth.test', headers: { authorization: `Bearer ${KEY}` } },
    'Signed in as robot in Acme',
  ],
  [
    'TELEGRAM',
    { botToken: `123:${KEY}`, baseUrl: base },
    { ok: true, result: { username: 'robot' } },
    { url: `/bot123:${KEY}/getMe` },
    'Signed in as robot',
  ],
  [
    'DISCORD_WEBHOOK',
    { webhookUrl: `${base}/api/webhooks/1/${KEY}` },
    { name: 'news' },
    { url: `/api/webhooks/1/${KEY}` },
    'It is the webhook news',
  ],
  [
    'MATTERMOST',
    { accessToken: KEY, baseUrl: base },
    { username: 'robot' },
    { url: '/api/v4/users/me', headers: { authorization: `Bearer ${KEY}` } },
    'Signed in as robot',
  ],
  [
    'WHATSAPP',
    { accessToken: KEY, baseUrl: base },
    { name: 'Acme' },
    { url: '/me', headers: { authorization: `Bearer ${KEY}` } },
    'Signed in as Acme',
  ],
  [
    'TWILIO',
    { accountSid: 'AC1', authToken: KEY, baseUrl: base },
    { friendly_name: 'Acme' },
    {
      url: '/Accounts/AC1.json',
      headers: { authorization: `Basic ${Buffer.from(`AC1:${KEY}`).toString('base64')}` },
    },
    'Signed in as Acme',
  ],
  [
    'DISCORD',
    { botToken: KEY, baseUrl: base },
    { username: 'robot' },
    { url: '/users/@me', headers: { authorization: `Bot ${KEY}` } },
    'Signed in as robot',
  ],
  [
    'NOTION',
    { apiKey: KEY, baseUrl: base },
    { name: 'Robot' },
    { url: '/v1/users/me', headers: { authorization: `Bearer ${KEY}`, 'notion-version': '2022-06-28' } },
    'Signed in as Robot',
  ],
  [
    'AIRTABLE',
    { apiKey: KEY, baseUrl: base },
    { id: 'usr1' },
    { url: '/v0/meta/whoami', headers: { authorization: `Bearer ${KEY}` } },
    'Signed in as usr1',
  ],
  [
    'AWS',
    { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: KEY, region: 'eu-central-1', baseUrl: base },
    { GetCallerIdentityResponse: { GetCallerIdentityResult: { Arn: 'arn:aws:iam::1:user/robot' } } },
    { method: 'POST', url: '/', body: 'Action=GetCallerIdentity&Version=2011-06-15' },
    'Signed in as arn:aws:iam::1:user/robot',
  ],
  [
    'HTTP_BASIC',
    { username: 'u', password: KEY, testUrl: `${base}/me` },
    {},
    { url: '/me', headers: { authorization: `Basic ${Buffer.from(`u:${KEY}`).toString('base64')}` } },
    `127.0.0.1:${port} takes it`,
  ],
  [
    'HTTP_QUERY',
    { name: 'key', value: KEY, testUrl: `${base}/me?a=1`, allowedHosts: ['127.0.0.1'] },
    {},
    { url: `/me?a=1&key=${KEY}` },
    `127.0.0.1:${port} takes it`,
  ],
]

describe('a test', () => {
  test.each(VENDORS)('of %s asks as the vendor says', async (type, data, body, request, message) => {
    const tested = await check(type, data, json(body))
    expect(tested).toMatchObject({ status: 'SUCCESS', message, request })
    expect(seen).toHaveLength(1)
  })

  test.each(VENDORS)('of %s fails if the vendor refuses, without the secret', async (type, data) => {
    const refuses: Answer = ({ headers, url }, response) => {
      response.writeHead(401).end(JSON.stringify({ ok: false, error: 'invalid', echo: { headers, url } }))
    }
    const { status, message } = await check(type, data, refuses)
    expect(status).toBe('FAILED')
    expect(message).toContain(`127.0.0.1:${port} refuses the credential with 401`)
    for (const form of [
      KEY,
      Buffer.from(KEY).toString('hex'),
      Buffer.from(KEY).toString('base64').slice(0, -4),
    ])
      expect(message).not.toContain(form)
  })

  test('has nothing of a secret that the excerpt of a response cuts in two', async () => {
    const long: Answer = (_, response) => response.writeHead(401).end(`${'y'.repeat(188)} ${KEY} and more`)
    const { message } = await check('HTTP_BEARER', { token: KEY, testUrl: base }, long)
    expect(message).toMatch(/yy \[redacted\]\.\.\.$/)
  })

  test('of a header finds the token behind its scheme, and the values of cookies', async () => {
    const echo = (text: string): Answer => {
      return (_, response) => response.writeHead(401).end(text)
    }
    const header = (value: string) => ({ name: 'X-Auth', value, testUrl: base })
    for (const value of [
      `Token ${KEY}`,
      `Basic ${Buffer.from(`me:${KEY}`).toString('base64')}`,
      `Basic ${Buffer.from(`${KEY}:x`).toString('base64')}`,
      `lang=en; sid=${KEY}`,
      `Token token="${KEY}"`,
    ]) {
      const { message } = await check(
        'HTTP_HEADER',
        header(value),
        echo(`no such key: (${KEY}), Token or lang en`),
      )
      expect(message, value).toContain('no such key: ([redacted]), Token or lang en')
    }
  })

  test('takes a user name without a password for a key', async () => {
    const echo: Answer = (_, response) => response.writeHead(401).end(`no such key: ${KEY}`)
    const of = (password: string) => check('HTTP_BASIC', { username: KEY, password, testUrl: base }, echo)
    for (const none of ['', 'x', 'api']) expect((await of(none)).message).toContain('no such key: [redacted]')
    const known: Answer = (_, response) =>
      response.writeHead(401).end('admin is no friend of ada@example.com')
    for (const username of ['admin', 'ada@example.com'])
      expect((await check('HTTP_BASIC', { username, password: '', testUrl: base }, known)).message).toContain(
        'admin is no friend of ada@example.com',
      )
    expect((await of('a password')).message).toContain(`no such key: ${KEY}`)
  })

  test('of Slack and Telegram heeds an error that comes with the status 200', async () => {
    const no = json({ ok: false, error: 'invalid_auth', description: 'Unauthorized' })
    expect(await check('SLACK', { botToken: KEY, baseUrl: base }, no)).toMatchObject({
      status: 'FAILED',
      message: 'Slack refuses it: invalid_auth',
    })
    expect(await check('TELEGRAM', { botToken: KEY, baseUrl: base }, no)).toMatchObject({
      status: 'FAILED',
      message: 'Telegram refuses it: Unauthorized',
    })
  })

  test('of what cannot be tried says so', async () => {
    expect(await check('HTTP_BEARER', { token: KEY }, json({}))).toMatchObject({
      status: 'SUCCESS',
      message: 'Its data is complete. Nothing was tried with it: set testUrl to have a request sent',
    })
    expect(await check('SIGNATURE', { secret: KEY }, json({}))).toMatchObject({ status: 'SUCCESS' })
    expect(await check('DEMO', {}, json({}))).toMatchObject({ status: 'SUCCESS', message: 'It needs no key' })
    expect(seen).toEqual([])
  })

  test('goes to no host that the credential does not allow, and to no address that the rules refuse', async () => {
    const elsewhere = { token: KEY, testUrl: base, allowedHosts: ['api.example.com'] }
    expect(await check('HTTP_BEARER', elsewhere, json({}))).toMatchObject({
      status: 'FAILED',
      message: `the credential must not be sent to 127.0.0.1:${port}`,
    })
    expect(
      await check('OPENAI', { apiKey: KEY, baseUrl: 'http://169.254.169.254/v1' }, json({})),
    ).toMatchObject({ status: 'FAILED', message: expect.stringContaining('169.254.169.254') })
    expect(seen).toEqual([])
  })

  test('is BUILDERs’, of the team that is named', async () => {
    const id = await make('DEMO', {})
    const without = await call('POST', `/api/credentials/${id}/test`, builder.cookie)
    expect([without.status, without.body.errors[0].path]).toEqual([400, 'teamId'])
    expect((await tryOut(id, operator.cookie)).status).toBe(403)
    expect((await tryOut(id, stranger.cookie)).status).toBe(403)
    const other = await tryOut(id, stranger.cookie, stranger.teamId)
    const absent = await tryOut('0190f0a0-0000-7000-8000-000000000000', stranger.cookie, stranger.teamId)
    expect([other.status, other.body.message]).toEqual([404, absent.body.message])
    expect((await call('GET', `/api/credentials/${id}`, builder.cookie)).body.testStatus).toBeNull()
  })

  test('is in the audit log, without the message', async () => {
    await check('HTTP_BEARER', { token: KEY, testUrl: base }, json({}, 500))
    const entry = await store.db
      .selectFrom('auditEntries')
      .selectAll()
      .where('action', '=', 'CREDENTIAL_TESTED')
      .orderBy('seq', 'desc')
      .executeTakeFirstOrThrow()
    expect(JSON.stringify(entry)).toContain('FAILED')
    expect(JSON.stringify(entry)).not.toContain(KEY)
  })
})

describe('while a test is under way', () => {
  /** A credential whose test has reached the server, which answers when `go` is called. */
  async function begin() {
    const { promise: reached, resolve: reach } = Promise.withResolvers<void>()
    const { promise: free, resolve: go } = Promise.withResolvers<void>()
    answer = async (_, response) => {
      reach()
      await free
      response.end('{}')
    }
    const id = await make('HTTP_BEARER', { token: KEY, testUrl: base })
    const testing = tryOut(id)
    await reached
    return { id, testing, go }
  }

  /** What the audit says of the last test of a credential. */
  const lastTest = async (id: string) =>
    (
      await store.db
        .selectFrom('auditEntries')
        .select('details')
        .where('action', '=', 'CREDENTIAL_TESTED')
        .where('resourceId', '=', id)
        .orderBy('seq', 'desc')
        .executeTakeFirst()
    )?.details

  test('a change of the data makes its result worth nothing, a new name does not', async () => {
    const changed = await begin()
    await call('PUT', `/api/credentials/${changed.id}`, builder.cookie, { data: { token: 'another' } })
    changed.go()
    expect((await changed.testing).body).toMatchObject({
      status: 'FAILED',
      message: 'It was changed while it was tested: test it again',
    })
    const stored = await call('GET', `/api/credentials/${changed.id}`, builder.cookie)
    expect(stored.body).toMatchObject({ testStatus: null, lastTestedAt: null })
    // The secret was sent all the same.
    expect(await lastTest(changed.id)).toMatchObject({ status: 'SUCCESS', meanwhile: 'changed' })
    const renamed = await begin()
    await call('PUT', `/api/credentials/${renamed.id}`, builder.cookie, { name: 'another name' })
    renamed.go()
    expect((await renamed.testing).body).toMatchObject({ status: 'SUCCESS' })
  })

  test('the credential may be deleted, and the right may be taken away', async () => {
    const gone = await begin()
    await call('DELETE', `/api/credentials/${gone.id}`, builder.cookie)
    gone.go()
    expect((await gone.testing).status).toBe(404)
    expect(await lastTest(gone.id)).toMatchObject({ status: 'SUCCESS', meanwhile: 'deleted' })
    const demoted = await begin()
    await store.db.updateTable('members').set({ role: 'OPERATOR' }).where('userId', '=', builder.id).execute()
    demoted.go()
    expect((await demoted.testing).status).toBe(403)
    await store.db.updateTable('members').set({ role: 'BUILDER' }).where('userId', '=', builder.id).execute()
  })

  test('a second one begins, a third does not', async () => {
    const first = await begin()
    const second = await begin()
    const third = await tryOut(await make('DEMO', {}))
    expect([third.status, third.headers.get('retry-after')]).toEqual([429, '5'])
    first.go()
    second.go()
    expect((await first.testing).status).toBe(200)
    expect((await second.testing).status).toBe(200)
    expect((await tryOut(await make('DEMO', {}))).status).toBe(200)
  })
})

test('a check that goes on for too long is given up', async () => {
  const { testCredential } = await import('../../../activities/credentials/test.ts')
  const { openTeamCredential } = await import('../../../db/credentials/open.ts')
  answer = () => {}
  const id = await make('HTTP_BEARER', { token: KEY, testUrl: base })
  const opened = await openTeamCredential(store, teamId, id)
  const tools = { ...(await outside.forTeam(teamId)), store }
  expect(await testCredential(opened, tools, { ms: 100 })).toEqual({
    status: 'FAILED',
    message: 'No answer within 15 s',
  })
})

test('a credential that was sealed for another is told, and not used', async () => {
  const [from, to] = [await make('HTTP_BEARER', { token: KEY }), await make('HTTP_BEARER', { token: 'x' })]
  const sealed = await store.db
    .selectFrom('credentials')
    .select(['sealed', 'wrapped'])
    .where('id', '=', from)
    .executeTakeFirstOrThrow()
  await store.db.updateTable('credentials').set(sealed).where('id', '=', to).execute()
  expect((await tryOut(to)).body).toMatchObject({
    status: 'FAILED',
    message: 'Its data cannot be opened with the keys of this service',
  })
})

test('every type that can be signed in with has a check', () => {
  const here =
    'OPENAI ANTHROPIC AZURE_OPENAI GOOGLE_AI OPENAI_COMPATIBLE SLACK TELEGRAM DISCORD DISCORD_WEBHOOK MATTERMOST'
  const more =
    'WHATSAPP TWILIO HTTP_BASIC HTTP_BEARER HTTP_HEADER HTTP_QUERY HTTP_CUSTOM NOTION AIRTABLE AWS DEMO'
  expect(Object.keys(CREDENTIAL_CHECKS)).toEqual(expect.arrayContaining(`${here} ${more}`.split(' ')))
})
