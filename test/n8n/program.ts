import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { createWriteStream, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createDatabase } from '../../db/migrate.ts'
import { findFree } from '../../worker/local/ports.ts'

/** The newest version whose packages could all be had when this was written. Needs 2.8 GB in the cache. */
export const N8N_VERSION = '2.41.1'
const CACHE = fileURLToPath(new URL(`../../.perdure/cache/n8n-${N8N_VERSION}`, import.meta.url))
const READY_MS = 180_000

export type N8nProgram = {
  url: string
  databaseUrl: string
  /** Stores workflows with the ids they have. Only before `start`. */
  importAll(workflows: unknown[]): void
  /** Stores credentials. Only before `start`. */
  importKeys(keys: { id: string; name: string; type: string; data: object }[]): void
  /** Makes workflows answer their webhooks. Takes seconds for each; only before `start`. */
  publish(id: string): void
  /** Starts n8n and resolves with its process once `ready` does not throw any more. */
  start(ready: () => Promise<unknown>): Promise<ChildProcess>
  stop(): Promise<void>
}

/**
 * Installs n8n if it is not in the cache, and prepares a new installation as its documentation describes it: one
 * process, with its database beside that of `databaseUrl`. It listens on loopback and sends nothing anywhere. `more` are
 * further variables of its environment.
 */
export async function prepareN8n(
  databaseUrl: string,
  more: Record<string, string> = {},
): Promise<N8nProgram> {
  install()
  replaceSqlite()
  const folder = mkdtempSync(join(tmpdir(), 'perdure-n8n-'))
  const database = new URL(databaseUrl)
  database.pathname = '/n8n'
  await createDatabase(database.href)
  const port = await findFree()
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    N8N_USER_FOLDER: folder,
    N8N_PORT: String(port),
    N8N_LISTEN_ADDRESS: '127.0.0.1',
    N8N_RUNNERS_BROKER_PORT: String(await findFree()),
    DB_TYPE: 'postgresdb',
    DB_POSTGRESDB_HOST: database.hostname,
    DB_POSTGRESDB_PORT: database.port,
    DB_POSTGRESDB_DATABASE: 'n8n',
    DB_POSTGRESDB_USER: decodeURIComponent(database.username),
    DB_POSTGRESDB_PASSWORD: decodeURIComponent(database.password),
    // The zone of workflows that name none; here it is UTC too.
    GENERIC_TIMEZONE: 'UTC',
    TZ: 'UTC',
    N8N_DIAGNOSTICS_ENABLED: 'false',
    N8N_VERSION_NOTIFICATIONS_ENABLED: 'false',
    N8N_TEMPLATES_ENABLED: 'false',
    N8N_PERSONALIZATION_ENABLED: 'false',
    N8N_COMMUNITY_PACKAGES_ENABLED: 'false',
    N8N_LICENSE_AUTO_RENEW_ENABLED: 'false',
    ...more,
  }
  const program = join(CACHE, 'node_modules/n8n/bin/n8n')
  const command = (...args: string[]) =>
    execFileSync(process.execPath, [program, ...args], { env, stdio: ['ignore', 'ignore', 'inherit'] })
  let child: ChildProcess | undefined
  async function stop(): Promise<void> {
    if (child) await end(child)
    rmSync(folder, { recursive: true, force: true })
  }
  return {
    url: `http://127.0.0.1:${port}`,
    databaseUrl: database.href,
    importAll(workflows) {
      const file = join(folder, 'workflows.json')
      writeFileSync(file, JSON.stringify(workflows))
      command('import:workflow', `--input=${file}`)
    },
    importKeys(keys) {
      const file = join(folder, 'credentials.json')
      writeFileSync(file, JSON.stringify(keys))
      command('import:credentials', `--input=${file}`)
    },
    publish: (id) => void command('publish:workflow', `--id=${id}`),
    async start(ready) {
      child = spawn(process.execPath, [program, 'start'], { env, stdio: ['ignore', 'pipe', 'pipe'] })
      const log = createWriteStream(join(tmpdir(), 'perdure-n8n.log'))
      child.stdout!.pipe(log)
      child.stderr!.pipe(log)
      try {
        await untilReady(child, ready)
      } catch (error) {
        await stop()
        throw error
      }
      return child
    },
    stop,
  }
}

/** The packages of n8n, which is installed if it is not in the cache. */
export function locateN8n(): string {
  install()
  return join(CACHE, 'node_modules')
}

/** Installs n8n into the cache, without the scripts of its packages: none of them is needed on PostgreSQL. */
function install(): void {
  if (existsSync(join(CACHE, 'node_modules/n8n/bin/n8n'))) return
  console.error(`[n8n] Installing n8n ${N8N_VERSION}, which takes some minutes`)
  mkdirSync(CACHE, { recursive: true })
  writeFileSync(join(CACHE, 'package.json'), '{ "private": true }')
  const args = ['install', '--ignore-scripts', '--no-audit', '--no-fund', `n8n@${N8N_VERSION}`]
  execFileSync('npm', args, { cwd: CACHE, stdio: ['ignore', 'ignore', 'inherit'] })
}

/**
 * The agent's node loads the binary of SQLite, for a kind of agent that no case has. Scripts of packages would build
 * it; without it the node could not be loaded.
 */
function replaceSqlite(): void {
  writeFileSync(join(CACHE, 'node_modules/sqlite3/lib/sqlite3.js'), 'module.exports = {}\n')
}

async function untilReady(child: ChildProcess, ready: () => Promise<unknown>): Promise<void> {
  const deadline = Date.now() + READY_MS
  for (;;) {
    try {
      await ready()
      return
    } catch (error) {
      if (child.exitCode !== null) throw new Error(`n8n ended with code ${child.exitCode}`)
      if (Date.now() > deadline) throw error
      await new Promise((resolve) => setTimeout(resolve, 500))
    }
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), 10_000)
  await ended
  clearTimeout(timer)
}
