import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { findTemporal } from '../../../worker/local/binary.ts'
import { findFree } from '../../../worker/local/ports.ts'
import { isAlive, kill, type ProcessId } from '../../../worker/local/processes.ts'
import { CACHE } from '../cache.ts'
import { createClient, type Send } from '../client.ts'
import { type Launched, launch } from './process.ts'

export type Name = 'postgres' | 'temporal' | 'service'
type Holder = {
  supervisor: ProcessId
  children: Record<Name, ProcessId>
  addresses: { databaseUrl: string; temporalAddress: string; url: string }
}

export type Installation = Awaited<ReturnType<typeof startInstallation>>

export const SIGN_IN = { email: 'ada@example.com', password: 'correct horse battery staple' }

/**
 * Starts the whole service as a user does: PostgreSQL, Temporal, API and worker as separate processes, in a
 * new data folder, with real HTTP. `settings` are further environment variables. GETs of the client are
 * repeated for up to a minute while there is no response or a 503.
 */
export async function startInstallation(settings: Record<string, string> = {}) {
  const dataDir = mkdtempSync(join(tmpdir(), 'perdure-installation-'))
  chmodSync(dataDir, 0o711)
  const temporal = await findTemporal(process.env.TEMPORAL_CLI, CACHE, () => {})
  // All ports are set, because two installations that start
  // at the same time would compete for the default ones.
  const port = await findFree()
  const url = `http://127.0.0.1:${port}`
  const env = {
    DATA_DIR: dataDir,
    PORT: String(port),
    POSTGRES_PORT: String(await findFree()),
    TEMPORAL_PORT: String(await findFree()),
    TEMPORAL_CLI: temporal.path,
    ADMIN_EMAIL: SIGN_IN.email,
    ADMIN_PASSWORD: SIGN_IN.password,
    ...settings,
  }
  let supervisor: Launched
  let cookie = ''

  const holder = () => JSON.parse(readFileSync(join(dataDir, 'perdure.pid'), 'utf8')) as Holder
  const readJson = <T>(name: string): T | undefined =>
    existsSync(join(dataDir, name)) ? JSON.parse(readFileSync(join(dataDir, name), 'utf8')) : undefined
  const isReady = async () => (await fetch(`${url}/readyz`)).ok

  /** Starts the service, or starts it again on the same data, and waits until it says that it is up. */
  async function boot(): Promise<void> {
    supervisor = launch(['worker/start.ts'], env)
    await supervisor.until(() => supervisor.output().includes('Perdure is up'), 120_000)
  }

  /** Sends one request, without repeating it. */
  async function write(
    method: string,
    path: string,
    json?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Response> {
    const body = json === undefined ? {} : { body: JSON.stringify(json) }
    const type = json === undefined ? {} : { 'content-type': 'application/json' }
    return fetch(url + path, { method, headers: { cookie, ...type, ...headers }, ...body })
  }
  const post = (path: string, json?: unknown, headers?: Record<string, string>) =>
    write('POST', path, json, headers)

  /** Signs in and returns the cookie header. */
  async function signIn(): Promise<string> {
    const response = await post('/api/auth/login', SIGN_IN)
    if (!response.ok) throw new Error(`the sign-in responded with ${response.status}`)
    return response.headers.getSetCookie()[0]!.split(';')[0]!
  }

  /** Sends one GET, without repeating it. */
  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(url + path, { headers: { cookie, ...headers } })

  const send: Send = async (path, { method, json, headers }) => {
    if (method !== 'GET') return write(method, path, json, headers)
    for (const giveUp = Date.now() + 60_000; ; await sleep(50)) {
      const response = await get(path).catch((error) => {
        if (Date.now() > giveUp) throw error
        return undefined
      })
      if (response && (response.status !== 503 || Date.now() > giveUp)) return response
    }
  }

  /** Sends SIGKILL or another signal to a child, and returns the id of that process. */
  function strike(name: Name, signal: NodeJS.Signals = 'SIGKILL'): ProcessId {
    const child = holder().children[name]
    kill(child.pid, signal)
    return child
  }

  /** Resolves once this child is a new process, other than `was`, and /readyz responds with 200. */
  function recovered(name: Name, was: ProcessId, withinMs = 60_000): Promise<void> {
    return supervisor.until(async () => {
      const is = holder().children[name]
      return (is.pid !== was.pid || is.started !== was.started) && (await isReady())
    }, withinMs)
  }

  async function stop(): Promise<void> {
    const children: ProcessId[] = Object.values(readJson<Holder>('perdure.pid')?.children ?? {})
    supervisor.kill('SIGCONT')
    supervisor.kill('SIGTERM')
    await supervisor.ended
    const left = children.filter(isAlive)
    for (const { pid } of left) kill(-pid, 'SIGKILL')
    const folder = readJson<{ folder?: string }>('postgres.json')?.folder
    if (folder) rmSync(folder, { recursive: true, force: true })
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 })
    if (left.length > 0) throw new Error(`processes survived the stop: ${left.map(({ pid }) => pid)}`)
  }

  try {
    await boot()
    cookie = await signIn()
    const { teamId } = JSON.parse(readFileSync(join(dataDir, 'example.json'), 'utf8')) as { teamId: string }
    const client = createClient({ send, teamId })
    return {
      ...client,
      url,
      dataDir,
      teamId,
      temporalCli: temporal.path,
      boot,
      /** Stops the supervisor, and starts it again once all its processes have ended. */
      async stopAndBoot(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
        supervisor.kill(signal)
        await supervisor.ended
        await boot()
      },
      post,
      get,
      signIn,
      holder,
      isReady,
      stop,
      kill: strike,
      recovered,
      /** The log that a process has written so far. */
      log: (name: Name) => readFileSync(join(dataDir, 'logs', `${name}.log`), 'utf8'),
      /** Ends the supervisor and all its children with SIGKILL at the same time. */
      async killAll(): Promise<void> {
        const { children } = holder()
        supervisor.kill('SIGKILL')
        for (const { pid } of Object.values(children)) kill(-pid, 'SIGKILL')
        await supervisor.ended
      },
      /** Kills a child, and stops the supervisor from starting it again until `release` is called. */
      async hold(name: Name): Promise<{ release(): Promise<void> }> {
        supervisor.kill('SIGSTOP')
        const was = strike(name)
        return {
          async release() {
            supervisor.kill('SIGCONT')
            await recovered(name, was)
          },
        }
      },
    }
  } catch (error) {
    await stop().catch(() => {})
    throw error
  }
}
