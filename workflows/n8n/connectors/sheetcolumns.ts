import { isObject } from '../../json.ts'
import { type Fields, objectOf } from '../ai/asking.ts'
import type { SourceNode } from '../document.ts'
import { isTemplate, keepTexts, listObjects, plainText, writeCode } from '../texts.ts'

/** What a node writes: the values of each item, which are first made of it, or the items themselves. */
export type SheetColumns = { isAuto: boolean; keys: string[]; feeder?: { type: string; config: Fields } }

/** Reads n8n's mapping of columns. `fills`: it makes an empty text of what is not there. */
export function readSheetColumns({ parameters }: SourceNode, fills: boolean): SheetColumns {
  const { columns } = parameters
  if (isTemplate(columns)) throw new Error('an expression gives all of its columns')
  const {
    mappingMode = 'defineBelow',
    value,
    schema,
    matchingColumns,
    convertFieldsToString,
  } = objectOf(columns)
  if (isTemplate(mappingMode)) throw new Error('an expression says how its columns are given')
  if (isTemplate(matchingColumns)) throw new Error('an expression says by which column it finds its rows')
  const keys = (Array.isArray(matchingColumns) ? matchingColumns : []).map((key) => plainText(key) ?? '')
  if (mappingMode === 'autoMapInputData') return { isAuto: true, keys }
  if (!isObject(value) || Object.keys(value).length === 0) throw new Error('it has no values to write')
  const types = new Map(listObjects(schema).map(({ id, type }) => [id, type]))
  const entries = Object.entries(value).map(([key, given]) => {
    const isText = convertFieldsToString === true && types.get(key) === 'string'
    return [key, writeValue(given, isText, fills)] as const
  })
  return { isAuto: false, keys, feeder: { type: 'SET', config: { values: Object.fromEntries(entries) } } }
}

const TEXT = "typeof v === 'object' ? JSON.stringify(v) : String(v)"

function writeValue(given: unknown, isText: boolean, fills: boolean): unknown {
  if (given === null || given === undefined) return fills ? '' : null
  if (!isTemplate(given)) {
    if (!isText || typeof given === 'string') return keepTexts(given)
    return typeof given === 'object' ? JSON.stringify(given) : String(given)
  }
  if (!isText && !fills) return given
  const nothing = fills ? "''" : 'null'
  return `={{ ((v) => v === null || v === undefined ? ${nothing} : ${isText ? TEXT : 'v'})(${writeCode(given)}\n) }}`
}
