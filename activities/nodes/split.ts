import { isObject, setOwn } from '../../workflows/json.ts'
import { createPacer } from '../expressions/pace.ts'
import { createOutputBound, readField, readItems, workedItem } from './kit/items.ts'
import type { NodeContext, NodeRunner } from './kit/node.ts'
import { type SplitRules, splitFields } from './lists/splitfields.ts'

/**
 * SPLIT: outputs {items}, the entries of `value`, or of `field` in each of `items`. A string is split at the
 * separator; without a separator it is one entry. With `keepOthers` each entry is put into a copy of its
 * item, under the field's name. With `fields` it splits fields of its own item.
 */
export const runSplit: NodeRunner = async (context) => {
  const { config } = context
  if (config.value !== undefined) {
    const value = await context.evaluator.render(config.value, context.bindings)
    return { output: { items: await splitValue(value, context, createPacer()) } }
  }
  if (config.fields !== undefined) {
    const rules = (await context.evaluator.render(config, context.bindings)) as SplitRules
    return { output: { items: splitFields(workedItem(context), rules) } }
  }
  const field = String(config.field)
  const items = await readItems(context)
  const lists = await readField(context, items, field)
  const bound = createOutputBound()
  const pace = createPacer()
  const entries: unknown[] = []
  const from: number[] = []
  for (const [at, item] of items.entries()) {
    for (const entry of await splitValue(lists[at], context, pace)) {
      await pace()
      from.push(at)
      if (!config.keepOthers || !isObject(item)) entries.push(entry)
      else {
        bound(item)
        const copy = { ...item }
        setOwn(copy, field, entry)
        entries.push(copy)
      }
    }
  }
  return { output: { items: entries }, places: { of: items, from } }
}

async function splitValue(
  value: unknown,
  { config }: NodeContext,
  pace: ReturnType<typeof createPacer>,
): Promise<unknown[]> {
  if (value === null || value === undefined) return []
  if (Array.isArray(value)) return value
  if (typeof value !== 'string' || config.separator === undefined) return [value]
  const parts: string[] = []
  for (const part of eachPiece(value, String(config.separator))) {
    await pace()
    const text = config.trim ? part.trim() : part
    if (!config.trim || text !== '') parts.push(text)
  }
  return parts
}

/** The pieces that String.split gives, one after the other. */
function* eachPiece(text: string, separator: string): Generator<string, void, void> {
  if (separator === '') {
    yield* text.split('')
    return
  }
  let at = 0
  for (let next = text.indexOf(separator); next >= 0; next = text.indexOf(separator, at)) {
    yield text.slice(at, next)
    at = next + separator.length
  }
  yield text.slice(at)
}
