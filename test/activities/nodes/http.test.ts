import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gunzipSync, gzipSync } from 'node:zlib'
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest'
import { createEvaluator } from '../../../activities/expressions/evaluator.ts'
import { parseResponseBody } from '../../../activities/http/body.ts'
import { createHttpClient } from '../../../activities/http/http.ts'
import { runHttpRequest } from '../../../activities/nodes/http.ts'
import { NodeFailure } from '../../../activities/nodes/kit/failure.ts'
import type { NodeResult } from '../../../activities/nodes/kit/node.ts'
import { createNoteKeeper } from '../../../activities/nodes/kit/notes.ts'
import { readRetryAfter } from '../../../activities/nodes/kit/retryafter.ts'

const evaluator = createEvaluator({ processes: 1 })
const http = createHttpClient({ allowLoopback: true, allow: [] })
const strict = createHttpClient({ allowLoopback: false, allow: [] })
afterAll(() => Promise.all([evaluator.close(), http.close(), strict.close()]))

const open: (() => void)[] = []
afterEach(() => {
  for (const close of open.splice(0)) close()
})

async function serve(listener: RequestListener) {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  open.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A server that responds with the request it got. */
const echo = () =>
  serve(async (req, res) => {
    let body = ''
    for await (const chunk of req) body += chunk
    const { method, url, headers } = req
    res.setHeader('content-type', 'application/json').end(JSON.stringify({ method, url, headers, body }))
  })

const serveResponse = (write: (res: ServerResponse) => unknown) => serve((_req, res) => void write(res))

type Echoed = { method: string; url: string; headers: Record<string, string>; body: string }
type Output = { status: number; headers: Record<string, string>; body: unknown }

async function run(config: Record<string, unknown>, input: unknown = {}, more: object = {}): Promise<Output> {
  const result = await execute(config, input, more)
  expect(result.written).toBeUndefined()
  return result.output as Output
}

async function execute(config: Record<string, unknown>, input: unknown, more: object): Promise<NodeResult> {
  const bindings = { input, nodes: {}, trigger: {}, vars: {}, execution: {} }
  const context = {
    config,
    input,
    inputs: [input],
    bindings,
    evaluator,
    notes: createNoteKeeper(),
    http,
    attempt: 1,
    answer: async () => {},
    spot: undefined as never,
    check: undefined as never,
    leads: () => false,
  }
  const signal = new AbortController().signal
  const result = await runHttpRequest({ ...context, signal, idempotencyKey: 'run:node', ...more })
  expect(result.handle).toBeUndefined()
  return result
}

/** The same for a large answer, which comes as it is stored. */
async function runLarge(config: Record<string, unknown>, more: object = {}): Promise<Output> {
  const { written } = await execute(config, {}, more)
  const text = gunzipSync(written!.zipped)
  expect(written).toMatchObject({
    bytes: text.length,
    hash: createHash('sha256').update(text).digest('hex'),
  })
  return JSON.parse(text.toString())
}

const echoed = async (config: Record<string, unknown>, input?: unknown) =>
  (await run({ url: await echo(), ...config }, input)).body as Echoed

async function failure(promise: Promise<unknown>): Promise<NodeFailure> {
  const error = await promise.then(
    () => new Error('the request did not fail'),
    (error) => error,
  )
  expect(error).toBeInstanceOf(NodeFailure)
  return error
}

describe('the request', () => {
  test('every part is rendered', async () => {
    const url = await echo()
    const output = await run(
      {
        method: '{{ $input.verb }}',
        url: `${url}/a/{{ $input.id }}?x=1`,
        headers: { 'X-Id': '{{ $input.id }}', 'X-None': '{{ $input.nothing }}', 'X-N': 5 },
        query: { q: '{{ $input.text }}', list: [1, '{{ $input.id }}'], none: null, object: { a: 1 } },
        body: { id: '{{ $input.id }}', on: true },
        timeoutMs: '{{ 5000 }}',
      },
      { verb: 'put', id: 7, text: 'a b&c' },
    )
    expect(output.status).toBe(200)
    expect(output.headers['content-type']).toBe('application/json')
    const seen = output.body as Echoed
    expect(seen).toMatchObject({
      method: 'PUT',
      body: '{"id":7,"on":true}',
      headers: { 'x-id': '7', 'x-n': '5' },
    })
    expect(seen.headers).not.toHaveProperty('x-none')
    expect(seen.headers).toMatchObject({ 'content-type': 'application/json', 'idempotency-key': 'run:node' })
    expect([...new URL(seen.url, url).searchParams]).toEqual([
      ['x', '1'],
      ['q', 'a b&c'],
      ['list', '1'],
      ['list', '7'],
      ['object', '{"a":1}'],
    ])
  })

  test('GET is the default, without a body or Idempotency-Key; a key in the config is kept', async () => {
    const seen = await echoed({})
    expect(seen).toMatchObject({ method: 'GET', body: '', headers: { 'user-agent': 'Perdure' } })
    expect(seen.headers).not.toHaveProperty('idempotency-key')
    expect(seen.headers).not.toHaveProperty('content-type')
    const own = await echoed({ method: 'POST', headers: { 'Idempotency-Key': 'mine', 'User-Agent': 'me' } })
    expect(own.headers).toMatchObject({ 'idempotency-key': 'mine', 'user-agent': 'me' })
  })

  test.each([
    ['json', { a: [1] }, '{"a":[1]}', 'application/json'],
    ['json', 5, '5', 'application/json'],
    ['json', '{"written": "by hand"}', '{"written": "by hand"}', 'application/json'],
    ['json', '{"id": {{ $input.id }}}', '{"id": 7}', 'application/json'],
    ['json', '{{ $input.text }}', '"a&b"', 'application/json'],
    ['json', '{{ $input }}', '{"id":7,"text":"a&b"}', 'application/json'],
    ['json', '{{ $input.nothing }}', '', undefined],
    [
      'form',
      { a: '{{ $input.text }}', b: [1, 2], c: null },
      'a=a%26b&b=1&b=2',
      'application/x-www-form-urlencoded',
    ],
    ['form', 'a=1&b=2', 'a=1&b=2', 'application/x-www-form-urlencoded'],
    ['text', 'id {{ $input.id }}', 'id 7', 'text/plain; charset=utf-8'],
    ['text', { a: 1 }, '{"a":1}', 'text/plain; charset=utf-8'],
  ])('sends a %s body given as %j', async (bodyType, body, sent, type) => {
    const seen = await echoed({ method: 'POST', body, bodyType }, { id: 7, text: 'a&b' })
    expect(seen.body).toBe(sent)
    expect(seen.headers['content-type']).toBe(type)
  })

  test('a content type in the config is kept', async () => {
    const seen = await echoed({
      method: 'POST',
      body: {},
      headers: { 'Content-Type': 'application/ld+json' },
    })
    expect(seen.headers['content-type']).toBe('application/ld+json')
  })

  test.each([
    ['url', { url: '{{ $input.nothing }}' }],
    ['url', { url: 'not a url' }],
    ['url', { url: 'file:///etc/passwd' }],
    ['method', { method: '{{ $input.bad }}' }],
    ['headers', { headers: '{{ 1 }}' }],
    ['headers.X-A', { headers: { 'X-A': 'a{{ $input.bad }}' } }],
    ['headers.X-A', { headers: { 'X-A': '{{ $input }}' } }],
    ['headers.bad name', { headers: { 'bad name': 'x' } }],
    ['headers.Host', { headers: { Host: 'x' } }],
    ['headers.Transfer-Encoding', { headers: { 'Transfer-Encoding': 'chunked' } }],
    ['query', { query: '{{ $input.bad }}' }],
    ['body', { method: 'POST', body: '{"name": "{{ $input.bad }}"}' }],
    ['body', { method: 'POST', bodyType: 'form', body: '{{ 5 }}' }],
    ['headers', { headers: { Authorization: '[hidden]' } }],
    ['timeoutMs', { timeoutMs: '{{ 0 }}' }],
    ['timeoutMs', { timeoutMs: '{{ "soon" }}' }],
  ])('a bad %s fails for good with a message that names it: %j', async (key, config) => {
    let hits = 0
    const url = await serveResponse((res) => res.end(String(++hits)))
    const error = await failure(run({ url, ...config }, { bad: 'x\r\nX-Evil: 1"' }))
    expect(error).toMatchObject({ type: 'InvalidConfig', retryable: false })
    expect(error.message).toMatch(new RegExp(`^${key} `))
    expect(hits).toBe(0)
  })
})

describe('the response', () => {
  const json = 'application/json'
  test.each([
    [json, '{"a":1}', undefined, { a: 1 }],
    ['application/problem+json; charset=utf-8', '[1]', undefined, [1]],
    ['text/plain', '{"a":1}', undefined, '{"a":1}'],
    ['text/plain', '{"a":1}', 'json', { a: 1 }],
    [json, '{"a":1}', 'text', '{"a":1}'],
    [json, '{broken', undefined, '{broken'],
    [json, '', 'json', null],
    ['text/plain', '', undefined, null],
    ['text/plain; charset=iso-8859-1', Buffer.from([0x67, 0xfc]), undefined, 'gü'],
    ['text/plain; charset=no-such', 'x', undefined, 'x'],
    ['text/plain', Buffer.from([0x61, 0xff, 0x00, 0x62]), undefined, 'a\ufffd\0b'],
    [
      json,
      '{"nul":"\\u0000","lone":"\\ud800","__proto__":1}',
      undefined,
      JSON.parse('{"nul":"\\u0000","lone":"\\ud800","__proto__":1}'),
    ],
    [json, '[['.repeat(50_000), undefined, '[['.repeat(50_000)],
  ])('%s with body %j and responseType %s is parsed', async (type, body, responseType, expected) => {
    const url = await serveResponse((res) => res.setHeader('content-type', type).end(body))
    const output = await run({ url, ...(responseType ? { responseType } : {}) })
    expect(output.body).toEqual(expected)
    expect(JSON.parse(JSON.stringify(output))).toEqual(output)
  })

  test.each(['{broken', 'NaN', `${'['.repeat(1_000)}${']'.repeat(1_000)}`])(
    'invalid JSON is a final failure if responseType is json: %.20s',
    async (body) => {
      const url = await serveResponse((res) => res.end(body))
      const error = await failure(run({ url, responseType: 'json' }))
      expect(error).toMatchObject({ type: 'InvalidResponse', retryable: false })
      expect(error.message).toContain('responded with 200 and a body that is')
    },
  )

  test('HEAD, 204 and 304 have no body', async () => {
    const url = await serve((req, res) => {
      res
        .writeHead(req.url === '/' ? 200 : Number(req.url?.slice(1)))
        .end(req.method === 'HEAD' ? undefined : '')
    })
    expect(await run({ url, method: 'HEAD' })).toMatchObject({ status: 200, body: null })
    expect(await run({ url: `${url}/204`, responseType: 'json' })).toMatchObject({ status: 204, body: null })
    expect(await run({ url: `${url}/304` })).toMatchObject({ status: 304, body: null })
  })
})

describe('what of a response cannot be kept as it is', () => {
  const ids =
    '{"id":9007199254740993,"list":[-12345678901234567890,1.5],"__proto__":1,"small":9007199254740992}'
  const big = ['9007199254740993', '-12345678901234567890'] as const
  const rounded = [9007199254740992, -12345678901234567000] as const
  const serveIds = (pad = '') =>
    serveResponse((res) => res.setHeader('content-type', 'application/json').end(ids + pad))
  const warn = async (config: Record<string, unknown>, read = run) => {
    const notes = createNoteKeeper()
    const output = await (read as (...all: unknown[]) => Promise<Output>)(
      config,
      ...(read === run ? [{}, { notes }] : [{ notes }]),
    )
    return { output, warnings: notes.kept().notes?.warnings }
  }

  test.each([
    ['text', big, /^2 numbers are too large .* they are texts of their digits$/],
    ['number', rounded, /^2 numbers are too large .* they were rounded$/],
  ] as const)(
    'large numbers are %s, with a warning, also of a large answer and as items',
    async (largeNumbers, [id, other], message) => {
      const how = largeNumbers === 'text' ? {} : { largeNumbers }
      const body = { id, list: [other, 1.5], small: 9007199254740992 }
      const warnings = [{ path: 'config.url', message: expect.stringMatching(message) }]
      const small = await warn({ url: await serveIds(), ...how })
      expect(small).toMatchObject({ output: { body }, warnings })
      expect(Object.entries(small.output.body as object)).toContainEqual(['__proto__', 1])
      expect(
        await warn({ url: await serveIds(' '.repeat(300_000)), ...how }, runLarge as typeof run),
      ).toMatchObject({
        output: { body },
        warnings,
      })
      expect(await warn({ url: await serveIds(), response: {}, ...how })).toMatchObject({
        output: body,
        warnings,
      })
    },
  )

  test('a body in an unknown charset is read as UTF-8, with a warning', async () => {
    const url = await serveResponse((res) =>
      res.setHeader('content-type', 'text/plain; charset=x-klingon').end('é'),
    )
    const message = 'the answer declares the charset x-klingon, which is not known: it was read as UTF-8'
    expect(await warn({ url })).toMatchObject({
      output: { body: 'é' },
      warnings: [{ path: 'config.url', message }],
    })
    expect((await warn({ url, response: { format: 'text' } })).warnings).toMatchObject([{ message }])
    const known = await serveResponse((res) =>
      res.setHeader('content-type', 'text/plain; charset=latin1').end('x'),
    )
    expect((await warn({ url: known })).warnings).toBeUndefined()
  })

  test('several Set-Cookie headers are a list, one is a text, and others are joined', async () => {
    const answer = (cookies: string | string[], size = 0) =>
      serveResponse((res) =>
        res.setHeader('set-cookie', cookies).setHeader('x-two', ['a', 'b']).end(' '.repeat(size)),
      )
    const two = ['a=1; Expires=Wed, 21 Oct 2026 07:28:00 GMT', 'b=2']
    const list = { headers: { 'set-cookie': two, 'x-two': 'a, b' } }
    expect(await run({ url: await answer(two) })).toMatchObject(list)
    expect(await runLarge({ url: await answer(two, 300_000) })).toMatchObject(list)
    expect(await run({ url: await answer(two), response: { full: true } })).toMatchObject(list)
    expect((await run({ url: await answer('a=1') })).headers['set-cookie']).toBe('a=1')
    expect((await run({ url: await answer(['a=1']) })).headers['set-cookie']).toBe('a=1')
  })
})

describe('a large response', () => {
  const json = 'application/json'
  const pad = ' '.repeat(300_000)
  test.each([
    ['as JSON', json, `{"a":1,"__proto__":2,"nul":"\\u0000","lone":"\\ud800"}${pad}`, undefined],
    ['as text', 'text/plain', `{"a":1}${pad}`, undefined],
    ['as JSON that its type does not name', 'text/plain', `[1]${pad}`, 'json'],
    ['as invalid JSON', json, `{broken${pad}`, undefined],
    ['as deep JSON', json, '[['.repeat(150_000), undefined],
    ['in its charset', 'text/plain; charset=iso-8859-1', Buffer.alloc(300_000, 0xfc), undefined],
  ])('is read by another process %s, as a small one is read here', async (_how, type, body, responseType) => {
    const url = await serveResponse((res) => res.setHeader('content-type', type).end(body))
    const bytes = Buffer.from(body)
    const here = parseResponseBody(bytes, type, { responseType })
    const { status, headers, body: read } = await runLarge({ url, ...(responseType ? { responseType } : {}) })
    expect({ value: read, warnings: [] }).toEqual(here)
    expect([status, headers['content-type']]).toEqual([200, type])
  })

  test('that is not JSON, or too large for an output, is a final failure', async () => {
    const url = await serve((req, res) => void res.end((req.url === '/quotes' ? '"' : ' ').repeat(4_000_100)))
    const broken = await failure(run({ url, responseType: 'json' }))
    expect(broken).toMatchObject({ type: 'InvalidResponse', retryable: false })
    expect(broken.message).toMatch(/responded with 200 and a body that is not valid JSON$/)
    const large = await failure(run({ url: `${url}/quotes` }))
    expect(large).toMatchObject({ type: 'OutputTooLarge', retryable: false })
    expect(large.message).toMatch(/^The output has 80\d+ bytes; at most 8000000 are allowed$/)
  })

  test('on which the process that reads it ends is a failure of the attempt, and the next one is read', async () => {
    const url = await serve((req, res) => {
      const body = req.url === '/small' ? `[${'1,'.repeat(200_000)}1]` : `[${'{},'.repeat(2_600_000)}{}]`
      res.setHeader('content-type', json).end(body)
    })
    const narrow = createEvaluator({ processes: 1, heapMb: 32, timeoutMs: 20_000 })
    try {
      const error = await failure(run({ url }, {}, { evaluator: narrow }))
      expect(error).toMatchObject({ type: 'HttpTooLarge', retryable: true })
      expect(error.message).toMatch(/responded with 200 and a body that takes more than 32 MB to be read$/)
      const { body } = await runLarge({ url: `${url}/small` }, { evaluator: narrow })
      expect(body).toHaveLength(200_001)
    } finally {
      await narrow.close()
    }
  })

  test('needs no more of its share than its length, and in the end what is stored of it', async () => {
    const url = await serve((req, res) => {
      if (req.url === '/small') return void res.end('x'.repeat(10))
      if (req.url === '/cut') return void res.writeHead(200, { 'content-length': 400_000 }).flushHeaders()
      res.setHeader('content-encoding', 'gzip').end(gzipSync('x'.repeat(300_000)))
    })
    const shrink = vi.fn<(bytes: number) => void>()
    const share = { shrink, release: () => {} }
    const told = () => shrink.mock.calls.splice(0).flat()
    await run({ url: `${url}/small` }, {}, { share })
    expect(told()).toEqual([10, 10])
    await run({ url: `${url}/small`, method: 'HEAD', maxBytes: 5 }, {}, { share })
    expect(told()).toEqual([0, 0])
    await failure(run({ url: `${url}/cut`, timeoutMs: 300, maxBytes: 500_000 }, {}, { share }))
    expect(told()).toEqual([400_000])
    await runLarge({ url, maxBytes: 500_000 }, { share })
    expect(told()).toEqual([500_000, 300_000, expect.toSatisfy((bytes: number) => bytes < 5_000)])
    const error = await failure(run({ url, maxBytes: 299_999 }, {}, { share }))
    expect(error).toMatchObject({ type: 'HttpTooLarge', retryable: false })
  })
})

describe('failures', () => {
  test.each([
    [400, false],
    [401, false],
    [404, false],
    [409, false],
    [408, true],
    [425, true],
    [429, true],
    [500, true],
    [502, true],
    [503, true],
    [504, true],
  ])('status %i is a failure (retryable: %s)', async (status, retryable) => {
    const url = await serveResponse((res) => res.writeHead(status).end('it is so'))
    const error = await failure(run({ url: `${url}/path?token=t0ken-in-query`, method: 'POST' }))
    expect(error).toMatchObject({ type: `Http${status}`, retryable, retryAfterMs: undefined })
    expect(error.message).toBe(`POST ${new URL(url).host} responded with ${status}: it is so`)
  })

  test('Retry-After is honoured only for retryable statuses', async () => {
    const url = await serve((req, res) => {
      res.writeHead(Number(req.url?.slice(1)), { 'retry-after': '7' }).end()
    })
    expect(await failure(run({ url: `${url}/429` }))).toMatchObject({ retryable: true, retryAfterMs: 7_000 })
    expect(await failure(run({ url: `${url}/503` }))).toMatchObject({ retryable: true, retryAfterMs: 7_000 })
    expect(await failure(run({ url: `${url}/404` }))).toMatchObject({
      retryable: false,
      retryAfterMs: undefined,
    })
  })

  test.each([
    ['0', 0],
    ['120', 120_000],
    [' 2 ', 2_000],
    ['999999', 3_600_000],
    ['Sat, 21 Nov 2026 12:00:30 GMT', 30_000],
    ['Sat, 21 Nov 2026 11:00:00 GMT', 0],
    ['Sun, 22 Nov 2026 12:00:00 GMT', 3_600_000],
    ['soon', undefined],
    ['-5', undefined],
    ['1.5', undefined],
    ['', undefined],
    [undefined, undefined],
  ])('Retry-After %j is %j ms', (value, expected) => {
    expect(readRetryAfter(value, Date.parse('2026-11-21T12:00:00Z'))).toBe(expected)
  })

  test('the excerpt of the body is short, on one line, and without the secrets of the request', async () => {
    const url = await serve((req, res) => {
      const { authorization, 'x-api-key': key } = req.headers
      res.writeHead(401).end(`no\n\0entry for ${authorization} or ${key} at ${req.url} ${'z'.repeat(5_000)}`)
    })
    const headers = { Authorization: 'Custom s3cr3t-of-mine', 'X-Api-Key': 'k3y-of-mine' }
    const error = await failure(run({ url, headers, query: { access_token: 'qu3ry-token' } }))
    expect(error.message).toContain('no entry for [redacted] or [redacted] at')
    for (const leak of ['s3cr3t', 'k3y-of', 'qu3ry', '\n', '\0']) expect(error.message).not.toContain(leak)
    expect(error.message.length).toBeLessThan(300)
  })

  test('a reset connection, a cut body and a slow response are retryable', async () => {
    const url = await serve((req, res) => {
      if (req.url === '/reset') req.socket.resetAndDestroy()
      if (req.url === '/cut')
        res.writeHead(200, { 'content-length': 10 }).write('x', () => req.socket.destroy())
    })
    for (const path of ['/reset', '/cut']) {
      expect(await failure(run({ url: url + path }))).toMatchObject({ type: 'HttpNetwork', retryable: true })
    }
    const slow = await failure(run({ url: `${url}/slow`, timeoutMs: 100 }))
    expect(slow).toMatchObject({ type: 'HttpTimeout', retryable: true })
    expect(slow.message).toContain('within 100 ms')
  })

  test('a refused address, a redirect to one, a decompression bomb and a redirect loop are final', async () => {
    let hits = 0
    const inside = await serveResponse((res) => res.end(String(++hits)))
    const error = await failure(run({ url: inside }, {}, { http: strict }))
    expect(error).toMatchObject({ type: 'HttpRefusedAddress', retryable: false })
    expect(hits).toBe(0)
    const bomb = gzipSync(Buffer.alloc(20 * 1024 * 1024))
    const url = await serve((req, res) => {
      if (req.url === '/bomb') res.setHeader('content-encoding', 'gzip').end(bomb)
      else res.writeHead(302, { location: req.url === '/meta' ? 'http://169.254.169.254/' : '/loop' }).end()
    })
    for (const [path, type] of [
      ['/meta', 'HttpRefusedAddress'],
      ['/bomb', 'HttpTooLarge'],
      ['/loop', 'HttpRedirect'],
    ]) {
      expect(await failure(run({ url: url + path }))).toMatchObject({ type, retryable: false })
    }
  })

  test('an abort throws the reason of the signal and closes the connection', async () => {
    const stop = new AbortController()
    const closed = Promise.withResolvers<void>()
    const reason = new Error('cancelled')
    const url = await serve((req) => {
      req.socket.on('close', () => closed.resolve())
      stop.abort(reason)
    })
    await expect(run({ url }, {}, { signal: stop.signal })).rejects.toBe(reason)
    await closed.promise
  })
})

test('a part of the path that expressions leave empty is a warning, and everything else of the URL stays as it is', async () => {
  const url = await echo()
  const ask = async (path: string, input: object) => {
    const notes = createNoteKeeper()
    const { body } = await run({ url: `${url}${path}` }, input, { notes })
    return [(body as Echoed).url, notes.kept().notes?.warnings?.map((warning) => warning.path) ?? []]
  }
  const told = ['config.url']
  expect(await ask('/users/{{ $input.id }}', {})).toEqual(['/users/', told])
  expect(await ask('/users/{{ $input.id }}/orders?a={{ $input.a }}', { id: ' ' })).toEqual([
    '/users/%20/orders?a=',
    told,
  ])
  expect(await ask('/users/{{ $input.id }}?a={{ $input.a }}', { id: 'a/b', a: 1 })).toEqual([
    '/users/a/b?a=1',
    [],
  ])
  expect(await ask('/users{{ $input.id }}', {})).toEqual(['/users', []])
})
