import { MAX_TABLE_ROWS, type TableCondition, type TableOperation } from '../../workflows/nodes/tables.ts'
import { record } from '../change.ts'
import type { Tx } from '../connection.ts'
import { type Fault, invalid, missing } from '../fault.ts'
import type { Store } from '../scope.ts'
import { type MessagePlace, noteDone, readMessageNote } from '../send/notes.ts'
import { boundStatements, inTeamLine, readBounded } from './bounds.ts'
import type { StoredTable } from './columns.ts'
import type { RowFilter } from './filters.ts'
import { countMatching, findIds, selectRows, showRow } from './reading.ts'
import { findNamed } from './tables.ts'
import { type Done, deleteFrom, insertInto, updateIn, upsertInto } from './work.ts'

/** What a node does with a table of its team, which it names by the id or the name. */
export type TableWork = RowFilter & {
  table: string
  operation: TableOperation
  rows?: unknown[]
  values?: Record<string, unknown>
  keys?: string[]
  where?: TableCondition[]
  sort?: string
  limit?: number
  /** All rows that fulfil the filter are meant: it fails rather than leave some out. */
  whole?: boolean
}

const DEFAULT_LIMIT = 100

/**
 * Does a node's work with a table, and resolves to its output. The rows and the note of them are one transaction: an
 * attempt that comes again gets what the first one has answered. Throws Faults as the functions of work.ts, and NOT_FOUND
 * for an execution that was deleted.
 */
export async function workOnTable(store: Store, place: MessagePlace, work: TableWork): Promise<unknown> {
  const teamId = await findTeam(store, place.executionId)
  const { operation } = work
  if (operation === 'select' || operation === 'count' || operation === 'exists')
    return readBounded(store, teamId, async (db) => {
      const table = await findNamed(db, teamId, work.table)
      if (operation === 'count') return { count: await countMatching(db, table, work) }
      if (operation === 'exists') return { exists: (await findIds(db, table, work, 1)).length > 0 }
      const { sort, whole = false, limit = whole ? MAX_TABLE_ROWS + 1 : DEFAULT_LIMIT } = work
      const rows = await selectRows(db, table, work, { sort, limit })
      if (rows.length > MAX_TABLE_ROWS) throw tooMany()
      return { rows: rows.map((row) => showRow(table, row)), count: rows.length }
    })
  const known = await readMessageNote(store, place)
  if (known?.state === 'SENT') return known.output
  return inTeamLine(store, teamId, () =>
    record(store, async (tx) => {
      await boundStatements(tx)
      const table = await findNamed(tx, teamId, work.table, { hold: true })
      // Another attempt may have held the table until now.
      const noted = await readMessageNote({ ...store, db: tx }, place)
      if (noted?.state === 'SENT') return noted.output
      const output = describeDone(table, work, await writeTo(tx, table, work))
      await noteDone(tx, store, place, output)
      return output
    }),
  )
}

async function writeTo(tx: Tx, table: StoredTable, work: TableWork): Promise<Done> {
  const { operation, rows = [], values = {}, keys = [], limit, whole = false } = work
  if (operation === 'insert') return insertInto(tx, table, rows)
  if (operation === 'upsert') return upsertInto(tx, table, rows, keys)
  if (operation === 'update') return updateIn(tx, table, work, values, { reads: true })
  const done = await deleteFrom(tx, table, work, { ...(limit === undefined ? {} : { limit }), reads: true })
  if (done.more && whole) throw tooMany()
  return done
}

function tooMany(): Fault {
  return invalid([{ path: 'where', message: `fits more than ${MAX_TABLE_ROWS} rows: take fewer at once` }])
}

function describeDone(table: StoredTable, { operation }: TableWork, done: Done) {
  const rows = done.rows.map((row) => showRow(table, row))
  const output = { rows, count: rows.length }
  if (operation === 'upsert') return { ...output, inserted: done.inserted, updated: done.updated }
  return operation === 'delete' ? { ...output, more: done.more === true } : output
}

async function findTeam({ db }: Store, executionId: string): Promise<string> {
  const row = await db
    .selectFrom('executions')
    .select('teamId')
    .where('id', '=', executionId)
    .executeTakeFirst()
  if (!row) throw missing('execution')
  return row.teamId
}
