import { splitScript } from '../../javascript/template.ts'
import { isTemplate, plainText, quoteValue, tryCode } from '../texts.ts'

/** A statement of ours, and the expressions for its values. `list` is code for all of them, where they must be looked at. */
export type WrittenSql = { sql: string; values: string[]; list?: string }

export type StatementRules = {
  isMySql: boolean
  /** How many values the statement has besides those of its expressions, if the author gives any. */
  own?: number | undefined
  /** The Error's message for a statement that is an expression alone. */
  whole: string
  /** The values of expressions outside of quotes must be no SQL. */
  guarded?: boolean
}

/**
 * A statement of n8n, in which expressions stand for values: each becomes a value of the statement, and with it the
 * quotes and the text around it. In PostgreSQL they come before the author's own, whose numbers grow by as many.
 */
export function readStatement(
  query: unknown,
  { isMySql, own = 0, whole, guarded }: StatementRules,
): WrittenSql {
  if (!isTemplate(query)) {
    const sql = plainText(query) ?? ''
    if (sql.trim() === '') throw new Error('it has no statement')
    return { sql, values: [] }
  }
  const { parts, alone } = splitScript(query)
  if (alone) throw new Error(whole)
  const values: string[] = []
  const bare: number[] = []
  const pieces: string[] = []
  let quoted: Quoted | undefined
  for (const part of parts) {
    if (typeof part !== 'string') {
      const code = part.source.trim()
      if (quoted) quoted.codes.push(code)
      else {
        demandValuePlace(pieces.join(''))
        values.push(`={{ ${code} }}`)
        bare.push(values.length - 1)
        pieces.push(MARK)
      }
      continue
    }
    let rest = part
    if (quoted) {
      const end = rest.indexOf("'")
      if (end < 0) {
        quoted.texts.push(rest)
        quoted.codes.push('')
        continue
      }
      if (rest[end + 1] === "'") throw new Error(APOSTROPHES)
      quoted.texts.push(rest.slice(0, end))
      values.push(writeQuoted(quoted))
      pieces.push(MARK)
      quoted = undefined
      rest = rest.slice(end + 1)
    }
    const open = findOpenQuote(rest)
    if (open === undefined) pieces.push(rest)
    else if (part === parts.at(-1)) pieces.push(rest)
    else {
      pieces.push(rest.slice(0, open))
      quoted = { texts: [rest.slice(open + 1)], codes: [] }
    }
  }
  if (quoted) throw new Error('its statement ends within a text')
  let at = 0
  const shift = values.length
  const shifted =
    own === 0 || isMySql ? pieces : pieces.map((one) => (one === MARK ? one : shiftPlaces(one, shift)))
  const sql = shifted.map((one) => (one === MARK ? (isMySql ? '?' : `$${++at}`) : one)).join('')
  if (!guarded || bare.length === 0) return { sql, values }
  const codes = values.map((one, i) => ({ code: codeOfValue(one), bare: bare.includes(i) }))
  return { sql, values, list: guardAll(codes) }
}

export const codeOfValue = (value: string) => value.slice('={{'.length, -'}}'.length).trim()

/** The mark for the place of a value: no statement of the document has it, since its texts have no NUL. */
const MARK = '\0'
type Quoted = { texts: string[]; codes: string[] }

const APOSTROPHES =
  'an expression stands in a text with apostrophes in its statement: give the whole text by an expression'

/** A value in quotes: always a text, which is empty for nothing. */
function writeQuoted({ texts, codes }: Quoted): string {
  if (texts.some((one) => one.includes("''"))) throw new Error(APOSTROPHES)
  const entries = texts.flatMap((one, i) => [
    ...(one === '' ? [] : [quoteValue(one)]),
    ...(codes[i] ? [tryCode(codes[i])] : []),
  ])
  return `={{ [${entries.join(', ')}].join('') }}`
}

/** Where a text begins in this part of a statement that does not end in it. */
function findOpenQuote(sql: string): number | undefined {
  let open: number | undefined
  for (let i = 0; i < sql.length; i++) {
    if (sql[i] !== "'") continue
    // Two of them within a text are one.
    if (open !== undefined && sql[i + 1] === "'") {
      i++
      continue
    }
    open = open === undefined ? i : undefined
  }
  return open
}

const NAMED = /(?:\b(?:from|into|update|table|join|by|schema|column|database|view|as)\s+|["`.]\s*)$/i
const PIECE =
  'an expression gives a name or a piece of SQL in its statement, and Perdure takes values only: write the name as it ' +
  'stands, with a DATABASE_QUERY for each'

/** Throws where no value can stand, but a name. */
function demandValuePlace(before: string): void {
  if (NAMED.test(before)) throw new Error(PIECE)
  const plain = before.replace(/'(?:[^']|'')*'/g, "''")
  if ((plain.match(/"/g)?.length ?? 0) % 2 === 1) throw new Error(PIECE)
}

const REFUSED =
  'an expression in the SQL gives a text outside of quotes, which is SQL in n8n and can only be a value here: write the ' +
  'text as it stands, or quotes around the expression'

/**
 * An expression for all values. A text outside of quotes would be SQL in n8n: here it makes the list of them a text, with
 * which the node fails. What an expression throws would be no more than a null, as in n8n.
 */
function guardAll(codes: { code: string; bare: boolean }[]): string {
  const is =
    `typeof value === 'object' && value !== null || typeof value === 'string' && ` +
    `!/^\\s*-?(\\d+\\.?\\d*|\\.\\d+)\\s*$/.test(value)`
  const entries = codes.map(({ code, bare }) =>
    bare ? `(value => ${is} ? refused : value)(${tryCode(code)})` : tryCode(code),
  )
  const list = `[${entries.join(', ')}]`
  return `((refused) => (list => list.includes(refused) ? ${quoteValue(REFUSED)} : list)(${list}))({})`
}

function shiftPlaces(sql: string, by: number): string {
  return sql.replace(/\$(\d+)/g, (_, number) => `$${Number(number) + by}`)
}

/** The statement without its texts, names in quotes and comments. */
function stripSql(sql: string): string {
  return sql
    .replace(/\/\*[\s\S]*?\*\/|--[^\n]*/g, ' ')
    .replace(/\$([A-Za-z_]\w*)?\$[\s\S]*?\$\1\$/g, "''")
    .replace(/'(?:[^'\\]|''|\\.)*'/g, "''")
    .replace(/"(?:[^"]|"")*"|`[^`]*`/g, '""')
}

/** Throws an Error for a statement that is not one, or has what only n8n understands. */
export function demandOne(sql: string): void {
  const plain = stripSql(sql)
  if (/;\s*\S/.test(plain))
    throw new Error('it has several statements: make a DATABASE_QUERY of each of them, one after the other')
  const modified = /\$\d+(?::\w+|[\^~#])|\$[{<(/][^})>/]*[})>/]/.exec(plain)?.[0]
  if (modified)
    throw new Error(
      `it writes "${modified}" into its SQL, and Perdure takes values only, as $1 or ?: write names as they stand`,
    )
  if (/'\$\d+'/.test(sql)) throw new Error('it has the place of a value within quotes: write it without them')
}

/** Whether it only reads, as n8n looks at it. */
export function isSelect(sql: string): boolean {
  let plain = stripSql(sql)
  for (;;) {
    const flat = plain.replace(/\([^()]*\)/g, ' ')
    if (flat === plain) break
    plain = flat
  }
  return /\b(select|insert|update|delete|merge)\b/i.exec(plain)?.[1]?.toLowerCase() === 'select'
}

export const quotePostgres = (name: string) => `"${name.replaceAll('"', '""')}"`
export const quoteMySql = (name: string) => `\`${name.replaceAll('`', '')}\``
