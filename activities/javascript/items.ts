import { hasHandles, isItemList, itemsOf, partOf } from '../../workflows/input.ts'
import type { Bindings } from '../expressions/bindings.ts'
import { findPairedItem } from '../run/items/pairing.ts'

/** A message that says why a value cannot be had. */
export type Unavailable = { unavailable: string }

/** The id of a node by the name that an expression has for it, which may be the id itself. */
export function findId(name: string, { names = {} }: Bindings): string {
  return Object.hasOwn(names, name) ? names[name]! : name
}

/**
 * The items of a node's output; `name` is its name or its id. If the node left by several handles, they are those of
 * the handle that leads here.
 */
export function findItems(name: string, bindings: Bindings): unknown[] | Unavailable {
  const id = findId(name, bindings)
  if (!Object.hasOwn(bindings.nodes, id)) return { unavailable: `Node '${name}' hasn't been executed` }
  const output = bindings.nodes[id]
  if (!hasHandles(output)) return itemsOf(output)
  for (const edges of Object.values(bindings.trail?.taken ?? {}))
    for (const edge of edges)
      if (edge.source === id && edge.part !== undefined) return itemsOf(partOf(output, edge.part))
  if (isItemList(output)) return output.items
  return { unavailable: `Node '${name}' has several outputs: write $('${name}').item` }
}

/** The node's item that the item at `index` came from, or the reason why it cannot be told. */
export function findPair(name: string, index: number, bindings: Bindings): { item: unknown } | Unavailable {
  const id = findId(name, bindings)
  if (!Object.hasOwn(bindings.nodes, id)) return { unavailable: `Node '${name}' hasn't been executed` }
  if (bindings.trail) {
    const found = findPairedItem(bindings.trail, bindings.nodes, index, id)
    return 'lost' in found ? { unavailable: found.lost } : { item: found.item }
  }
  const items = findItems(name, bindings)
  if (!Array.isArray(items)) return items
  if (items.length === 1) return { item: items[0] }
  const unavailable = `it is not known which item of node '${name}' belongs to this one`
  return index < items.length && findCurrent(bindings).items.length === items.length
    ? { item: items[index] }
    : { unavailable }
}

/** The item that an expression is about: the one of this evaluation, or else the first that comes in. */
export function findCurrent(bindings: Bindings): { item: unknown; index: number; items: unknown[] } {
  const { items, item, index = 0, input } = bindings
  if (items) return { items, item, index }
  const all = itemsOf(input)
  return { items: all, item: all[0], index: 0 }
}
