import { type RawBuilder, sql } from 'kysely'
import type { Db, Tx } from '../connection.ts'
import { readSnapshot } from '../connection.ts'
import { Fault } from '../fault.ts'
import { inLine } from '../operation/lines.ts'
import type { Store } from '../scope.ts'

/** How long one statement may take: those that look through a table, and those that change it. */
const READ_MS = 10_000
const WRITE_MS = 30_000
/** How long a lock is awaited, before the connection is given back and the work begins anew. */
const LOCK_MS = 2_000
/** How many connections of a process the data tables of one team may have at once. */
const AT_ONCE = 3

/** Bounds the statements of a transaction that writes to data tables. */
export async function boundStatements(tx: Tx): Promise<void> {
  await sql`select set_config('statement_timeout', ${String(WRITE_MS)}, true),
    set_config('lock_timeout', ${String(LOCK_MS)}, true)`.execute(tx)
}

/** Does work with data tables in the team's line. Throws UNPROCESSABLE if a statement took too long. */
export async function inTeamLine<T>(store: Pick<Store, 'db'>, teamId: string, work: () => Promise<T>) {
  return inLine(store.db, `data tables of ${teamId}`, AT_ONCE, () => refuseSlow(work))
}

/** Reads from data tables, all as it is at one moment. Throws as inTeamLine. */
export function readBounded<T>(store: Store, teamId: string, work: (db: Db) => Promise<T>): Promise<T> {
  return inTeamLine(store, teamId, () =>
    readSnapshot(store.db).execute(async (trx) => {
      await sql`select set_config('statement_timeout', ${String(READ_MS)}, true)`.execute(trx)
      return work(trx)
    }),
  )
}

/** PostgreSQL's query_canceled. */
const CANCELED = '57014'

async function refuseSlow<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if ((error as { code?: string }).code !== CANCELED) throw error
    throw new Fault(
      'UNPROCESSABLE',
      'It took too long: ask for fewer rows, by conditions that few rows fulfil (eq, in, startsWith, or a narrow range)',
    )
  }
}

/** A part of a statement that never becomes a prepared one: users' conditions have too many shapes for that. */
export const UNPREPARED: RawBuilder<unknown> = sql`limit all`
