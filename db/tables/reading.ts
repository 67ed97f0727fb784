import { sql } from 'kysely'
import { setOwn } from '../../workflows/json.ts'
import type { Db } from '../connection.ts'
import { Fault } from '../fault.ts'
import { UNPREPARED } from './bounds.ts'
import type { StoredTable } from './columns.ts'
import { indexed, type RowFilter, readSort, writeFilter } from './filters.ts'
import type { StoredRow } from './values.ts'

/** The most bytes of values of rows that are read, or answered, at once. */
const MAX_RESULT_BYTES = 8_000_000

/** A row as users see it: {id, the columns by their names, createdAt, updatedAt}. Times are ISO 8601. */
export type ShownRow = Record<string, unknown> & { id: string }

export function showRow({ columns }: Pick<StoredTable, 'columns'>, row: StoredRow): ShownRow {
  const shown: ShownRow = { id: row.id }
  for (const { id, name } of columns) setOwn(shown, name, row.cells[id] ?? null)
  return Object.assign(shown, {
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
  })
}

type Slice = { sort?: string | undefined; limit: number; offset?: number }
type Sized = StoredRow & { bytes: number }

/**
 * The rows that fulfil a filter, in the order of their ids, which is that of their creation, or by a column: empty cells
 * come last in either order, and of texts the first 256 bytes count. Throws TOO_LARGE above 8 MB.
 */
export async function selectRows(
  db: Db,
  table: StoredTable,
  filter: RowFilter,
  { sort, limit, offset = 0 }: Slice,
): Promise<Sized[]> {
  const { column, descending } = readSort(table.columns, sort)
  const where = sql`r.table_id = ${table.id} and ${writeFilter(table.columns, filter)}`
  const direction = descending ? sql`desc` : sql`asc`
  const read = async (more: typeof where, order: typeof where, most: number, from: number) => {
    const found = await sql<{ id: string; bytes: number }>`select r.id, r.bytes from data_rows r
      where ${more} order by ${order} limit ${most} offset ${from}`.execute(db)
    demandSmall(found.rows.reduce((sum, { bytes }) => sum + bytes, 0))
    // By their ids, so that the table is not looked through once more.
    const ids = found.rows.map(({ id }) => id)
    const rows = new Map((await readRowsById(db, table, ids)).map((row) => [row.id, row]))
    return ids.map((id) => rows.get(id)!)
  }
  if (!column) return read(where, sql`r.id ${direction}`, limit, offset)
  const cell = sql.ref(`r.${column.place}`)
  const filled = sql`${where} and ${cell} is not null`
  const rows = await read(filled, sql`${indexed(column)} ${direction}, r.id ${direction}`, limit, offset)
  if (rows.length === limit) return rows
  const before = rows.length > 0 || offset === 0 ? offset + rows.length : await countFound(db, sql`${filled}`)
  const rest = await read(
    sql`${where} and ${cell} is null`,
    sql`r.id ${direction}`,
    limit - rows.length,
    Math.max(0, offset - before),
  )
  demandSmall([...rows, ...rest].reduce((sum, { bytes }) => sum + bytes, 0))
  return [...rows, ...rest]
}

/** Throws TOO_LARGE for rows that have more bytes than may be answered at once. */
export function demandSmall(bytes: number): void {
  if (bytes <= MAX_RESULT_BYTES) return
  throw new Fault('TOO_LARGE', `The rows have more than ${MAX_RESULT_BYTES} bytes: ask for fewer`)
}

/** How many rows fulfil a filter. */
export async function countMatching(db: Db, table: StoredTable, filter: RowFilter): Promise<number> {
  const condition = writeFilter(table.columns, filter)
  if (!filter.where?.length) return table.rowCount
  return countFound(db, sql`r.table_id = ${table.id} and ${condition}`)
}

async function countFound(db: Db, where: ReturnType<typeof sql>): Promise<number> {
  const { rows } = await sql<{ found: number }>`select count(*) as found
    from (select 1 from data_rows r where ${where} ${UNPREPARED}) f`.execute(db)
  return rows[0]!.found
}

/** The ids of rows that fulfil a filter, the oldest first. */
export async function findIds(
  db: Db,
  table: StoredTable,
  filter: RowFilter,
  limit: number,
): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`select r.id from data_rows r
    where r.table_id = ${table.id} and ${writeFilter(table.columns, filter)} order by r.id limit ${limit}`.execute(
    db,
  )
  return rows.map(({ id }) => id)
}

/** Rows by their ids, the oldest first. */
export async function readRowsById(db: Db, table: StoredTable, ids: string[]): Promise<Sized[]> {
  const { rows } = await sql<Sized>`select r.id, r.cells, r.bytes, r.created_at, r.updated_at from data_rows r
    where r.table_id = ${table.id} and r.id = any(${ids}::uuid[]) order by r.id`.execute(db)
  return rows
}
