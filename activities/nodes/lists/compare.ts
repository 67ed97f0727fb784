import { withoutFiles } from '../../../workflows/itemfiles.ts'
import { isObject, setOwn } from '../../../workflows/json.ts'
import type { DatasetRules } from '../../../workflows/nodes/datasets.ts'
import { NodeFailure } from '../kit/failure.ts'
import { areEqual, copyValue, getField, setField, unsetField } from '../kit/paths.ts'
import { type Comparison, chooseComparison } from './fuzzy.ts'
import { findMatches, type KeyPair, type Placed } from './matches.ts'

type Item = Record<string, unknown>
type Compared = Record<'onlyLeft' | 'same' | 'different' | 'onlyRight', Placed[]>

/** Compares two lists item by item: what only one has, what is the same in both, and what differs. */
export async function compareLists(
  lists: { left: Placed[]; right: Placed[] },
  on: KeyPair[],
  rules: DatasetRules,
): Promise<Compared> {
  const { fuzzy = false, dots = true, multiple = 'first', dialect = 2.3 } = rules
  const compare = chooseComparison(fuzzy, dialect >= 2)
  const hasFields = ({ item }: Placed) => Object.keys(Object(withoutFiles(item))).length > 0
  const left = lists.left.filter(hasFields)
  const right = lists.right.filter(hasFields)
  if (dialect < 2.2) {
    demandFields(
      left,
      on.map((pair) => pair.left),
      'Input A',
      dots,
    )
    demandFields(
      right,
      on.map((pair) => pair.right),
      'Input B',
      dots,
    )
  }
  const items = { left: left.map(({ item }) => item), right: right.map(({ item }) => item) }
  const matches = await findMatches(items, on, { compare, first: multiple === 'first', naming: { dots } })
  const compared: Compared = {
    onlyLeft: matches.onlyLeft.map((at) => left[at]!),
    same: [],
    different: [],
    onlyRight: matches.onlyRight.map((at) => right[at]!),
  }
  for (const pair of matches.pairs) {
    const a = left[pair.left]!
    let same: Placed | undefined
    for (const at of pair.rights) {
      const b = right[at]!
      if (!areSame(a.item, b.item, compare, rules))
        compared.different.push(describe(a, b, on, compare, rules))
      else same ??= fuzzy && rules.resolve === 'right' ? b : a
    }
    if (same) compared.same.push(same)
  }
  return compared
}

function demandFields(list: Placed[], fields: string[], input: string, dots: boolean): void {
  if (list.length === 0) return
  const missing = fields.find((field) =>
    list.every(({ item }) => getField(item, field, { dots }) === undefined),
  )
  if (missing === undefined) return
  throw new NodeFailure(`Field '${missing}' is not present in any of items in '${input}'`, {
    type: 'InvalidInput',
  })
}

function areSame(a: unknown, b: unknown, compare: Comparison, rules: DatasetRules): boolean {
  const [left, right] = [leaveOut(a, rules), leaveOut(b, rules)]
  if (!rules.fuzzy) return areEqual(left, right)
  return Object.keys(left).every((key) => compare(left[key], right[key]))
}

function leaveOut(item: unknown, { skip = [], dots = true }: DatasetRules): Item {
  const copy = isObject(item) ? copyValue(withoutFiles(item)) : {}
  for (const name of skip) {
    if (Object.hasOwn(copy, name)) delete copy[name]
    else unsetField(copy, name, { dots })
  }
  return copy
}

/** The entry that takes the place of two items that differ: one of them, a mixture, or a list of their differences. */
function describe(a: Placed, b: Placed, on: KeyPair[], compare: Comparison, rules: DatasetRules): Placed {
  const from = [...a.from, ...b.from]
  if (rules.resolve === 'left') return a
  if (rules.resolve === 'right') return b
  if (rules.resolve === 'mix') {
    const [entry, match] = rules.prefer === 'left' ? [a, b] : [b, a]
    const item = copyValue(entry.item) as Item
    for (const name of rules.except ?? [])
      setField(item, name, copyValue(getField(match.item, name) ?? null), { dots: rules.dots !== false })
    return { item, from }
  }
  return { item: listDifferences(a.item as Item, b.item as Item, on, compare, rules), from }
}

function listDifferences(a: Item, b: Item, on: KeyPair[], compare: Comparison, rules: DatasetRules): Item {
  const { skip = [], dialect = 2.3, fuzzy } = rules
  const all = new Set([...Object.keys(withoutFiles(a)), ...Object.keys(withoutFiles(b))])
  const names = [...all]
  const [first, second] = dialect >= 2 ? ['inputA', 'inputB'] : ['input1', 'input2']
  const keys: Item = {}
  for (const { left } of on) setOwn(keys, left, a[left])
  const [same, different, skipped]: [Item, Item, Item] = [{}, {}, {}]
  const empty = (value: unknown) => (dialect >= 2 ? (value ?? null) : value || null)
  for (const name of names) {
    const isInBoth = Object.hasOwn(a, name) && Object.hasOwn(b, name)
    if ((isInBoth || (fuzzy && dialect >= 2.1)) && compare(a[name], b[name])) {
      if (a[name] !== undefined) setOwn(same, name, a[name])
      continue
    }
    const [left, right] = [copyValue(empty(a[name])), copyValue(empty(b[name]))]
    const inner = skip.filter((one) => one.startsWith(name) && one.includes('.'))
    if (skip.includes(name)) setOwn(skipped, name, { [first!]: left, [second!]: right })
    else {
      if (rules.dots !== false && inner.length > 0)
        setOwn(skipped, name, takeOut(left, right, name, inner, [first!, second!]))
      setOwn(different, name, { [first!]: left, [second!]: right })
    }
  }
  return { keys, same, different, ...(Object.keys(skipped).length > 0 ? { skipped } : {}) }
}

/** Moves fields that are not compared out of both values. */
function takeOut(
  left: unknown,
  right: unknown,
  name: string,
  inner: string[],
  [first, second]: [string, string],
): Item {
  const taken: Record<string, Item> = { [first]: {}, [second]: {} }
  if (!isObject(left) || !isObject(right))
    throw new NodeFailure(`The field '${name}' is not an object. It is not possible to use dot notation.`, {
      type: 'InvalidInput',
    })
  for (const one of inner) {
    const nested = one.replace(`${name}.`, '')
    for (const [key, value] of [
      [first, left],
      [second, right],
    ] as const) {
      setField(taken[key]!, nested, getField(value, nested))
      unsetField(value, nested)
    }
  }
  return taken
}
