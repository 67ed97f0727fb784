import { readdir, readFile } from 'node:fs/promises'
import { sql } from 'kysely'
import type { Db } from './connection.ts'

const FOLDER = new URL('./migrations/', import.meta.url)
const LOCK = 7_226_001

/**
 * Runs the numbered files of db/migrations/ that this database has not seen, each in a transaction, forward
 * only. An advisory lock lets any number of processes start at once. Returns the names it ran.
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
