import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import mysql from 'mysql2/promise'
import { type Program, superviseChild } from '../../../worker/local/children.ts'
import { findOsUser } from '../../../worker/local/osuser.ts'
import { findFree } from '../../../worker/local/ports.ts'
import { describePostgres } from '../../../worker/local/programs.ts'
import { MARIADBD } from '../programs.ts'
import { CERT, KEY } from './certificate.ts'

const PASSWORD = 'a password, with "quotes" and \\ in it'

/** How to sign in to a server of the tests: the data of a DATABASE credential. */
export type Server = { login: Record<string, string | number>; stop(): Promise<void> }

function launch(program: Program) {
  return superviseChild(program, { started() {}, lost() {}, back() {} })
}

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'perdure-server-'))
  chmodSync(folder, 0o711)
  return folder
}

/** Writes the test certificate and its key for the user that a server runs as. */
function writeCertificate(folder: string, user: { uid: number; gid: number } | undefined) {
  const files = { cert: join(folder, 'server.crt'), key: join(folder, 'server.key') }
  for (const [file, text] of [
    [files.cert, CERT],
    [files.key, KEY],
  ] as const) {
    writeFileSync(file, text, { mode: 0o600 })
    if (user) chownSync(file, user.uid, user.gid)
  }
  return files
}

/** Starts a second cluster of PostgreSQL, which is not the service's own. It offers TLS. */
export async function startPostgres(): Promise<Server & { url: string }> {
  const folder = makeFolder()
  const port = await findFree()
  const { program, cluster } = await describePostgres({ dataDir: folder, durable: false, port, say() {} })
  const { cert, key } = writeCertificate(cluster.folder, cluster.osUser)
  const tls = ['-c', 'ssl=on', '-c', `ssl_cert_file=${cert}`, '-c', `ssl_key_file=${key}`]
  const child = launch({ ...program, args: [...program.args, ...tls] })
  await child.ready
  const { username, password, pathname } = new URL(cluster.url)
  const login = { host: '127.0.0.1', port, database: pathname.slice(1), username, password }
  return {
    login,
    url: cluster.url,
    async stop() {
      await child.stop()
      for (const each of [folder, cluster.folder]) rmSync(each, { recursive: true, force: true })
    },
  }
}

/** Starts MariaDB, with a database `test` and a user of that name. It offers TLS. */
export async function startMariadb(): Promise<Server> {
  const folder = makeFolder()
  const data = join(folder, 'data')
  mkdirSync(data)
  const osUser = process.getuid?.() === 0 ? findOsUser(() => {}) : undefined
  if (osUser) chownSync(data, osUser.uid, osUser.gid)
  const share = join(dirname(dirname(MARIADBD)), 'share', 'mysql')
  const common = ['--no-defaults', `--datadir=${data}`, `--lc-messages-dir=${share}`, `--tmpdir=${data}`]
  const env = { PATH: process.env.PATH, LC_ALL: 'C', LD_LIBRARY_PATH: process.env.LD_LIBRARY_PATH }
  const made = spawnSync(MARIADBD, [...common, '--bootstrap'], {
    input: readBootstrap(share),
    env,
    ...(osUser ? { uid: osUser.uid, gid: osUser.gid } : {}),
    encoding: 'utf8',
  })
  if (made.status !== 0) throw new Error(`MariaDB could not be made: ${made.error ?? made.stderr}`)
  const { cert, key } = writeCertificate(data, osUser)
  const begin = join(data, 'begin.sql')
  const word = PASSWORD.replace(/[\\']/g, '\\$&')
  writeFileSync(
    begin,
    `create database if not exists test character set utf8mb4;\ncreate user if not exists 'test'@'%' identified by '${word}';\ngrant all on *.* to 'test'@'%';\n`,
    { mode: 0o644 },
  )
  const port = await findFree()
  const login = {
    host: '127.0.0.1',
    port,
    database: 'test',
    username: 'test',
    password: PASSWORD,
    dialect: 'mysql',
  }
  const child = launch({
    name: 'mariadb',
    command: MARIADBD,
    args: [
      ...common,
      '--bind-address=127.0.0.1',
      `--port=${port}`,
      `--socket=${join(data, 's')}`,
      `--pid-file=${join(data, 'pid')}`,
      `--init-file=${begin}`,
      `--ssl-cert=${cert}`,
      `--ssl-key=${key}`,
      '--innodb-flush-log-at-trx-commit=0',
      '--skip-log-bin',
    ],
    ...(osUser ? { osUser } : {}),
    env,
    cwd: data,
    logFile: join(folder, 'mariadb.log'),
    stopSignal: 'SIGTERM',
    stopMs: 5_000,
    async check() {
      const connection = await mysql.createConnection({
        host: '127.0.0.1',
        port,
        user: 'test',
        password: PASSWORD,
        database: 'test',
      })
      await connection.end()
    },
    readyMs: 60_000,
  })
  await child.ready
  return {
    login,
    async stop() {
      await child.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** What mariadb-install-db has the server carry out. Its scripts are named after MySQL in older releases. */
function readBootstrap(share: string): string {
  const names = ['system_tables', 'performance_tables', 'system_tables_data']
  const files = readdirSync(share)
  const scripts = names.map((name) => {
    const file = files.find((one) => one === `mysql_${name}.sql` || one === `mariadb_${name}.sql`)
    if (!file) throw new Error(`MariaDB has no script ${name} in ${share}`)
    return readFileSync(join(share, file), 'utf8')
  })
  return ['create database if not exists mysql;', 'use mysql;', ...scripts].join('\n')
}
