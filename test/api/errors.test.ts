import { request as httpRequest } from 'node:http'
import { Hono } from 'hono'
import { sql } from 'kysely'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type AppEnv, createApp } from '../../api/app.ts'
import { answerError } from '../../api/errors.ts'
import { openDatabase } from '../../db/connection.ts'
import { type Service, startService } from '../service.ts'

let service: Service
let base: string
beforeAll(async () => {
  service = await startService()
  base = await service.listen()
})
afterAll(() => service.stop())

const silent = pino({ level: 'silent' })
const path = () => `/api/teams/${service.teamId}/sdk-tokens`

/** The five fields, always; `errors` on 400 alone. */
async function expectError(answer: Response, status: number, at: string) {
  expect([at, answer.status]).toEqual([at, status])
  const body = (await answer.json()) as Record<string, unknown>
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
  expect(answer.headers.get('x-request-id')).toBeTruthy()
  expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
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
  const options = await fetch(`${base}/healthz`, { method: 'OPTIONS' })
  expect([options.status, options.headers.get('allow')]).toEqual([204, 'GET, HEAD, OPTIONS'])
})

test('no credentials are 401 before anything of the input is looked at', async () => {
  const answer = await fetch(`${base}/api/teams/x/sdk-tokens`, { method: 'POST', body: 'x' })
  expect(answer.headers.get('www-authenticate')).toBe('Bearer')
  await expectError(answer, 401, '/api/teams/x/sdk-tokens')
})

test('broken, empty, odd and deep bodies are 400', async () => {
  const at = '/api/auth/login'
  for (const body of ['{', '[1', '"', '{"email": 1,}', 'null x', Buffer.from([0xff, 0xfe, 0x7b])]) {
    await expectError(await post(body), 400, at)
  }
  for (const body of ['', 'null', '[]', '5', '"x"', '{}']) {
    const { errors } = await expectError(await post(body), 400, at)
    expect(errors?.length).toBeGreaterThan(0)
    if (body && body !== '{}') expect(errors).toEqual([{ path: 'body', message: 'must be an object' }])
  }
  const deep = await expectError(await post(`{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`), 400, at)
  expect(deep.errors?.[0]?.message).toContain('64')
  const proto = await expectError(await post('{"email":"a","a":[{"__proto__":{"admin":true}}]}'), 400, at)
  expect(proto.errors).toEqual([{ path: 'a[0].__proto__', message: expect.any(String) }])
  expect(({} as { admin?: boolean }).admin).toBeUndefined()
  await expectError(await post('{"email":"a\\u0000b","password":"x"}'), 400, at)
  await expectError(await post('{"email":"\\ud800","password":"x"}'), 400, at)
})

test('a body that is not JSON by its type is 415', async () => {
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

test('a body over 1.5 MB is 413, also when it comes in chunks without a length', async () => {
  const big = `{"email":"${'x'.repeat(2_000_000)}"}`
  await expectError(await post(big), 413, '/api/auth/login')
  const chunked = new ReadableStream({
    async start(controller) {
      for (let i = 0; i < 40; i++) controller.enqueue(Buffer.alloc(50_000, 32))
      controller.close()
    },
  })
  await expectError(await post(chunked), 413, '/api/auth/login')
  const allowed = `{"email":"a@example.com","password":"b","x":"${'x'.repeat(1_499_000)}"}`
  await expectError(await post(allowed), 401, '/api/auth/login')
})

test('garbage in the address is 400 or 404, never more', async () => {
  const raw = (target: string) =>
    new Promise<{ status: number; text: string }>((resolve, reject) => {
      const { hostname, port } = new URL(base)
      const headers = { cookie: service.admin }
      httpRequest({ hostname, port, path: target, headers }, (answer) => {
        const chunks: Buffer[] = []
        answer.on('data', (chunk: Buffer) => chunks.push(chunk))
        answer.on('end', () =>
          resolve({ status: answer.statusCode!, text: Buffer.concat(chunks).toString() }),
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

test('request ids are taken if sane, else made', async () => {
  const ask = async (id?: string) =>
    (await fetch(`${base}/healthz`, { headers: id ? { 'x-request-id': id } : {} })).headers.get(
      'x-request-id',
    )
  expect(await ask('abc-1.2:3')).toBe('abc-1.2:3')
  expect(await ask('a b')).toMatch(/^[0-9a-f-]{36}$/)
  expect(await ask('x'.repeat(500))).toMatch(/^[0-9a-f-]{36}$/)
  expect(await ask()).not.toBe(await ask())
})

test('readiness says what is away, in an error body', async () => {
  const ready = await service.request('/readyz')
  expect([ready.status, await ready.json()]).toEqual([200, { database: true, temporal: true, worker: true }])
  const app = createApp({
    store: service.store,
    bus: service.bus,
    log: silent,
    publicUrl: 'http://127.0.0.1:3000',
    isReady: async () => ({ database: true, temporal: false, worker: false }),
    carryOut: async () => false,
  })
  const answer = await app.request('/readyz')
  expect(answer.status).toBe(503)
  expect(await answer.json()).toMatchObject({
    status: 503,
    error: 'Service Unavailable',
    message: 'Not ready: temporal, worker',
    path: '/readyz',
    database: true,
    temporal: false,
    worker: false,
  })
})

test('PostgreSQL away is 503 with Retry-After, while /healthz stays well', async () => {
  const { db, close } = openDatabase('postgres://postgres@127.0.0.1:1/nowhere', { max: 1, name: 'test' })
  const app = createApp({
    store: { db, keys: service.store.keys },
    bus: service.bus,
    log: silent,
    publicUrl: 'http://127.0.0.1:3000',
    isReady: async () => ({ database: false, temporal: true, worker: true }),
    carryOut: async () => false,
  })
  const answer = await app.request(path(), { headers: { cookie: service.admin } })
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
  await expectError(answer, 503, path())
  expect((await app.request('/healthz')).status).toBe(200)
  await close()
})

test('a connection that PostgreSQL ends under a query is 503 too, and the service goes on', async () => {
  const app = new Hono<AppEnv>()
  app.use(async (c, next) => {
    c.set('log', silent)
    await next()
  })
  app.onError((error, c) => answerError(c, error))
  app.get('/', async (c) => {
    await sql`select pg_terminate_backend(pg_backend_pid())`.execute(service.store.db)
    return c.json({})
  })
  const answer = await app.request('/')
  expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5'])
  // The pool learns a moment later that the connection is dead.
  await expect.poll(async () => (await service.request(path(), { as: service.admin })).status).toBe(200)
})

test('an unexpected failure is 500, logged whole and answered without a word of it', async () => {
  const lines: string[] = []
  const log = pino({ level: 'error' }, { write: (line: string) => lines.push(line) })
  const app = new Hono<AppEnv>()
  app.use(async (c, next) => {
    c.set('log', log)
    await next()
  })
  app.onError((error, c) => answerError(c, error))
  app.get('/boom', () => {
    throw new Error('select secret from passwords')
  })
  const answer = await app.request('/boom')
  expect(answer.status).toBe(500)
  expect(await answer.json()).toMatchObject({ status: 500, error: 'Internal Server Error', path: '/boom' })
  expect(lines.join('')).toContain('select secret from passwords')
})
