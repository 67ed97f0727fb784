import { type RawBuilder, sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import type { Tx } from '../connection.ts'
import { Fault } from '../fault.ts'
import type { StoredColumn, StoredTable } from './columns.ts'
import { indexed } from './filters.ts'
import { measureCells } from './input.ts'
import { type Cells, equalityKey, type StoredRow, searchValue } from './values.ts'

/** How many rows, and about how many bytes of them, a statement writes. */
const PIECE = 500
const PIECE_BYTES = 1_000_000
const MAX_NAMED = 20

/**
 * Adds rows to a table that the transaction holds, so that no other adds the same value to a unique column meanwhile.
 * `nameRow` is how an error names one. Throws CONFLICT that names each row and column whose value another row has.
 */
export async function addRows(
  tx: Tx,
  table: StoredTable,
  rows: Cells[],
  nameRow: (at: number) => string,
): Promise<{ rows: StoredRow[]; bytes: number }> {
  const added = rows.map((cells) => ({ id: uuid(), cells }))
  await demandUnique(tx, table, added, nameRow)
  const done: StoredRow[] = []
  let bytes = 0
  for (const piece of cutPieces(added)) {
    bytes += piece.reduce((sum, row) => sum + row.bytes, 0)
    const made = await sql<{ createdAt: Date }>`insert into data_rows
        (table_id, id, cells, bytes${namePlaces(table)})
      select ${table.id}, u.id, u.cells::json, u.bytes${namePlaces(table, 'u')}
      from ${unnestRows(table, piece)} limit ${piece.length}
      returning created_at`.execute(tx)
    const at = made.rows[0]!.createdAt
    done.push(...piece.map(({ id, cells }) => ({ id, cells, createdAt: at, updatedAt: at })))
  }
  return { rows: done, bytes }
}

/**
 * Replaces the cells of rows of a table that the transaction holds; only the columns that `isChanged` names may have other
 * values. Throws as addRows. Resolves to the time of it, and the bytes that the rows have now.
 */
export async function replaceRows(
  tx: Tx,
  table: StoredTable,
  rows: { id: string; cells: Cells }[],
  { nameRow, isChanged }: { nameRow: (at: number) => string; isChanged: (columnId: string) => boolean },
): Promise<{ updatedAt: Date; bytes: number }> {
  await demandUnique(
    tx,
    { ...table, columns: table.columns.filter(({ id }) => isChanged(id)) },
    rows,
    nameRow,
  )
  let updatedAt = new Date()
  let bytes = 0
  const places = table.columns.map(({ place }) => sql`, ${sql.ref(place)} = u.${sql.ref(place)}`)
  for (const piece of cutPieces(rows)) {
    bytes += piece.reduce((sum, row) => sum + row.bytes, 0)
    const made = await sql<{ updatedAt: Date }>`update data_rows r
      set cells = u.cells::json, bytes = u.bytes, updated_at = now()${joinAll(places)}
      from (select * from ${unnestRows(table, piece)} limit ${piece.length}) u
      where r.table_id = ${table.id} and r.id = u.id
      returning r.updated_at`.execute(tx)
    updatedAt = made.rows[0]?.updatedAt ?? updatedAt
  }
  return { updatedAt, bytes }
}

/** Deletes rows of a table that the transaction holds. Resolves to the bytes that they had. */
export async function removeRows(tx: Tx, table: StoredTable, ids: string[]): Promise<number> {
  const { rows } = await sql<{ bytes: number }>`delete from data_rows
    where table_id = ${table.id} and id = any(${ids}::uuid[]) returning bytes`.execute(tx)
  return rows.reduce((sum, row) => sum + row.bytes, 0)
}

type Piece = { id: string; cells: Cells; text: string; bytes: number }[]

function* cutPieces(rows: { id: string; cells: Cells }[]): Generator<Piece> {
  let piece: Piece = []
  let bytes = 0
  for (const row of rows) {
    const measured = { ...row, ...measureCells(row.cells) }
    piece.push(measured)
    bytes += measured.bytes
    if (piece.length < PIECE && bytes < PIECE_BYTES) continue
    yield piece
    piece = []
    bytes = 0
  }
  if (piece.length > 0) yield piece
}

const joinAll = (parts: RawBuilder<unknown>[]) => (parts.length === 0 ? sql`` : sql.join(parts, sql``))

function namePlaces({ columns }: StoredTable, of?: string) {
  return joinAll(columns.map(({ place }) => sql`, ${sql.ref(of ? `${of}.${place}` : place)}`))
}

/** The rows as `u`, with their search columns. */
function unnestRows(table: StoredTable, rows: Piece) {
  const arrays = table.columns.map(
    (column) => sql`, ${rows.map(({ cells }) => searchValue(column, cells[column.id]))}::${typeOf(column)}[]`,
  )
  return sql`unnest(${rows.map(({ id }) => id)}::uuid[], ${rows.map(({ text }) => text)}::text[],
    ${rows.map(({ bytes }) => bytes)}::integer[]${joinAll(arrays)}) as u (id, cells, bytes${namePlaces(table)})`
}

const typeOf = ({ type }: StoredColumn) => (type === 'text' ? sql`bytea` : sql`numeric`)

/** Values by their place in a list, joined with the rows `r` of a table that have them in the column. */
function joinValues(table: StoredTable, column: StoredColumn, values: unknown[]) {
  const cell = sql.ref(`r.${column.place}`)
  const start = column.type === 'text' ? sql`substring(u.value from 1 for 256)` : sql`u.value`
  return sql`unnest(${values}::${typeOf(column)}[]) with ordinality as u (value, at)
    join data_rows r on r.table_id = ${table.id} and ${indexed(column)} = ${start} and ${cell} = u.value`
}

/** Throws CONFLICT if a unique column had a value twice, once these rows are written. */
async function demandUnique(
  tx: Tx,
  table: StoredTable,
  rows: { id: string; cells: Cells }[],
  nameRow: (at: number) => string,
): Promise<void> {
  const taken: string[] = []
  const ids = rows.map(({ id }) => id)
  for (const column of table.columns.filter(({ unique }) => unique)) {
    const first = new Map<string, number>()
    const given: { at: number; value: unknown }[] = []
    for (const [at, { cells }] of rows.entries()) {
      const value = cells[column.id]
      if (value === undefined) continue
      const key = equalityKey(column, value)
      const before = first.get(key)
      if (before === undefined) first.set(key, at)
      else taken.push(`${nameRow(at)}.${column.name} repeats ${nameRow(before)}`)
      given.push({ at, value: searchValue(column, value) })
    }
    for (let from = 0; from < given.length; from += PIECE) {
      const piece = given.slice(from, from + PIECE)
      const values = piece.map(({ value }) => value)
      const found = await sql<{ at: number }>`select u.at from ${joinValues(table, column, values)}
        where r.id <> all(${ids}::uuid[]) order by u.at limit ${MAX_NAMED}`.execute(tx)
      for (const { at } of found.rows)
        taken.push(`${nameRow(piece[at - 1]!.at)}.${column.name} is the value of another row`)
    }
  }
  if (taken.length === 0) return
  const more = taken.length > MAX_NAMED ? ` and ${taken.length - MAX_NAMED} more` : ''
  throw new Fault('CONFLICT', `Values must be unique: ${taken.slice(0, MAX_NAMED).join(', ')}${more}`)
}

/**
 * The rows of the table whose `keys` have the values that the given rows have, by their place in the list; of several the
 * first. The transaction holds the table, so that no other adds such a row meanwhile.
 */
export async function findByKeys(
  tx: Tx,
  table: StoredTable,
  keys: StoredColumn[],
  rows: Cells[],
): Promise<Map<number, StoredRow & { bytes: number }>> {
  const found = new Map<number, StoredRow & { bytes: number }>()
  const [first, ...others] = keys as [StoredColumn, ...StoredColumn[]]
  for (let from = 0; from < rows.length; from += PIECE) {
    const piece = rows.slice(from, from + PIECE)
    const valuesOf = (column: StoredColumn) => piece.map((cells) => searchValue(column, cells[column.id]))
    const conditions = others.map(
      (column) =>
        sql` and ${sql.ref(`r.${column.place}`)} = (${valuesOf(column)}::${typeOf(column)}[])[u.at]`,
    )
    const known = await sql<StoredRow & { at: number; bytes: number }>`
      select distinct on (u.at) u.at, r.id, r.cells, r.bytes, r.created_at, r.updated_at
      from ${joinValues(table, first, valuesOf(first))}${joinAll(conditions)}
      order by u.at, r.id limit ${PIECE}`.execute(tx)
    for (const { at, ...row } of known.rows) found.set(from + at - 1, row)
  }
  return found
}
