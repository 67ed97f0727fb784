import { withoutFiles } from '../../../workflows/itemfiles.ts'
import { isObject, setOwn } from '../../../workflows/json.ts'
import { createPacer } from '../../expressions/pace.ts'
import { NodeFailure } from '../kit/failure.ts'
import { writeKey } from '../kit/items.ts'
import { getField, type Naming } from '../kit/paths.ts'

/** What items are compared by: all fields at every depth, all but some, or those that are named. */
export type UniqueRules = {
  by?: string[] | undefined
  except?: string[]
  only?: boolean
  types?: 'checked' | 'nulls'
}

/**
 * The places of the items without those that are the same as one before. Throws a NodeFailure (InvalidInput)
 * if a compared field is missing in an item, or has another type than in the item before.
 */
export async function findUnique(
  given: unknown[],
  { by, except, types }: UniqueRules,
  naming: Naming,
): Promise<{ places: number[]; keys: string[] }> {
  const items = given.map(withoutFiles)
  const all = [...new Set(items.flatMap((item) => listKeys(item, naming)))]
  const first = naming.dots ? listKeys(items[0], naming) : all
  const keys = by ?? (except ? first.filter((key) => !except.includes(key)) : all)
  for (const key of keys) demandOneType(items, key, naming, types === 'nulls')
  const pace = createPacer()
  const seen = new Set<string>()
  const places: number[] = []
  for (const [at, item] of items.entries()) {
    await pace()
    const text = await writeKey(
      keys.map((key) => getField(item, key, naming) ?? null),
      pace,
    )
    if (seen.has(text)) continue
    seen.add(text)
    places.push(at)
  }
  return { places, keys }
}

/** An item with only those of its fields that are compared. */
export function pickKeys(item: unknown, keys: string[]): Record<string, unknown> {
  const picked: Record<string, unknown> = {}
  for (const key of keys) {
    const value = getField(item, key)
    if (value !== undefined) setOwn(picked, key, value)
  }
  return picked
}

function listKeys(item: unknown, { dots }: Naming): string[] {
  return dots ? flattenKeys(item, '') : Object.keys(Object(item))
}

function flattenKeys(value: unknown, path: string): string[] {
  if (typeof value !== 'object' || value === null) return [path]
  return Object.entries(value).flatMap(([key, inner]) =>
    isObject(inner) || Array.isArray(inner)
      ? flattenKeys(inner, path === '' ? key : `${path}.${key}`)
      : [path === '' ? key : `${path}.${key}`],
  )
}

function demandOneType(items: unknown[], key: string, naming: Naming, skipsNull: boolean): void {
  let type: string | undefined
  for (const item of items) {
    const value = getField(item, key, naming)
    if (value === null && skipsNull) continue
    const message =
      value === undefined
        ? `'${key}' field is missing from some input items`
        : type !== undefined && type !== typeof value
          ? `'${key}' isn't always the same type`
          : undefined
    if (message) throw new NodeFailure(message, { type: 'InvalidInput' })
    type = typeof value
  }
}
