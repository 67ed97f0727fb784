import mysql from 'mysql2/promise'
import pg from 'pg'
import { lacks } from '../support/programs.ts'
import { type Server, startMariadb, startPostgres } from '../support/servers/clusters.ts'
import type { VendorKey } from './vendors/vendors.ts'

/** Databases that cases work with, each in a table of its own, of the case's name with `_`. */
export type SqlStand = { keys: VendorKey[]; reset(name: string): Promise<void>; stop(): Promise<void> }

const POSTGRES_TABLE = `(id serial primary key, name text unique, n int, price numeric, ok boolean, at timestamptz,
  doc jsonb, tags text[])`
const MYSQL_TABLE = `(id int auto_increment primary key, name varchar(50) unique, n int, price decimal(10, 2), ok boolean,
  at datetime)`
const ROWS =
  "('Ada', 3, 1.5, true, '2026-01-02 03:04:05.678'), ('bob', 1, null, false, null), ('Cy', null, 20, null, null)"

/** Whether a case works with a database. */
export const isOfSql = (name: string) => /^sql-(pg|my)-/.test(name)
export const canRun = (name: string) => !name.startsWith('sql-my-') || !lacks('mariadb')

/** Starts a PostgreSQL and, where there is one, a MariaDB. */
export async function startSqlStand(): Promise<SqlStand> {
  const [postgres, mariadb] = await Promise.all([
    startPostgres(),
    lacks('mariadb') ? Promise.resolve(undefined) : startMariadb(),
  ])
  const pool = new pg.Pool({ connectionString: postgres.url, max: 2 })
  // A connection that the server ends while all of it stops is nothing to fail for.
  pool.on('error', () => {})
  const { host, port, database, username, password } = mariadb?.login ?? {}
  const theirs = mariadb
    ? mysql.createPool({
        host: String(host),
        port: Number(port),
        database: String(database),
        user: String(username),
        password: String(password),
      })
    : undefined
  return {
    keys: [
      describeKey('sql-pg', 'postgres', 'postgresql', postgres),
      ...(mariadb ? [describeKey('sql-my', 'mySql', 'mysql', mariadb)] : []),
    ],
    async reset(name) {
      const table = name.replaceAll('-', '_')
      const isMySql = name.startsWith('sql-my-')
      const run = (sql: string): Promise<unknown> => (isMySql ? theirs!.query(sql) : pool.query(sql))
      await run(`drop table if exists ${table}`)
      await run(`create table ${table} ${isMySql ? MYSQL_TABLE : POSTGRES_TABLE}`)
      await run(`insert into ${table} (name, n, price, ok, at) values ${ROWS}`)
    },
    async stop() {
      await pool.end()
      await theirs?.end()
      await Promise.all([postgres.stop(), mariadb?.stop()])
    },
  }
}

function describeKey(id: string, type: string, dialect: string, { login }: Server): VendorKey {
  const { host, port, database, username: user, password } = login
  const theirs = { host, port, database, user, password, ssl: type === 'postgres' ? 'disable' : false }
  return { id, type, theirs, as: 'DATABASE', ours: { ...login, dialect, tls: 'never' } }
}
