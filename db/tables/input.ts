import { setImmediate as breathe } from 'node:timers/promises'
import { isObject } from '../../workflows/json.ts'
import { ROW_KEYS } from '../../workflows/nodes/tables.ts'
import { joinPath, type Problem } from '../../workflows/problem.ts'
import { invalid } from '../fault.ts'
import type { StoredColumn } from './columns.ts'
import { type Cells, readCell } from './values.ts'

/** The most bytes of a row's values as JSON. */
const MAX_ROW_BYTES = 65_536
const MAX_PROBLEMS = 500
const SLICE_MS = 8

/**
 * Reads the cells of rows by the names of their columns; what every row has besides is not read. With `patch` only the
 * cells that are given, empty ones included. Throws INVALID that names every row and column, as `rows[2].email`; `nameRow`
 * writes the first part of that.
 */
export async function readGivenRows(
  columns: StoredColumn[],
  rows: unknown[],
  { patch = false, nameRow = (at: number) => `rows[${at}]` } = {},
): Promise<Cells[]> {
  const byName = new Map(columns.map((column) => [column.name, column]))
  const problems: Problem[] = []
  const read: Cells[] = []
  let since = performance.now()
  for (const [at, row] of rows.entries()) {
    const path = nameRow(at)
    read.push(readRow(columns, byName, row, { patch, path, problems }))
    if (problems.length >= MAX_PROBLEMS) break
    if (performance.now() - since < SLICE_MS) continue
    await breathe()
    since = performance.now()
  }
  if (problems.length > 0) throw invalid(problems.slice(0, MAX_PROBLEMS))
  return read
}

function readRow(
  columns: StoredColumn[],
  byName: Map<string, StoredColumn>,
  row: unknown,
  { patch, path, problems }: { patch: boolean; path: string; problems: Problem[] },
): Cells {
  const cells: Cells = {}
  if (!isObject(row)) {
    problems.push({ path, message: 'must be an object' })
    return cells
  }
  for (const [name, given] of Object.entries(row)) {
    if (ROW_KEYS.some((key) => key === name)) continue
    const column = byName.get(name)
    if (!column) {
      problems.push({ path: joinPath(path, name), message: 'is no column of the table' })
      continue
    }
    const found = readCell(column.type, given)
    if ('problem' in found) problems.push({ path: joinPath(path, name), message: found.problem })
    else if (found.value !== null || patch) cells[column.id] = found.value
  }
  for (const { id, name, required } of columns) {
    const isMissing = patch ? cells[id] === null : cells[id] === undefined
    if (required && isMissing && !problems.some((one) => one.path === joinPath(path, name)))
      problems.push({ path: joinPath(path, name), message: 'is required' })
  }
  const bytes = measureCells(cells).bytes
  if (bytes > MAX_ROW_BYTES)
    problems.push({ path, message: `has ${bytes} bytes as JSON; at most ${MAX_ROW_BYTES} are allowed` })
  return cells
}

/** Cells as they are stored. */
export function measureCells(cells: Cells): { text: string; bytes: number } {
  const text = JSON.stringify(cells)
  return { text, bytes: Buffer.byteLength(text) }
}

/** The cells after a change: an empty one has no key. Throws INVALID at `path` for a row that is too large then. */
export function patchCells(before: Cells, patch: Cells, path: string): Cells {
  const cells = Object.fromEntries(
    Object.entries({ ...before, ...patch }).filter(([, value]) => value !== null),
  )
  const { bytes } = measureCells(cells)
  if (bytes <= MAX_ROW_BYTES) return cells
  throw invalid([{ path, message: `has ${bytes} bytes as JSON then; at most ${MAX_ROW_BYTES} are allowed` }])
}
