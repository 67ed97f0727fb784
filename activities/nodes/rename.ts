import { isObject, setOwn } from '../../workflows/json.ts'
import { createPacer } from '../expressions/pace.ts'
import { readItems } from './kit/items.ts'
import type { NodeRunner } from './kit/node.ts'

/** RENAME_KEYS: outputs {items} with keys renamed in place; an existing key of the new name is replaced. */
export const runRenameKeys: NodeRunner = async (context) => {
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
