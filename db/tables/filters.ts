import { type RawBuilder, sql } from 'kysely'
import { validate as isUuid } from 'uuid'
import { MAX_CONDITIONS, MAX_IN, type TableCondition } from '../../workflows/nodes/tables.ts'
import type { Problem } from '../../workflows/problem.ts'
import { invalid } from '../fault.ts'
import type { StoredColumn } from './columns.ts'
import { readCell, searchValue } from './values.ts'

export type RowFilter = { where?: TableCondition[] | undefined; match?: 'all' | 'any' | undefined }

type Compared = { value: unknown } | { problem: string }

/** The condition in SQL that a row `r` fulfils. Throws INVALID with everything that is wrong, at `where`. */
export function writeFilter(
  columns: StoredColumn[],
  { where = [], match = 'all' }: RowFilter,
): RawBuilder<boolean> {
  const problems: Problem[] = []
  if (where.length > MAX_CONDITIONS)
    problems.push({ path: 'where', message: `must have at most ${MAX_CONDITIONS} entries` })
  const parts = where.map((condition, at) => {
    const written =
      condition.column === 'id' ? writeIdCondition(condition) : writeCondition(columns, condition)
    if (!('problem' in written)) return written.sql
    problems.push({ path: `where[${at}].${written.key}`, message: written.problem })
    return sql<boolean>`false`
  })
  if (problems.length > 0) throw invalid(problems)
  if (parts.length === 0) return sql<boolean>`true`
  return sql<boolean>`(${sql.join(parts, match === 'all' ? sql` and ` : sql` or `)})`
}

type Written = { sql: RawBuilder<boolean> } | { problem: string; key: string }

const COMPARISONS = { gt: sql`>`, gte: sql`>=`, lt: sql`<`, lte: sql`<=` }

function writeIdCondition({ op, value }: TableCondition): Written {
  if (op !== 'eq' && op !== 'in') return { key: 'op', problem: 'must be eq or in for the id' }
  const ids = op === 'eq' ? [value] : value
  if (!Array.isArray(ids) || ids.length > MAX_IN || !ids.every((id) => typeof id === 'string' && isUuid(id)))
    return { key: 'value', problem: op === 'eq' ? 'must be a UUID' : `must be at most ${MAX_IN} UUIDs` }
  return { sql: sql<boolean>`r.id = any(${ids}::uuid[])` }
}

function writeCondition(columns: StoredColumn[], { column: name, op, value }: TableCondition): Written {
  const column = columns.find((one) => one.name === name)
  if (!column) return { key: 'column', problem: 'must be a column of the table' }
  const cell = sql.ref(`r.${column.place}`)
  if (op === 'blank' || op === 'notBlank') return { sql: writeBlank(column, op === 'blank') }
  if (column.type === 'json' && op !== 'empty' && op !== 'notEmpty')
    return { key: 'op', problem: 'must be empty, notEmpty, blank or notBlank for a column of JSON' }
  const isEmpty = value === null || value === undefined
  if (op === 'empty' || (op === 'eq' && isEmpty)) return { sql: sql<boolean>`${cell} is null` }
  if (op === 'notEmpty' || (op === 'ne' && isEmpty)) return { sql: sql<boolean>`${cell} is not null` }
  if (op === 'in') return writeIn(column, value)
  if (isEmpty) return { key: 'value', problem: `must have a value for ${op}` }
  if ((op === 'contains' || op === 'startsWith') && column.type !== 'text')
    return { key: 'op', problem: `must be another one than ${op} for a column that is no text` }
  const read = compareWith(column, value)
  if ('problem' in read) return { key: 'value', problem: read.problem }
  const given = writeValue(column, read.value)
  if (op === 'contains') return { sql: sql<boolean>`position(${given} in ${cell}) > 0` }
  // Its first bytes are what the index has.
  if (op === 'startsWith')
    return {
      sql: sql<boolean>`(${indexed(column)} >= ${first(given)} and ${indexed(column)} < ${writeEnd(column, read.value)} and
        substring(${cell} from 1 for octet_length(${given})) = ${given})`,
    }
  if (op === 'eq') return { sql: writeEqual(column, given) }
  if (op === 'ne') return { sql: sql<boolean>`${cell} is distinct from ${given}` }
  const sign = COMPARISONS[op]
  if (column.type !== 'text') return { sql: sql<boolean>`${cell} ${sign} ${given}` }
  const or = op === 'gt' || op === 'gte' ? COMPARISONS.gte : COMPARISONS.lte
  return { sql: sql<boolean>`(${indexed(column)} ${or} ${first(given)} and ${cell} ${sign} ${given})` }
}

/** Blank is an empty cell, and of texts the empty one too. */
function writeBlank(column: StoredColumn, isBlank: boolean): RawBuilder<boolean> {
  const cell = sql.ref(`r.${column.place}`)
  if (column.type !== 'text')
    return isBlank ? sql<boolean>`${cell} is null` : sql<boolean>`${cell} is not null`
  return isBlank
    ? sql<boolean>`(${cell} is null or ${indexed(column)} = ''::bytea)`
    : sql<boolean>`(${cell} is not null and ${indexed(column)} <> ''::bytea)`
}

function writeIn(column: StoredColumn, value: unknown): Written {
  if (!Array.isArray(value) || value.length > MAX_IN)
    return { key: 'value', problem: `must be a list of at most ${MAX_IN} values` }
  const read = value.map((one) => compareWith(column, one))
  const wrong = read.findIndex((one) => 'problem' in one)
  if (wrong >= 0) {
    const { problem } = read[wrong] as { problem: string }
    return { key: `value[${wrong}]`, problem }
  }
  const values = read.map((one) => searchValue(column, (one as { value: unknown }).value))
  const cell = sql.ref(`r.${column.place}`)
  const found =
    column.type === 'text' ? writeInTexts(column, values) : sql<boolean>`${cell} = any(${values}::numeric[])`
  // As with eq, nothing is equal to an empty value but another one.
  return { sql: values.includes(null) ? sql<boolean>`(${found} or ${cell} is null)` : found }
}

function writeInTexts(column: StoredColumn, values: unknown[]): RawBuilder<boolean> {
  const starts = values.map((one) => (one as Buffer | null)?.subarray(0, INDEXED_BYTES) ?? null)
  const cell = sql.ref(`r.${column.place}`)
  return sql<boolean>`(${indexed(column)} = any(${starts}::bytea[]) and ${cell} = any(${values}::bytea[]))`
}

/** A text that is compared with may be any; other values must be of the column's type. */
const compareWith = (column: StoredColumn, value: unknown): Compared => readCell(column.type, value)

/** How many bytes of a text are in its index (see the migration 0116). */
const INDEXED_BYTES = 256

const first = (given: RawBuilder<unknown>) => sql`substring(${given} from 1 for ${sql.lit(INDEXED_BYTES)})`

/** What the index of the column has of a cell. */
export function indexed({ type, place }: StoredColumn, row = 'r') {
  const cell = sql.ref(`${row}.${place}`)
  return type === 'text' ? first(cell) : cell
}

function writeValue(column: StoredColumn, value: unknown) {
  const given = searchValue(column, value)
  return column.type === 'text' ? sql`${given}::bytea` : sql`${given}::numeric`
}

/** Behind all texts that begin as this one does. No byte of a text is 255. */
function writeEnd(column: StoredColumn, value: unknown) {
  const end = Buffer.from((searchValue(column, value) as Buffer).subarray(0, INDEXED_BYTES))
  if (end.length === 0) return sql`${Buffer.from([255])}::bytea`
  end[end.length - 1]! += 1
  return sql`${end}::bytea`
}

/** That a cell of `r` is equal to a value, so that the index finds it. */
function writeEqual(column: StoredColumn, given: RawBuilder<unknown>): RawBuilder<boolean> {
  const cell = sql.ref(`r.${column.place}`)
  if (column.type !== 'text') return sql<boolean>`${cell} = ${given}`
  return sql<boolean>`(${indexed(column)} = ${first(given)} and ${cell} = ${given})`
}

/** Throws INVALID at `sort` unless it names a column that rows can be sorted by. */
export function readSort(columns: StoredColumn[], sort = 'id') {
  const descending = sort.startsWith('-')
  const name = descending ? sort.slice(1) : sort
  const column = columns.find((one) => one.name === name)
  if (name !== 'id' && !column)
    throw invalid([{ path: 'sort', message: 'must be id, or a column of the table' }])
  if (column?.type === 'json') throw invalid([{ path: 'sort', message: 'must be a column that is not JSON' }])
  return { column, descending }
}
