import { CamelCasePlugin, Kysely, PostgresDialect, sql, type Transaction } from 'kysely'
import pg from 'pg'
import type { DB } from './schema.ts'

/** The whole database, as openDatabase returns it: only for migrations and for the doors of change.ts. */
export type Database = Kysely<DB>

/** The database as all other code gets it, for reading only. To write, use a door of change.ts. */
export type Db = Omit<
  Database,
  | 'insertInto'
  | 'replaceInto'
  | 'updateTable'
  | 'deleteFrom'
  | 'mergeInto'
  | 'transaction'
  | 'startTransaction'
>

/** The transaction that a door of change.ts gives for writing. */
export type Tx = Transaction<DB>

/**
 * Opens a connection pool. bigint columns (counts, durations) are read as numbers: they stay far below 2^53.
 * The pool drops a broken connection; only the query that was using it rejects.
 */
export function openDatabase(url: string, options: { max: number; name: string }) {
  const types = new pg.TypeOverrides()
  types.setTypeParser(pg.types.builtins.INT8, Number)
  const pool = new pg.Pool({
    connectionString: url,
    max: options.max,
    application_name: options.name,
    connectionTimeoutMillis: 5_000,
    types,
  })
  pool.on('error', () => {})
  // Between a failed query and its release a client has no other listener, so an error would end the process.
  pool.on('connect', (client) => client.on('error', () => {}))
  pool.on('connect', createPreparer())
  const db: Database = new Kysely<DB>({
    dialect: new PostgresDialect({ pool }),
    plugins: [new CamelCasePlugin({ maintainNestedObjectKeys: true })],
  })
  return { db, pool, close: () => db.destroy() }
}

/** Resolves if PostgreSQL responds, rejects if it does not. */
export async function pingDatabase(db: Db): Promise<true> {
  await sql`select 1`.execute(db)
  return true
}

const MAX_PREPARED = 500

/**
 * Makes each connection parse and plan a statement only once, which is half of PostgreSQL's work for an
 * execution. Statements with a limit are planned each time, since the best way to the first rows depends on
 * the values. Statements without parameters, which are transaction control and migrations, are left as they
 * are.
 */
function createPreparer(): (client: pg.PoolClient) => void {
  const names = new Map<string, string>()
  const name = (text: string) => {
    const known = names.get(text)
    if (known || names.size >= MAX_PREPARED || /\blimit\b/.test(text)) return known
    const made = `perdure_${names.size}`
    names.set(text, made)
    return made
  }
  return (client) => {
    const query = client.query.bind(client) as (first: unknown, ...rest: unknown[]) => unknown
    const prepared = (first: unknown, ...rest: unknown[]) => {
      const [values] = rest
      const named = typeof first === 'string' && Array.isArray(values) && values.length > 0 && name(first)
      return named ? query({ name: named, text: first, values }) : query(first, ...rest)
    }
    client.query = prepared as typeof client.query
  }
}

/** A read-only transaction that sees the database as it is at one moment. */
export function readSnapshot(db: Db) {
  return (db as Database).transaction().setIsolationLevel('repeatable read').setAccessMode('read only')
}

/** Like readSnapshot, but the caller has to end the transaction. */
export function openSnapshot(db: Db) {
  const snapshot = (db as Database).startTransaction()
  return snapshot.setIsolationLevel('repeatable read').setAccessMode('read only').execute()
}

/** A parameter for a `json` column. It is serialized here, so that arrays and strings arrive as JSON too. */
export function json(value: unknown) {
  return sql<never>`${JSON.stringify(value)}::json`
}

const AWAY = /^(08...|57P0[123]|53300|ECONN\w+|EPIPE|ETIMEDOUT|ENOTFOUND|EHOSTUNREACH|EAI_AGAIN)$/

/** Whether an error means that PostgreSQL cannot be reached now, rather than that it refused a statement. */
export function isDatabaseAway(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { code, syscall } = error as { code?: string; syscall?: string }
  // A Unix socket that nobody listens on gives ENOENT.
  if (AWAY.test(code ?? '') || (code === 'ENOENT' && syscall === 'connect')) return true
  if (error instanceof AggregateError) return error.errors.some(isDatabaseAway)
  return /Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error/.test(
    error.message,
  )
}
