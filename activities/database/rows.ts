import type { SqlMode } from '../../workflows/nodes/databases.ts'
import { SqlError, type Statement } from './session.ts'

type Dialect = 'postgresql' | 'mysql'
type Row = Record<string, unknown>

/** Rows to write. Without `columns` each row has its own. */
export type Written = {
  mode: Exclude<SqlMode, 'query'>
  table: string
  columns?: string[] | undefined
  keys?: string[] | undefined
  rows: Row[]
  /** The rows come back as they are then. */
  returning?: boolean | undefined
  /** Rows that a unique index refuses are left out. */
  skipKnown?: boolean | undefined
  /** An update fails if there is no row for one of them. */
  mustExist?: boolean | undefined
}

/** Some of the rows, which have the same columns. */
type Part = Omit<Written, 'columns' | 'keys'> & { columns: string[]; keys: string[] }

/** The most parameters that one statement of MySQL has. */
const MOST_PARAMS = 60_000
const MAX_COLUMNS = 200

/** The statements that write the rows, in their order. Throws a SqlError for a row that lacks a column. */
export function writeRowsAsSql(dialect: Dialect, written: Written, maxRows: number): Statement[] {
  if (dialect === 'mysql' && written.returning)
    throw new SqlError('input', 'returning must not be true: only PostgreSQL has it')
  return splitRows(written).flatMap((part) =>
    (dialect === 'postgresql' ? writeForPostgres(part) : writeForMysql(part)).map((statement) => ({
      ...statement,
      maxRows: written.returning ? maxRows : 0,
    })),
  )
}

/** Rows that follow one another and have the same columns are written together. */
function splitRows({ rows, columns, keys = [], ...rest }: Written): Part[] {
  const parts: Part[] = []
  for (const [i, row] of rows.entries()) {
    const own = columns ?? Object.keys(row)
    const lacking = [...own, ...keys].filter((name) => !Object.hasOwn(row, name))
    if (lacking.length > 0)
      throw new SqlError(
        'input',
        `rows[${i}] has no ${lacking.join(', ')}: each row needs all columns, null for none`,
      )
    checkNames(own, i)
    const last = parts.at(-1)
    // Each update has a statement of its own, whose count says whether there was a row.
    const joins = last && rest.mode !== 'update' && last.columns.join('\0') === own.join('\0')
    if (joins) last.rows.push(row)
    else parts.push({ ...rest, columns: own, keys, rows: [row] })
  }
  return parts
}

function checkNames(names: string[], i: number): void {
  if (names.length > MAX_COLUMNS)
    throw new SqlError('input', `rows[${i}] has more than ${MAX_COLUMNS} columns`)
  const wrong = names.find((name) => name === '' || name.length > 128 || /\p{Cc}/u.test(name))
  if (wrong !== undefined)
    throw new SqlError(
      'input',
      `rows[${i}] has ${JSON.stringify(wrong.slice(0, 128))}, which names no column`,
    )
}

/** All rows are one parameter, whose values PostgreSQL reads by the types of the table's columns. */
function writeForPostgres({ mode, table, columns, keys, rows, ...how }: Part): Omit<Statement, 'maxRows'>[] {
  const quote = (name: string) => `"${name.replaceAll('"', '""')}"`
  const target = table.split('.').map(quote).join('.')
  const returning = how.returning ? ` returning ${mode === 'update' ? 't.' : ''}*` : ''
  const rest = columns.filter((name) => !keys.includes(name)).map(quote)
  const picked = rows.map((row) =>
    Object.fromEntries([...new Set([...columns, ...keys])].map((name) => [name, row[name]])),
  )
  const params = [JSON.stringify(picked)]
  const given = `json_populate_recordset(null::${target}, $1::json)`
  if (mode === 'update') {
    if (rest.length === 0) throw new SqlError('input', 'a row has nothing to change besides its keys')
    const set = rest.map((name) => `${name} = s.${name}`).join(', ')
    const where = keys.map((name) => `t.${quote(name)} = s.${quote(name)}`).join(' and ')
    const sql = `update ${target} as t set ${set} from ${given} as s where ${where}${returning}`
    return [{ sql, params, ...(how.mustExist ? { least: 1 } : {}) }]
  }
  if (columns.length === 0)
    return rows.map(() => ({ sql: `insert into ${target} default values${returning}`, params: [] }))
  const names = columns.map(quote).join(', ')
  const update = `do update set ${rest.map((name) => `${name} = excluded.${name}`).join(', ')}`
  const conflict =
    mode === 'insert'
      ? how.skipKnown
        ? ' on conflict do nothing'
        : ''
      : ` on conflict (${keys.map(quote).join(', ')}) ${rest.length === 0 ? 'do nothing' : update}`
  return [
    { sql: `insert into ${target} (${names}) select ${names} from ${given}${conflict}${returning}`, params },
  ]
}

function writeForMysql({ mode, table, columns, keys, rows, ...how }: Part): Omit<Statement, 'maxRows'>[] {
  const quote = (name: string) => `\`${name.replaceAll('`', '``')}\``
  const target = table.split('.').map(quote).join('.')
  const rest = columns.filter((name) => !keys.includes(name))
  if (mode === 'update') {
    if (rest.length === 0) throw new SqlError('input', 'a row has nothing to change besides its keys')
    const set = rest.map((name) => `${quote(name)} = ?`).join(', ')
    const where = keys.map((name) => `${quote(name)} = ?`).join(' and ')
    const sql = `update ${target} set ${set} where ${where}`
    return rows.map((row) => ({
      sql,
      params: [...rest, ...keys].map((name) => row[name]),
      ...(how.mustExist ? { least: 1 } : {}),
    }))
  }
  const ignore = mode === 'insert' && how.skipKnown ? ' ignore' : ''
  const [key] = keys.map(quote)
  const update =
    rest.length === 0
      ? `${key} = ${key}`
      : rest.map((name) => `${quote(name)} = values(${quote(name)})`).join(', ')
  const known = mode === 'upsert' ? ` on duplicate key update ${update}` : ''
  const atOnce = Math.max(1, Math.floor(MOST_PARAMS / Math.max(1, columns.length)))
  const statements: Omit<Statement, 'maxRows'>[] = []
  for (let from = 0; from < rows.length; from += atOnce) {
    const part = rows.slice(from, from + atOnce)
    const places = part.map(() => `(${columns.map(() => '?').join(', ')})`).join(', ')
    const sql = `insert${ignore} into ${target} (${columns.map(quote).join(', ')}) values ${places}${known}`
    statements.push({ sql, params: part.flatMap((row) => columns.map((name) => row[name])) })
  }
  return statements
}
