import { getOwn, isObject, mergeObjects } from './json.ts'
import type { Envelope } from './run/plan.ts'
import type { ItemPage } from './run/records.ts'
import type { TakenEdge } from './run/walk.ts'

/**
 * Makes `$input` from the outputs of the nodes before, given in edge order. No output gives null, and one output is
 * taken as it is. Several objects are merged (later edges win); if any output is not an object, all go into an array.
 * If the nodes work on items, all their items are joined.
 */
export function mergeInputs(values: unknown[]): unknown {
  if (values.length === 0) return null
  if (values.length === 1) return values[0]
  if (values.every(isItemList) && values.some(({ from }) => Array.isArray(from))) return joinItems(values)
  return values.every(isObject) ? mergeObjects(values) : values
}

/** Items that leave a node. `from[i]` is the index of the item that item i came from: several, or null if unknown. */
export type ItemList = { items: unknown[]; from: (number | number[] | null)[] }

/**
 * The items in a value that comes along an edge: of a list its elements, of `{items: [...]}` (also with `from` and
 * `handles`, as nodes that work on items output it) those, of null none; any other value is one item.
 */
export function itemsOf(value: unknown): unknown[] {
  if (value === null || value === undefined) return []
  if (Array.isArray(value)) return value
  return isItemList(value) ? value.items : [value]
}

/** Whether the value is `{items: [...]}`, with nothing beside it that nodes which work on items do not output. */
export function isItemList(value: unknown): value is Pick<ItemList, 'items'> & Partial<ItemList> {
  return (
    isObject(value) && Array.isArray(value.items) && Object.keys(value).every((key) => LIST_KEYS.has(key))
  )
}

/**
 * Whether the output is that of a node which left by several handles, with the items that left by each. A field of a
 * user may be called `handles` too.
 */
export function hasHandles(output: unknown): output is { handles: Record<string, ItemList> } {
  if (!isObject(output) || !isObject(output.handles)) return false
  const parts = Object.values(output.handles)
  return parts.length > 0 && parts.every(isItemList) && Object.keys(output).every((key) => LIST_KEYS.has(key))
}

const LIST_KEYS = new Set(['items', 'from', 'handles'])

/**
 * The value that leaves a node by one of the several handles by which it left with this output: for a node that does
 * not work on items, the output itself.
 */
export function partOf(output: unknown, handle: string | null): unknown {
  if (!hasHandles(output)) return output
  if (handle !== null) return getOwn(output.handles, handle) ?? null
  const { handles: _, ...main } = output
  return main
}

/** The value that a taken edge brings, from the output of its source. */
export function valueAlong({ part }: TakenEdge, output: unknown): unknown {
  return part === undefined ? output : partOf(output, part)
}

/** The `$input` of a node that works on items: of several values that come to it, all of their items. */
export function joinItems(values: unknown[]): unknown {
  return values.length === 1 ? values[0] : { items: values.flatMap(itemsOf) }
}

/** The item of a loop at an index of its page. The items of a deep page are in the pages that it holds. */
export async function findItem(
  open: (envelope: Envelope) => Promise<unknown>,
  page: Pick<ItemPage, 'items' | 'deep'>,
  at: number,
): Promise<unknown> {
  const list = (await open(page.items)) as unknown[]
  if (!page.deep) return list[at]
  const inner = (list as ItemPage[]).findLast(({ from }) => from <= at)
  return inner && findItem(open, inner, at - inner.from)
}
