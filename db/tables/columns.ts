import * as v from 'valibot'
import { type ColumnType, columnNameField } from '../../workflows/nodes/tables.ts'
import type { Problem } from '../../workflows/problem.ts'
import { invalid } from '../fault.ts'

/** A column as it is stored: `id` is the key of its values, `place` its search column; that of JSON has its size. */
export type StoredColumn = Column & { place: string }

/** A column of a data table. `id` stays what it is when the column gets another name. */
export type Column = { id: string; name: string; type: ColumnType; required: boolean; unique: boolean }

/** A data table as the API shows it; `bytes` are those of its values as JSON. */
export type DataTable = {
  id: string
  teamId: string
  name: string
  columns: Column[]
  rowCount: number
  bytes: number
  createdAt: Date
  updatedAt: Date
}

/** A data table with where its columns are stored. */
export type StoredTable = Omit<DataTable, 'columns'> & { columns: StoredColumn[] }

export type ColumnInput = {
  id?: string | undefined
  name: string
  type: ColumnType
  required?: boolean | undefined
  unique?: boolean | undefined
}

/** How many search columns there are for texts, and for all else. */
const PLACES = 20
export const MAX_TABLE_COLUMNS = 2 * PLACES

/**
 * The columns of a table once it has those that are given: one with the `id` of a column before is that column, others
 * are new. `made` counts the ids. Throws INVALID.
 */
export function planColumns(before: StoredColumn[], made: number, given: ColumnInput[]) {
  const problems = findProblems(before, given)
  if (problems.length > 0) throw invalid(problems)
  const known = new Map(before.map((column) => [column.id, column]))
  const kept = new Set(given.flatMap(({ id }) => id ?? []))
  const dropped = before.filter(({ id }) => !kept.has(id))
  const free = new Set(PLACE_NAMES)
  for (const { id, place } of before) if (kept.has(id)) free.delete(place)
  let count = made
  const columns = given.map(({ id, name, type, required = false, unique = false }): StoredColumn => {
    const old = id === undefined ? undefined : known.get(id)
    if (old) return { ...old, name, required, unique }
    return { id: `c${++count}`, name, type, required, unique, place: takePlace(free, type) }
  })
  return { columns, made: count, dropped }
}

const PLACE_NAMES = ['t', 'n'].flatMap((kind) =>
  Array.from({ length: PLACES }, (_, at) => `${kind}${at + 1}`),
)
const kindOf = (type: ColumnType) => (type === 'text' ? 't' : 'n')

function takePlace(free: Set<string>, type: ColumnType): string {
  const place = [...free].find((name) => name.startsWith(kindOf(type)))!
  free.delete(place)
  return place
}

const KINDS = { t: 'columns of text', n: 'columns of other types' } as const

function findProblems(before: StoredColumn[], given: ColumnInput[]): Problem[] {
  const problems: Problem[] = []
  const known = new Map(before.map((column) => [column.id, column]))
  const names = new Map<string, number>()
  const ids = new Set<string>()
  for (const [at, { id, name, type, unique }] of given.entries()) {
    const say = (key: string, message: string) => problems.push({ path: `columns[${at}].${key}`, message })
    const parsed = v.safeParse(columnNameField, name)
    if (!parsed.success) say('name', parsed.issues[0].message)
    const first = names.get(name)
    if (first !== undefined) say('name', `repeats the name of columns[${first}]`)
    else names.set(name, at)
    if (unique && type === 'json') say('unique', 'must be false: JSON is not compared')
    if (id === undefined) continue
    const old = known.get(id)
    if (!old) say('id', 'must be the id of a column of this table; leave it out for a new one')
    else if (ids.has(id)) say('id', 'names a column twice')
    else if (old.type !== type) say('type', `cannot be changed: it is ${old.type}. Add another column`)
    ids.add(id)
  }
  for (const kind of ['t', 'n'] as const) {
    const count = given.filter(({ type }) => kindOf(type) === kind).length
    if (count > PLACES)
      problems.push({ path: 'columns', message: `must have at most ${PLACES} ${KINDS[kind]}, not ${count}` })
  }
  return problems
}

/** A column without where it is stored. */
export function showColumn({ id, name, type, required, unique }: StoredColumn): Column {
  return { id, name, type, required, unique }
}
