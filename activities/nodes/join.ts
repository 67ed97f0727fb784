import { isObject, mergeObjects } from '../../workflows/inputs.ts'
import { createPause } from '../pace.ts'
import { invalidConfig } from './failure.ts'
import { createScale, readFields, readItems, writeKey } from './items.ts'
import type { NodeContext, NodeRunner } from './node.ts'

type On = string | { left: string; right: string }
type Side = { items: Record<string, unknown>[]; keys: (string | undefined)[] }

/**
 * JOIN: outputs {items}, one for each pair of objects with equal keys, both merged; in the order of the left list.
 * `left`, `right` and `outer` also keep what has no partner there. Nothing equals nothing, as in SQL.
 */
export const runJoin: NodeRunner = async (context) => {
  const { left, right } = await readSides(context)
  const { mode, prefer } = context.config
  const partners = await indexSide(right)
  const met = new Set<number>()
  const scale = createScale()
  const pause = createPause()
  const items: Record<string, unknown>[] = []
  for (const [at, item] of left.items.entries()) {
    await pause()
    const key = left.keys[at]
    const found = (key !== undefined && partners.get(key)) || []
    if (found.length === 0 && (mode === 'left' || mode === 'outer')) items.push(item)
    for (const place of found) {
      await pause()
      met.add(place)
      const other = right.items[place]!
      scale(item, other)
      items.push(mergeObjects(prefer === 'left' ? [other, item] : [item, other]))
    }
  }
  if (mode === 'right' || mode === 'outer') items.push(...right.items.filter((_, at) => !met.has(at)))
  return { output: { items } }
}

/**
 * COMPARE_DATASETS: outputs {onlyLeft, onlyRight, same, different}; `different` holds {left, right, fields}, the names
 * of the fields that differ. Of several with one key the first is paired with the first, and so on.
 */
export const runCompareDatasets: NodeRunner = async (context) => {
  const { left, right } = await readSides(context)
  const partners = await indexSide(right)
  const pause = createPause()
  const met = new Set<number>()
  const output = {
    onlyLeft: [] as unknown[],
    onlyRight: [] as unknown[],
    same: [] as unknown[],
    different: [] as unknown[],
  }
  const used = new Map<string, number>()
  for (const [at, item] of left.items.entries()) {
    await pause()
    const key = left.keys[at]
    const turn = key === undefined ? 0 : (used.get(key) ?? 0)
    const place = key === undefined ? undefined : partners.get(key)?.[turn]
    if (key === undefined || place === undefined) {
      output.onlyLeft.push(item)
      continue
    }
    used.set(key, turn + 1)
    met.add(place)
    const other = right.items[place]!
    const fields = [...new Set([...Object.keys(item), ...Object.keys(other)])].filter(
      (name) => !isSame(item, other, name),
    )
    if (fields.length === 0) output.same.push(item)
    else output.different.push({ left: item, right: other, fields })
  }
  output.onlyRight = right.items.filter((_, at) => !met.has(at))
  return { output }
}

function isSame(a: Record<string, unknown>, b: Record<string, unknown>, name: string): boolean {
  if (!Object.hasOwn(a, name) || !Object.hasOwn(b, name)) return false
  return a[name] === b[name] || writeKey(a[name]) === writeKey(b[name])
}

async function readSides(context: NodeContext): Promise<{ left: Side; right: Side }> {
  const on = [context.config.on as On | On[]].flat()
  const read = async (side: 'left' | 'right'): Promise<Side> => {
    const items = await readItems(context, side)
    if (!items.every(isObject)) throw invalidConfig(side, 'must hold objects only')
    const fields = on.map((one) => (typeof one === 'string' ? one : one[side]))
    const values = await readFields(context, items, fields)
    const pause = createPause()
    const keys: (string | undefined)[] = []
    for (const parts of values) {
      await pause()
      keys.push(parts.some((part) => part === null || part === undefined) ? undefined : writeKey(parts))
    }
    return { items, keys }
  }
  return { left: await read('left'), right: await read('right') }
}

async function indexSide({ keys }: Side): Promise<Map<string, number[]>> {
  const index = new Map<string, number[]>()
  const pause = createPause()
  for (const [at, key] of keys.entries()) {
    await pause()
    if (key === undefined) continue
    const places = index.get(key)
    if (places) places.push(at)
    else index.set(key, [at])
  }
  return index
}
