import type { Fields } from '../ai/asking.ts'
import type { SourceNode } from '../document.ts'
import { isTemplate, keepTexts, writeCode } from '../texts.ts'
import { readMapping } from './columns.ts'

/** What a node writes: the values of each item, which are first made of it, or the items themselves. */
export type SheetColumns = { isAuto: boolean; keys: string[]; feeder?: { type: string; config: Fields } }

/** Reads n8n's mapping of columns. `fills`: it makes an empty text of what is not there. */
export function readSheetColumns({ parameters }: SourceNode, fills: boolean): SheetColumns {
  const { isAuto, value, keys } = readMapping(parameters)
  if (isAuto) return { isAuto, keys }
  if (Object.keys(value).length === 0) throw new Error('it has no values to write')
  const entries = Object.entries(value).map(([key, given]) => [key, writeValue(given, fills)] as const)
  return { isAuto, keys, feeder: { type: 'SET', config: { values: Object.fromEntries(entries) } } }
}

function writeValue(given: unknown, fills: boolean): unknown {
  if (given === null || given === undefined) return fills ? '' : null
  if (!isTemplate(given)) return keepTexts(given)
  return fills ? `={{ ((v) => v === null || v === undefined ? '' : v)(${writeCode(given)}\n) }}` : given
}
