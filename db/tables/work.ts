import { MAX_TABLE_ROWS } from '../../workflows/nodes/tables.ts'
import { joinPath, type Problem } from '../../workflows/problem.ts'
import type { Tx } from '../connection.ts'
import { Fault, invalid } from '../fault.ts'
import type { StoredColumn, StoredTable } from './columns.ts'
import type { RowFilter } from './filters.ts'
import { patchCells, readGivenRows } from './input.ts'
import { countRowsOf } from './quotas.ts'
import { demandSmall, findIds, readRowsById } from './reading.ts'
import { type Cells, equalityKey, type StoredRow } from './values.ts'
import { addRows, findByKeys, removeRows, replaceRows } from './writing.ts'

// All of these are given a table that the transaction holds.

/** The rows as they are now, or were when they were deleted, and how many were new, changed or deleted. */
export type Done = { rows: StoredRow[]; inserted: number; updated: number; deleted: number; more?: boolean }

/** How an error names a row that was sent. */
type NameRow = (at: number) => string
const byPlace: NameRow = (at) => `rows[${at}]`

const NOTHING: Done = { rows: [], inserted: 0, updated: 0, deleted: 0 }
const PIECE = 500

/** Adds rows. Throws INVALID and CONFLICT with every row and column, and CONFLICT for more than the plan allows. */
export async function insertInto(
  tx: Tx,
  table: StoredTable,
  given: unknown[],
  nameRow: NameRow = byPlace,
): Promise<Done> {
  const cells = await readGivenRows(table.columns, given, { nameRow })
  const { rows, bytes } = await addRows(tx, table, cells, nameRow)
  await countRowsOf(tx, table, { rows: rows.length, bytes })
  demandSmall(bytes)
  return { ...NOTHING, rows, inserted: rows.length }
}

/**
 * Adds rows, or changes those that have the same values in the columns `keys`: of several that have, the oldest. Throws as
 * insertInto.
 */
export async function upsertInto(
  tx: Tx,
  table: StoredTable,
  given: unknown[],
  names: string[],
  nameRow: NameRow = byPlace,
): Promise<Done> {
  const keys = findKeys(table, names)
  const cells = await readGivenRows(table.columns, given, { nameRow, patch: true })
  demandKeys(keys, cells, nameRow)
  const known = await findByKeys(tx, table, keys, cells)
  const fresh = [...cells.keys()].filter((at) => !known.has(at))
  demandComplete(
    table,
    fresh.map((at) => cells[at]!),
    (at) => nameRow(fresh[at]!),
  )
  const changed = [...known].map(([at, row]) => ({
    ...row,
    at,
    cells: patchCells(row.cells, cells[at]!, nameRow(at)),
  }))
  const replaced = await replaceRows(tx, table, changed, {
    nameRow: (at) => nameRow(changed[at]!.at),
    isChanged: () => true,
  })
  const bare = fresh.map((at) => patchCells({}, cells[at]!, nameRow(at)))
  const added = await addRows(tx, table, bare, (at) => nameRow(fresh[at]!))
  const before = changed.reduce((sum, { bytes }) => sum + bytes, 0)
  await countRowsOf(tx, table, { rows: fresh.length, bytes: added.bytes + replaced.bytes - before })
  demandSmall(added.bytes + replaced.bytes)
  const rows: StoredRow[] = []
  for (const { at, bytes: _, ...row } of changed) rows[at] = { ...row, updatedAt: replaced.updatedAt }
  for (const [index, at] of fresh.entries()) rows[at] = added.rows[index]!
  return { ...NOTHING, rows, inserted: fresh.length, updated: changed.length }
}

/**
 * Changes the cells that `values` has, in all rows that fulfil the filter. Throws as insertInto, and INVALID for more than
 * 10,000 rows.
 */
export async function updateIn(
  tx: Tx,
  table: StoredTable,
  filter: RowFilter,
  values: Record<string, unknown>,
  { reads = false } = {},
): Promise<Done> {
  const [patch] = await readGivenRows(table.columns, [values], { patch: true, nameRow: () => 'values' })
  const ids = await findIds(tx, table, filter, MAX_TABLE_ROWS + 1)
  if (ids.length > MAX_TABLE_ROWS)
    throw invalid([{ path: 'where', message: `fits more than ${MAX_TABLE_ROWS} rows: change fewer at once` }])
  const only = table.columns.find(({ id, unique }) => unique && patch![id] != null)
  if (only && ids.length > 1)
    throw new Fault('CONFLICT', `Values must be unique: ${ids.length} rows would have the same ${only.name}`)
  const rows: StoredRow[] = []
  let [grown, all, updated] = [0, 0, 0]
  for (let from = 0; from < ids.length; from += PIECE) {
    const before = await readRowsById(tx, table, ids.slice(from, from + PIECE))
    const after = before.map((row) => ({
      ...row,
      cells: patchCells(row.cells, patch!, `the row ${row.id}`),
    }))
    const { bytes, updatedAt } = await replaceRows(tx, table, after, {
      nameRow: () => 'values',
      isChanged: (id) => Object.hasOwn(patch!, id),
    })
    grown += bytes - before.reduce((sum, row) => sum + row.bytes, 0)
    updated += after.length
    if (!reads) continue
    all += bytes
    demandSmall(all)
    for (const { id, cells, createdAt } of after) rows.push({ id, cells, createdAt, updatedAt })
  }
  if (updated > 0) await countRowsOf(tx, table, { rows: 0, bytes: grown })
  return { ...NOTHING, rows, updated }
}

/** Deletes up to `limit` rows that fulfil the filter, the oldest first; `more`: there are more of them. */
export async function deleteFrom(
  tx: Tx,
  table: StoredTable,
  filter: RowFilter,
  { limit = MAX_TABLE_ROWS, reads = false } = {},
): Promise<Done> {
  const found = await findIds(tx, table, filter, limit + 1)
  const ids = found.slice(0, limit)
  const rows: StoredRow[] = []
  let [freed, all] = [0, 0]
  for (let from = 0; from < ids.length; from += PIECE) {
    const piece = ids.slice(from, from + PIECE)
    if (reads)
      for (const { bytes, ...row } of await readRowsById(tx, table, piece)) {
        all += bytes
        demandSmall(all)
        rows.push(row)
      }
    freed += await removeRows(tx, table, piece)
  }
  if (ids.length > 0) await countRowsOf(tx, table, { rows: -ids.length, bytes: -freed })
  return { ...NOTHING, rows, deleted: ids.length, more: found.length > limit }
}

function findKeys({ columns }: StoredTable, names: string[]): StoredColumn[] {
  const problems: Problem[] = []
  const keys = names.flatMap((name, at) => {
    const column = columns.find((one) => one.name === name)
    const message = !column
      ? 'must be a column of the table'
      : column.type === 'json'
        ? 'must be a column that is not JSON'
        : undefined
    if (message !== undefined) problems.push({ path: `keys[${at}]`, message })
    return column ?? []
  })
  if (names.length === 0) problems.push({ path: 'keys', message: 'must name a column' })
  if (problems.length > 0) throw invalid(problems)
  return keys
}

/** Throws INVALID for rows without a value in a key, and for those that have the same keys. */
function demandKeys(keys: StoredColumn[], rows: Cells[], nameRow: NameRow): void {
  const problems: Problem[] = []
  const first = new Map<string, number>()
  for (const [at, cells] of rows.entries()) {
    const missing = keys.filter(({ id }) => cells[id] === undefined || cells[id] === null)
    for (const { name } of missing)
      problems.push({ path: joinPath(nameRow(at), name), message: 'must have a value: it is a key' })
    if (missing.length > 0) continue
    const key = JSON.stringify(keys.map((column) => equalityKey(column, cells[column.id])))
    const before = first.get(key)
    if (before === undefined) first.set(key, at)
    else problems.push({ path: nameRow(at), message: `repeats the keys of ${nameRow(before)}` })
  }
  if (problems.length > 0) throw invalid(problems)
}

function demandComplete({ columns }: StoredTable, rows: Cells[], nameRow: NameRow): void {
  const needed = columns.filter(({ required }) => required)
  const problems = rows.flatMap((cells, at) =>
    needed
      .filter(({ id }) => cells[id] === undefined)
      .map(({ name }) => ({ path: joinPath(nameRow(at), name), message: 'is required for a new row' })),
  )
  if (problems.length > 0) throw invalid(problems)
}
