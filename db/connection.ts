import { CamelCasePlugin, Kysely, PostgresDialect, sql } from 'kysely'
import pg from 'pg'
import type { DB } from './schema.ts'

export type Db = Kysely<DB>

/**
 * Opens a pool on PostgreSQL. bigint columns (counts, durations) come as numbers: they stay far below 2^53.
 * A connection that breaks is dropped by the pool, never thrown but to the query it broke.
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
  // Between a query's failure and its release a client has no other listener: its error would end the process.
  pool.on('connect', (client) => client.on('error', () => {}))
  pool.on('connect', createPreparer())
  const db: Db = new Kysely<DB>({
    dialect: new PostgresDialect({ pool }),
    plugins: [new CamelCasePlugin({ maintainNestedObjectKeys: true })],
  })
  return { db, pool, close: () => db.destroy() }
}

const MAX_PREPARED = 500

/**
 * Has each connection parse and plan a statement once: half of what PostgreSQL spends on a run is that. What has a
 * limit is planned each time: how best to find the first rows depends on the values. What has no parameters is
 * transaction control and migrations.
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

/** A parameter for a `json` column: the text is made here, so that arrays and strings arrive as JSON too. */
export function json(value: unknown) {
  return sql<never>`${JSON.stringify(value)}::json`
}

const AWAY = /^(08...|57P0[123]|53300|ECONN\w+|EPIPE|ETIMEDOUT|ENOTFOUND|EHOSTUNREACH|EAI_AGAIN)$/

/** Whether an error says that PostgreSQL cannot be reached now, rather than that it refused a statement. */
export function isDatabaseAway(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { code, syscall } = error as { code?: string; syscall?: string }
  // ENOENT is a Unix socket's way to say that nobody listens.
  if (AWAY.test(code ?? '') || (code === 'ENOENT' && syscall === 'connect')) return true
  if (error instanceof AggregateError) return error.errors.some(isDatabaseAway)
  return /Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error/.test(
    error.message,
  )
}
