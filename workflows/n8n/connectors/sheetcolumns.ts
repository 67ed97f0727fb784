import { isObject } from '../../json.ts'
import { type Fields, objectOf } from '../ai/asking.ts'
import type { SourceNode } from '../document.ts'
import { isTemplate, keepTexts, plainText, writeCode } from '../texts.ts'

/** What a node writes: the values of each item, which are first made of it, or the items themselves. */
export type SheetColumns = { isAuto: boolean; keys: string[]; feeder?: { type: string; config: Fields } }

/** Reads n8n's mapping of columns. `fills`: it makes an empty text of what is not there. */
export function readSheetColumns({ parameters }: SourceNode, fills: boolean): SheetColumns {
  const { columns } = parameters
  if (isTemplate(columns)) throw new Error('an expression gives all of its columns')
  const { mappingMode = 'defineBelow', value, matchingColumns } = objectOf(columns)
  if (isTemplate(mappingMode)) throw new Error('an expression says how its columns are given')
  if (isTemplate(matchingColumns)) throw new Error('an expression says by which column it finds its rows')
  const keys = (Array.isArray(matchingColumns) ? matchingColumns : []).map((key) => plainText(key) ?? '')
  if (mappingMode === 'autoMapInputData') return { isAuto: true, keys }
  if (!isObject(value) || Object.keys(value).length === 0) throw new Error('it has no values to write')
  const entries = Object.entries(value).map(([key, given]) => [key, writeValue(given, fills)] as const)
  return { isAuto: false, keys, feeder: { type: 'SET', config: { values: Object.fromEntries(entries) } } }
}

function writeValue(given: unknown, fills: boolean): unknown {
  if (given === null || given === undefined) return fills ? '' : null
  if (!isTemplate(given)) return keepTexts(given)
  return fills ? `={{ ((v) => v === null || v === undefined ? '' : v)(${writeCode(given)}\n) }}` : given
}
