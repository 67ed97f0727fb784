import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Pool } from 'undici'
import { openDatabase } from '../../db/connection.ts'
import { migrate } from '../../db/migrate.ts'
import type { Keys } from '../../db/seal.ts'
import { readKeys } from '../../worker/keys.ts'
import { type Program, type SupervisedChild, superviseChild } from '../../worker/local/children.ts'
import { findFree } from '../../worker/local/ports.ts'
import { describePostgres, describeService, describeTemporal } from '../../worker/local/programs.ts'
import { seedInstallation } from '../../worker/local/seed.ts'
import { CACHE } from '../support/cache.ts'
import { readUsage, type Usage } from './usage.ts'

export const BENCH_ADMIN = { email: 'bench@example.com', password: 'only for the bench' }

export type Stand = {
  dataDir: string
  keys: Keys
  databaseUrl: string
  temporalAddress: string
  url: string
  teamId: string
  /**
   * Sends a request with an ADMIN token and returns the
   * JSON of the response. Throws if the status is not 2xx.
   */
  ask<T>(method: 'GET' | 'POST' | 'PUT', path: string, json?: unknown): Promise<T>
  /** Makes another team. Returns the stand as that team's ADMIN sees it. */
  addTeam(name: string): Promise<Stand>
  /** The usage of each program: postgres, temporal, service. */
  readUsage(): Record<string, Usage>
  stop(): Promise<void>
}

/** Starts PostgreSQL, Temporal and the service as `npm start` does, durable, in a temporary folder. */
export async function startStand(): Promise<Stand> {
  const dataDir = mkdtempSync(join(tmpdir(), 'perdure-bench-'))
  // Under root PostgreSQL runs as another user, which must be able to enter the folder.
  chmodSync(dataDir, 0o711)
  const children = new Map<string, SupervisedChild>()
  const ends: (() => unknown)[] = [() => rmSync(dataDir, { recursive: true, force: true })]
  const say = (line: string) => console.error(`[bench] ${line}`)
  const launch = async (program: Program) => {
    const watch = { started() {}, lost: (name: string, why: string) => say(`${name} ${why}`), back() {} }
    const child = superviseChild(program, watch)
    children.set(program.name, child)
    await child.ready
  }
  async function stop(): Promise<void> {
    await children.get('service')?.stop()
    await Promise.all([...children.values()].map((child) => child.stop()))
    for (const end of ends.reverse()) await end()
  }
  try {
    const place = { dataDir, durable: true, say }
    const keys = readKeys({ keys: undefined, dataDir }, true)
    const [postgres, temporal] = await Promise.all([
      describePostgres({ ...place, port: await findFree() }),
      describeTemporal({
        ...place,
        port: await findFree(),
        namespace: 'default',
        cache: CACHE,
        byHand: process.env.TEMPORAL_CLI,
      }),
    ])
    const { cluster } = postgres
    if (!cluster.folder.startsWith(dataDir))
      ends.push(() => rmSync(cluster.folder, { recursive: true, force: true }))
    await Promise.all([launch(postgres.program), launch(temporal.program)])
    const { db, close } = openDatabase(cluster.url, { max: 2, name: 'bench' })
    await migrate(db)
    const admin = BENCH_ADMIN
    const store = { db, keys }
    await seedInstallation(store, { admin, dataDir, defaultPlan: 'ENTERPRISE' }).finally(close)

    const port = await findFree()
    const url = `http://127.0.0.1:${port}`
    const env = {
      ...process.env,
      NODE_OPTIONS: [...listNodeOptions(), ...listProbes()].join(' '),
      DATA_DIR: dataDir,
      DATABASE_URL: cluster.serviceUrl,
      TEMPORAL_ADDRESS: temporal.address,
      PORT: String(port),
      LOG_LEVEL: process.env.LOG_LEVEL ?? 'warn',
      // Requests are still counted, but none is refused.
      RATE_LIMITS: 'off',
      CHAT_STREAMS_PER_USER: '1000',
      CHAT_STREAMS_PER_TEAM: '1000',
    }
    await launch(describeService({ dataDir, url }, env))
    const pool = new Pool(url, { connections: 256 })
    ends.push(() => pool.destroy())
    const session = await signIn(pool, admin)
    const asTeam = async (teamId: string): Promise<Stand> => {
      const headers = await session.makeToken(teamId)
      return { ...stand, teamId, ask: (method, path, json) => ask(pool, headers, method, path, json) }
    }
    const stand: Stand = {
      dataDir,
      keys,
      databaseUrl: cluster.url,
      temporalAddress: temporal.address,
      url,
      teamId: session.teamId,
      ask: (method, path, json) => ask(pool, session.headers, method, path, json),
      addTeam: async (name) => {
        const team = await ask<{ id: string }>(pool, session.headers, 'POST', '/api/teams', { name })
        return asTeam(team.id)
      },
      readUsage: () =>
        Object.fromEntries(
          [...children].map(([name, child]) => [name, readUsage(child.pid() ?? 0, { children: true })]),
        ),
      stop,
    }
    return asTeam(session.teamId)
  } catch (error) {
    await stop()
    throw error
  }
}

/** What is loaded into the service's process, to measure it from within. */
function listProbes(): string[] {
  if (!process.env.BENCH_PROBE_PORT) return []
  return [`--import=${new URL('./strangers/probe.ts', import.meta.url).href}`]
}

type Headers = Record<string, string>

/** Sends a request and returns the JSON of the response, if it has any. Throws if the status is not 2xx. */
async function ask<T>(
  pool: Pool,
  headers: Headers,
  method: 'GET' | 'POST' | 'PUT',
  path: string,
  json?: unknown,
): Promise<T> {
  const body = json === undefined ? null : JSON.stringify(json)
  const response = await pool.request({ method, path, headers, body })
  const text = await response.body.text()
  if (response.statusCode >= 300)
    throw new Error(`${method} ${path} responded with ${response.statusCode}: ${text}`)
  return (text === '' ? undefined : JSON.parse(text)) as T
}

/** Signs in. What is measured is asked with an SDK token, because that is what programs send. */
async function signIn(pool: Pool, admin: { email: string; password: string }) {
  const json = { 'content-type': 'application/json' }
  const body = JSON.stringify(admin)
  const response = await pool.request({ method: 'POST', path: '/api/auth/login', headers: json, body })
  const text = await response.body.text()
  if (response.statusCode >= 300)
    throw new Error(`the sign-in responded with ${response.statusCode}: ${text}`)
  const cookie = [response.headers['set-cookie']].flat()[0]!.split(';')[0]!
  const headers: Headers = { ...json, cookie }
  return {
    teamId: JSON.parse(text).teams[0].teamId as string,
    headers,
    async makeToken(teamId: string): Promise<Headers> {
      const wanted = { name: 'bench', role: 'ADMIN' }
      const path = `/api/teams/${teamId}/sdk-tokens`
      const { token } = await ask<{ token: string }>(pool, headers, 'POST', path, wanted)
      return { ...json, authorization: `Bearer ${token}` }
    },
  }
}

/**
 * If BENCH_PROFILE names a folder, CPU profiles of the
 * service and of the handwritten workflows are written to it.
 */
export function listNodeOptions(): string[] {
  const folder = process.env.BENCH_PROFILE
  return folder ? ['--cpu-prof', `--cpu-prof-dir=${folder}`] : []
}
