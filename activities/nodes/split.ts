import { isObject, setOwn } from '../../workflows/inputs.ts'
import { createPause } from '../pace.ts'
import { createScale, readField, readItems } from './items.ts'
import type { NodeContext, NodeRunner } from './node.ts'

/**
 * SPLIT: outputs {items}, the entries of `value`, or of `field` in each of its items; a text is split where it has
 * the separator, and without one is an entry itself. `keepOthers`: each entry stands in a copy of its item, under the
 * field's name.
 */
export const runSplit: NodeRunner = async (context) => {
  const { config } = context
  if (config.value !== undefined) {
    const value = await context.evaluator.render(config.value, context.bindings)
    return { output: { items: splitValue(value, context) } }
  }
  const field = String(config.field)
  const items = await readItems(context)
  const lists = await readField(context, items, field)
  const scale = createScale()
  const pause = createPause()
  const entries: unknown[] = []
  for (const [at, item] of items.entries()) {
    for (const entry of splitValue(lists[at], context)) {
      await pause()
      if (!config.keepOthers || !isObject(item)) entries.push(entry)
      else {
        scale(item)
        const copy = { ...item }
        setOwn(copy, field, entry)
        entries.push(copy)
      }
    }
  }
  return { output: { items: entries } }
}

function splitValue(value: unknown, { config }: NodeContext): unknown[] {
  if (value === null || value === undefined) return []
  if (Array.isArray(value)) return value
  if (typeof value !== 'string' || config.separator === undefined) return [value]
  const parts = value.split(String(config.separator))
  return config.trim ? parts.map((part) => part.trim()).filter((part) => part !== '') : parts
}
