import { NodeFailure } from '../kit/failure.ts'
import { sortItems } from '../kit/items.ts'
import { areEqual, getField, isLess, type Naming } from '../kit/paths.ts'

export type LooseKey = { key: string; order: 'asc' | 'desc' }

/**
 * The places of the items in an order that does not look at the case of texts, and compares numbers with texts
 * as JavaScript does. Throws a NodeFailure (InvalidInput) for a key that no item has.
 */
export async function orderLoosely(items: unknown[], keys: LooseKey[], naming: Naming): Promise<number[]> {
  const columns = keys.map(({ key }) => items.map((item) => getField(item, key, naming)))
  for (const [i, column] of columns.entries()) {
    if (column.some((value) => value !== undefined)) continue
    throw new NodeFailure(`Couldn't find the field '${keys[i]!.key}' in the input data`, {
      type: 'InvalidInput',
    })
  }
  const fold = (value: unknown) => (typeof value === 'string' ? value.toLowerCase() : value)
  const folded = columns.map((column) => column.map(fold))
  return sortItems([...items.keys()], (a, b) => {
    for (const [i, { order }] of keys.entries()) {
      const [left, right] = [folded[i]![a], folded[i]![b]]
      if (areEqual(left, right)) continue
      return isLess(left, right) === (order === 'asc') ? -1 : 1
    }
    return 0
  })
}
