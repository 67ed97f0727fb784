import { FILES_KEY, filesOf, withFiles, withoutFiles } from '../../../workflows/itemfiles.ts'
import { isObject, mergeObjects, setOwn } from '../../../workflows/json.ts'
import { NodeFailure } from '../kit/failure.ts'
import { copyValue, getField, unsetField } from '../kit/paths.ts'
import { listNames } from '../set.ts'

type Item = Record<string, unknown>

export type SplitRules = {
  /** The fields whose entries become items of their own. */
  fields: unknown
  /** The names of these fields in the new items. */
  as?: unknown
  include?: 'none' | 'all' | 'selected'
  names?: unknown
  dots?: boolean
  missing?: 'ignore' | 'error'
  /** Whether each new item has the files of the item. */
  files?: boolean
}

/** The items that the entries of an item's fields become. The entries of an object are its values. */
export function splitFields(given: unknown, rules: SplitRules): Item[] {
  const files = filesOf(given)
  const split = splitValues(isObject(given) ? given : {}, rules)
  if (!files || rules.files !== true) return split
  return split.map((item) => (filesOf(item) ? item : withFiles(item, files)))
}

function splitValues(given: Item, rules: SplitRules): Item[] {
  const item = withoutFiles(given)
  const { include = 'none', dots = true } = rules
  const fields = listNames(rules.fields).map((name) => name.replace(/^\$json\./, ''))
  const names = listNames(rules.as)
  if (names.length > 0 && names.length !== fields.length) {
    const message =
      'If multiple fields to split out are given, the same number of destination fields must be given'
    throw new NodeFailure(message, { type: 'InvalidInput' })
  }
  const split: Item[] = []
  for (const [i, field] of fields.entries()) {
    const name = names[i] ?? field
    if (field === FILES_KEY) {
      // Each file goes into an item of its own, whatever becomes of the fields.
      for (const [at, [key, file]] of Object.entries(filesOf(given) ?? {}).entries())
        split[at] = withFiles(split[at] ?? {}, { [key]: file })
      continue
    }
    const value = getField(item, field, { dots })
    if (value === undefined && rules.missing === 'error')
      throw new NodeFailure(`Couldn't find the field '${field}' in the input data`, { type: 'InvalidInput' })
    for (const [at, entry] of listEntries(value).entries()) {
      const isWhole = typeof entry === 'object' && entry !== null && include === 'none'
      const made = split[at] ?? {}
      if (isWhole && names[i] === undefined && fields.length === 1)
        split[at] = mergeObjects([made, { ...(entry as Item) }])
      else {
        setOwn(made, name, entry ?? null)
        split[at] = made
      }
    }
  }
  if (include === 'none') return split
  if (include === 'selected') return split.map((made) => addSelected(made, item, rules))
  const rest = copyValue(item)
  for (const field of fields) unsetField(rest, field, { dots })
  return split.map((made) => mergeObjects([rest, made]))
}

function listEntries(value: unknown): unknown[] {
  if (value === undefined) return []
  if (typeof value !== 'object' || value === null) return [value]
  return Array.isArray(value) ? value : Object.values(value)
}

function addSelected(made: Item, item: Item, { names, dots = true }: SplitRules): Item {
  const wanted = listNames(names)
  if (wanted.length === 0) throw new NodeFailure('No fields specified', { type: 'InvalidInput' })
  for (const name of wanted) {
    const value = getField(item, name, { dots })
    if (value !== undefined) setOwn(made, name, value)
  }
  return made
}
