import { setOwn } from '../../../workflows/json.ts'
import type { Summary } from '../../../workflows/nodes/aggregation.ts'
import { NodeFailure } from '../kit/failure.ts'
import { getField } from '../kit/paths.ts'

type Measure = Summary['fields'][number]
type Group =
  | { result: Record<string, unknown>; from: number[] }
  | { field: string; groups: Map<unknown, Group> }

/** One item for each group, with what its items' fields come to; and the indexes of its items. */
export function summarizeItems(
  items: unknown[],
  summary: Summary,
): { items: Record<string, unknown>[]; from: number[][] } {
  const { fields, by = [], missing = 'ignore', dots = true, single } = summary
  if (fields.filter(({ field }) => field !== '').length === 0) {
    const message = "You need to add at least one aggregation to 'Fields to Summarize' with non empty 'Field'"
    throw new NodeFailure(message, { type: 'InvalidInput' })
  }
  const read = (at: number, field: string) => getField(items[at], field, { dots })
  const all = [...items.keys()]
  const grouped = groupItems(all, by, summary, read)
  const lost = fields.find(({ field }) => field !== '' && all.every((at) => read(at, field) === undefined))
  if (lost && missing === 'error')
    throw new NodeFailure(`The field '${lost.field}' does not exist in any items`, { type: 'InvalidInput' })
  if (single) return { items: [nestGroups(grouped)], from: [all] }
  const flat = listGroups(grouped)
  return { items: flat.map(({ result }) => result), from: flat.map(({ from }) => from) }
}

type Read = (at: number, field: string) => unknown

function groupItems(from: number[], by: string[], summary: Summary, read: Read): Group {
  const [field, ...rest] = by
  if (field === undefined) return { result: measure(from, summary.fields, read), from }
  const groups = new Map<unknown, number[]>()
  for (const at of from) {
    let value = read(at, field)
    if (typeof value === 'object' && value !== null) value = JSON.stringify(value)
    if (summary.textKeys) value = String(value)
    if (summary.skipEmpty && typeof value !== 'number' && !value) continue
    const group = groups.get(value)
    if (group) group.push(at)
    else groups.set(value, [at])
  }
  const inner = [...groups].map(([key, list]) => [key, groupItems(list, rest, summary, read)] as const)
  return { field, groups: new Map(inner) }
}

function measure(from: number[], fields: Measure[], read: Read): Record<string, unknown> {
  const result: Record<string, unknown> = {}
  for (const one of fields) {
    const values = from.map((at) => read(at, one.field))
    setOwn(result, `${PREFIXES[one.operation]}_${tidyName(one.field)}`, computeMeasure(values, one))
  }
  return result
}

const PREFIXES: Record<Measure['operation'], string> = {
  append: 'appended',
  average: 'average',
  concatenate: 'concatenated',
  count: 'count',
  countUnique: 'unique_count',
  max: 'max',
  min: 'min',
  sum: 'sum',
}

function tidyName(name: string): string {
  return name.replace(/[\][" ]/g, (found) => (found === ' ' ? '_' : '')).replaceAll('.', '_')
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || value === ''
}

function computeMeasure(all: unknown[], { operation, includeEmpty, separator = '' }: Measure): unknown {
  const values = includeEmpty ? all : all.filter((value) => !isEmpty(value))
  const numbers = all.filter((value) => typeof value === 'number')
  const sum = numbers.reduce((total, value) => total + value, 0)
  switch (operation) {
    case 'append':
      return values.map((value) => value ?? null)
    case 'concatenate':
      return values
        .map((value) => (typeof value === 'object' ? JSON.stringify(value) : String(value)))
        .join(separator)
    case 'sum':
      return sum
    case 'average':
      return numbers.length === 0 ? null : sum / numbers.length
    case 'min':
    case 'max':
      return findExtreme(all, operation)
    case 'countUnique':
      return new Set(values).size
    case 'count':
      return values.length
  }
}

function findExtreme(all: unknown[], operation: 'min' | 'max'): unknown {
  let found: unknown
  for (const value of all) {
    if (isEmpty(value)) continue
    const [a, b] = [value as number, found as number]
    if (found === undefined || (operation === 'min' ? a < b : a > b)) found = value
  }
  return found ?? null
}

/** All groups in one object, by their keys. */
function nestGroups(group: Group): Record<string, unknown> {
  if ('result' in group) return group.result
  const nested: Record<string, unknown> = {}
  for (const [key, inner] of group.groups) setOwn(nested, String(key), nestGroups(inner))
  return nested
}

function listGroups(group: Group): { result: Record<string, unknown>; from: number[] }[] {
  if ('result' in group) return [group]
  return [...group.groups].flatMap(([key, inner]) =>
    listGroups(inner).map((one) => {
      // A group of items without the field has no key.
      if (key !== undefined) setOwn(one.result, tidyName(group.field), key)
      return one
    }),
  )
}
