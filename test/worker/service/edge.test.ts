import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { findFree } from '../../../worker/local/ports.ts'
import { createClient, nodeOf, type Send } from '../../support/client.ts'
import { cloneDatabase } from '../../support/database.ts'
import { type Launched, launch } from '../../support/engine/process.ts'
import { startTarget, type Target } from '../../support/servers/target.ts'

const SIGN_IN = { email: 'ada@example.com', password: 'correct horse battery staple' }

let target: Target
let database: Awaited<ReturnType<typeof cloneDatabase>>
let env: Record<string, string>
let url: string
let api: Launched
let worker: Launched
let cookie = ''
let client: ReturnType<typeof createClient>
const launched: Launched[] = []

async function start(script: string, says: string): Promise<Launched> {
  const process = launch([script], env)
  launched.push(process)
  await process.until(() => process.output().includes(says))
  return process
}

const startWorker = () => start('worker/worker.ts', 'the worker polls')

const post = (path: string, json: unknown, headers: Record<string, string> = {}) =>
  fetch(url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(json),
  })

const signUp = (headers: Record<string, string> = {}) => {
  const email = `${randomBytes(6).toString('hex')}@example.com`
  return post('/api/auth/register', { firstName: 'A', lastName: 'B', ...SIGN_IN, email }, headers)
}

/** Executes a workflow with one HTTP_REQUEST; resolves with its error message, null if it succeeded. */
async function call(config: Record<string, unknown>): Promise<string | null> {
  const nodes = [
    { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
    { id: 'call', type: 'HTTP_REQUEST', config },
  ]
  const run = await client.run({ nodes, edges: [{ source: 'start', target: 'call' }] } as never)
  return nodeOf(run, 'call').errorMessage
}

// API and worker are processes of their own, as an operator would run them on one machine with the defaults.
beforeAll(async () => {
  target = await startTarget()
  database = await cloneDatabase()
  const port = await findFree()
  url = `http://127.0.0.1:${port}`
  env = {
    PORT: String(port),
    DATABASE_URL: database.url,
    TEMPORAL_ADDRESS: inject('temporalAddress'),
    TEMPORAL_GUARDED_PORTS: inject('temporalPorts').join(','),
    RATE_LIMITS: 'off',
    TASK_QUEUE: `edge-${randomBytes(4).toString('hex')}`,
    PERDURE_KEYS: `k1:${randomBytes(32).toString('base64')}`,
    ADMIN_EMAIL: SIGN_IN.email,
    ADMIN_PASSWORD: SIGN_IN.password,
  }
  expect(await launch(['worker/cli.ts', 'migrate'], env).ended).toBe(0)
  ;[api, worker] = await Promise.all([start('worker/api.ts', 'the API is listening'), startWorker()])
  const signedIn = await post('/api/auth/login', SIGN_IN)
  cookie = signedIn.headers.getSetCookie()[0]!.split(';')[0]!
  const { teams } = (await signedIn.json()) as { teams: { teamId: string }[] }
  const send: Send = (path, { method, json, headers }) =>
    fetch(url + path, {
      method,
      headers: { cookie, 'content-type': 'application/json', ...headers },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    })
  client = createClient({ send, teamId: teams[0]!.teamId })
}, 120_000)

afterAll(async () => {
  for (const process of launched) process.kill('SIGTERM')
  for (const process of launched) await process.ended
  await database?.drop()
  await target?.stop()
}, 120_000)

test("a node reaches neither the service's Temporal nor its database nor its API", {
  tags: 'long',
  timeout: 120_000,
}, async () => {
  const [host, port] = inject('temporalAddress').split(':')
  const temporal = [port!, ...inject('temporalPorts')].flatMap((each) =>
    [host!, '127.0.0.1', '[::1]', '0.0.0.0'].map((at) => `http://${at}:${each}/api/v1/namespaces`),
  )
  const { port: databasePort } = new URL(database.url)
  const own = [`${url}/api/teams`, `${url}/metrics`, `${url}/hooks/../api/teams`, `${url}//hooks/a/b`]
  for (const [what, urls] of [
    ['the Temporal server of this service', temporal],
    [
      'the database of this service',
      [`http://127.0.0.1:${databasePort}/`, `http://localhost:${databasePort}/`],
    ],
    ['this service itself, of which workflows may call only /hooks and /resume', own],
  ] as const) {
    const messages = await Promise.all(urls.map(async (each) => [each, await call({ url: each })] as const))
    for (const [each, message] of messages) {
      expect([each, message]).toEqual([each, expect.stringContaining(what)])
      expect(message).toContain('the egress rules refuse it')
    }
  }
  expect(await call({ url: `${target.url}/ok` })).toBeNull()
})

test('a node that comes in by an address that the worker does not know reaches only hooks', async () => {
  const forward = createServer((socket) => {
    const through = connect(Number(env.PORT), '127.0.0.1')
    socket.on('error', () => through.destroy()).pipe(through)
    through.on('error', () => socket.destroy()).pipe(socket)
  }).listen(0, '127.0.0.1')
  await once(forward, 'listening')
  const at = `http://127.0.0.1:${(forward.address() as AddressInfo).port}`
  try {
    const hook = await client.create({
      nodes: [{ id: 'hook', type: 'WEBHOOK_TRIGGER', config: { path: 'orders' } }],
      edges: [],
    } as never)
    await client.ask('PUT', `/api/workflows/${hook}`, { active: true })
    expect(await call({ url: `${at}/hooks/${hook}/orders`, method: 'POST' })).toBeNull()
    for (const path of ['/api/teams', '/metrics', '/healthz'])
      expect(await call({ url: at + path })).toContain(
        'A workflow may call only /hooks and /resume of its own service',
      )
  } finally {
    forward.close()
  }
}, 120_000)

test('the first request through a proxy closes sign-up and loopback in all processes', {
  tags: 'long',
  timeout: 120_000,
}, async () => {
  expect((await signUp()).status).toBe(201)
  expect((await fetch(`${url}/metrics`)).status).toBe(200)
  for (const process of [api, worker]) {
    expect(process.output()).toContain('sign-up for everybody (until a request comes through a proxy)')
    expect(process.output()).not.toContain('closed until the next start')
  }
  const refused = await signUp({ 'X-Forwarded-For': '203.0.113.7' })
  expect(refused.status).toBe(403)
  const { message } = (await refused.json()) as { message: string }
  expect(message).toBe(
    'Sign-up is closed since a request came through a proxy (it had the header x-forwarded-for). ' +
      'To open it, set SIGNUP=open',
  )
  expect((await signUp()).status).toBe(403)
  expect((await fetch(`${url}/metrics`)).status).toBe(200)
  expect((await fetch(`${url}/metrics`, { headers: { 'X-Forwarded-Proto': 'https' } })).status).toBe(403)
  for (const process of [api, worker])
    await process.until(() =>
      process.output().includes('closed until the next start what was open by default'),
    )
  const error = await call({ url: `${target.url}/ok` })
  expect(error).toContain('loopback is closed since a request came through a proxy')
  expect(error).toContain('EGRESS_ALLOW=127.0.0.0/8 opens it')

  // The example that the first steps execute has no call, and the service's own hooks are still there.
  const { status } = await client.run({
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
      { id: 'sum', type: 'SET', config: { values: { sum: '{{ 1 + 2 }}' } } },
    ],
    edges: [{ source: 'start', target: 'sum' }],
  } as never)
  expect(status).toBe('SUCCESS')
  const hook = await client.create({
    nodes: [{ id: 'hook', type: 'WEBHOOK_TRIGGER', config: { path: 'orders' } }],
    edges: [],
  } as never)
  await client.ask('PUT', `/api/workflows/${hook}`, { active: true })
  expect(await call({ url: `${url}/hooks/${hook}/orders`, method: 'POST' })).toBeNull()

  // A worker that starts now learns it from the others.
  worker.kill('SIGTERM')
  await worker.ended
  worker = await startWorker()
  await worker.until(() => worker.output().includes('closed until the next start'))
  expect(await call({ url: `${target.url}/ok` })).toContain('loopback is closed')
})

test('after the next start all is as before, until a worker hears of an API that is set up for others', {
  tags: 'long',
  timeout: 120_000,
}, async () => {
  for (const process of [api, worker]) process.kill('SIGTERM')
  await Promise.all([api.ended, worker.ended])
  worker = await startWorker()
  expect(worker.output()).toContain("this machine's loopback addresses for workflows (until a request")
  expect(worker.output()).not.toContain('closed until the next start')
  env = { ...env, PUBLIC_URL: 'https://perdure.example.com' }
  api = await start('worker/api.ts', 'the API is listening')
  await worker.until(() => worker.output().includes('the API is set up for others than this machine'))
  const refused = await signUp()
  expect(refused.status).toBe(403)
  expect(((await refused.json()) as { message: string }).message).toBe('Sign-up is closed on this service')
  expect(await call({ url: `${target.url}/ok` })).toContain('loopback is closed since the API is set up')
})
