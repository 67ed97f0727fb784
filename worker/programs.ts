import { copyFileSync, mkdirSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findTemporal } from './binary.ts'
import type { Program } from './children.ts'
import { type Cluster, prepareCluster } from './postgres.ts'
import { checkServer, listServerArguments } from './temporal.ts'

const LOG_LIMIT = 20_000_000

type Place = { dataDir: string; port: number; durable: boolean; say: (line: string) => void }

/** Embedded PostgreSQL, ready to be supervised, with the address of the service's database. */
export async function describePostgres(place: Place): Promise<{ program: Program; cluster: Cluster }> {
  const cluster = await prepareCluster(place)
  const program: Program = {
    name: 'postgres',
    command: cluster.command,
    args: cluster.args,
    ...(cluster.account ? { account: cluster.account } : {}),
    cwd: cluster.folder,
    logFile: openLog(place.dataDir, 'postgres'),
    // SIGINT is PostgreSQL's fast shutdown: it ends sessions and leaves a clean cluster.
    stopSignal: 'SIGINT',
    stopMs: 1_500,
    before: cluster.recover,
    check: cluster.open,
    readyMs: 60_000,
  }
  return { program, cluster }
}

/** Embedded Temporal, ready to be supervised, and where its program came from. `cache` keeps a downloaded one. */
export async function describeTemporal(
  place: Place & { cache: string; namespace: string; byHand: string | undefined },
): Promise<{ program: Program; address: string; from: string }> {
  const { path, from } = await findTemporal(place.byHand, place.cache, place.say)
  const folder = join(place.dataDir, 'temporal')
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const address = `127.0.0.1:${place.port}`
  const program: Program = {
    name: 'temporal',
    command: path,
    args: listServerArguments({
      port: place.port,
      file: join(folder, 'temporal.db'),
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
  return { program, address, from }
}

/** API and worker in one process, ready to be supervised: up when its own /readyz says so. */
export function describeService(
  place: { dataDir: string; url: string },
  env: Record<string, string | undefined>,
): Program {
  return {
    name: 'service',
    command: process.execPath,
    // A young generation of the usual size would grow by 100 MB under a long export, and stay so.
    args: [
      '--disable-warning=ExperimentalWarning',
      '--max-semi-space-size=16',
      fileURLToPath(new URL('./serve.ts', import.meta.url)),
    ],
    env,
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    logFile: openLog(place.dataDir, 'service'),
    stopSignal: 'SIGTERM',
    stopMs: 6_500,
    check: () => checkReady(place.url),
    readyMs: 60_000,
  }
}

/** Keeps the logs bounded; the programs append, so their files can be cut under them. */
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
