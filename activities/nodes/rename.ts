import { isObject, setOwn } from '../../workflows/inputs.ts'
import { createPause } from '../pace.ts'
import { readItems } from './items.ts'
import type { NodeRunner } from './node.ts'

/** RENAME_KEYS: outputs {items} with keys renamed in their places; one that is there already gives way. */
export const runRenameKeys: NodeRunner = async (context) => {
  const keys = new Map(Object.entries(context.config.keys as Record<string, string>))
  const pause = createPause()
  const items: unknown[] = []
  for (const item of await readItems(context)) {
    await pause()
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
  return { output: { items } }
}
