import { isObject } from '../../json.ts'
import { type Fields, objectOf } from '../ai/asking.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools } from '../mapper.ts'
import { isTemplate, keepTexts, listObjects, parseCode, plainText, splitNames, writeCode } from '../texts.ts'
import { type MappedSql, readColumnNames, readTableNames, shapeRows } from './sqlparts.ts'

type Writing = 'insert' | 'update' | 'upsert'

/** A row for each item, whose values n8n reads by the types of the table's columns, as we do. */
export function readRowsToWrite(node: SourceNode, { report }: MapperTools, mode: Writing): MappedSql {
  const { type, version } = node
  const isPostgres = type === 'postgres'
  const { rows, keys } = version < 2 ? readOldRow(node, mode) : readRow(node, mode)
  const names = readTableNames(node)
  if (names.some((name) => name.includes('.')))
    throw new Error('the name of its table has a dot: write the statement with a DATABASE_QUERY')
  const options = objectOf(node.parameters[isPostgres && version < 2 ? 'additionalFields' : 'options'])
  const skips = options.skipOnConflict === true || options.ignore === true
  const columns = readColumnNames(version < 2 ? readReturned(node) : options.outputColumns)
  // From 2.2 on n8n looks for the row first.
  const mustExist = mode === 'update' && isPostgres && version >= 2.2
  const config = {
    ...{ mode, table: names.join('.'), rows },
    ...(keys.length > 0 ? { keys } : {}),
    ...(isPostgres ? { returning: true } : {}),
    ...(mode === 'insert' && skips ? { skipKnown: true } : {}),
    ...(mustExist ? { mustExist } : {}),
  }
  if (isPostgres) {
    const message =
      'A text is kept as a text in a column of JSON where n8n reads it: give the object. An upsert whose row has no value ' +
      'for its key fails in n8n, and adds a row here.'
    report('parameter', 'parameters.columns', message, null)
  }
  const shown = columns && `$item.rows.$sift(function($v, $k) { $k in ${JSON.stringify(columns)} })`
  return { config, shape: shapeRows(node, false, shown) }
}

function readReturned({ type, parameters }: SourceNode): unknown {
  const { returnFields = '*' } = parameters
  return type === 'postgres' ? splitNames(returnFields) : undefined
}

type Row = { rows: unknown; keys: string[] }

/** The first versions write fields of the item, by the names of columns in a text. */
function readOldRow({ parameters, type }: SourceNode, mode: Writing): Row {
  const { columns = '', updateKey = 'id' } = parameters
  if (isTemplate(columns) || isTemplate(updateKey))
    throw new Error('an expression names its columns: write the names as they stand')
  const names = splitNames(columns)
  if (type === 'postgres' && names.some((name) => name.includes(':')))
    throw new Error('it casts columns to types: write the statement with a DATABASE_QUERY')
  const keys = mode === 'insert' ? [] : [plainText(updateKey) ?? 'id']
  const all = [...new Set([...keys, ...names])]
  if (names.length === 0) throw new Error('it names no columns')
  const fields = all.map((name) => [name, `={{ $json[${JSON.stringify(name)}] ?? null }}`])
  return { rows: [Object.fromEntries(fields)], keys }
}

/** The item itself, or values for columns. */
function readRow(node: SourceNode, mode: Writing): Row {
  const { parameters, type, version } = node
  const isMapper = type === 'postgres' ? version >= 2.2 : false
  const { mappingMode, value, schema, matchingColumns } = objectOf(parameters.columns)
  const usual = isMapper ? 'defineBelow' : 'autoMapInputData'
  const how = (isMapper ? mappingMode : parameters.dataMode) ?? usual
  if (isTemplate(how)) throw new Error('an expression says how its columns are given')
  const keys =
    mode === 'insert' ? [] : isMapper ? readKeys(matchingColumns) : [readKey(parameters.columnToMatchOn)]
  if (mode !== 'insert' && keys.length === 0) throw new Error('it names no column to find the row by')
  if (how === 'autoMapInputData') return { rows: writeItem(node), keys }
  const fields = isMapper ? readMapped(value, schema) : readPairs(node)
  const found =
    isMapper || mode === 'insert' ? {} : { [keys[0]!]: keepTexts(parameters.valueToMatchOn ?? '') }
  return { rows: [{ ...fields, ...found }], keys }
}

function readKeys(given: unknown): string[] {
  if (isTemplate(given) || (Array.isArray(given) && given.some(isTemplate)))
    throw new Error('an expression names the columns to find the row by')
  return Array.isArray(given) ? given.map(String) : []
}

function readKey(given: unknown): string {
  const value = isObject(given) ? given.value : given
  if (isTemplate(value)) throw new Error('an expression names the column to find the row by')
  return plainText(value) ?? ''
}

/** The fields of the item; n8n may make nulls of empty texts. */
function writeItem({ parameters }: SourceNode): string {
  const { replaceEmptyStrings } = objectOf(parameters.options)
  if (isTemplate(replaceEmptyStrings)) throw new Error('an expression says what it makes of empty texts')
  if (replaceEmptyStrings !== true) return '={{ [$json] }}'
  return "={{ [Object.fromEntries(Object.entries($json).map(([key, value]) => [key, value === '' ? null : value]))] }}"
}

/** Values by the columns of the editor, which knows their types: texts for JSON are read. */
function readMapped(value: unknown, schema: unknown): Fields {
  if (isTemplate(value)) throw new Error('an expression gives all of its values')
  if (!isObject(value)) throw new Error('it has no values to write')
  const types = new Map(listObjects(schema).map(({ id, type }) => [id, type]))
  return Object.fromEntries(
    Object.entries(value).map(([key, given]) => [
      key,
      types.get(key) === 'object' && typeof given === 'string' ? readJsonText(given) : orNull(given),
    ]),
  )
}

const readJsonText = (given: string) =>
  `={{ ${parseCode(writeCode(given), 'a value of the column')} ?? null }}`

/** What an expression does not find is null in SQL. */
const orNull = (given: unknown) => (given === undefined ? null : keepTexts(given))

function readPairs({ parameters }: SourceNode): Fields {
  const pairs = listObjects(objectOf(parameters.valuesToSend).values)
  if (pairs.length === 0) throw new Error('it has no values to write')
  return Object.fromEntries(
    pairs.map(({ column, value }) => {
      if (isTemplate(column)) throw new Error('an expression names a column: write the name as it stands')
      return [plainText(column) ?? '', keepTexts(value ?? '')]
    }),
  )
}
