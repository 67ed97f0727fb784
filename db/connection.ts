import { CamelCasePlugin, Kysely, PostgresDialect, sql, type Transaction } from 'kysely'
import pg from 'pg'
import { judgeError, notBuilt, READ_ONLY } from './operation/outage.ts'
import { HEAR_CHANGES, watchOwnChanges } from './operation/ownchanges.ts'
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

/** How long to connect may take. */
const CONNECT_MS = 5_000

/** `timeoutMs`: how long to connect, and each statement, may take; without it, statements take as long as they do. */
type DatabaseOptions = { max: number; name: string; timeoutMs?: number }

/**
 * Opens a connection pool. bigint columns (counts, durations) are read as numbers: they stay far below 2^53.
 * The pool drops a broken connection; only the query that was using it rejects.
 */
export function openDatabase(url: string, options: DatabaseOptions) {
  const types = new pg.TypeOverrides()
  types.setTypeParser(pg.types.builtins.INT8, Number)
  const pool = new pg.Pool({
    connectionString: url,
    max: options.max,
    application_name: options.name,
    connectionTimeoutMillis: options.timeoutMs ?? CONNECT_MS,
    types,
    ...(options.timeoutMs ? { keepAlive: true, query_timeout: options.timeoutMs + UNHEARD_MS } : {}),
    // Not as parameters of the connection, which a pooler of sessions may refuse.
    onConnect: async (client) => {
      const limit = options.timeoutMs ? `; set statement_timeout = ${options.timeoutMs}` : ''
      await client.query(HEAR_CHANGES + limit)
    },
  })
  const hearers = new Set<(text: string) => void>()
  pool.on('error', () => {})
  pool.on('connect', watchHealth)
  pool.on('connect', (client) => {
    watchOwnChanges(client, (text) => {
      for (const hear of hearers) hear(text)
    })
  })
  pool.on('connect', createPreparer())
  const db: Database = new Kysely<DB>({
    dialect: new PostgresDialect({
      pool: { connect: () => lendClient(pool), end: () => pool.end(), options: pool.options },
      // A statement is cancelled by a connection of its own: that of its transaction waits for the statement itself.
      controlClient: pg.Client,
    }),
    plugins: [new CamelCasePlugin({ maintainNestedObjectKeys: true })],
  })
  ownHearers.set(db, hearers)
  return { db, pool, close: () => db.destroy() }
}

const ownHearers = new WeakMap<object, Set<(text: string) => void>>()

/** Calls `hear` with each change that connections of the pool have committed, of what triggers tell (see db/memory.ts). */
export function hearOwnChanges(db: Db, hear: (text: string) => void): void {
  ownHearers.get(db)?.add(hear)
}

/** How much later than the server the client gives a statement up: it matters only if the server has gone silent. */
const UNHEARD_MS = 500

/** The state of a connection that pg does not tell. */
type Health = {
  /** It reported an error of its own: pg gives it up by itself. */
  lost: boolean
  /** The backend has begun to carry out the statement that was sent last. */
  begun: boolean
}

const healths = new WeakMap<pg.PoolClient, Health>()

function watchHealth(client: pg.PoolClient): void {
  const health = { lost: false, begun: false }
  healths.set(client, health)
  // Between a failed query and its release a client has no other listener, so an error would end the process.
  client.on('error', () => {
    health.lost = true
  })
  const { connection } = client as unknown as { connection: NodeJS.EventEmitter }
  for (const event of ['parseComplete', 'bindComplete', 'rowDescription', 'commandComplete']) {
    connection.on(event, () => {
      health.begun = true
    })
  }
}

/**
 * Lends a connection for one statement, a transaction or a session. It goes back to the pool only if it can be used
 * again. The first statement is tried again on another connection if it is certain that this one did not begin with it:
 * connections may have been ended while they were idle, and their next user should not notice, whether one was or all of
 * the pool.
 */
async function lendClient(pool: pg.Pool) {
  let client: pg.PoolClient | undefined = await pool.connect()
  let spoilt = false
  let first = true

  async function ask(text: string, values: unknown[]): Promise<pg.QueryResult> {
    if (!client) throw new Error('Connection terminated: there is no other')
    const health = healths.get(client)!
    health.begun = false
    try {
      return await client.query(text, values)
    } catch (error) {
      if (error instanceof pg.DatabaseError) {
        // FATAL and PANIC end the connection, but pg notices only when it is closed. Behind a name that has
        // moved, a new connection may reach the database that takes changes.
        spoilt ||= [NOT_PREPARED, READ_ONLY].includes(error.code!) || error.severity !== 'ERROR'
      } else if (!health.lost) {
        // pg closes a named statement that it cannot bind, and goes on believing that it is prepared.
        spoilt = true
        throw (error as Error).message === UNHEARD ? error : notBuilt(error)
      }
      throw error
    }
  }

  /** Replaces the connection. Without one, the borrower gets the error. */
  async function change(): Promise<void> {
    client?.release(true)
    client = undefined
    spoilt = false
    client = await pool.connect()
  }

  return {
    async query(text: string, values: unknown[]): Promise<pg.QueryResult> {
      for (let lost = 0; ; lost++) {
        const tryAgain = first && lost < pool.options.max
        try {
          const result = await ask(text, values)
          first = false
          return result
        } catch (error) {
          if (!tryAgain || !client || !wasNotBegun(text, error, healths.get(client)!)) {
            first = false
            throw error
          }
          await change()
        }
      }
    },
    release(drop?: boolean | Error): void {
      client?.release(Boolean(drop) || spoilt)
      client = undefined
    },
    get processID() {
      return (client as { processID?: number } | undefined)?.processID
    },
  } as unknown as pg.PoolClient
}

/** What pg says when a statement takes longer than its `query_timeout`. */
const UNHEARD = 'Query read timeout'

/** PostgreSQL's invalid_sql_statement_name. */
const NOT_PREPARED = '26000'

/** Whether it is certain that a backend did not begin with the statement, and that it is not in a transaction. */
function wasNotBegun(text: string, error: unknown, health: Health): boolean {
  if (health.begun) return false
  if (error instanceof pg.DatabaseError) return error.code === NOT_PREPARED || /^57P0[123]$/.test(error.code!)
  if (!health.lost) return false
  // What could not be written has not arrived, and a transaction that only begins may do so twice.
  const { code, syscall } = error as { code?: string; syscall?: string }
  return /^(begin|start transaction)\b/.test(text) || (code === 'EPIPE' && syscall === 'write')
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

/** Whether an error means that the database takes no work now, rather than that it refused a statement. */
export function isDatabaseAway(error: unknown): boolean {
  return judgeError(error) === 'away'
}
