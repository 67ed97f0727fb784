import { readdir, readFile } from 'node:fs/promises'
import { sql } from 'kysely'
import pg from 'pg'
import type { Db } from './connection.ts'

const FOLDER = new URL('./migrations/', import.meta.url)
const LOCK = 7_226_001

/**
 * Applies the numbered files of db/migrations/ that this database does not have yet, each in a transaction.
 * There is no way back. An advisory lock lets any number of processes start at once. Returns the names of the
 * applied files.
 */
export async function migrate(db: Db): Promise<string[]> {
  const files = (await readdir(FOLDER)).filter((name) => /^\d{4}_.*\.sql$/.test(name)).sort()
  return db.connection().execute(async (connection) => {
    await sql`select pg_advisory_lock(${LOCK})`.execute(connection)
    try {
      await sql`create table if not exists migrations (
        name text primary key, applied_at timestamptz(3) not null default now())`.execute(connection)
      const seen = await sql<{ name: string }>`select name from migrations`.execute(connection)
      const known = new Set(seen.rows.map((row) => row.name))
      const ran: string[] = []
      for (const name of files.filter((file) => !known.has(file))) {
        const text = await readFile(new URL(name, FOLDER), 'utf8')
        await connection.transaction().execute(async (tx) => {
          await sql.raw(text).execute(tx)
          await sql`insert into migrations (name) values (${name})`.execute(tx)
        })
        ran.push(name)
      }
      return ran
    } finally {
      await sql`select pg_advisory_unlock(${LOCK})`.execute(connection)
    }
  })
}

/** Creates the database that a URL names if it does not exist. Rejects while the server is not reachable. */
export async function createDatabase(url: string): Promise<void> {
  const server = new URL(url)
  const name = decodeURIComponent(server.pathname.slice(1))
  server.pathname = '/postgres'
  const client = new pg.Client({ connectionString: server.href, connectionTimeoutMillis: 2_000 })
  client.on('error', () => {})
  await client.connect()
  try {
    const found = await client.query('select 1 from pg_database where datname = $1', [name])
    if (found.rowCount === 0) await client.query(`create database ${client.escapeIdentifier(name)}`)
  } finally {
    await client.end()
  }
}
