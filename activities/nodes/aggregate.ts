import { setOwn } from '../../workflows/json.ts'
import type { Collection, Summary } from '../../workflows/nodes/aggregation.ts'
import {
  type AggregateGroup,
  type AggregateMeasure,
  nameGroup,
  nameMeasure,
} from '../../workflows/nodes/groups.ts'
import { createPacer } from '../expressions/pace.ts'
import { NodeFailure } from './kit/failure.ts'
import { compareValues, createOutputBound, readField, readFields, readItems, writeKey } from './kit/items.ts'
import type { NodeRunner } from './kit/node.ts'
import { collectItems } from './lists/collect.ts'
import { summarizeItems } from './lists/summarize.ts'

/**
 * AGGREGATE: outputs {items}, one for each group in the order of their first items, with the group's values
 * and its measures; without groupBy there is one group of all items. Measures skip null and missing values,
 * as in SQL. Strings that read as numbers are numbers; a sum or average of other values fails with
 * InvalidInput. `collect` and `summarize` are other ways to do it, see lists/.
 */
export const runAggregate: NodeRunner = async (context) => {
  const items = await readItems(context)
  const { collect, summarize } = context.config
  if (collect !== undefined) {
    return { output: { items: [collectItems(items, collect as Collection)], from: [[...items.keys()]] } }
  }
  if (summarize !== undefined) return { output: summarizeItems(items, summarize as Summary) }
  const groupBy = [(context.config.groupBy as AggregateGroup | AggregateGroup[] | undefined) ?? []].flat()
  const measures = (context.config.fields as AggregateMeasure[] | undefined) ?? [
    { operation: 'count', separator: '' },
  ]
  const keys = groupBy.map((group) => (typeof group === 'string' ? group : group.key))
  const pace = createPacer()
  const groups = new Map<string, { values: unknown[]; members: number[] }>()
  if (keys.length === 0) groups.set('[]', { values: [], members: [] })
  for (const [at, values] of (await readFields(context, items, keys)).entries()) {
    await pace()
    const key = await writeKey(values, pace)
    const group = groups.get(key)
    if (group) group.members.push(at)
    else groups.set(key, { values, members: [at] })
  }
  const columns: unknown[][] = []
  for (const { field } of measures) {
    columns.push(field === undefined ? items : await readField(context, items, field))
  }
  const bound = createOutputBound()
  const output: Record<string, unknown>[] = []
  for (const { values, members } of groups.values()) {
    const row: Record<string, unknown> = {}
    for (const [i, group] of groupBy.entries()) setOwn(row, nameGroup(group), values[i])
    for (const [i, measure] of measures.entries()) {
      await pace()
      const name = nameMeasure(measure)
      const found = members.map((at) => columns[i]![at])
      const known =
        measure.operation === 'count' && measure.field === undefined ? found : found.filter(isKnown)
      setOwn(row, name, await MEASURES[measure.operation](known, measure, name))
    }
    bound(row)
    output.push(row)
  }
  const from = [...groups.values()].map(({ members }) => members)
  return { output: { items: output }, places: { of: items, from } }
}

const MEASURES: Record<
  AggregateMeasure['operation'],
  (values: unknown[], measure: AggregateMeasure, name: string) => unknown
> = {
  count: (values) => values.length,
  countUnique,
  sum: (values, _, name) => sum(values, name),
  avg: (values, _, name) => (values.length === 0 ? null : sum(values, name) / values.length),
  min: (values) => extreme(values, -1),
  max: (values) => extreme(values, 1),
  collect: (values) => values,
  first: (values) => values[0] ?? null,
  last: (values) => values.at(-1) ?? null,
  join: (values, { separator }) =>
    values
      .map((value) => (typeof value === 'string' ? value : JSON.stringify(value)))
      .join(separator ?? ', '),
}

async function countUnique(values: unknown[]): Promise<number> {
  const pace = createPacer()
  const keys = new Set<string>()
  for (const value of values) {
    await pace()
    keys.add(await writeKey(value, pace))
  }
  return keys.size
}

function isKnown(value: unknown): boolean {
  return value !== null && value !== undefined
}

function sum(values: unknown[], name: string): number {
  let total = 0
  for (const value of values) {
    const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
    if (typeof number !== 'number' || !Number.isFinite(number)) {
      const message = `${name} needs finite numbers, but an item has a ${typeof value} that is not one`
      throw new NodeFailure(message, { type: 'InvalidInput' })
    }
    total += number
  }
  // JSON has no infinity: the sum would become null.
  if (!Number.isFinite(total))
    throw new NodeFailure(`${name} is too large for a number`, { type: 'InvalidInput' })
  return total
}

function extreme(values: unknown[], sign: 1 | -1): unknown {
  let best = values[0]
  for (const value of values) if (compareValues(value, best) * sign > 0) best = value
  return best ?? null
}
