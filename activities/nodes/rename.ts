import { isObject, setOwn } from '../../workflows/json.ts'
import { createPacer } from '../expressions/pace.ts'
import { readItems, workedItem } from './kit/items.ts'
import type { NodeRunner } from './kit/node.ts'
import { copyValue, getField, setField, unsetField } from './kit/paths.ts'

type Pair = { from: string; to: string }

/**
 * RENAME_KEYS: outputs {items} with keys renamed in place; an existing key of the new name is
 * replaced. With `pairs` it renames fields of its own item, paths too.
 */
export const runRenameKeys: NodeRunner = async (context) => {
  if (context.config.pairs !== undefined) {
    const pairs = (await context.evaluator.render(context.config.pairs, context.bindings)) as Pair[]
    return { output: { items: [renameFields(workedItem(context), pairs)] } }
  }
  const keys = new Map(Object.entries(context.config.keys as Record<string, string>))
  const pace = createPacer()
  const items: unknown[] = []
  const given = await readItems(context)
  for (const item of given) {
    await pace()
    if (!isObject(item)) {
      items.push(item)
      continue
    }
    const renamed: Record<string, unknown> = {}
    const wins = new Set([...keys].flatMap(([from, to]) => (Object.hasOwn(item, from) ? [to] : [])))
    for (const [key, value] of Object.entries(item)) {
      if (keys.has(key)) setOwn(renamed, keys.get(key)!, value)
      else if (!wins.has(key)) setOwn(renamed, key, value)
    }
    items.push(renamed)
  }
  return { output: { items }, places: { of: given, from: [...given.keys()] } }
}

/** A copy of the item in which fields have moved, one after the other. */
function renameFields(item: unknown, pairs: Pair[]): unknown {
  if (!isObject(item)) return item
  const renamed = copyValue(item)
  for (const { from, to } of pairs) {
    const value = getField(item, from)
    if (from === '' || to === '' || from === to || value === undefined) continue
    setField(renamed, to, copyValue(value))
    unsetField(renamed, from)
  }
  return renamed
}
