import { connect } from 'node:net'
import { Hono } from 'hono'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createApp } from '../../../api/app.ts'
import type { ApiDeps, AppEnv } from '../../../api/env.ts'
import { receive } from '../../../api/http/receive.ts'
import { openDatabase } from '../../../db/connection.ts'
import { startListener } from '../../../worker/service/listener.ts'
import { keep } from '../../support/keep.ts'
import { makeKeys, startService } from '../../support/service.ts'

const FRIEND = 'https://app.example.com'
const RATES = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset']

const service = await keep(startService())
const base = await service.listen()

const ask = (path: string, init: RequestInit = {}) =>
  fetch(`${base}${path}`, { ...init, headers: { cookie: service.admin, ...(init.headers as object) } })

const send = (method: string, path: string, json: unknown, headers: Record<string, string> = {}) =>
  ask(path, {
    method,
    body: JSON.stringify(json),
    headers: { 'content-type': 'application/json', ...headers },
  })

async function createWorkflow(name: string, nodes: unknown[] = [{ id: 'a', type: 'MANUAL_TRIGGER' }]) {
  const made = await send('POST', '/api/workflows', { teamId: service.teamId, name, nodes, edges: [] })
  expect(made.status).toBe(201)
  return `/api/workflows/${((await made.json()) as { id: string }).id}`
}

/** Sends bytes unchanged and reads everything that the service sends back. */
function exchange(address: string, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const socket = connect(Number(new URL(address).port), '127.0.0.1', () => socket.end(bytes))
    socket.on('data', (chunk) => chunks.push(chunk))
    socket.on('error', reject)
    socket.on('close', () => resolve(Buffer.concat(chunks).toString()))
  })
}

test('a created resource has a Location, and can be read there', async () => {
  const stranger = await service.signUp()
  const made = [
    await send('POST', '/api/workflows', { teamId: service.teamId, name: 'located' }),
    await send('POST', `/api/teams/${service.teamId}/sdk-tokens`, { name: 't', role: 'Viewer' }),
    await send('POST', '/api/teams', { name: 'another' }),
    await send('POST', `/api/teams/${service.teamId}/members`, { email: stranger.email, role: 'OPERATOR' }),
  ]
  for (const response of made) {
    const { id, userId = id } = (await response.json()) as { id: string; userId?: string }
    expect([response.status, response.headers.get('location')?.endsWith(`/${userId}`)]).toEqual([201, true])
  }
  expect((await ask(made[0]!.headers.get('location')!)).status).toBe(200)
})

test('two editors do not overwrite each other', async () => {
  const path = await createWorkflow('edited')
  const first = (await ask(path)).headers.get('etag')!
  expect(first).toMatch(/^"[\w-]{22}"$/)
  expect((await ask(path)).headers.get('etag')).toBe(first)
  // A write that changes nothing does not change the ETag.
  expect((await send('PUT', path, { name: 'edited' }, { 'if-match': first })).headers.get('etag')).toBe(first)

  const saved = await send('PUT', path, { name: 'mine' }, { 'if-match': first })
  const second = saved.headers.get('etag')!
  expect([saved.status, second === first]).toEqual([200, false])
  expect((await ask(path)).headers.get('etag')).toBe(second)
  const late = await send('PUT', path, { name: 'theirs' }, { 'if-match': first })
  expect([late.status, await late.json()]).toEqual([
    412,
    expect.objectContaining({ status: 412, error: 'Precondition Failed', path }),
  ])
  expect(await (await ask(path)).json()).toMatchObject({ name: 'mine' })

  for (const [match, status] of [
    [`"x", W/${second}`, 200],
    ['*', 200],
    ['"x"', 412],
    ['', 412],
  ] as const) {
    expect([match, (await send('PUT', path, {}, { 'if-match': match })).status]).toEqual([match, status])
  }
  // Without the header the last write wins.
  expect((await send('PUT', path, { name: 'last' })).status).toBe(200)
})

test('of ten concurrent saves from the same state exactly one succeeds', async () => {
  const path = await createWorkflow('contested')
  const match = (await ask(path)).headers.get('etag')!
  const saves = Array.from({ length: 10 }, (_, i) =>
    send('PUT', path, { description: `save ${i}` }, { 'if-match': match }),
  )
  const statuses = (await Promise.all(saves)).map(({ status }) => status)
  expect(statuses.sort()).toEqual([200, ...Array(9).fill(412)])
})

test('the ETag changes with every field that an update can change', async () => {
  const path = await createWorkflow('tagged')
  const seen = new Set([(await ask(path)).headers.get('etag')])
  for (const patch of [
    { name: 'tagged anew' },
    { description: 'd' },
    { settings: { timeoutMs: 5_000 } },
    { active: true },
    { nodes: [{ id: 'b', type: 'MANUAL_TRIGGER' }], edges: [] },
  ]) {
    const response = await send('PUT', path, patch)
    expect([patch, response.status]).toEqual([patch, 200])
    seen.add(response.headers.get('etag'))
    expect((await ask(path)).headers.get('etag')).toBe(response.headers.get('etag'))
  }
  expect(seen.size).toBe(6)
})

test('HEAD is GET without a body; OPTIONS lists the methods; other methods are 405 with Allow', async () => {
  const path = await createWorkflow('headed')
  const [get, head] = [await ask(path), await ask(path, { method: 'HEAD' })]
  expect([head.status, await head.text()]).toEqual([200, ''])
  for (const name of ['content-type', 'etag', 'cache-control', ...RATES.slice(0, 1)]) {
    expect([name, head.headers.get(name)]).toEqual([name, get.headers.get(name)])
  }
  expect((await ask('/api/auth/login', { method: 'HEAD' })).status).toBe(405)
  expect((await ask('/api/nowhere', { method: 'HEAD' })).status).toBe(404)
  const options = await ask(path, { method: 'OPTIONS' })
  expect([options.status, options.headers.get('allow')?.split(', ').sort()]).toEqual([
    204,
    ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PUT'],
  ])
  const patch = await ask(path, { method: 'PATCH' })
  expect([patch.status, patch.headers.get('allow')]).toEqual([405, options.headers.get('allow')])
  // The path is not read as a workflow with the id `import`.
  const written = await ask('/api/workflows/import', { method: 'PUT' })
  expect([written.status, written.headers.get('allow')]).toEqual([405, 'POST, OPTIONS'])
})

test('large JSON responses are compressed for clients that accept gzip; small ones and other types are not', async () => {
  const nodes = Array.from({ length: 40 }, (_, i) => ({ id: `n${i}`, type: 'NO_OP', name: 'the same name' }))
  const path = await createWorkflow('large', [{ id: 'a', type: 'MANUAL_TRIGGER' }, ...nodes])
  const encoded = async (at: string, accept: string) => {
    const response = await ask(at, { headers: { 'accept-encoding': accept } })
    const text = await response.text()
    expect(() => JSON.parse(text)).not.toThrow()
    expect(response.headers.get('x-request-id')).toBeTruthy()
    return [
      response.headers.get('content-encoding'),
      response.headers.get('vary'),
      Number(response.headers.get('content-length')) < text.length,
    ]
  }
  for (const accept of ['gzip', 'br, gzip;q=0.5', '*', 'deflate, GZIP']) {
    expect([accept, ...(await encoded(path, accept))]).toEqual([accept, 'gzip', 'Accept-Encoding', true])
  }
  for (const accept of ['identity', 'br', 'gzip;q=0', 'gzip; q=0.0', 'xgzip']) {
    expect([accept, ...(await encoded(path, accept))]).toEqual([accept, null, null, false])
  }
  expect(await encoded('/healthz', 'gzip')).toEqual([null, null, false])
  const head = await ask(path, { method: 'HEAD', headers: { 'accept-encoding': 'gzip' } })
  expect([head.status, head.headers.get('content-encoding')]).toEqual([200, null])
  const tagged = await ask(path, { headers: { 'accept-encoding': 'gzip' } })
  expect((await send('PUT', path, {}, { 'if-match': tagged.headers.get('etag')! })).status).toBe(200)
})

test('every response carries the security headers and a request id', async () => {
  for (const [path, status] of [
    ['/healthz', 200],
    ['/nowhere', 404],
    ['/api/workflows', 400],
  ] as const) {
    const response = await ask(path)
    expect([path, response.status]).toEqual([path, status])
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'cross-origin-resource-policy': 'same-origin',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'cache-control': 'no-store',
      'x-request-id': expect.any(String),
      'x-ratelimit-limit': expect.any(String),
    })
    expect(response.headers.get('access-control-allow-origin')).toBeNull()
    expect(response.headers.get('server')).toBeNull()
    expect(response.headers.get('x-powered-by')).toBeNull()
  }
})

test('a page may load only what the service serves; a Response that a handler constructs has all headers too', async () => {
  const app = new Hono<AppEnv>()
  app.use(receive(dependencies()))
  app.get('/page', () => new Response('<p>', { headers: { 'content-type': 'text/html; charset=utf-8' } }))
  app.get('/own', (c) => {
    c.header('Content-Security-Policy', "default-src 'self'")
    c.header('Cache-Control', 'max-age=60')
    return c.html('<p>')
  })
  const page = await app.request('/page')
  const policy = page.headers.get('content-security-policy')!
  expect(policy).toContain("script-src 'self'")
  expect(policy).toContain("frame-ancestors 'none'")
  expect(policy).not.toContain('unsafe')
  for (const name of ['x-request-id', 'x-frame-options', 'cache-control', ...RATES]) {
    expect([name, page.headers.get(name)]).toEqual([name, expect.any(String)])
  }
  const { headers } = await app.request('/own')
  expect([headers.get('content-security-policy'), headers.get('cache-control')]).toEqual([
    "default-src 'self'",
    'max-age=60',
  ])
})

function dependencies(more: Partial<ApiDeps> = {}): ApiDeps {
  return {
    store: service.store,
    bus: service.bus,
    log: pino({ level: 'silent' }),
    publicUrl: 'http://127.0.0.1:3000',
    isReady: async () => ({ database: true, temporal: true, worker: true }),
    carryOut: async () => false,
    ...more,
  }
}

test('CORS is off unless origins are configured, and then only those are allowed', async () => {
  const open = createApp(dependencies({ corsOrigins: [FRIEND] }))
  const asked = (origin: string, method = 'PUT') => ({
    method: 'OPTIONS',
    headers: {
      origin,
      'access-control-request-method': method,
      'access-control-request-headers': 'content-type',
    },
  })
  const allowed = await open.request('/api/workflows/x', asked(FRIEND))
  expect([allowed.status, Object.fromEntries(allowed.headers)]).toEqual([
    204,
    expect.objectContaining({
      'access-control-allow-origin': FRIEND,
      'access-control-allow-credentials': 'true',
      'access-control-allow-methods': expect.stringContaining('PUT'),
      'access-control-allow-headers': expect.stringContaining('Content-Type'),
      'access-control-max-age': '600',
      vary: expect.stringContaining('Origin'),
      'x-ratelimit-limit': '300',
    }),
  ])
  const list = `/api/workflows?teamId=${service.teamId}`
  const read = await open.request(list, { headers: { origin: FRIEND, cookie: service.admin } })
  expect([read.status, read.headers.get('access-control-allow-origin')]).toEqual([200, FRIEND])
  expect(read.headers.get('access-control-expose-headers')).toContain('X-RateLimit-Remaining')
  // Errors have the headers too: without them a page could not read what went wrong.
  const refused = await open.request(list, { headers: { origin: FRIEND } })
  expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([401, FRIEND])

  for (const origin of ['https://evil.example', `${FRIEND}.evil.example`, 'http://app.example.com', 'null']) {
    const response = await open.request('/api/workflows', asked(origin, 'POST'))
    const names = [...response.headers.keys()].filter((name) => name.startsWith('access-control-'))
    expect([origin, response.status, names]).toEqual([origin, 204, []])
  }
  const closed = await service.request('/api/workflows', asked(FRIEND, 'POST'))
  expect([...closed.headers.keys()].filter((name) => name.startsWith('access-control-'))).toEqual([])
})

test('a page of another origin cannot write with the session cookie', async () => {
  const open = createApp(dependencies({ corsOrigins: [FRIEND] }))
  const path = await createWorkflow('guarded')
  const token = await service.token('BUILDER')
  const json = { 'content-type': 'application/json', cookie: service.admin }
  const put = async (headers: Record<string, string>) =>
    (await open.request(path, { method: 'PUT', body: '{}', headers })).status
  expect(await put(json)).toBe(200)
  expect(await put({ ...json, origin: 'http://127.0.0.1:3000' })).toBe(200)
  expect(await put({ ...json, origin: FRIEND, 'sec-fetch-site': 'cross-site' })).toBe(200)
  expect(await put({ ...json, 'sec-fetch-site': 'same-origin' })).toBe(200)
  expect(await put({ ...json, 'sec-fetch-site': 'none' })).toBe(200)
  expect(await put({ ...json, 'sec-fetch-site': 'cross-site' })).toBe(403)
  expect(await put({ ...json, origin: 'https://evil.example' })).toBe(403)
  expect(await put({ ...json, origin: 'null' })).toBe(403)
  expect(await put({ ...json, origin: 'garbage' })).toBe(403)
  const bearer = { 'content-type': 'application/json', authorization: `Bearer ${token}` }
  expect(await put({ ...bearer, origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' })).toBe(200)
})

test('bytes that are not an HTTP request get an error with the usual body and headers', async () => {
  const host = 'Host: 127.0.0.1\r\n'
  const long = `X-Long: ${'x'.repeat(20_000)}\r\n`
  for (const [bytes, status] of [
    ['nonsense\r\n\r\n', 400],
    [`GET / HTTP/1.1\r\n${host}Bad Header: x\r\n\r\n`, 400],
    [`GET / HTTP/1.1\r\n${host}X: a\0b\r\n\r\n`, 400],
    [`GET /healthz HTTP/1.1\r\n${host}${long}\r\n`, 431],
    [`POST / HTTP/1.1\r\n${host}Content-Length: -1\r\n\r\n`, 400],
    [`POST / HTTP/1.1\r\n${host}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, 400],
    ['GET /healthz HTTP/1.1\r\n\r\n', 400],
    ['GET /healthz HTTP/1.1\r\nHost: a b\r\n\r\n', 400],
    ['GET /healthz HTTP/1.1\r\nHost: a/b@c\r\n\r\n', 400],
    [`OPTIONS * HTTP/1.1\r\n${host}\r\n`, 400],
    [`GET healthz HTTP/1.1\r\n${host}\r\n`, 400],
    [`GET /healthz HTTP/1.1\r\n${host}Expect: the-moon\r\nConnection: close\r\n\r\n`, 200],
    [`GET /healthz HTTP/1.1\r\n${host}Upgrade: websocket\r\nConnection: close, Upgrade\r\n\r\n`, 200],
  ] as const) {
    const response = await exchange(base, bytes)
    const shown = bytes.slice(0, 60)
    expect([shown, response.split('\r\n', 1)[0]]).toEqual([
      shown,
      expect.stringMatching(`^HTTP/1.1 ${status} `),
    ])
    for (const name of RATES)
      expect([shown, response.toLowerCase()]).toEqual([shown, expect.stringContaining(`${name}: `)])
    if (status === 200) continue
    expect(JSON.parse(response.slice(response.indexOf('\r\n\r\n') + 4))).toEqual({
      status,
      error: expect.any(String),
      message: expect.any(String),
      timestamp: expect.any(String),
      path: expect.any(String),
    })
  }
})

test('if nothing listens on the Unix socket of the database, a request is 503', async () => {
  const { db, close } = openDatabase('postgres://postgres@/x?host=/nowhere', { max: 1, name: 'test' })
  const { fetch: serve } = createApp(dependencies({ store: { db, keys: makeKeys() } }))
  const listener = await startListener(serve, 0, '127.0.0.1')
  const token = await service.token('VIEWER')
  const response = await fetch(`http://127.0.0.1:${listener.port}/api/node-types`, {
    headers: { authorization: `Bearer ${token}` },
  })
  expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5'])
  expect(await response.json()).toMatchObject({ status: 503, error: 'Service Unavailable' })
  await listener.stop(1_000)
  await close()
})
