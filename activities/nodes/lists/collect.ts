import { filesOf, type ItemFiles, withFiles, withoutFiles } from '../../../workflows/itemfiles.ts'
import { isObject, setOwn } from '../../../workflows/json.ts'
import type { Collection } from '../../../workflows/nodes/aggregation.ts'
import { NodeFailure } from '../kit/failure.ts'
import { getField, setField } from '../kit/paths.ts'
import { listNames } from '../set.ts'

/** One item of all items: a list of them under a name, or lists of their fields. */
export function collectItems(given: unknown[], collection: Collection): Record<string, unknown> {
  const items = given.map(withoutFiles)
  const output =
    'into' in collection && collection.into !== undefined
      ? collectWhole(items, collection)
      : collectFields(items, collection)
  return collection.files ? withFiles(output, gatherFiles(given, collection.files === 'unique')) : output
}

/** The files of all items; those of a name that is taken get a number. Alike are those of one type and size. */
function gatherFiles(items: unknown[], unique: boolean): ItemFiles {
  const gathered: ItemFiles = {}
  const kinds = new Set<string>()
  for (const [key, value] of items.flatMap((item) => Object.entries(filesOf(item) ?? {}))) {
    const { name, mimeType, bytes } = Object(Object(value).file)
    const kind = JSON.stringify([mimeType, bytes, /\.[^.]*$/.exec(String(name))?.[0]])
    if (unique && kinds.has(kind)) continue
    kinds.add(kind)
    let free = key
    for (let number = 1; Object.hasOwn(gathered, free); number++) free = `${key}_${number}`
    setOwn(gathered, free, value)
  }
  return gathered
}

function collectWhole(items: unknown[], { into, include, except }: Collection): Record<string, unknown> {
  const [wanted, unwanted] = [listNames(include), listNames(except)]
  const output: Record<string, unknown> = {}
  if (wanted.length === 0 && unwanted.length === 0) {
    setOwn(output, String(into), items)
    return output
  }
  const picked = items.filter(isObject).map((item) => {
    const keys = Object.keys(item).filter(
      (key) => !unwanted.includes(key) && (wanted.length === 0 || wanted.includes(key)),
    )
    return keys.reduce<Record<string, unknown>>((copy, key) => {
      setOwn(copy, key, item[key])
      return copy
    }, {})
  })
  setOwn(
    output,
    String(into),
    picked.filter((item) => Object.keys(item).length > 0),
  )
  return output
}

function collectFields(
  items: unknown[],
  { fields = [], keepMissing, mergeLists, dots = true }: Collection,
): Record<string, unknown> {
  if (fields.length === 0) throw new NodeFailure('No fields specified', { type: 'InvalidInput' })
  const lists = new Map<string, unknown[]>()
  const names = fields.map(({ field, as }) => as || field)
  const twice = names.find((name, i) => names.indexOf(name) !== i)
  if (twice !== undefined) {
    const message = `The '${twice}' output field is used more than once`
    throw new NodeFailure(message, { type: 'InvalidInput' })
  }
  for (const { field, as } of fields) {
    const short = dots && field.includes('.') ? field.split('.').at(-1)! : field
    const list: unknown[] = []
    for (const item of items) {
      let value = getField(item, field, { dots })
      if (!keepMissing) {
        if (Array.isArray(value)) value = value.filter((entry) => entry !== null)
        else if (value === null || value === undefined) continue
      }
      if (Array.isArray(value) && mergeLists) list.push(...value)
      else list.push(value ?? null)
    }
    lists.set(as || short, list)
  }
  const output: Record<string, unknown> = {}
  for (const [name, list] of lists) setField(output, name, list, { dots })
  return output
}
