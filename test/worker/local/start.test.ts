import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { identify, isAlive, listListeningPorts, type ProcessId } from '../../../worker/local/processes.ts'
import { COMPILED } from '../../support/cache.ts'
import { createClient, nodeOf, type Send } from '../../support/client.ts'
import { until } from '../../support/until.ts'

type Holder = {
  supervisor: ProcessId
  children: Record<'postgres' | 'temporal' | 'service', ProcessId>
  addresses: { databaseUrl: string; url: string }
}

const root = fileURLToPath(new URL('../../..', import.meta.url))
/** Listens on the default port, so that the start has to choose another one. */
let blocker: Server
let dataDir: string
let current: Run
let firstOutput: string
let token: string
let example: { workflowId: string; teamId: string }

type Run = { process: ChildProcess; output: () => string; ended: Promise<number | null> }

/** Starts what `npm start` starts, on the data folder, without the environment of the tests. */
function launch(more: Record<string, string> = {}): Run {
  const cli = inject('temporalCli')
  const child = spawn(process.execPath, ['worker/start.ts'], {
    cwd: root,
    env: {
      ...COMPILED,
      PATH: process.env.PATH,
      DATA_DIR: dataDir,
      ...(cli ? { TEMPORAL_CLI: cli } : {}),
      ...more,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part) => (output += part))
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  return { process: child, output: () => output, ended }
}

async function launchAndWait(more: Record<string, string> = {}): Promise<Run> {
  const run = launch(more)
  await eventually(async () => {
    if (run.process.exitCode !== null) throw new Stop(`the start ended: ${run.output()}`)
    return run.output().includes('Perdure is up: ')
  }, 90_000)
  return run
}

class Stop extends Error {}

/** Waits until `check` returns true. An error that it throws counts as false, except Stop. */
function eventually(check: () => Promise<boolean>, withinMs = 30_000): Promise<boolean> {
  const look = () =>
    check().catch((error) => {
      if (error instanceof Stop) throw error
      return false
    })
  return until(look, { withinMs, explain: () => current?.output() })
}

const holder = () => JSON.parse(readFileSync(join(dataDir, 'perdure.pid'), 'utf8')) as Holder
const get = (path: string) => fetch(holder().addresses.url + path)
const isReady = async () => (await get('/readyz')).status === 200

/** Executes the seeded workflow with the seeded token, as the printed lines do, and returns its output. */
async function runExample(): Promise<unknown> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ teamId: example.teamId, data: { amount: 120 } })
  const { url } = holder().addresses
  const response = await fetch(`${url}/api/workflows/${example.workflowId}/execute`, {
    method: 'POST',
    headers,
    body,
  })
  expect(response.status).toBe(202)
  const { executionId } = (await response.json()) as { executionId: string }
  let execution: { status: string; outputData: unknown } | undefined
  await eventually(async () => {
    const read = await fetch(`${url}/api/executions/${executionId}`, { headers })
    execution = (await read.json()) as typeof execution
    return execution?.status === 'SUCCESS'
  })
  return execution?.outputData
}

/** Calls URLs by nodes of one workflow, as a BUILDER could; resolves with what each of them failed with. */
async function callByNodes(urls: string[]): Promise<(string | null)[]> {
  const { url: api } = holder().addresses
  const send: Send = (path, { method, json }) =>
    fetch(api + path, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    })
  const client = createClient({ send, teamId: example.teamId })
  const calls = urls.map((url, at) => ({
    id: `call${at}`,
    type: 'HTTP_REQUEST',
    config: { url },
    onError: 'CONTINUE' as const,
  }))
  const edges = calls.map(({ id }) => ({ source: 'start', target: id }))
  const run = await client.run({
    nodes: [{ id: 'start', type: 'MANUAL_TRIGGER', config: {} }, ...calls],
    edges,
  } as never)
  return calls.map(({ id }) => nodeOf(run, id).errorMessage)
}

/** Calls every port on which the embedded servers listen at this moment, and expects each call to be refused. */
async function expectServersOutOfReach(): Promise<void> {
  const { temporal, postgres } = holder().children
  const ports = { Temporal: listListeningPorts(temporal.pid), database: listListeningPorts(postgres.pid) }
  // gRPC, the HTTP API, metrics, and three that its parts use among themselves.
  expect(ports.Temporal).toHaveLength(6)
  expect(ports.database).toHaveLength(1)
  const urls = [...ports.Temporal, ...ports.database].map(
    (port) => `http://127.0.0.1:${port}/api/v1/namespaces`,
  )
  for (const [at, message] of (await callByNodes(urls)).entries()) {
    expect([urls[at], message]).toEqual([
      urls[at],
      expect.stringMatching(/is the (Temporal server|database) of this/),
    ])
    expect(message).toContain('the egress rules refuse it')
  }
}

describe('npm start', () => {
  beforeAll(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'perdure-start-'))
    chmodSync(dataDir, 0o700)
    blocker = createServer()
    await new Promise<void>((resolve, reject) => {
      // It is just as good if another program has taken the port already.
      blocker.once('error', (error: NodeJS.ErrnoException) =>
        error.code === 'EADDRINUSE' ? resolve() : reject(error),
      )
      blocker.listen(3000, '127.0.0.1', resolve)
    })
    current = await launchAndWait()
    firstOutput = current.output()
    token = readFileSync(join(dataDir, 'token'), 'utf8')
    example = JSON.parse(readFileSync(join(dataDir, 'example.json'), 'utf8'))
  }, 180_000)

  afterAll(async () => {
    current.process.kill('SIGTERM')
    await current.ended
    blocker.close()
    const { folder } = JSON.parse(readFileSync(join(dataDir, 'postgres.json'), 'utf8')) as { folder?: string }
    if (folder) rmSync(folder, { recursive: true })
    rmSync(dataDir, { recursive: true })
  }, 60_000)

  test('shows its progress, then the addresses, the sign-in, and two curl lines that work as printed', async () => {
    for (const part of [
      'Database: PostgreSQL',
      'Temporal: 127.0.0.1:',
      'Migrations: ',
      'Worker: ',
      'API: ',
    ]) {
      expect(firstOutput).toContain(part)
    }
    expect(firstOutput).toMatch(/Port 3000 is taken: using \d+ instead/)
    const [email, password] = /E-mail: +(\S+)\n +Password: +(\S+) +\(shown only once\)/
      .exec(firstOutput)!
      .slice(1)
    const { url } = holder().addresses
    expect(firstOutput).toContain(`Perdure is up: ${url}\n`)
    for (const [label, path] of [
      ['Console', ''],
      ['Guide', '/api/docs/guide'],
      ['API docs', '/api/docs'],
    ] as const) {
      const [, address] = new RegExp(`${label}: +(\\S+)`).exec(firstOutput)!
      expect(address).toBe(url + path)
      expect((await fetch(address!)).status, label).toBe(200)
    }
    const signIn = await fetch(`${url}/api/auth/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ email, password }),
    })
    expect(signIn.status).toBe(200)

    const lines = firstOutput.split('\n').filter((line) => line.startsWith('curl'))
    expect(lines).toHaveLength(2)
    const shell = (line: string) =>
      new Promise<string>((resolve) => {
        const child = spawn('/bin/sh', ['-c', line], { stdio: ['ignore', 'pipe', 'ignore'] })
        let text = ''
        child.stdout.on('data', (part) => (text += part))
        child.once('close', () => resolve(text))
      })
    expect(JSON.parse(await shell(lines[0]!))).toMatchObject({ executionId: expect.any(String) })
    await eventually(async () => JSON.parse(await shell(lines[1]!)).status === 'SUCCESS')
    expect(JSON.parse(await shell(lines[1]!)).outputData).toEqual({ decision: 'review', total: 144 })
  })

  test('shows what is open, and no node can call a port of the servers that it has started', async () => {
    expect(firstOutput).toMatch(
      /Open: +sign-up for everybody \(until a request comes through a proxy\)\n +this machine's/,
    )
    await expectServersOutOfReach()
  })

  test('the service reaches its PostgreSQL over a socket, others on this machine over TCP with the password', async () => {
    const client = new pg.Client({ connectionString: holder().addresses.databaseUrl })
    await client.connect()
    try {
      const { rows } = await client.query<{ name: string; local: boolean }>(
        `select distinct application_name as name, client_addr is null as local from pg_stat_activity
         where application_name like 'perdure service%' or pid = pg_backend_pid() order by 1`,
      )
      expect(rows).toEqual([
        { name: '', local: false },
        { name: 'perdure service', local: true },
        { name: 'perdure service bus', local: true },
        { name: 'perdure service lease', local: true },
      ])
    } finally {
      await client.end()
    }
  })

  test('the token in the data folder is a BUILDER of the first team; the output says how to create another', async () => {
    const { url } = holder().addresses
    const command = `DATA_DIR=${dataDir} npx perdure token create`
    expect(firstOutput).toContain(`SDK token: ${join(dataDir, 'token')}  (to create another: ${command})`)
    expect(firstOutput).toContain(`Team ID:   ${example.teamId}  (`)
    const teams = await fetch(`${url}/api/teams`, { headers: { authorization: `Bearer ${token}` } })
    expect(await teams.json()).toMatchObject([{ id: example.teamId, name: 'Default', role: 'BUILDER' }])
  })

  test('/healthz and /readyz respond with 200; only the owner can read files with secrets', async () => {
    expect((await get('/healthz')).status).toBe(200)
    expect(await (await get('/readyz')).json()).toMatchObject({
      database: true,
      temporal: true,
      worker: true,
      models: true,
    })
    for (const name of ['keys.json', 'token', 'postgres.json', 'perdure.pid']) {
      expect(statSync(join(dataDir, name)).mode & 0o077, name).toBe(0)
    }
  })

  test('a second start on the same data folder is refused', async () => {
    const second = launch()
    expect(await second.ended).toBe(1)
    expect(second.output()).toMatch(/already running on .* \(process \d+\): stop that one/)
    expect(await isReady()).toBe(true)
  })

  test('a wrong environment stops the start, and every wrong variable is named', async () => {
    const wrong = launch({ PORT: 'x', EGRESS: 'y' })
    expect(await wrong.ended).toBe(1)
    expect(wrong.output()).toMatch(/PORT must be a whole number\nEGRESS must be public or any/)
  })

  test('settings for a Temporal with TLS stop a start that would use the embedded one', async () => {
    const other = mkdtempSync(join(tmpdir(), 'perdure-start-'))
    for (const name of ['TEMPORAL_TLS', 'TEMPORAL_API_KEY']) {
      const wrong = launch({ DATA_DIR: other, [name]: 'true' })
      expect(await wrong.ended).toBe(1)
      expect(wrong.output()).toContain('TEMPORAL_ADDRESS must be set if TLS or an API key is')
    }
    rmSync(other, { recursive: true })
  })

  test('a port that is set by hand and taken stops the start', async () => {
    const other = mkdtempSync(join(tmpdir(), 'perdure-start-'))
    const wrong = launch({ DATA_DIR: other, PORT: new URL(holder().addresses.url).port })
    expect(await wrong.ended).toBe(1)
    expect(wrong.output()).toMatch(/PORT is \d+, but another program is listening on that port/)
    rmSync(other, { recursive: true })
  })

  test.each(['postgres', 'temporal', 'service'] as const)(
    '%s is started again after a kill -9, at the same address',
    async (name) => {
      const before = holder()
      process.kill(before.children[name].pid, 'SIGKILL')
      await eventually(
        async () => holder().children[name].pid !== before.children[name].pid && (await isReady()),
      )
      expect(holder().addresses).toEqual(before.addresses)
      expect(await runExample()).toEqual({ decision: 'review', total: 144 })
      if (name === 'temporal')
        await until(() =>
          expectServersOutOfReach().then(
            () => true,
            () => false,
          ),
        )
    },
  )

  test('SIGTERM stops everything within ten seconds and interrupts no request', async () => {
    const { children, addresses } = holder()
    const client = new pg.Client({ connectionString: addresses.databaseUrl })
    client.on('error', () => {})
    await client.connect()
    // The lock delays every request with this token, so that one is in progress when the stop begins.
    await client.query('begin')
    await client.query('lock table sdk_tokens in access exclusive mode')
    const response = fetch(`${addresses.url}/api/executions?workflowId=${example.workflowId}`, {
      headers: { authorization: `Bearer ${token}` },
    })
    await eventually(async () => {
      const waiting = await client.query("select 1 from pg_stat_activity where wait_event_type = 'Lock'")
      return waiting.rowCount! > 0
    })
    const began = Date.now()
    current.process.kill('SIGTERM')
    await eventually(async () =>
      fetch(`${addresses.url}/healthz`).then(
        () => false,
        () => true,
      ),
    )
    await client.query('rollback')
    await client.end()
    expect((await response).status).toBe(200)
    expect(await current.ended).toBe(0)
    // The last lines of the service say what its stop waited for.
    const lines = readFileSync(join(dataDir, 'logs', 'service.log'), 'utf8')
      .split('\n')
      .slice(-20)
    expect(Date.now() - began, lines.join('\n')).toBeLessThan(10_000)
    for (const id of Object.values(children)) expect(isAlive(id)).toBe(false)
  })

  test('a start after a stop finds all data, keeps the token, and shows no password', {
    tags: 'long',
  }, async () => {
    // The test before has stopped it already, unless only the long tests are run.
    current.process.kill('SIGTERM')
    await current.ended
    current = await launchAndWait()
    expect(current.output()).not.toContain('shown only once')
    expect(current.output()).toContain('with the e-mail and password shown at the first start')
    expect(current.output()).toContain(`SDK token: ${join(dataDir, 'token')}  (to create another: `)
    expect(readFileSync(join(dataDir, 'token'), 'utf8')).toBe(token)
    expect(current.output()).toContain('Migrations: none to run')
    expect(await runExample()).toEqual({ decision: 'review', total: 144 })
  })

  test('the next start ends the processes that a killed supervisor left behind, and no others', {
    tags: 'long',
  }, async () => {
    const { children, supervisor } = holder()
    const stranger = spawn('sleep', ['60'])
    process.kill(supervisor.pid, 'SIGKILL')
    await current.ended
    expect(isAlive(children.service)).toBe(true)
    current = await launchAndWait()
    expect(current.output()).toContain('Ending processes that a killed start left behind: ')
    for (const id of Object.values(children)) expect(isAlive(id)).toBe(false)
    expect(identify(stranger.pid!)).not.toBeNull()
    stranger.kill()
    expect(await runExample()).toEqual({ decision: 'review', total: 144 })
  })
})
