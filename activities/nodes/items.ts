import canonicalize from 'canonicalize'
import { createPause } from '../pace.ts'
import { weigh } from '../plain.ts'
import { NodeFailure } from './failure.ts'
import type { NodeContext } from './node.ts'

/**
 * The items of a list node: a value that is no array counts as the one item and nothing as none, since JSONata gives
 * a single match without its array. `key` is where the config has them.
 */
export async function readItems({ config, bindings, evaluator }: NodeContext, key = 'items') {
  const value = await evaluator.render(config[key], bindings)
  return Array.isArray(value) ? (value as unknown[]) : value === null || value === undefined ? [] : [value]
}

/** What each item has in a field: under that key, or at that path, or what the expression makes of it; else null. */
export async function readField(
  { bindings, evaluator }: NodeContext,
  items: unknown[],
  field: string,
): Promise<unknown[]> {
  if (field.includes('{{')) return evaluator.map(items, field, bindings)
  const names = field.split('.')
  return items.map((item) => findOwn(item, [field]) ?? findOwn(item, names) ?? null)
}

/** readField for several: by item, its values in the order of the fields. */
export async function readFields(context: NodeContext, items: unknown[], fields: string[]) {
  const columns: unknown[][] = []
  for (const field of fields) columns.push(await readField(context, items, field))
  return items.map((_, at) => columns.map((column) => column[at]))
}

function findOwn(item: unknown, names: string[]): unknown {
  let value = item
  for (const name of names) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    value = (value as Record<string, unknown>)[name]
  }
  return value
}

/** The same text for the same JSON, whatever the order of keys. */
export function writeKey(value: unknown): string {
  try {
    return canonicalize(value) ?? 'null'
  } catch {
    // It refuses broken Unicode, which JSON can hold.
    return JSON.stringify(value)
  }
}

/** Numbers before texts before the rest, which stays in its order; texts by their UTF-16 units. Nothing comes last. */
export function compareValues(a: unknown, b: unknown, order: 'asc' | 'desc' = 'asc'): number {
  const [left, right] = [rank(a), rank(b)]
  if (left !== right)
    return left === NOTHING || right === NOTHING || order === 'asc' ? left - right : right - left
  if (left >= OTHER || a === b) return 0
  return (a as string) < (b as string) === (order === 'asc') ? -1 : 1
}

const OTHER = 3
const NOTHING = 4

function rank(value: unknown): number {
  if (value === null || value === undefined) return NOTHING
  const at = ['boolean', 'number', 'string'].indexOf(typeof value)
  return at < 0 ? OTHER : at
}

const RUN = 500

/** Array.sort (stable), but that others get their turn in between. */
export async function sortItems<T>(items: T[], compare: (a: T, b: T) => number): Promise<T[]> {
  const pause = createPause()
  let runs: T[][] = []
  for (let at = 0; at < items.length; at += RUN) {
    await pause()
    runs.push(items.slice(at, at + RUN).sort(compare))
  }
  while (runs.length > 1) {
    const merged: T[][] = []
    for (let at = 0; at < runs.length; at += 2) {
      const [left, right] = [runs[at]!, runs[at + 1]]
      merged.push(right ? await mergeRuns(left, right, compare, pause) : left)
    }
    runs = merged
  }
  return runs[0] ?? []
}

async function mergeRuns<T>(
  left: T[],
  right: T[],
  compare: (a: T, b: T) => number,
  pause: () => Promise<void> | undefined,
): Promise<T[]> {
  const merged: T[] = []
  let [i, j] = [0, 0]
  while (i < left.length && j < right.length) {
    if (merged.length % RUN === 0) await pause()
    merged.push(compare(left[i]!, right[j]!) <= 0 ? left[i++]! : right[j++]!)
  }
  for (; i < left.length; i++) merged.push(left[i]!)
  for (; j < right.length; j++) merged.push(right[j]!)
  return merged
}

/** As weigh counts, which is up to five times the JSON: the exact check follows when the output is stored. */
const MAX_WEIGHT = 64_000_000

/** Bounds an output that repeats its inputs: what it is called with is in the output once more. */
export function createScale(): (...values: unknown[]) => void {
  let weight = 0
  return (...values) => {
    for (const value of values) weight += weigh(value, MAX_WEIGHT)
    if (weight <= MAX_WEIGHT) return
    throw new NodeFailure('The output would have far more than 8 MB', { type: 'OutputTooLarge' })
  }
}
