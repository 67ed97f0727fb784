import { isObject, setOwn } from '../../workflows/json.ts'
import { createPacer } from '../expressions/pace.ts'
import { createOutputBound, readField, readItems } from './kit/items.ts'
import type { NodeContext, NodeRunner } from './kit/node.ts'

/**
 * SPLIT: outputs {items}, the entries of `value`, or of `field` in each of `items`. A string is split at the
 * separator; without a separator it is one entry. With `keepOthers` each entry is put into a copy of its
 * item, under the field's name.
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
  const bound = createOutputBound()
  const pace = createPacer()
  const entries: unknown[] = []
  for (const [at, item] of items.entries()) {
    for (const entry of splitValue(lists[at], context)) {
      await pace()
      if (!config.keepOthers || !isObject(item)) entries.push(entry)
      else {
        bound(item)
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
