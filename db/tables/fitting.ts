import { sql } from 'kysely'
import type { Problem } from '../../workflows/problem.ts'
import type { Tx } from '../connection.ts'
import { Fault, invalid } from '../fault.ts'
import type { StoredColumn, StoredTable } from './columns.ts'
import { indexed } from './filters.ts'
import type { Cells } from './values.ts'
import { replaceRows } from './writing.ts'

/** The most rows of a table whose columns can be deleted: each row is written anew. */
const MAX_REWRITTEN = 100_000
const PIECE = 500

/** Throws INVALID if rows of the table have no value where columns now need one, or the same one where they must not. */
export async function demandFit(tx: Tx, table: StoredTable, columns: StoredColumn[]): Promise<void> {
  if (table.rowCount === 0) return
  const problems: Problem[] = []
  const known = new Map(table.columns.map((column) => [column.id, column]))
  for (const [at, column] of columns.entries()) {
    const old = known.get(column.id)
    const say = (key: string, message: string) => problems.push({ path: `columns[${at}].${key}`, message })
    if (!old) {
      if (column.required) say('required', 'must be false for a new column while the table has rows')
      continue
    }
    const cell = sql.ref(`r.${column.place}`)
    if (column.required && !old.required) {
      const { rows } = await sql`select 1 from data_rows r
        where r.table_id = ${table.id} and ${cell} is null limit 1`.execute(tx)
      if (rows.length > 0) say('required', 'cannot be true: rows have no value there')
    }
    if (column.unique && !old.unique) {
      const { rows } =
        await sql`select 1 from data_rows r where r.table_id = ${table.id} and ${cell} is not null
        group by ${indexed(column)}, ${cell} having count(*) > 1 limit 1`.execute(tx)
      if (rows.length > 0) say('unique', 'cannot be true: rows have the same value there')
    }
  }
  if (problems.length > 0) throw invalid(problems)
}

/** Deletes the values of columns, and resolves to how many bytes the table has less. Throws CONFLICT for too many rows. */
export async function dropCells(tx: Tx, table: StoredTable, columns: StoredColumn[]): Promise<number> {
  if (columns.length === 0 || table.rowCount === 0) return 0
  if (table.rowCount > MAX_REWRITTEN)
    throw new Fault(
      'CONFLICT',
      `Columns of a table with more than ${MAX_REWRITTEN} rows cannot be deleted: delete rows first`,
    )
  let freed = 0
  for (let after: string | undefined; ; ) {
    const { rows } = await sql<{ id: string; cells: Cells; bytes: number }>`select id, cells, bytes
      from data_rows r where r.table_id = ${table.id} and ${after ? sql`id > ${after}` : sql`true`}
      order by id limit ${PIECE}`.execute(tx)
    if (rows.length === 0) return freed
    const left = rows.map(({ id, cells }) => {
      const kept = Object.entries(cells).filter(([key]) => columns.every((column) => column.id !== key))
      return { id, cells: Object.fromEntries(kept) }
    })
    const { bytes } = await replaceRows(tx, table, left, { nameRow: String, isChanged: () => false })
    freed += rows.reduce((sum, row) => sum + row.bytes, 0) - bytes
    after = rows.at(-1)!.id
  }
}
