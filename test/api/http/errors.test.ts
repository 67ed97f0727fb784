import { request as httpRequest } from 'node:http'
import { Hono } from 'hono'
import { sql } from 'kysely'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createApp } from '../../../api/app.ts'
import type { AppEnv } from '../../../api/env.ts'
import { respondWithError } from '../../../api/http/errors.ts'
import { openDatabase } from '../../../db/connection.ts'
import { endUnnoticed, onServer } from '../../support/database.ts'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

const service = await keep(startService())
const base = await service.listen()

const silent = pino({ level: 'silent' })
const path = () => `/api/teams/${service.teamId}/sdk-tokens`

/** Expects the five fields of every error, and `errors` only for 400. */
async function expectError(response: Response, status: number, at: string) {
  expect([at, response.status]).toEqual([at, status])
  const body = (await response.json()) as Record<string, unknown>
  expect(body).toMatchObject({
    status,
    error: expect.stringMatching(/^[A-Z]/),
    message: expect.stringMatching(/./),
    path: at,
  })
  expect(body.timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  expect(Object.keys(body).sort()).toEqual(
    ['status', 'error', 'message', 'timestamp', 'path', ...(status === 400 ? ['errors'] : [])].sort(),
  )
  expect(response.headers.get('x-request-id')).toBeTruthy()
  expect(response.headers.get('x-content-type-options')).toBe('nosniff')
  expect(JSON.stringify(body)).not.toMatch(/ at .*\.ts|select |insert |node_modules/)
  return body as { message: string; errors?: { path: string; message: string }[] }
}

const post = (
  body: RequestInit['body'],
  headers: Record<string, string> = { 'content-type': 'application/json' },
) =>
  fetch(`${base}/api/auth/login`, {
    method: 'POST',
    body: body ?? null,
    headers,
    duplex: 'half',
  } as RequestInit)

test('unknown addresses are 404, other methods 405 with Allow', async () => {
  await expectError(await fetch(`${base}/nowhere?x=1`), 404, '/nowhere')
  await expectError(await fetch(`${base}/api/nowhere`, { method: 'PATCH' }), 404, '/api/nowhere')
  const login = await fetch(`${base}/api/auth/login`)
  expect(login.headers.get('allow')).toBe('POST, OPTIONS')
  await expectError(login, 405, '/api/auth/login')
  const tokens = await fetch(`${base}${path()}`, { method: 'PUT' })
  expect(tokens.headers.get('allow')?.split(', ').sort()).toEqual(['GET', 'HEAD', 'OPTIONS', 'POST'])
  await expectError(tokens, 405, path())
  const named = `/api/monitoring/teams/${service.teamId}/alerts/bulk-acknowledge`
  const alerts = await fetch(base + named)
  expect(alerts.headers.get('allow')).toBe('POST, OPTIONS')
  await expectError(alerts, 405, named)
  const options = await fetch(`${base}/healthz`, { method: 'OPTIONS' })
  expect([options.status, options.headers.get('allow')]).toEqual([204, 'GET, HEAD, OPTIONS'])
})

test('missing credentials are 401 before any input is read', async () => {
  const response = await fetch(`${base}/api/teams/x/sdk-tokens`, { method: 'POST', body: 'x' })
  expect(response.headers.get('www-authenticate')).toBe('Bearer')
  await expectError(response, 401, '/api/teams/x/sdk-tokens')
})

test('invalid, empty, unexpected and deeply nested bodies are 400', async () => {
  const at = '/api/auth/login'
  for (const body of ['{', '[1', '"', '{"email": 1,}', 'null x', Buffer.from([0xff, 0xfe, 0x7b])]) {
    await expectError(await post(body), 400, at)
  }
  for (const body of ['', 'null', '[]', '5', '"x"', '{}']) {
    const { errors } = await expectError(await post(body), 400, at)
    expect(errors?.length).toBeGreaterThan(0)
    if (body && body !== '{}') expect(errors).toEqual([{ path: 'body', message: 'must be an object' }])
  }
  const deep = await expectError(await post(`{"a":${'['.repeat(10_000)}${']'.repeat(10_000)}}`), 400, at)
  expect(deep.errors?.[0]?.message).toContain('deeper than 4 levels')
  const proto = await expectError(await post('{"email":"a","a":[{"__proto__":{"admin":true}}]}'), 400, at)
  expect(proto.errors).toEqual([{ path: 'a[0].__proto__', message: expect.any(String) }])
  expect(({} as { admin?: boolean }).admin).toBeUndefined()
  await expectError(await post('{"email":"a\\u0000b","password":"x"}'), 400, at)
  await expectError(await post('{"email":"\\ud800","password":"x"}'), 400, at)
})

test('a body whose content type is not JSON is 415', async () => {
  const body = '{"email":"a","password":"b"}'
  const types = [
    'text/plain',
    'application/x-www-form-urlencoded',
    'application/json; charset=utf-16',
    'json',
    'text/json',
  ]
  for (const type of types)
    await expectError(await post(body, { 'content-type': type }), 415, '/api/auth/login')
  await expectError(await post(Buffer.from(body), {}), 415, '/api/auth/login')
  const encoded = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
  await expectError(await post(body, encoded), 415, '/api/auth/login')
  for (const type of ['application/json; charset=UTF-8', 'Application/JSON', 'application/vnd.x+json']) {
    await expectError(await post(body, { 'content-type': type }), 401, '/api/auth/login')
  }
})

test('an empty body is {}, whatever type its headers name', async () => {
  const form = { 'content-type': 'application/x-www-form-urlencoded', 'content-length': '0' }
  for (const headers of [form, {}]) {
    const { errors } = (await (await post('', headers)).json()) as { errors: { path: string }[] }
    expect(errors.map(({ path }) => path)).toEqual(['email', 'password'])
  }
})

test('a body over the limit of its route is 413, also if it arrives in chunks without a Content-Length', async () => {
  const big = `{"email":"${'x'.repeat(33_000)}"}`
  await expectError(await post(big), 413, '/api/auth/login')
  const chunked = new ReadableStream({
    async start(controller) {
      for (let i = 0; i < 40; i++) controller.enqueue(Buffer.alloc(1_000, 32))
      controller.close()
    },
  })
  await expectError(await post(chunked), 413, '/api/auth/login')
  const allowed = `{"email":"a@example.com","password":"b","x":"${'x'.repeat(32_000)}"}`
  await expectError(await post(allowed), 401, '/api/auth/login')
})

test('garbage in the address is 400 or 404, never a server error', async () => {
  const raw = (target: string) =>
    new Promise<{ status: number; text: string }>((resolve, reject) => {
      const { hostname, port } = new URL(base)
      const headers = { cookie: service.admin }
      httpRequest({ hostname, port, path: target, headers }, (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('end', () =>
          resolve({ status: response.statusCode!, text: Buffer.concat(chunks).toString() }),
        )
      })
        .on('error', reject)
        .end()
    })
  for (const target of [
    '/api/teams/%ff/sdk-tokens',
    '/api/teams/%/sdk-tokens',
    '/%E0%A4%A',
    '//',
    '/api/teams/%00/sdk-tokens',
    '/api//teams',
    '/%2e%2e/%2e%2e/etc/passwd',
    `${path()}?x=%ff&x=%`,
  ]) {
    const { status, text } = await raw(target)
    expect([target, [200, 400, 404].includes(status)]).toEqual([target, true])
    if (status !== 200)
      expect(JSON.parse(text)).toMatchObject({
        status,
        message: expect.any(String),
        path: expect.any(String),
      })
  }
})

test('the request id is the one sent if it is valid, else a new one', async () => {
  const ask = async (id?: string) =>
    (await fetch(`${base}/healthz`, { headers: id ? { 'x-request-id': id } : {} })).headers.get(
      'x-request-id',
    )
  expect(await ask('abc-1.2:3')).toBe('abc-1.2:3')
  expect(await ask('a b')).toMatch(/^[0-9a-f-]{36}$/)
  expect(await ask('x'.repeat(500))).toMatch(/^[0-9a-f-]{36}$/)
  expect(await ask()).not.toBe(await ask())
})

test('readiness names what is unreachable, in an error body', async () => {
  const ready = await service.request('/readyz')
  expect([ready.status, await ready.json()]).toEqual([
    200,
    { database: true, temporal: true, worker: true, models: true, account: true },
  ])
  const app = createApp({
    store: service.store,
    bus: service.bus,
    log: silent,
    publicUrl: 'http://127.0.0.1:3000',
    isReady: async () => ({ database: true, temporal: false, worker: false }),
    carryOut: async () => false,
  })
  const response = await app.request('/readyz')
  expect(response.status).toBe(503)
  expect(await response.json()).toMatchObject({
    status: 503,
    error: 'Service Unavailable',
    message: 'Not ready: temporal, worker',
    path: '/readyz',
    database: true,
    temporal: false,
    worker: false,
  })
})

test('while PostgreSQL is unreachable requests are 503 with Retry-After, and /healthz stays 200', async () => {
  const { db, close } = openDatabase('postgres://postgres@127.0.0.1:1/nowhere', { max: 1, name: 'test' })
  const app = createApp({
    store: { db, keys: service.store.keys },
    bus: service.bus,
    log: silent,
    publicUrl: 'http://127.0.0.1:3000',
    isReady: async () => ({ database: false, temporal: true, worker: true }),
    carryOut: async () => false,
  })
  const response = await app.request(path(), { headers: { cookie: service.admin } })
  expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
  await expectError(response, 503, path())
  expect((await app.request('/healthz')).status).toBe(200)
  await close()
})

test('while PostgreSQL takes no changes, requests that change something are 503 and those that read go on', async () => {
  const host = await startService()
  const token = await host.token('ADMIN')
  const name = new URL(host.database.url).pathname.slice(1)
  const created = await host.call('POST', '/api/workflows', host.admin, {
    teamId: host.teamId,
    name: 'one',
  })
  const at = `/api/workflows/${created.body.id}`
  const kick = `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}' and pid <> pg_backend_pid()`
  try {
    await onServer(
      host.database.url,
      `alter database ${name} set default_transaction_read_only = on; ${kick}`,
    )
    for (const as of [host.admin, token]) {
      const reads = [
        at,
        `/api/workflows?teamId=${host.teamId}`,
        `/api/teams/${host.teamId}/members`,
        '/healthz',
      ]
      for (const path of reads) {
        const { status, text } = await host.call('GET', path, as)
        expect([path, status, status === 200 ? '' : text]).toEqual([path, 200, ''])
      }
      expect((await host.call('GET', '/api/nothing-here', as)).status).toBe(404)
      const writes = [
        await host.request('/api/workflows', {
          method: 'POST',
          as,
          json: { teamId: host.teamId, name: 'two' },
        }),
        await host.request(at, { method: 'PUT', as, json: { name: 'other' } }),
        await host.request(at, { method: 'DELETE', as }),
        await host.request(`${at}/execute`, { method: 'POST', as, json: {} }),
      ]
      for (const response of writes) {
        expect([response.status, Number(response.headers.get('retry-after'))]).toEqual([503, 5])
        const body = (await response.json()) as { message: string }
        expect(body).toMatchObject({ status: 503, error: 'Service Unavailable' })
        expect(body.message).toBe('The database takes no changes at the moment')
      }
    }
    const login = { email: 'admin@example.com', password: 'wrong' }
    expect((await host.call('POST', '/api/auth/login', undefined, login)).status).toBe(503)
    const writable = `${host.database.url}?options=-c%20default_transaction_read_only%3Doff`
    await onServer(writable, `alter database ${name} reset default_transaction_read_only`)
    // Connections that were told that they take no changes are given up.
    await expect
      .poll(async () => (await host.call('PUT', at, host.admin, { name: 'other' })).status)
      .toBe(200)
  } finally {
    await host.stop()
  }
})

test('connections that were ended while nobody used them cost no request', async () => {
  const ask = (n: number) =>
    n % 2
      ? service.call('GET', `/api/workflows?teamId=${service.teamId}`, service.admin)
      : service.call('POST', '/api/workflows', service.admin, {
          teamId: service.teamId,
          name: `${Date.now()} ${n}`,
        })
  const all = () => Promise.all(Array.from({ length: 20 }, (_, n) => ask(n)))
  await all()
  endUnnoticed(service.database.url, 'test')
  expect((await all()).map(({ status }) => status).filter((status) => status >= 300)).toEqual([])
})

test('a connection that PostgreSQL ends during a query is 503 too, and the service recovers', async () => {
  const app = new Hono<AppEnv>()
  app.use(async (c, next) => {
    c.set('log', silent)
    await next()
  })
  app.onError((error, c) => respondWithError(c, error))
  app.get('/', async (c) => {
    await sql`select pg_terminate_backend(pg_backend_pid())`.execute(service.store.db)
    return c.json({})
  })
  const response = await app.request('/')
  expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5'])
  // That connection is not handed out once more.
  expect((await service.request(path(), { as: service.admin })).status).toBe(200)
})

test('an unexpected failure is 500 and logged in full, and the response reveals no details', async () => {
  const lines: string[] = []
  const log = pino({ level: 'error' }, { write: (line: string) => lines.push(line) })
  const app = new Hono<AppEnv>()
  app.use(async (c, next) => {
    c.set('log', log)
    await next()
  })
  app.onError((error, c) => respondWithError(c, error))
  app.get('/boom', () => {
    throw new Error('select secret from passwords')
  })
  const response = await app.request('/boom')
  expect(response.status).toBe(500)
  expect(await response.json()).toMatchObject({ status: 500, error: 'Internal Server Error', path: '/boom' })
  expect(lines.join('')).toContain('select secret from passwords')
})

test('logs name the route and not the path, which may hold the token of a resume URL', async () => {
  const lines: string[] = []
  const log = pino({ level: 'debug' }, { write: (line: string) => void lines.push(line) })
  const logged = await startService({ log })
  try {
    const token = 'a-token-that-resumes.an-execution'
    expect((await logged.request(`/resume/${token}`, { method: 'POST' })).status).toBe(404)
    expect(lines.join('')).toContain('"route":"/resume/:token"')
    expect(lines.join('')).not.toContain(token)
  } finally {
    await logged.stop()
  }
})
