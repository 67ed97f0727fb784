import * as v from 'valibot'
import { described } from '../object.ts'
import { anyObject, computed, credentialField, nodeTypeRow, oneOf, textField, wholeNumber } from './fields.ts'

const MAX_SQL = 100_000
const MAX_PARAMS = 2_000
const MAX_COLUMNS = 200

/** The most rows that are written at once. */
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
  v.array(v.unknown(), ({ input }) =>
    typeof input === 'string'
      ? `must be an array, unlike ${JSON.stringify(input.slice(0, 300))}`
      : 'must be an array',
  ),
  v.maxLength(MAX_PARAMS, `must have at most ${MAX_PARAMS} entries`),
)

/** The rows that are written, once they are computed. */
export const sqlRowsField = v.pipe(
  v.array(anyObject, 'must be an array of objects'),
  v.maxLength(MAX_UPSERTED, `must have at most ${MAX_UPSERTED} entries`),
)

const MODES = ['query', 'insert', 'update', 'upsert'] as const
export type SqlMode = (typeof MODES)[number]

const NEEDED: Record<SqlMode, string[]> = {
  query: ['query'],
  insert: ['table', 'rows'],
  update: ['table', 'keys', 'rows'],
  upsert: ['table', 'keys', 'rows'],
}
const WRITING = ['table', 'columns', 'keys', 'rows', 'returning', 'skipKnown', 'mustExist']
const ASKING = ['query', 'params', 'maxRows', 'readOnly']
const OTHERS: Record<SqlMode, string[]> = {
  query: WRITING,
  insert: [...ASKING, 'keys', 'mustExist'],
  update: [...ASKING, 'skipKnown'],
  upsert: [...ASKING, 'skipKnown', 'mustExist'],
}

type Modes = {
  mode?: SqlMode | undefined
  columns?: string[] | undefined
  keys?: string[] | undefined
}

/** Requires the keys of the config's mode, and none of the other modes. */
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

/** The fields of a statement, or of rows to write. `fitMode` says which of them belong together. */
export const statementFields = described(
  {
    credentialId: credentialField,
    mode: v.optional(oneOf(...MODES)),
    query: v.optional(sqlField),
    params: v.optional(computed(sqlParamsField)),
    table: v.optional(identifier),
    columns: v.optional(identifiers),
    keys: v.optional(identifiers),
    rows: v.optional(computed(sqlRowsField)),
    returning: v.optional(flag),
    skipKnown: v.optional(flag),
    mustExist: v.optional(flag),
    readOnly: v.optional(flag),
    repeat: v.optional(flag),
    timeoutMs: v.optional(wholeNumber(1, 600_000), 30_000),
    maxRows: v.optional(wholeNumber(1, 10_000)),
  },
  {
    credentialId: 'The database, and how to sign in there.',
    mode: 'Whether a statement is carried out (query), or rows are added (insert), changed (update), or added unless they are known, and then changed (upsert).',
    query:
      'One SQL statement. Values do not belong into it, but into the parameters: $1, $2 … (PostgreSQL) or ? (MySQL).',
    params: 'The values of $1, $2 … or ?, in their order, so that nothing is ever read as SQL.',
    table: 'The table that is written to, such as orders or shop.orders.',
    columns: 'The columns that are written. Without them those that each row has.',
    keys: 'Those of the columns that say which row it is. An upsert needs a unique index on them.',
    rows: 'The rows to write, as objects with the columns as keys.',
    returning: 'The rows come out as they are now (PostgreSQL).',
    skipKnown: 'Insert: leaves out rows that a unique index refuses.',
    mustExist: 'Update: fails, and changes nothing, if there is no row for one of them.',
    readOnly: 'The database refuses everything that would change it.',
    repeat: 'The statement may be carried out twice, if nobody knows whether it was.',
    timeoutMs: 'How long the statement may take, in milliseconds.',
    maxRows: 'The most rows that it may give. 1,000 unless it is set.',
  },
)

/** The settings of each mode; without a mode it is query. */
const ASKED = ['query', 'params']
const STATEMENT_MAIN = { ...NEEDED, '': ASKED, query: ASKED }

/** Node types that talk to databases. */
export const DATABASE_NODES = {
  DATABASE_QUERY: nodeTypeRow('effect', {
    summary:
      'Carries out one SQL statement, or adds and changes rows of a table; outputs {rows, rowCount, columns}.',
    config: v.pipe(v.object(statementFields), fitMode()),
    main: ['credentialId', 'mode'],
    mainBy: { key: 'mode', keys: STATEMENT_MAIN },
    credentialUses: ['DATABASE'],
    retry: { maxAttempts: 3, initialIntervalMs: 1_000, backoffCoefficient: 2, maxIntervalMs: 30_000 },
    timeoutMs: 660_000,
  }),
} as const
