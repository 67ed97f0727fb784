import { change } from '../change.ts'
import type { Tx } from '../connection.ts'
import { missing } from '../fault.ts'
import { makePage, type Page, type PageRequest } from '../page.ts'
import type { Scope } from '../scope.ts'
import { boundStatements, inTeamLine, readBounded } from './bounds.ts'
import type { StoredTable } from './columns.ts'
import type { RowFilter } from './filters.ts'
import { countMatching, type ShownRow, selectRows, showRow } from './reading.ts'
import { findTable, holdTable } from './tables.ts'
import { type Done, deleteFrom, insertInto, updateIn, upsertInto } from './work.ts'

/** One page of a table's rows (VIEWER). Throws NOT_FOUND; INVALID for a wrong filter; UNPROCESSABLE if it takes too long. */
export async function listRows(
  scope: Scope,
  tableId: string,
  query: PageRequest & RowFilter & { sort?: string | undefined },
): Promise<Page<ShownRow>> {
  const table = await findTable(scope, tableId)
  return readBounded(scope.store, table.teamId, async (db) => {
    const total = await countMatching(db, table, query)
    const slice = { sort: query.sort, limit: query.size, offset: query.page * query.size }
    const rows = await selectRows(db, table, query, slice)
    return makePage(
      rows.map((row) => showRow(table, row)),
      total,
      query,
    )
  })
}

/** One row of a table (VIEWER). Throws NOT_FOUND. */
export async function readRow(scope: Scope, tableId: string, id: string): Promise<ShownRow> {
  const table = await findTable(scope, tableId)
  return readBounded(scope.store, table.teamId, async (db) => {
    const [row] = await selectRows(db, table, byId(id), { limit: 1 })
    if (!row) throw missing('row')
    return showRow(table, row)
  })
}

/** Adds rows; with `keys` it changes those that are there already (OPERATOR). Throws as insertInto and upsertInto. */
export async function writeRows(
  scope: Scope,
  tableId: string,
  { rows, keys }: { rows: unknown[]; keys?: string[] | undefined },
): Promise<{ rows: ShownRow[]; inserted: number; updated: number }> {
  return changeRows(scope, tableId, async (tx, table) => {
    const done = keys ? await upsertInto(tx, table, rows, keys) : await insertInto(tx, table, rows)
    const { inserted, updated } = done
    return { done, result: { rows: done.rows.map((row) => showRow(table, row)), inserted, updated } }
  })
}

/** Changes the values that are given in all rows that fulfil the filter (OPERATOR). Throws as updateIn. */
export async function updateRows(
  scope: Scope,
  tableId: string,
  { values, ...filter }: RowFilter & { values: Record<string, unknown> },
): Promise<{ updated: number }> {
  return changeRows(scope, tableId, async (tx, table) => {
    const done = await updateIn(tx, table, filter, values)
    return { done, result: { updated: done.updated } }
  })
}

/** Changes one row (OPERATOR). Throws as updateIn, and NOT_FOUND. */
export async function updateRow(
  scope: Scope,
  tableId: string,
  id: string,
  values: Record<string, unknown>,
): Promise<ShownRow> {
  return changeRows(scope, tableId, async (tx, table) => {
    const done = await updateIn(tx, table, byId(id), values, { reads: true })
    if (!done.rows[0]) throw missing('row')
    return { done, result: showRow(table, done.rows[0]) }
  })
}

/** Deletes the rows that fulfil the filter, at most 10,000 at once (OPERATOR): `more` says whether others are left. */
export async function deleteRows(
  scope: Scope,
  tableId: string,
  filter: RowFilter,
): Promise<{ deleted: number; more: boolean }> {
  return changeRows(scope, tableId, async (tx, table) => {
    const done = await deleteFrom(tx, table, filter)
    return { done, result: { deleted: done.deleted, more: done.more === true } }
  })
}

/** Deletes one row (OPERATOR). Throws NOT_FOUND. */
export async function deleteRow(scope: Scope, tableId: string, id: string): Promise<void> {
  await changeRows(scope, tableId, async (tx, table) => {
    const done = await deleteFrom(tx, table, byId(id))
    if (done.deleted === 0) throw missing('row')
    return { done, result: undefined }
  })
}

const byId = (id: string): RowFilter => ({ where: [{ column: 'id', op: 'eq', value: id }] })

/** Writes to a table on a caller's behalf. The audit says how many rows, not what is in them. */
export async function changeRows<T>(
  scope: Scope,
  tableId: string,
  work: (tx: Tx, table: StoredTable) => Promise<{ done: Done; result: T }>,
): Promise<T> {
  const { teamId } = await findTable(scope, tableId)
  return inTeamLine(scope.store, teamId, () =>
    change(scope, 'TABLE_ROWS_CHANGED', teamId, async (tx) => {
      await boundStatements(tx)
      const table = await holdTable(tx, tableId)
      const { done, result } = await work(tx, table)
      const { inserted, updated, deleted } = done
      if (inserted + updated + deleted === 0) return { result, unchanged: true }
      return { result, resourceId: tableId, details: { name: table.name, inserted, updated, deleted } }
    }),
  )
}
