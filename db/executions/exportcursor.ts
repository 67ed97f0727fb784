import { type ControlledTransaction, type RawBuilder, sql } from 'kysely'
import type { Role } from '../acts.ts'
import { write } from '../change.ts'
import { openSnapshot, type Tx } from '../connection.ts'
import { demandStill } from '../people/rights.ts'
import type { DB } from '../schema.ts'
import type { Scope } from '../scope.ts'
import { takeExportSlot } from './exportslots.ts'

/**
 * Rows of an export, as they are at one moment. It holds a connection until `next` has returned nothing or failed, or
 * `close` is called.
 */
export type ExportCursor<Row> = {
  /** Some more rows, with their columns' own names; none once there are no more. */
  next: () => Promise<Row[]>
  /** Ends the export, even while a query is being executed. May be called at any time, and again. */
  close: () => Promise<void>
}

/** The query, read `batch` rows at a time, and the reads at the start of its transaction. */
type Selected<T> = { select: RawBuilder<unknown>; batch: number; begin: (tx: Tx) => Promise<T> }

const CLOSED = new Error('The export is closed')
/** How long a query may go on after the end. Most are over by then; a longer one is cancelled. */
const CLOSE_MS = 50

/**
 * Begins to read the rows of an export that has been audited, for a caller with at least the role `least` in the team.
 * Throws UNAVAILABLE if other exports leave no slot for 30 s.
 */
export async function openExportCursor<Row, T>(
  scope: Scope,
  { teamId, least }: { teamId: string; least: Role },
  { select, batch, begin }: Selected<T>,
): Promise<ExportCursor<Row> & { begun: T }> {
  const { db } = scope.store
  const freeSlot = await takeExportSlot(db, teamId)
  const stop = new AbortController()
  let tx: ControlledTransaction<DB> | undefined
  // Without plugins, which would copy all rows.
  let plain: Tx | undefined
  let ended: Promise<void> | undefined
  let [finished, closed] = [false, false]
  // Waits for the query that is being executed, and gives the connection back even if it is broken.
  const rollback = async () => tx?.rollback().execute()
  const end = () => {
    ended ??= rollback()
      .catch(() => {})
      .then(freeSlot)
    return ended
  }
  const fetch = async (): Promise<Row[]> => {
    try {
      const options = { signal: stop.signal, inflightQueryAbortStrategy: 'cancel query' } as const
      const { rows } = await sql<Row>`fetch ${sql.lit(batch)} from export`.execute(plain!, options)
      if (rows.length < batch) {
        finished = true
        await end()
      }
      return rows
    } catch (error) {
      await end()
      throw error
    }
  }
  try {
    // The slot may have come only after a while.
    await write(scope.store, (tx) => demandStill(tx, { scope, least }, teamId))
    tx = await openSnapshot(db)
    plain = tx.withoutPlugins()
    const begun = await begin(tx)
    // An open snapshot keeps PostgreSQL from removing deleted rows. If this process hangs, the server ends it.
    await sql`set local idle_in_transaction_session_timeout = '1h'`.execute(tx)
    // Compiling the query would cost more than it saves.
    await sql`set local jit = off`.execute(tx)
    await sql`declare export no scroll cursor for ${select}`.execute(tx)
    // At once, so that an error can become the response, and a small export frees its connection now.
    let ahead: Row[] | undefined = await fetch()
    return {
      begun,
      async next() {
        if (closed) throw CLOSED
        const rows = ahead ?? (finished ? [] : await fetch())
        ahead = undefined
        return rows
      },
      close() {
        closed = true
        const timer = setTimeout(() => stop.abort(CLOSED), CLOSE_MS)
        return end().finally(() => clearTimeout(timer))
      },
    }
  } catch (error) {
    await end()
    throw error
  }
}
