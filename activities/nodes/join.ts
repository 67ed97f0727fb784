import { isObject, mergeObjects } from '../../workflows/json.ts'
import type { DatasetRules } from '../../workflows/nodes/datasets.ts'
import { createPacer } from '../expressions/pace.ts'
import { invalidConfig } from './kit/failure.ts'
import { createOutputBound, readFields, readItems, writeKey } from './kit/items.ts'
import type { NodeContext, NodeResult, NodeRunner } from './kit/node.ts'
import { compareLists } from './lists/compare.ts'
import { readLists } from './lists/inputs.ts'
import type { KeyPair } from './lists/matches.ts'

type On = string | { left: string; right: string }
type Side = { items: Record<string, unknown>[]; keys: (string | undefined)[] }

/**
 * JOIN: outputs {items}, one merged object for each pair of objects with equal keys, in the order of the left
 * list. The modes `left`, `right` and `outer` also keep the objects of that side, or of both, that have no
 * partner. A null or missing key matches no other, as in SQL.
 */
export const runJoin: NodeRunner = async (context) => {
  const { left, right } = await readSides(context)
  const { mode, prefer } = context.config
  const partners = await indexSide(right)
  const met = new Set<number>()
  const bound = createOutputBound()
  const pace = createPacer()
  const items: Record<string, unknown>[] = []
  for (const [at, item] of left.items.entries()) {
    await pace()
    const key = left.keys[at]
    const found = (key !== undefined && partners.get(key)) || []
    if (found.length === 0 && (mode === 'left' || mode === 'outer')) items.push(item)
    for (const place of found) {
      await pace()
      met.add(place)
      const other = right.items[place]!
      bound(item, other)
      items.push(mergeObjects(prefer === 'left' ? [other, item] : [item, other]))
    }
  }
  if (mode === 'right' || mode === 'outer') {
    for (const [at, item] of right.items.entries()) if (!met.has(at)) items.push(item)
  }
  return { output: { items } }
}

/**
 * COMPARE_DATASETS: outputs {onlyLeft, onlyRight, same, different}; `different` holds {left, right, fields},
 * where `fields` names the fields that differ. If a key occurs several times, the first left object is paired
 * with the first right one, the second with the second, and so on. With `inputs` it compares lists of items, and
 * leaves by the handles onlyLeft, same, different and onlyRight, each with its items.
 */
export const runCompareDatasets: NodeRunner = async (context) => {
  if (context.config.inputs !== undefined) return compareInputs(context)
  const { left, right } = await readSides(context)
  const partners = await indexSide(right)
  const pace = createPacer()
  const met = new Set<number>()
  const output = {
    onlyLeft: [] as unknown[],
    onlyRight: [] as unknown[],
    same: [] as unknown[],
    different: [] as unknown[],
  }
  const used = new Map<string, number>()
  for (const [at, item] of left.items.entries()) {
    await pace()
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
    const fields: string[] = []
    for (const name of new Set([...Object.keys(item), ...Object.keys(other)])) {
      await pace()
      if (!(await isSame(item, other, name, pace))) fields.push(name)
    }
    if (fields.length === 0) output.same.push(item)
    else output.different.push({ left: item, right: other, fields })
  }
  output.onlyRight = right.items.filter((_, at) => !met.has(at))
  return { output }
}

async function isSame(
  a: Record<string, unknown>,
  b: Record<string, unknown>,
  name: string,
  pace: ReturnType<typeof createPacer>,
): Promise<boolean> {
  if (!Object.hasOwn(a, name) || !Object.hasOwn(b, name)) return false
  return a[name] === b[name] || (await writeKey(a[name], pace)) === (await writeKey(b[name], pace))
}

async function readSides(context: NodeContext): Promise<{ left: Side; right: Side }> {
  const on = [context.config.on as On | On[]].flat()
  const read = async (side: 'left' | 'right'): Promise<Side> => {
    const items = await readItems(context, side)
    if (!items.every(isObject)) throw invalidConfig(side, 'must contain only objects')
    const fields = on.map((one) => (typeof one === 'string' ? one : one[side]))
    const values = await readFields(context, items, fields)
    const pace = createPacer()
    const keys: (string | undefined)[] = []
    for (const parts of values) {
      await pace()
      keys.push(
        parts.some((part) => part === null || part === undefined) ? undefined : await writeKey(parts, pace),
      )
    }
    return { items, keys }
  }
  return { left: await read('left'), right: await read('right') }
}

async function indexSide({ keys }: Side): Promise<Map<string, number[]>> {
  const index = new Map<string, number[]>()
  const pace = createPacer()
  for (const [at, key] of keys.entries()) {
    await pace()
    if (key === undefined) continue
    const places = index.get(key)
    if (places) places.push(at)
    else index.set(key, [at])
  }
  return index
}

async function compareInputs(context: NodeContext): Promise<NodeResult> {
  const [left = [], right = []] = await readLists(context)
  const { on, rules = {} } = context.config
  const compared = await compareLists({ left, right }, on as KeyPair[], rules as DatasetRules)
  const branches = Object.entries(compared).map(([handle, list]) => {
    return [handle, { items: list.map(({ item }) => item), from: list.map(({ from }) => from) }] as const
  })
  return { branches: Object.fromEntries(branches) }
}
