import { setImmediate as breathe } from 'node:timers/promises'
import { sql } from 'kysely'
import { openExportCursor } from '../executions/exportcursor.ts'
import { demand, type Scope } from '../scope.ts'
import { type Column, type StoredTable, showColumn } from './columns.ts'
import { type RowFilter, writeFilter } from './filters.ts'
import { type ShownRow, showRow } from './reading.ts'
import { changeRows } from './rows.ts'
import { findTable } from './tables.ts'
import type { StoredRow } from './values.ts'
import { type Done, insertInto, upsertInto } from './work.ts'

const BATCH = 200

/** An open export. It holds a connection until `read` has returned false or failed, or `close` is called. */
export type OpenTableExport = {
  columns: Column[]
  /** Passes some more rows to `each`, the oldest first. Returns false once there are no more. */
  read: (each: (row: ShownRow) => void) => Promise<boolean>
  close: () => Promise<void>
}

/** Begins to read the rows of a table that fulfil a filter, as they are at this moment (VIEWER). */
export async function openTableExport(
  scope: Scope,
  tableId: string,
  filter: RowFilter,
): Promise<OpenTableExport> {
  const table = await findTable(scope, tableId)
  const select = sql`select r.id, r.cells, r.created_at as "createdAt", r.updated_at as "updatedAt" from data_rows r
    where r.table_id = ${table.id} and ${writeFilter(table.columns, filter)} order by r.id`
  const cursor = await openExportCursor<StoredRow, undefined>(
    scope,
    { teamId: table.teamId, least: 'VIEWER' },
    { select, batch: BATCH, begin: async () => undefined },
  )
  return {
    columns: table.columns.map(showColumn),
    async read(each) {
      const rows = await cursor.next()
      if (rows.length === 0) return false
      for (const row of rows) each(showRow(table, row))
      rows.length = 0
      await breathe()
      return true
    },
    close: cursor.close,
  }
}

/** The table that rows are imported into (OPERATOR). Throws NOT_FOUND. */
export async function findImported(scope: Scope, tableId: string): Promise<StoredTable> {
  const table = await findTable(scope, tableId)
  demand(scope, table.teamId, 'OPERATOR')
  return table
}

/** Writes a piece of an import, all of it or nothing (OPERATOR). `nameRow` is how an error names a row. */
export async function importRows(
  scope: Scope,
  tableId: string,
  rows: unknown[],
  { keys, nameRow }: { keys?: string[] | undefined; nameRow: (at: number) => string },
): Promise<Pick<Done, 'inserted' | 'updated'>> {
  return changeRows(scope, tableId, async (tx, table) => {
    const done = keys
      ? await upsertInto(tx, table, rows, keys, nameRow)
      : await insertInto(tx, table, rows, nameRow)
    return { done, result: { inserted: done.inserted, updated: done.updated } }
  })
}
