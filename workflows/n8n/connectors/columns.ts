import { isObject } from '../../json.ts'
import { type Fields, objectOf } from '../ai/asking.ts'
import type { SourceNode } from '../document.ts'
import { isTemplate, keepTexts, listObjects, plainText, splitNames, writeCode } from '../texts.ts'

/** What n8n's editor of columns writes, and by which columns it looks for a row. */
export type Columns = {
  /** The values by their columns, or an expression for the item's. */
  fields: Fields | string
  keys: string[]
}

/**
 * Reads the columns of a node. As in n8n, values become those of the types that its editor knows, unless `isLoose`.
 * `without` are columns that are no values.
 */
export function readTypedColumns(
  { parameters }: SourceNode,
  isLoose: boolean,
  without: string[] = [],
): Columns {
  const { isAuto, value, schema, keys } = readMapping(parameters)
  if (isAuto) {
    const left = [...without, ...splitNames(objectOf(parameters.options).ignoreFields)]
    return { fields: omitFields(left), keys }
  }
  const types = new Map(listObjects(schema).map(({ id, type }) => [id, String(type)]))
  const written = Object.entries(value).filter(([key]) => !without.includes(key))
  const fields = written.map(([key, given]) => [key, readTyped(given, types.get(key), isLoose)])
  return { fields: Object.fromEntries(fields), keys }
}

/** What n8n's editor of columns says. Without `isAuto`, which writes the item as it is, there are values. */
export function readMapping({ columns }: Fields) {
  if (isTemplate(columns)) throw new Error('an expression gives all of its columns')
  const { mappingMode = 'defineBelow', value, schema, matchingColumns } = objectOf(columns)
  if (isTemplate(mappingMode)) throw new Error('an expression says how its columns are given')
  const given = Array.isArray(matchingColumns) ? matchingColumns : []
  if (isTemplate(matchingColumns) || given.some(isTemplate))
    throw new Error('an expression names the columns to find the row by')
  const isAuto = mappingMode === 'autoMapInputData'
  if (!isAuto && isTemplate(value)) throw new Error('an expression gives all of its values')
  if (!isAuto && !isObject(value)) throw new Error('it has no values to write')
  return { isAuto, value: objectOf(value), schema, keys: given.map((key) => plainText(key) ?? '') }
}

/** An expression for the item without some of its fields. */
export function omitFields(names: string[]): string {
  if (names.length === 0) return '={{ $json }}'
  const list = JSON.stringify(names)
  return `={{ Object.fromEntries(Object.entries($json).filter(([key]) => !${list}.includes(key))) }}`
}

/** The first of n8n's ways to read a date that understands the text. */
const DATE =
  "(value => DateTime.isDateTime(value) ? value.toISO() : (text => (['fromISO', 'fromHTTP', 'fromRFC2822', 'fromSQL'].map(how => " +
  'DateTime[how](text, ({ setZone: true }) )).find(one => one.isValid) ?? DateTime.fromMillis(Date.parse(text))).toISO())' +
  '(value instanceof Date ? value.toISOString() : String(value).trim()) ?? value)'
const parse = (holds: string) =>
  `(value => { try { const one = typeof value === 'string' ? JSON.parse(value) : value; return ${holds} ? one : value } ` +
  'catch { return value } })'

/**
 * Values of the types of columns. What does not fit is left as it is, and the service refuses it, where n8n does so itself:
 * an expression that fails would be nothing at all.
 */
const READERS: Record<string, string> = {
  number: '(value => Number.isNaN(Number(value)) ? value : Number(value))',
  boolean:
    "(value => /^true$/i.test(String(value)) || (String(value).trim() !== '' && Number(value) === 1) ? true : " +
    "/^false$/i.test(String(value)) || (String(value).trim() !== '' && Number(value) === 0) ? false : value)",
  dateTime: DATE,
  array: parse('Array.isArray(one)'),
  object: parse("typeof one === 'object' && one !== null && !Array.isArray(one)"),
}

/** n8n does not read dates and the like where its editor says that the service does, but lists. */
function readTyped(given: unknown, type: string | undefined, isLoose: boolean): unknown {
  if (isLoose) {
    if (type !== 'array' || typeof given !== 'string') return keepTexts(given)
    const read =
      '(value => { try { const one = JSON.parse(value); return Array.isArray(one) ? one : value } catch { return value } })'
    return `={{ (given => typeof given === 'string' ? ${read}(given) : given)(${writeCode(given)}\n) }}`
  }
  const reader = type === undefined ? undefined : READERS[type]
  if (reader === undefined || typeof given !== 'string') return keepTexts(given)
  return `={{ (given => given === null || given === undefined ? null : ${reader}(given))(${writeCode(given)}\n) }}`
}
