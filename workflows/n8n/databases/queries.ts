import { splitScript } from '../../javascript/template.ts'
import { objectOf } from '../ai/asking.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools } from '../mapper.ts'
import { isTemplate, plainText, splitNames, tryCode, writeCode } from '../texts.ts'
import { type MappedSql, shapeRows } from './sqlparts.ts'
import { codeOfValue, demandOne, isSelect, readStatement } from './statements.ts'

const WHOLE =
  'an expression gives its whole statement, and Perdure takes expressions for values only: write the statement as it ' +
  'stands'

/** A statement that the author has written, with its expressions and parameters as values. */
export function readQuery(node: SourceNode, { report }: MapperTools): MappedSql {
  const { parameters, version, type } = node
  const isMySql = type === 'mySql'
  const own = readOwn(node)
  const rules = { isMySql, own: own === undefined ? 0 : 1, whole: WHOLE, guarded: true }
  const { sql: written, values, list } = readStatement(parameters.query, rules)
  const plain = written.trim().replace(/;+\s*$/, '')
  demandOne(plain)
  if (values.length > 0) {
    const message =
      'The expressions in its SQL are values beside it here, and never SQL: a text outside of quotes that is no number ' +
      'fails, and so does a quoted one where no value can stand.'
    report('parameter', 'parameters.query', message, parameters.query)
  }
  const { sql, params } = isMySql
    ? placeMySql(plain, values, list, own)
    : placePostgres(plain, values, list, own)
  const selects = version < 2.3 && type === 'postgres' ? false : isSelect(sql)
  return {
    config: { query: sql, ...(params === undefined ? {} : { params }), maxRows: 10_000 },
    shape: shapeRows(node, type === 'mySql' && version < 2.2 ? false : selects),
  }
}

/** An expression for the list of the author's values; undefined without any. */
function readOwn(node: SourceNode): string | undefined {
  const { parameters, version, type } = node
  if (type === 'postgres' && version < 2) {
    const { queryParams } = objectOf(parameters.additionalFields)
    if (queryParams === undefined || queryParams === '') return undefined
    if (isTemplate(queryParams)) throw new Error('an expression names the fields of its parameters')
    return `[${splitNames(queryParams)
      .map((name) => `$json[${JSON.stringify(name)}] ?? null`)
      .join(', ')}]`
  }
  const { queryReplacement } = objectOf(parameters.options)
  if (queryReplacement === undefined || queryReplacement === '') return undefined
  if (type === 'mySql') return readMySqlValues(queryReplacement, version)
  return readPostgresValues(queryReplacement, version)
}

/** n8n splits texts at commas, and takes lists as they are; from 2.3 on it makes numbers of what are some. */
function readMySqlValues(given: unknown, version: number): string {
  const list = "(given => Array.isArray(given) ? given : String(given).split(',').map(one => one.trim()))"
  const numbers = version >= 2.3 ? '.map(one => Number(one) ? Number(one) : one)' : ''
  return `${list}(${writeCode(given)})${numbers}`
}

const SPLIT =
  "(text => { try { JSON.parse(text.trim()); return [text] } catch { return text.split(',').filter(one => one).map(one => one.trim()) } })"
const SPREAD =
  "(one => Array.isArray(one) ? one.filter(entry => entry !== undefined).map(entry => typeof entry === 'object' && entry !== null ? JSON.stringify(entry) : entry) : " +
  `${SPLIT}(one === undefined ? '' : one === null ? 'null' : typeof one === 'object' ? JSON.stringify(one) : String(one)))`

function readPostgresValues(given: unknown, version: number): string {
  if (!isTemplate(given)) {
    const texts = (plainText(given) ?? '').split(',').filter((one) => one)
    return JSON.stringify(texts.map((one) => one.trim()))
  }
  const { parts, alone } = splitScript(given)
  const codes = parts.flatMap((part) => (typeof part === 'string' ? [] : [tryCode(part.source)]))
  // A list that is the whole is taken as it is, and a text is split.
  const spread = version >= 2.5 ? SPREAD : '(one => Array.isArray(one) ? one : [one])'
  if (alone) return `(given => Array.isArray(given) ? given : ${spread}(given))(${codes[0]})`
  if (version >= 2.5) return `[${codes.join(', ')}].flatMap(${spread})`
  const entries = parts.flatMap((part) =>
    typeof part === 'string'
      ? part.split(',').flatMap((text) => (text.trim() === '' ? [] : [JSON.stringify(text.trim())]))
      : [tryCode(part.source)],
  )
  return `[${entries.join(', ')}]`
}

type Placed = { sql: string; params?: string | string[] }

/** Values that are no list make none of it: the node fails with what they say. */
const joined = (values: string, own: string) =>
  `={{ (values => typeof values === 'string' ? values : [...values, ...${own}])(${values}) }}`

function placePostgres(
  sql: string,
  values: string[],
  list: string | undefined,
  own: string | undefined,
): Placed {
  if (own === undefined) return listValues(sql, values, list)
  if (values.length === 0) return { sql, params: `={{ ${own} }}` }
  return { sql, params: joined(list ?? writeList(values), own) }
}

function listValues(sql: string, values: string[], list: string | undefined): Placed {
  if (values.length === 0) return { sql }
  return { sql, params: list === undefined ? values : `={{ ${list} }}` }
}

const writeList = (values: string[]) => `[${values.map((one) => tryCode(codeOfValue(one))).join(', ')}]`

/** n8n has $1 for a value, which may come several times; here each place has its own. */
function placeMySql(
  sql: string,
  values: string[],
  list: string | undefined,
  own: string | undefined,
): Placed {
  if (own === undefined) return listValues(sql, values, list)
  const entries: string[] = []
  let at = 0
  const placed = sql.replace(/'(?:[^'\\]|''|\\.)*'|"[^"]*"|`[^`]*`|\$(\d+)|\?/g, (found, number) => {
    if (number === undefined && found !== '?') return found
    entries.push(number === undefined ? `values[${at++}]` : `own[${Number(number) - 1}]`)
    return '?'
  })
  const places = `(values, own) => typeof values === 'string' ? values : [${entries.join(', ')}]`
  return { sql: placed, params: `={{ (${places})(${list ?? writeList(values)}, ${own}) }}` }
}
