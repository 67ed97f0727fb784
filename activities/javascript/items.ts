import { itemsOf } from '../../workflows/input.ts'
import type { Bindings } from '../expressions/bindings.ts'

/** A message that says why a value cannot be had. */
export type Unavailable = { unavailable: string }

/** The items of a node's output. `name` is its name or its id. */
export function findItems(name: string, bindings: Bindings): unknown[] | Unavailable {
  const id = findId(name, bindings)
  if (!Object.hasOwn(bindings.nodes, id)) return { unavailable: `Node '${name}' hasn't been executed` }
  return itemsOf(bindings.nodes[id])
}

/** The id of a node by the name that an expression has for it, which may be the id itself. */
export function findId(name: string, { names = {} }: Bindings): string {
  return Object.hasOwn(names, name) ? names[name]! : name
}

/** The index of the node's item that the item at `index` came from, or why there is none. */
export function findPair(name: string, index: number, bindings: Bindings): number | Unavailable {
  const items = findItems(name, bindings)
  if (!Array.isArray(items)) return items
  const found = bindings.pair?.(findId(name, bindings), index)
  if (typeof found === 'string') return { unavailable: found }
  if (found !== undefined) return found
  if (items.length === 1) return 0
  if (index < items.length) return index
  return {
    unavailable: `Paired item data for item from node '${name}' is unavailable. Ensure '${name}' is providing the required output.`,
  }
}

/** The item that an expression is about: the one of this evaluation, or else the first that comes in. */
export function findCurrent(bindings: Bindings): { item: unknown; index: number; items: unknown[] } {
  const { items, item, index = 0, input } = bindings
  if (items) return { items, item, index }
  const all = itemsOf(input)
  return { items: all, item: all[0], index: 0 }
}
