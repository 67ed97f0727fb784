import { SqlError } from './session.ts'

export type Upsert = { table: string; columns: string[]; keys: string[]; rows: Record<string, unknown>[] }

/** The most parameters that one statement of MySQL has. */
const MOST_PARAMS = 60_000

/** The statements that write rows which are new, or known by their keys. Throws a SqlError for a row that lacks a column. */
export function writeUpsert(
  dialect: 'postgresql' | 'mysql',
  upsert: Upsert,
): { sql: string; params: unknown[] }[] {
  const { rows, columns } = upsert
  for (const [i, row] of rows.entries()) {
    const lacking = columns.filter((name) => !Object.hasOwn(row, name))
    if (lacking.length > 0)
      throw new SqlError(
        'input',
        `rows[${i}] has no ${lacking.join(', ')}: each row needs all columns, null for none`,
      )
  }
  if (rows.length === 0) return []
  return dialect === 'postgresql' ? [writeForPostgres(upsert)] : writeForMysql(upsert)
}

/** All rows are one parameter, whose values PostgreSQL reads by the types of the table's columns. */
function writeForPostgres({ table, columns, keys, rows }: Upsert) {
  const quote = (name: string) => `"${name.replaceAll('"', '""')}"`
  const target = table.split('.').map(quote).join('.')
  const names = columns.map(quote).join(', ')
  const rest = columns.filter((name) => !keys.includes(name)).map(quote)
  const conflict =
    rest.length === 0
      ? 'do nothing'
      : `do update set ${rest.map((name) => `${name} = excluded.${name}`).join(', ')}`
  const sql =
    `insert into ${target} (${names}) select ${names} from json_populate_recordset(null::${target}, $1::json) ` +
    `on conflict (${keys.map(quote).join(', ')}) ${conflict}`
  const picked = rows.map((row) => Object.fromEntries(columns.map((name) => [name, row[name]])))
  return { sql, params: [JSON.stringify(picked)] }
}

function writeForMysql({ table, columns, keys, rows }: Upsert) {
  const quote = (name: string) => `\`${name.replaceAll('`', '``')}\``
  const target = table.split('.').map(quote).join('.')
  const rest = columns.filter((name) => !keys.includes(name)).map(quote)
  const [key] = keys.map(quote)
  const update =
    rest.length === 0 ? `${key} = ${key}` : rest.map((name) => `${name} = values(${name})`).join(', ')
  const atOnce = Math.max(1, Math.floor(MOST_PARAMS / columns.length))
  const statements: { sql: string; params: unknown[] }[] = []
  for (let from = 0; from < rows.length; from += atOnce) {
    const part = rows.slice(from, from + atOnce)
    const places = part.map(() => `(${columns.map(() => '?').join(', ')})`).join(', ')
    const sql = `insert into ${target} (${columns.map(quote).join(', ')}) values ${places} on duplicate key update ${update}`
    statements.push({ sql, params: part.flatMap((row) => columns.map((name) => row[name])) })
  }
  return statements
}
