import { FILES_KEY, joinFiles, withFiles, withoutFiles } from '../../../workflows/itemfiles.ts'
import { isObject, mergeObjects, setOwn } from '../../../workflows/json.ts'
import type { Clash } from '../../../workflows/nodes/merge.ts'
import { copyValue } from '../kit/paths.ts'

type Item = Record<string, unknown>

/**
 * Merges objects into a new one; for a field that several have, the last one wins, as `clash` says. It has the files of
 * all of them.
 */
export function mixObjects(objects: unknown[], clash: Clash): Item {
  const given = objects.filter(isObject)
  const mixed = mixFields(given.map(withoutFiles), clash)
  const files = joinFiles(given)
  return files ? withFiles(mixed, files) : mixed
}

function mixFields(given: Item[], { deep = true, keepIfEmpty = false }: Clash): Item {
  if (!deep && !keepIfEmpty) return mergeObjects(given)
  const mixed: Item = {}
  for (const [i, object] of given.entries()) mixInto(mixed, copyValue(object), deep, keepIfEmpty && i > 0)
  return mixed
}

function mixInto(target: Item, source: Item, deep: boolean, keepIfEmpty: boolean): void {
  for (const [key, value] of Object.entries(source)) {
    const there = Object.hasOwn(target, key) ? target[key] : undefined
    if (keepIfEmpty && there !== undefined && (value === null || value === '')) continue
    if (deep && isObject(there) && isObject(value)) mixInto(there, value, deep, keepIfEmpty)
    else if (deep && Array.isArray(there) && Array.isArray(value)) mixLists(there, value, keepIfEmpty)
    else setOwn(target, key, value)
  }
}

/** Lists are merged entry by entry. */
function mixLists(target: unknown[], source: unknown[], keepIfEmpty: boolean): void {
  for (const [i, value] of source.entries()) {
    const there = target[i]
    if (isObject(there) && isObject(value)) mixInto(there, value, true, keepIfEmpty)
    else if (Array.isArray(there) && Array.isArray(value)) mixLists(there, value, keepIfEmpty)
    else target[i] = value
  }
}

/** The item with a suffix at the names of all its fields, and the files that it has. */
export function addSuffix(item: unknown, suffix: string): Item {
  const renamed: Item = {}
  for (const [key, value] of Object.entries(Object(item)))
    setOwn(renamed, key === FILES_KEY ? key : `${key}_${suffix}`, value)
  return renamed
}
