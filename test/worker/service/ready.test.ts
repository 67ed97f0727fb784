import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Connection } from '@temporalio/client'
import { afterEach, expect, inject, test } from 'vitest'
import { findFree } from '../../../worker/local/ports.ts'
import { CLIENT_OPTIONS } from '../../../worker/temporal.ts'
import { cloneDatabase } from '../../support/database.ts'
import { type Launched, launch } from '../../support/engine/process.ts'

const SIGN_IN = { email: 'ada@example.com', password: 'correct horse battery staple' }

const launched: Launched[] = []
const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const process of launched) process.kill('SIGTERM')
  for (const process of launched.splice(0)) await process.ended
  for (const end of ends.splice(0)) await end()
})

/** The environment of processes on an empty database. */
async function prepare(): Promise<Record<string, string>> {
  const database = await cloneDatabase()
  const dataDir = mkdtempSync(join(tmpdir(), 'perdure-ready-'))
  ends.push(database.drop, () => rmSync(dataDir, { recursive: true, force: true }))
  return {
    DATABASE_URL: database.url,
    DATA_DIR: dataDir,
    TEMPORAL_ADDRESS: inject('temporalAddress'),
    TASK_QUEUE: `ready-${randomBytes(4).toString('hex')}`,
    PERDURE_KEYS: `k1:${randomBytes(32).toString('base64')}`,
    ADMIN_EMAIL: SIGN_IN.email,
    ADMIN_PASSWORD: SIGN_IN.password,
  }
}

function start(args: string[], env: Record<string, string>): Launched {
  const process = launch(args, env)
  launched.push(process)
  return process
}

/** Does what a deployment does: waits until /readyz says 200, and signs in at once. Returns both statuses. */
async function signInWhenReady(
  process: Launched,
  url: string,
): Promise<{ before: Set<string>; status: number }> {
  const before = new Set<string>()
  let status = 0
  await process.until(async () => {
    const ready = await fetch(`${url}/readyz`)
    if (!ready.ok) {
      before.add(((await ready.json()) as { message: string }).message)
      return false
    }
    const headers = { 'content-type': 'application/json' }
    const login = { method: 'POST', headers, body: JSON.stringify(SIGN_IN) }
    status = (await fetch(`${url}/api/auth/login`, login)).status
    return true
  })
  return { before, status }
}

test('whoever waits for /readyz of a first `npm start` can sign in', async () => {
  const port = String(await findFree())
  const process = start(['worker/start.ts'], { ...(await prepare()), PORT: port })
  expect((await signInWhenReady(process, `http://127.0.0.1:${port}`)).status).toBe(200)
})

test('several APIs that start at once with the migration are ready when its first account is there', {
  tags: 'long',
}, async () => {
  const env = await prepare()
  const ports = [String(await findFree()), String(await findFree())]
  start(['worker/worker.ts'], env)
  const apis = ports.map((PORT) => start(['worker/api.ts'], { ...env, PORT }))
  const signedIn = ports.map((port, at) => signInWhenReady(apis[at]!, `http://127.0.0.1:${port}`))
  // Nothing else is missing.
  for (const [at, port] of ports.entries()) {
    await apis[at]!.until(async () => {
      const { message } = (await (await fetch(`http://127.0.0.1:${port}/readyz`)).json()) as {
        message: string
      }
      return message === 'Not ready: account'
    })
  }
  expect(await launch(['worker/cli.ts', 'migrate'], env).ended).toBe(0)
  for (const { before, status } of await Promise.all(signedIn)) {
    expect(before).toContain('Not ready: account')
    expect(status).toBe(200)
  }
})

test('an API says that no worker takes calls to models, as none of an older release does, and is ready all the same', {
  tags: 'long',
}, async () => {
  const env = await prepare()
  expect(await launch(['worker/cli.ts', 'migrate'], env).ended).toBe(0)
  const port = await findFree()
  const api = start(['worker/api.ts'], { ...env, PORT: String(port) })
  const old = await Connection.connect({ ...CLIENT_OPTIONS, address: env.TEMPORAL_ADDRESS! })
  ends.push(() => old.close())
  const poll = { namespace: 'default', taskQueue: { name: env.TASK_QUEUE! }, identity: 'of a release before' }
  const polled = old.withDeadline(Date.now() + 60_000, () => old.workflowService.pollWorkflowTaskQueue(poll))
  polled.catch(() => {})
  const read = () => fetch(`http://127.0.0.1:${port}/readyz`)
  await api.until(async () => (await read()).ok)
  const others = { database: true, temporal: true, account: true }
  expect(await (await read()).json()).toEqual({ ...others, worker: true, models: false })
  start(['worker/worker.ts'], env)
  await api.until(async () => ((await (await read()).json()) as { models: boolean }).models)
})
