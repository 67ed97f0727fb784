import { compareValues, readFields, readItems, sortItems } from './kit/items.ts'
import type { NodeRunner } from './kit/node.ts'
import { orderLoosely } from './lists/order.ts'

type Order = 'asc' | 'desc'
type By = string | { key: string; order?: Order }

/**
 * SORT: outputs {items} ordered by the first key, then by the next ones; equal items keep their order. Compared
 * loosely, the case of texts makes no difference, and a key that no item has is an error.
 */
export const runSort: NodeRunner = async (context) => {
  const items = await readItems(context)
  const order = (context.config.order as Order | undefined) ?? 'asc'
  const by = [(context.config.by as By | By[] | undefined) ?? []].flat()
  const keys = by.map((one) => (typeof one === 'string' ? { key: one, order } : { order, ...one }))
  if (context.config.compare === 'loose') {
    const from = await orderLoosely(items, keys, { dots: context.config.dots !== false })
    return { output: { items: from.map((at) => items[at]), from } }
  }
  const orders = keys.length === 0 ? [order] : keys.map((one) => one.order)
  const values =
    keys.length === 0
      ? items.map((item) => [item])
      : await readFields(
          context,
          items,
          keys.map(({ key }) => key),
        )
  const places = await sortItems([...items.keys()], (a, b) => {
    for (const [i, direction] of orders.entries()) {
      const compared = compareValues(values[a]![i], values[b]![i], direction)
      if (compared !== 0) return compared
    }
    return 0
  })
  return { output: { items: places.map((at) => items[at]) }, places: { of: items, from: places } }
}
