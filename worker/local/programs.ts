import { randomUUID } from 'node:crypto'
import { copyFileSync, mkdirSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { noteEnd, PROCESS_ID, watchMemory } from '../memoryend.ts'
import { checkServer, listServerArguments } from '../temporal.ts'
import { findTemporal } from './binary.ts'
import type { Program } from './children.ts'
import { findFree } from './ports.ts'
import { type PostgresCluster, prepareCluster } from './postgres.ts'

const LOG_LIMIT = 20_000_000

type ProgramPlace = { dataDir: string; port: number; durable: boolean; say: (line: string) => void }

/**
 * Describes embedded PostgreSQL for its supervision, and its cluster with the URL of the service's database.
 */
export async function describePostgres(
  place: ProgramPlace,
): Promise<{ program: Program; cluster: PostgresCluster }> {
  const cluster = await prepareCluster(place)
  const program: Program = {
    name: 'postgres',
    command: cluster.command,
    args: cluster.args,
    ...(cluster.osUser ? { osUser: cluster.osUser } : {}),
    cwd: cluster.folder,
    logFile: openLog(place.dataDir, 'postgres'),
    // SIGINT is PostgreSQL's fast shutdown: it ends all sessions and leaves a clean cluster.
    stopSignal: 'SIGINT',
    stopMs: 1_500,
    before: cluster.recover,
    check: cluster.open,
    readyMs: 60_000,
  }
  return { program, cluster }
}

/**
 * Describes embedded Temporal for its supervision. `byHand` is TEMPORAL_CLI, `cache` the folder that keeps a
 * downloaded CLI. The returned `from` says where the CLI was found, `guardedPorts` where it serves HTTP.
 */
export async function describeTemporal(
  place: ProgramPlace & {
    cache: string
    namespace: string
    byHand: string | undefined
    uiPort?: number | undefined
  },
): Promise<{ program: Program; address: string; from: string; file: string; guardedPorts: number[] }> {
  const { path, from } = await findTemporal(place.byHand, place.cache, place.say)
  const folder = join(place.dataDir, 'temporal')
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const address = `127.0.0.1:${place.port}`
  const file = join(folder, 'temporal.db')
  const [httpPort, metricsPort] = [await findFree(), await findFree()]
  const program: Program = {
    name: 'temporal',
    command: path,
    args: listServerArguments({
      port: place.port,
      httpPort,
      metricsPort,
      uiPort: place.uiPort,
      file,
      namespace: place.namespace,
      durable: place.durable,
    }),
    env: { PATH: process.env.PATH, HOME: folder },
    cwd: folder,
    logFile: openLog(place.dataDir, 'temporal'),
    stopSignal: 'SIGTERM',
    stopMs: 2_000,
    check: () => checkServer(address, place.namespace),
    readyMs: 60_000,
  }
  return { program, address, from, file, guardedPorts: [httpPort, metricsPort] }
}

/** Describes the process with API and worker for its supervision. It is up when its own /readyz says so. */
export function describeService(
  place: { dataDir: string; url: string; stopGraceMs?: number; modelStopGraceMs?: number },
  settings: Record<string, string | undefined>,
): Program {
  const env = { ...settings }
  const memory = watchMemory()
  return {
    name: 'service',
    command: process.execPath,
    // With V8's default size, the young generation grows by
    // 100 MB during a long export and does not shrink again.
    args: [
      '--disable-warning=ExperimentalWarning',
      '--max-semi-space-size=16',
      fileURLToPath(new URL('../serve.ts', import.meta.url)),
    ],
    env,
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
    logFile: openLog(place.dataDir, 'service'),
    stopSignal: 'SIGTERM',
    // It ends itself in time once its calls to models have ended.
    stopMs: (place.modelStopGraceMs ?? 0) + REPLIES_MS + ENDS_MS + limitStop(place.stopGraceMs) + 1_000,
    stopQuickly: { signal: 'SIGINT', ms: limitStop(place.stopGraceMs) },
    before: async () => {
      env[PROCESS_ID] = randomUUID()
    },
    ended: async (end) => {
      if (memory.ranOut(end)) await noteEnd(env.DATABASE_URL!, env[PROCESS_ID]!)
    },
    check: () => checkReady(place.url),
    readyMs: 60_000,
  }
}

/** How long the service waits, once its calls to models have ended, until the replies that they gave are saved. */
export const REPLIES_MS = 10_000

/** How long those who read replies that are saved may take to receive the end. */
export const ENDS_MS = 1_000

/**
 * How long the service may take to stop, once its calls to models have ended: to answer its requests, to finish or put
 * down its calls, and to tell Temporal. With a short grace it gets less time, because Ctrl-C should not take more than
 * ten seconds.
 */
export function limitStop(graceMs = 5_000): number {
  return graceMs <= 5_000 ? 6_500 : graceMs + 8_000
}

/**
 * Moves each log of more than 20 MB to `<name>.log.1`. The
 * programs append, so their open files can be truncated.
 */
export function trimLogs(dataDir: string): void {
  for (const name of ['postgres', 'temporal', 'service']) {
    const path = logPath(dataDir, name)
    const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0
    if (size < LOG_LIMIT) continue
    copyFileSync(path, `${path}.1`)
    truncateSync(path)
  }
}

async function checkReady(url: string): Promise<void> {
  const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(3_000) })
  const body = await response.text()
  if (!response.ok) throw new Error(body)
}

function openLog(dataDir: string, name: string): string {
  mkdirSync(join(dataDir, 'logs'), { recursive: true, mode: 0o700 })
  return logPath(dataDir, name)
}

function logPath(dataDir: string, name: string): string {
  return join(dataDir, 'logs', `${name}.log`)
}
