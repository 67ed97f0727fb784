import { mergeInputs } from '../../workflows/input.ts'
import { isObject, setOwn } from '../../workflows/json.ts'
import { MERGE_MODES, type MergeConfig } from '../../workflows/nodes/merge.ts'
import { createPacer } from '../expressions/pace.ts'
import { invalidConfig, NodeFailure } from './kit/failure.ts'
import { createOutputBound } from './kit/items.ts'
import type { NodeRunner } from './kit/node.ts'
import { getField } from './kit/paths.ts'
import { chooseComparison } from './lists/fuzzy.ts'
import { readLists } from './lists/inputs.ts'
import { findMatches, type Matches, type Placed } from './lists/matches.ts'
import { mergeByKey } from './lists/mergekey.ts'
import { addSuffix, mixObjects } from './lists/mix.ts'

/**
 * MERGE: `combine` outputs all inputs merged into one object, or an array of them if any is not an object; a
 * single input is passed on. `append` outputs one array of all inputs in edge order; inputs that are arrays
 * are flattened by one level. The other modes merge lists of items, and output {items, from}.
 */
export const runMerge: NodeRunner = async (context) => {
  const { config, inputs } = context
  const mode = config.mode ?? 'combine'
  if (mode === 'append' && config.inputs === undefined) return { output: inputs.flat() }
  if (mode === 'combine') return { output: mergeInputs(inputs) }
  const merged = await mergeLists(config as MergeConfig, await readLists(context))
  return { output: { items: merged.map(({ item }) => item), from: merged.map(({ from }) => from) } }
}

async function mergeLists(config: MergeConfig, lists: Placed[][]): Promise<Placed[]> {
  const [left = [], right = []] = lists
  switch (config.mode) {
    case 'items':
    case 'append':
      return lists.flat()
    case 'choose': {
      const { choose = 1, demandInputs } = config
      if (demandInputs && lists.some((list) => list.length === 0)) return []
      if (choose === 'empty') return [{ item: {}, from: lists.flat().flatMap(({ from }) => from) }]
      if (choose > lists.length)
        throw new NodeFailure(`Input ${choose} doesn't exist`, { type: 'InvalidInput' })
      return lists[choose - 1]!
    }
    case 'all':
      return multiply(config, left, right)
    case 'byPosition':
      return mergeByPosition(config, lists)
    case 'byKey':
      return mergeByKey(config, left, right)
    case 'byFields':
      return mergeByFields(config, left, right)
  }
  throw invalidConfig('mode', `must be one of ${MERGE_MODES.join(', ')}`)
}

async function multiply({ clash = {} }: MergeConfig, left: Placed[], right: Placed[]): Promise<Placed[]> {
  const [a, b] = clash.prefer === 1 ? [right, left] : [left, right]
  const pace = createPacer()
  const bound = createOutputBound()
  const merged: Placed[] = []
  for (const one of suffixed(a, clash, 1)) {
    for (const other of suffixed(b, clash, 2)) {
      await pace()
      bound(one.item, other.item)
      merged.push({ item: mixObjects([one.item, other.item], clash), from: [...one.from, ...other.from] })
    }
  }
  return merged
}

function suffixed(list: Placed[], { prefer }: { prefer?: unknown }, number: number): Placed[] {
  if (prefer !== 'suffix') return list
  return list.map(({ item, from }) => ({ item: addSuffix(item, String(number)), from }))
}

function mergeByPosition(
  { clash = {}, includeUnpaired, join, passSingle }: MergeConfig,
  given: Placed[][],
): Placed[] {
  if (join) return mergeByIndex(join, given)
  if (passSingle && given.some((list) => list.length === 0)) return given.flat()
  const lists = given.map((list, i) => suffixed(list, clash, i + 1))
  const sizes = lists.map((list) => list.length)
  const size = lists.length === 0 ? 0 : includeUnpaired ? Math.max(...sizes) : Math.min(...sizes)
  const last = typeof clash.prefer === 'number' ? clash.prefer - 1 : lists.length - 1
  return Array.from({ length: size }, (_, i) => {
    const row = [...lists, ...(clash.prefer === 'suffix' ? [] : [lists[last] ?? []])].flatMap(
      (list) => list[i] ?? [],
    )
    const from = [...new Set(row.flatMap((one) => one.from))]
    return { item: mixObjects([{}, ...row.map(({ item }) => item)], clash), from }
  })
}

/** Pairs of two lists by their places; `join` says what becomes of those without a partner. */
function mergeByIndex(join: string, [left = [], right = []]: Placed[][]): Placed[] {
  if (left.length === 0) return join === 'inner' || join === 'left' ? [] : right
  if (right.length === 0) return join === 'inner' ? [] : left
  const size =
    join === 'inner'
      ? Math.min(left.length, right.length)
      : join === 'outer'
        ? Math.max(left.length, right.length)
        : left.length
  return Array.from({ length: size }, (_, i) => {
    const [a, b] = [left[i], right[i]]
    if (!a || !b) return (a ?? b)!
    return { item: mixObjects([a.item, b.item], { deep: false }), from: [...a.from, ...b.from] }
  })
}

async function mergeByFields(config: MergeConfig, left: Placed[], right: Placed[]): Promise<Placed[]> {
  const { on = [], join = 'keepMatches', output = 'both', clash = {}, fuzzy = false, first = false } = config
  const naming = { dots: config.dots !== false }
  if (config.demandFields) {
    demandField(
      left,
      on.map((pair) => pair.left),
      'Input 1',
      naming,
    )
    demandField(
      right,
      on.map((pair) => pair.right),
      'Input 2',
      naming,
    )
  }
  if (left.length === 0 || right.length === 0) {
    if (join === 'keepMatches') return []
    if (join === 'keepNonMatches' && output === 'input1' && left.length === 0) return []
    if (join === 'keepNonMatches' && output === 'input2' && right.length === 0) return []
    if (join === 'enrichInput1' && left.length === 0) return []
    if (join === 'enrichInput2' && right.length === 0) return []
    return [...left, ...right]
  }
  const lists = { left: left.map(({ item }) => item), right: right.map(({ item }) => item) }
  const matches = await findMatches(lists, on, { compare: chooseComparison(fuzzy), first, naming })
  const pick = (list: Placed[], places: number[]) => places.map((at) => list[at]!)
  const onlyLeft = pick(left, matches.onlyLeft)
  const onlyRight = pick(right, matches.onlyRight)
  const pairs = () => mixPairs(matches, left, right, clash, join === 'enrichInput2')
  switch (join) {
    case 'keepNonMatches':
      if (output === 'input1') return onlyLeft
      if (output === 'input2') return onlyRight
      return [
        ...onlyLeft.map((one) => nameSource(one, 'input1')),
        ...onlyRight.map((one) => nameSource(one, 'input2')),
      ]
    case 'enrichInput1':
      return [...pairs(), ...suffixed(onlyLeft, clash, 1)]
    case 'enrichInput2':
      return [...pairs(), ...suffixed(onlyRight, clash, 2)]
  }
  const matched =
    output === 'both'
      ? pairs()
      : output === 'input1'
        ? matches.pairs.map((pair) => left[pair.left]!)
        : pick(right, matches.matchedRight)
  if (join !== 'keepEverything') return matched
  return [...matched, ...suffixed(onlyLeft, clash, 1), ...suffixed(onlyRight, clash, 2)]
}

function nameSource({ item, from }: Placed, source: string): Placed {
  const named = isObject(item) ? { ...item } : {}
  setOwn(named, '_source', source)
  return { item: named, from }
}

/** One item for each pair: the fields of both. */
function mixPairs(
  { pairs }: Matches,
  left: Placed[],
  right: Placed[],
  clash: NonNullable<MergeConfig['clash']>,
  prefersLeft: boolean,
): Placed[] {
  const leftWins = clash.prefer === undefined ? prefersLeft : clash.prefer === 1
  return pairs.flatMap((pair) =>
    pair.rights.map((at) => {
      const [a, b] = [left[pair.left]!, right[at]!]
      const from = [...a.from, ...b.from]
      if (clash.prefer === 'suffix')
        return { item: mixObjects([addSuffix(a.item, '1'), addSuffix(b.item, '2')], clash), from }
      return { item: mixObjects(leftWins ? [b.item, a.item] : [a.item, b.item], clash), from }
    }),
  )
}

function demandField(list: Placed[], fields: string[], input: string, naming: { dots: boolean }): void {
  for (const field of fields) {
    if (list.some(({ item }) => getField(item, field, naming) !== undefined)) continue
    throw new NodeFailure(`Field '${field}' is not present in any of items in '${input}'`, {
      type: 'InvalidInput',
    })
  }
}
