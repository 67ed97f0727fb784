import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import pg from 'pg'
import { write } from './change.ts'
import type { Database, Db } from './connection.ts'
import { MIGRATING } from './locks.ts'

const FOLDER = new URL('./migrations/', import.meta.url)

/** The first line of a migration that is a single statement and cannot run in a transaction. */
const ALONE = /^-- no transaction\b/
const POLL_MS = 100

/**
 * How long a transaction of a migration waits for a table. All later statements queue behind it, so it gives up and
 * tries again, rather than stop them for as long as one long statement takes. It does so before PostgreSQL looks for
 * deadlocks, after a second: others take the same tables in other orders.
 */
const LOCK_LIMIT = '500ms'
const LOCK_REST_MS = 1_000
/** PostgreSQL's lock_not_available and deadlock_detected. */
const LOCKED_OUT = ['55P03', '40P01']

/**
 * Applies the numbered files of a folder, db/migrations/, that this database does not have yet, each in a transaction,
 * or, if its first line says so, as one statement without any. There is no way back. An advisory lock lets any
 * number of processes start at once. Returns the names of the applied files.
 */
export async function migrate(db: Db, folder: URL = FOLDER): Promise<string[]> {
  const files = (await readdir(folder)).filter((name) => /^\d{4}_.*\.sql$/.test(name)).sort()
  return db.connection().execute(async (connection) => {
    await lock(connection)
    try {
      await sql`create table if not exists migrations (
        name text primary key, applied_at timestamptz(3) not null default now())`.execute(connection)
      const seen = await sql<{ name: string }>`select name from migrations`.execute(connection)
      const known = new Set(seen.rows.map((row) => row.name))
      const ran: string[] = []
      for (const name of files.filter((file) => !known.has(file))) {
        const text = await readFile(new URL(name, folder), 'utf8')
        if (ALONE.test(text)) await applyAlone(connection, name, text)
        else await applyWhole(connection, name, text)
        ran.push(name)
      }
      return ran
    } finally {
      await sql`select pg_advisory_unlock(${MIGRATING})`.execute(connection)
    }
  })
}

/**
 * Takes the lock by polling: an index that is built concurrently waits for all statements that are older than
 * it, and so for one that waits for the lock of its own builder.
 */
async function lock(connection: Db): Promise<void> {
  for (;;) {
    const { rows } = await sql<{
      taken: boolean
    }>`select pg_try_advisory_lock(${MIGRATING}) as taken`.execute(connection)
    if (rows[0]?.taken) return
    await pause(POLL_MS)
  }
}

/** Applies a file in a transaction, as soon as it gets the tables that it changes. */
async function applyWhole(connection: Database, name: string, text: string): Promise<void> {
  for (;;) {
    try {
      await connection.transaction().execute(async (tx) => {
        await sql`select set_config('lock_timeout', ${LOCK_LIMIT}, true)`.execute(tx)
        await sql.raw(text).execute(tx)
        await sql`insert into migrations (name) values (${name})`.execute(tx)
      })
      return
    } catch (error) {
      if (!LOCKED_OUT.includes((error as { code?: string }).code ?? '')) throw error
      await pause(LOCK_REST_MS)
    }
  }
}

const BUILDS_INDEX = /^\s*create\s+(?:unique\s+)?index\s+concurrently\s+(?:if\s+not\s+exists\s+)?(\w+)/i

/**
 * Applies a file that is one statement outside of a transaction. A process may have ended while it did so before: an
 * index is then invalid, and built anew, or complete, and kept.
 */
async function applyAlone(connection: Db, name: string, text: string): Promise<void> {
  const [statement, ...others] = listStatements(text)
  if (statement === undefined || others.length > 0)
    throw new Error(`${name} must be one statement, because it runs without a transaction`)
  const index = BUILDS_INDEX.exec(statement)?.[1]
  const found = index === undefined ? undefined : await findIndex(connection, index)
  if (index !== undefined && found && !found.valid)
    await sql`drop index concurrently ${sql.raw(index)}`.execute(connection)
  if (!found?.valid) await sql.raw(statement).execute(connection)
  await write({ db: connection }, (tx) => sql`insert into migrations (name) values (${name})`.execute(tx))
}

async function findIndex(connection: Db, index: string): Promise<{ valid: boolean } | undefined> {
  const { rows } = await sql<{ valid: boolean }>`select indisvalid as valid from pg_index
    where indexrelid = to_regclass(${index})`.execute(connection)
  return rows[0]
}

/** The statements of a file, without comments. A semicolon in a string or a function's body ends none. */
export function listStatements(text: string): string[] {
  const parts = text.matchAll(
    /--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'|"[^"]*"|(\$\w*\$)[\s\S]*?\1|;|[\s\S]/g,
  )
  const statements = ['']
  for (const [part] of parts) {
    if (part === ';') statements.push('')
    else if (!/^(--|\/\*)/.test(part)) statements[statements.length - 1] += part
  }
  return statements.map((statement) => statement.trim()).filter(Boolean)
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
