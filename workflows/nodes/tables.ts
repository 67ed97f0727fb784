import * as v from 'valibot'
import { described } from '../object.ts'
import { anyObject, computed, nodeTypeRow, oneOf, textField, wholeNumber } from './fields.ts'

/** The types of a data table's columns. Every one can be empty (null). */
export const COLUMN_TYPES = ['text', 'number', 'boolean', 'date', 'json'] as const
export type ColumnType = (typeof COLUMN_TYPES)[number]

/** What every row has besides its columns. */
export const ROW_KEYS = ['id', 'createdAt', 'updatedAt'] as const

/** The name of a column: a plain name of expressions, and a key of every row. */
const COLUMN_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/
const TAKEN = [...ROW_KEYS, '__proto__', 'constructor', 'prototype'] as readonly string[]

export const columnNameField = v.pipe(
  v.string('must be the name of a column'),
  v.regex(COLUMN_NAME, 'must be 1 to 63 letters, digits or _, and must not start with a digit'),
  v.check((name) => !TAKEN.includes(name), `must be another name than ${TAKEN.join(', ')}`),
)

/** How a condition compares. Nothing is equal to an empty value but another one. */
const COMPARING = ['eq', 'ne', 'gt', 'gte', 'lt', 'lte', 'in'] as const
const VALUELESS = ['empty', 'notEmpty', 'blank', 'notBlank'] as const
const TABLE_OPS = [...COMPARING, 'contains', 'startsWith', ...VALUELESS] as const
const opField = oneOf(...TABLE_OPS)

/** The most conditions of a filter, and values of `in`. */
export const MAX_CONDITIONS = 20
export const MAX_IN = 1_000

/** The most rows that are written, read or deleted at once. */
export const MAX_TABLE_ROWS = 10_000

const condition = v.object(
  described(
    { column: v.string('must be the name of a column'), op: opField, value: v.optional(v.unknown()) },
    {
      column: 'A column of the table, or id.',
      op: 'How the column is compared with the value. empty needs none, and blank, which an empty text is too; nor do their opposites.',
      value: 'The value to compare with; a list of values for in.',
    },
  ),
  'must be an object',
)
export type TableCondition = v.InferOutput<typeof condition>

export const whereField = v.pipe(
  v.array(condition, 'must be an array of conditions'),
  v.maxLength(MAX_CONDITIONS, `must have at most ${MAX_CONDITIONS} entries`),
)

/** A column, or `id`; with a minus before it in descending order. */
export const sortField = v.pipe(
  v.string('must be the name of a column'),
  v.regex(/^-?[A-Za-z_][A-Za-z0-9_]{0,62}$/, 'must be the name of a column, or of one with a - before it'),
)

export const rowsField = v.pipe(
  v.array(anyObject, 'must be an array of objects'),
  v.minLength(1, 'must not be empty'),
  v.maxLength(MAX_TABLE_ROWS, `must have at most ${MAX_TABLE_ROWS} entries`),
)

export const keysField = v.pipe(
  v.array(columnNameField, 'must be an array of names'),
  v.minLength(1, 'must name a column'),
  v.maxLength(5, 'must have at most 5 entries'),
  v.check((names) => new Set(names).size === names.length, 'must not name a column twice'),
)

export const matchField = oneOf('all', 'any')
/** Names a data table by its literal id or name, so that every reader sees which one. */
const tableField = v.pipe(
  textField,
  v.maxLength(100, 'must have at most 100 characters'),
  v.check(
    (name) => !name.includes('{{') && !name.startsWith('='),
    'must be the id or the name of a data table as it stands, without {{ }}',
  ),
)
const limitField = wholeNumber(1, MAX_TABLE_ROWS)

const TABLE_OPERATIONS = ['insert', 'update', 'upsert', 'delete', 'select', 'count', 'exists'] as const
export type TableOperation = (typeof TABLE_OPERATIONS)[number]

/** What each operation needs, and what it may have besides `table`. */
const NEEDED: Record<TableOperation, string[]> = {
  insert: ['rows'],
  update: ['values', 'where'],
  upsert: ['rows', 'keys'],
  delete: ['where'],
  select: [],
  count: [],
  exists: [],
}
const ALLOWED: Record<TableOperation, string[]> = {
  insert: ['rows', 'output'],
  update: ['values', 'where', 'match', 'output'],
  upsert: ['rows', 'keys', 'output'],
  delete: ['where', 'match', 'limit', 'output'],
  select: ['where', 'match', 'sort', 'limit', 'output'],
  count: ['where', 'match'],
  exists: ['where', 'match', 'output'],
}
const SETTINGS = ['rows', 'values', 'keys', 'where', 'match', 'sort', 'limit', 'output']

/** Requires the keys of the config's operation, and none that have no meaning in it. */
export function fitOperation<T extends { operation: TableOperation }>() {
  return v.rawCheck<T>(({ dataset, addIssue }) => {
    if (!dataset.typed) return
    const config: Record<string, unknown> = dataset.value
    const { operation } = dataset.value
    for (const key of SETTINGS) {
      const isGiven = config[key] !== undefined
      const message =
        !isGiven && NEEDED[operation].includes(key)
          ? `is required for the operation ${operation}`
          : isGiven && !ALLOWED[operation].includes(key)
            ? `has no meaning in the operation ${operation}`
            : isGiven && key === 'output' && (config[key] === 'rows') === (operation === 'exists')
              ? `must be ${operation === 'exists' ? 'found or missing' : 'rows'} for the operation ${operation}`
              : undefined
      if (message === undefined) continue
      const path = { type: 'object', origin: 'value', input: config, key, value: config[key] } as const
      addIssue({ message, path: [path as v.ObjectPathItem] })
    }
  })
}

/** The fields of a node, or of an agent's tool, that works with a data table. */
export const tableFields = described(
  {
    table: tableField,
    operation: oneOf(...TABLE_OPERATIONS),
    rows: v.optional(computed(v.union([rowsField, anyObject], 'must be an array of objects'))),
    values: v.optional(computed(anyObject)),
    keys: v.optional(keysField),
    where: v.optional(computed(whereField)),
    match: v.optional(matchField),
    sort: v.optional(computed(sortField)),
    limit: v.optional(computed(limitField)),
  },
  {
    table: 'The data table: its id or its name.',
    operation: 'What is done.',
    rows: 'The rows that are written: objects with the columns as keys.',
    values: 'Update: the columns that change, and their new values.',
    keys: 'Upsert: the columns that say which row it is. One that is there already is changed.',
    where: 'Which rows: a list of {column, op, value}.',
    match: 'Whether all conditions must hold, or any of them. All unless it is set.',
    sort: 'The column that the rows are sorted by, with a - before it in descending order.',
    limit: 'The most rows. 100 unless it is set; to delete, 10,000.',
  },
)

const OPERATION_MAIN = {
  insert: ['rows'],
  update: ['where', 'values'],
  upsert: ['rows', 'keys'],
  delete: ['where'],
  select: ['where', 'sort', 'limit'],
  count: ['where'],
  exists: ['where'],
}

/** What comes of a node in place of an object that describes it. */
const shape = described(
  { output: v.optional(oneOf('rows', 'found', 'missing')) },
  {
    output:
      'What it puts out instead: with rows the rows alone, without a limit all of them, or it fails. For exists, with found ' +
      'the item itself if there is such a row, with missing if there is none.',
  },
)

/** Node types that work with the team's data tables. */
export const TABLE_NODES = {
  DATA_TABLE: nodeTypeRow('effect', {
    summary: 'Writes, reads, counts or deletes rows of a data table; outputs {rows, count}.',
    config: v.pipe(v.object({ ...tableFields, ...shape }), fitOperation()),
    main: ['table', 'operation'],
    mainBy: { key: 'operation', keys: OPERATION_MAIN },
    retry: { maxAttempts: 3, initialIntervalMs: 1_000, backoffCoefficient: 2, maxIntervalMs: 30_000 },
    timeoutMs: 120_000,
  }),
} as const
