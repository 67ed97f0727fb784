import * as v from 'valibot'
import { described } from '../object.ts'
import { anyObject, computed, credentialField, nodeTypeRow, oneOf, textField, wholeNumber } from './fields.ts'

const MAX_SQL = 100_000
const MAX_PARAMS = 2_000
const MAX_COLUMNS = 200

/** The most rows that an upsert writes. */
const MAX_UPSERTED = 50_000

const flag = v.boolean('must be true or false')

/** Literal SQL. Computed values go beside it, as parameters, and so never become a part of the statement. */
const sqlField = v.pipe(
  textField,
  v.maxLength(MAX_SQL, `must have at most ${MAX_SQL} characters`),
  v.check((sql) => !sql.includes('\0') && sql.isWellFormed(), 'must not contain NUL or broken Unicode'),
  v.check(
    (sql) => !sql.includes('{{') && !sql.startsWith('='),
    'must not contain expressions: write $1, $2 ... (PostgreSQL) or ? (MySQL), and the values into params',
  ),
)

/** The name of a table or column: quoted literally, and never computed. */
const identifier = v.pipe(
  textField,
  v.maxLength(128, 'must have at most 128 characters'),
  v.check(
    (name) => !name.includes('{{') && !name.startsWith('=') && !/\p{Cc}/u.test(name) && name.isWellFormed(),
    'must be a name as it stands, without expressions and control characters',
  ),
)
const identifiers = v.pipe(
  v.array(identifier, 'must be an array of names'),
  v.minLength(1, 'must name a column'),
  v.maxLength(MAX_COLUMNS, `must have at most ${MAX_COLUMNS} entries`),
  v.check((names) => new Set(names).size === names.length, 'must not name a column twice'),
)

/** The values of a statement, as the node gives them to the database once they are computed. */
export const sqlParamsField = v.pipe(
  v.array(v.unknown(), 'must be an array'),
  v.maxLength(MAX_PARAMS, `must have at most ${MAX_PARAMS} entries`),
)

/** The rows of an upsert, once they are computed. */
export const sqlRowsField = v.pipe(
  v.array(anyObject, 'must be an array of objects'),
  v.maxLength(MAX_UPSERTED, `must have at most ${MAX_UPSERTED} entries`),
)

const NEEDED = { query: ['query'], upsert: ['table', 'columns', 'keys', 'rows'] } as const
const OTHERS = { query: NEEDED.upsert, upsert: ['query', 'params', 'maxRows', 'readOnly'] } as const

type Modes = {
  mode?: 'query' | 'upsert' | undefined
  columns?: string[] | undefined
  keys?: string[] | undefined
}

/** Requires the keys of the config's mode, and none of the other mode. */
export function fitMode<T extends Modes>() {
  return v.rawCheck<T>(({ dataset, addIssue }) => {
    if (!dataset.typed) return
    const config: Record<string, unknown> = dataset.value
    const { mode = 'query', columns, keys = [] } = dataset.value
    const complain = (key: string, message: string) => {
      const path = { type: 'object', origin: 'value', input: config, key, value: config[key] } as const
      addIssue({ message, path: [path as v.ObjectPathItem] })
    }
    for (const key of NEEDED[mode])
      if (config[key] === undefined) complain(key, `is required for the mode ${mode}`)
    for (const key of OTHERS[mode])
      if (config[key] !== undefined) complain(key, `has no meaning in the mode ${mode}`)
    const strange = keys.filter((key) => !columns?.includes(key))
    if (columns && strange.length > 0)
      complain('keys', `must be among the columns, unlike ${strange.join(', ')}`)
  })
}

/** The fields of a statement, or of an upsert. `fitMode` says which of them belong together. */
export const statementFields = described(
  {
    credentialId: credentialField,
    mode: v.optional(oneOf('query', 'upsert')),
    query: v.optional(sqlField),
    params: v.optional(computed(sqlParamsField)),
    table: v.optional(identifier),
    columns: v.optional(identifiers),
    keys: v.optional(identifiers),
    rows: v.optional(computed(sqlRowsField)),
    readOnly: v.optional(flag),
    repeat: v.optional(flag),
    timeoutMs: v.optional(wholeNumber(1, 600_000), 30_000),
    maxRows: v.optional(wholeNumber(1, 10_000)),
  },
  {
    credentialId: 'The database, and how to sign in there.',
    mode: 'Whether a statement is carried out (query), or rows are written that are new or known (upsert).',
    query:
      'One SQL statement. Values do not belong into it, but into the parameters: $1, $2 … (PostgreSQL) or ? (MySQL).',
    params: 'The values of $1, $2 … or ?, in their order, so that nothing is ever read as SQL.',
    table: 'Upsert: the table, such as orders or shop.orders.',
    columns: 'Upsert: the columns that are written.',
    keys: 'Upsert: those of the columns that say which row it is. They need a unique index.',
    rows: 'Upsert: the rows, as objects that have all of the columns.',
    readOnly: 'The database refuses everything that would change it.',
    repeat: 'The statement may be carried out twice, if nobody knows whether it was.',
    timeoutMs: 'How long the statement may take, in milliseconds.',
    maxRows: 'The most rows that it may give. 1,000 unless it is set.',
  },
)

/** The settings of each mode; without a mode it is query. */
const STATEMENT_MAIN = { '': ['query', 'params'], query: ['query', 'params'], upsert: NEEDED.upsert }

/** Node types that talk to databases. */
export const DATABASE_NODES = {
  DATABASE_QUERY: nodeTypeRow('effect', {
    summary:
      'Carries out one SQL statement, or writes rows that are new or known; outputs {rows, rowCount, columns}.',
    config: v.pipe(v.object(statementFields), fitMode()),
    main: ['credentialId', 'mode'],
    mainBy: { key: 'mode', keys: STATEMENT_MAIN },
    credentialUses: ['DATABASE'],
    retry: { maxAttempts: 3, initialIntervalMs: 1_000, backoffCoefficient: 2, maxIntervalMs: 30_000 },
    timeoutMs: 660_000,
  }),
} as const
