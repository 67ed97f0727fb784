import canonicalize from 'canonicalize'
import { isObject } from '../../../workflows/json.ts'
import { createPacer } from '../../expressions/pace.ts'
import { weighValue } from '../../expressions/weight.ts'
import { NodeFailure } from './failure.ts'
import { writeJson } from './json.ts'
import type { NodeContext } from './node.ts'

/**
 * The items of a list node, from the config's `key`; without `items`, those of its inputs. A value that is not an array
 * counts as a single item, because JSONata returns a single match without its array; null gives no items.
 */
export async function readItems({ config, bindings, evaluator, inputs }: NodeContext, key = 'items') {
  if (config[key] === undefined && key === 'items') return listOwnItems(inputs)
  const value = await evaluator.render(config[key], bindings)
  return Array.isArray(value) ? (value as unknown[]) : value === null || value === undefined ? [] : [value]
}

/**
 * The value of a field for each item, null for items without it. `field` is a key, a path of keys joined by dots, or
 * a template whose expression is evaluated for each item.
 */
export async function readField(
  { bindings, evaluator }: NodeContext,
  items: unknown[],
  field: string,
): Promise<unknown[]> {
  if (field.includes('{{')) return evaluator.map(items, field, bindings)
  const names = field.split('.')
  const pace = createPacer()
  const values: unknown[] = []
  for (const item of items) {
    await pace()
    values.push(findOwn(item, [field]) ?? findOwn(item, names) ?? null)
  }
  return values
}

/** readField for several fields: for each item an array of its values, in the order of the fields. */
export async function readFields(context: NodeContext, items: unknown[], fields: string[]) {
  const columns: unknown[][] = []
  for (const field of fields) columns.push(await readField(context, items, field))
  const pace = createPacer()
  const rows: unknown[][] = []
  for (const at of items.keys()) {
    await pace()
    rows.push(columns.map((column) => column[at]))
  }
  return rows
}

function findOwn(item: unknown, names: string[]): unknown {
  let value = item
  for (const name of names) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    value = (value as Record<string, unknown>)[name]
  }
  return value
}

/** Values up to this weight are written at once. */
const LIGHT = 50_000

/** A string that is the same for equal JSON values, whatever the order of their keys. */
export async function writeKey(value: unknown, pace: ReturnType<typeof createPacer>): Promise<string> {
  if (weighValue(value, LIGHT) > LIGHT) return writeJson(value, pace, { sorted: true })
  try {
    return canonicalize(value) ?? 'null'
  } catch {
    // canonicalize refuses lone surrogates, which JSON strings can hold, and deep nesting ends it.
    return writeJson(value, pace, { sorted: true })
  }
}

/**
 * Compares two values for Array.sort: booleans come before numbers, strings (by UTF-16 code units), and all
 * other values, which are equal to each other. Null comes last in either order.
 */
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

/** Sorts into a new array, stably as Array.sort, but lets timers and sockets have their turn in between. */
export async function sortItems<T>(items: T[], compare: (a: T, b: T) => number): Promise<T[]> {
  const pace = createPacer()
  let runs: T[][] = []
  for (let at = 0; at < items.length; at += RUN) {
    await pace()
    runs.push(items.slice(at, at + RUN).sort(compare))
  }
  while (runs.length > 1) {
    const merged: T[][] = []
    for (let at = 0; at < runs.length; at += 2) {
      const [left, right] = [runs[at]!, runs[at + 1]]
      merged.push(right ? await mergeRuns(left, right, compare, pace) : left)
    }
    runs = merged
  }
  return runs[0] ?? []
}

async function mergeRuns<T>(
  left: T[],
  right: T[],
  compare: (a: T, b: T) => number,
  pace: () => Promise<void> | undefined,
): Promise<T[]> {
  const merged: T[] = []
  let [i, j] = [0, 0]
  while (i < left.length && j < right.length) {
    if (merged.length % RUN === 0) await pace()
    merged.push(compare(left[i]!, right[j]!) <= 0 ? left[i++]! : right[j++]!)
  }
  for (; i < left.length; i++) merged.push(left[i]!)
  for (; j < right.length; j++) merged.push(right[j]!)
  return merged
}

/** As weighValue counts, up to five times the JSON. The output's exact size is checked when it is stored. */
const MAX_WEIGHT = 64_000_000

/**
 * Bounds an output that repeats its inputs. Call the returned function with each value that is added to the
 * output, as often as it is added; it throws a NodeFailure (OutputTooLarge) once their weight is too large.
 */
export function createOutputBound(): (...values: unknown[]) => void {
  let weight = 0
  return (...values) => {
    for (const value of values) weight += weighValue(value, MAX_WEIGHT)
    if (weight <= MAX_WEIGHT) return
    throw new NodeFailure('The output would be far larger than 8 MB', { type: 'OutputTooLarge' })
  }
}

/** The items that a node works on if its config names none: those of all its inputs, in edge order. */
export function listOwnItems(inputs: unknown[]): unknown[] {
  const [only] = inputs
  // The very list, by which a node says where its items came from.
  if (inputs.length === 1 && isObject(only) && Array.isArray(only.items)) return only.items
  return inputs.flatMap((input) => {
    if (input === null || input === undefined) return []
    if (Array.isArray(input)) return input
    return isObject(input) && Array.isArray(input.items) ? input.items : [input]
  })
}

/** The item that a node works on: its own one if it is executed for each item, else its whole input. */
export function workedItem({ bindings, input }: Pick<NodeContext, 'bindings' | 'input'>): unknown {
  return 'item' in bindings ? bindings.item : input
}
