import { isObject } from '../../../workflows/json.ts'
import { NodeFailure } from '../kit/failure.ts'

/** The nodes of n8n whose code a CODE node may have: they give and take items in ways of their own. */
export type CodeStyle = 'code' | 'function' | 'functionItem'

/**
 * An item that code has made, and the indexes of those that it came from; null if that is not known. `binary` is what it
 * gave as files; with `kept` they are those of the item that it came from.
 */
type MadeItem = { item: unknown; from: number | number[] | null; binary?: unknown }

/** The code with the variables that n8n gives it beside `$input`, if it reads them: `items` and `item`. */
export function nameItems(code: string, style: CodeStyle, isEach: boolean): string {
  const variables: Record<string, string> = {
    items: '$input.all()',
    item: style === 'functionItem' ? 'JSON.parse(JSON.stringify($json))' : '$input.item',
    getWorkflowStaticData: STATIC_DATA,
    $getWorkflowStaticData: STATIC_DATA,
  }
  const wanted = Object.entries(variables).filter(([name]) => {
    if (name === 'item' && !isEach) return false
    if (name === 'items' && isEach) return false
    const word = name.replaceAll('$', '\\$')
    const isRead = new RegExp(`(?<![\\w$.])${word}(?![\\w$])`).test(code)
    return isRead && !new RegExp(`\\b(?:const|let|var|function)\\s+${word}\\b`).test(code)
  })
  // In front of the first line, so that the numbers of lines stay what they are.
  return wanted.map(([name, value]) => `let ${name} = ${value}; `).join('') + code
}

/** What gives code the data that it keeps; without `staticData` it is empty, and lost. */
const STATIC_DATA =
  '((kept) => (which) => kept[which === "node" ? "node" : "global"])($execution.staticData ?? { global: {}, node: {} })'

/** The code as one that returns {value, staticData}: what it returned, and the data as it has left it. */
export function returnStaticData(code: string): string {
  return `return (async () => { ${code}\n})().then((value) => ({ value, staticData: $execution.staticData }))`
}

const KEYS = new Set(['json', 'binary', 'pairedItem', 'error', 'index'])

/** The items that code returned. Throws a NodeFailure (CodeFailed) for what n8n refuses as items. */
export function readMade(
  value: unknown,
  { each, given, style }: { each: boolean; given: number; style: CodeStyle },
): MadeItem[] {
  if (each) {
    return ((value ?? []) as unknown[]).flatMap((one, at): MadeItem[] => {
      if (style === 'functionItem') {
        if (one === null) throw refuse('No data got returned. Always an object has to be returned!')
        return [{ item: one, from: at, binary: 'kept' }]
      }
      // Nothing is left out.
      if (one === null) return []
      if (typeof one !== 'object') throw refuse("Code doesn't return an object")
      if (Array.isArray(one)) throw refuse("Code doesn't return a single object")
      return [{ ...unwrap(one as Record<string, unknown>), from: at }]
    })
  }
  if (value === undefined || value === null || typeof value !== 'object')
    throw refuse("Code doesn't return items properly")
  const list = Array.isArray(value) ? value : [value]
  if (list.some((one) => !isObject(one))) throw refuse("Code doesn't return items properly")
  const isWrapped = list.some((one) => Object.keys(one).some((key) => KEYS.has(key)))
  if (isWrapped && style === 'code')
    for (const one of list) {
      const unknown = Object.keys(one).find((key) => !KEYS.has(key))
      if (unknown !== undefined) throw refuse(`Unknown top-level item key: ${unknown}`)
    }
  const alone = given === 1 ? 0 : null
  return list.map((one, at) => {
    const from = readFrom(one.pairedItem) ?? (list.length === given ? at : alone)
    if (style === 'function' && one.json === undefined)
      throw refuse('All returned items have to contain a property named "json"!')
    return { ...unwrap(one), from }
  })
}

function unwrap({ ...one }: Record<string, unknown>): Pick<MadeItem, 'item' | 'binary'> {
  const hasKeys = Object.keys(one).some((key) => KEYS.has(key))
  if (!hasKeys) return { item: one }
  if (!isObject(one.json)) throw refuse("A 'json' property isn't an object")
  return { item: one.json, binary: one.binary }
}

function readFrom(paired: unknown): number | number[] | undefined {
  if (typeof paired === 'number') return paired
  if (Array.isArray(paired)) return paired.flatMap((one) => readFrom(one) ?? [])
  return isObject(paired) && typeof paired.item === 'number' ? paired.item : undefined
}

function refuse(message: string): NodeFailure {
  return new NodeFailure(message, { type: 'CodeFailed' })
}
