import { hashSeen, takeUnseen } from '../../db/workflows/kept/seenvalues.ts'
import { createPacer } from '../expressions/pace.ts'
import { retryOutages } from '../run/outages.ts'
import { NodeFailure } from './kit/failure.ts'
import { readFields, readItems, writeKey } from './kit/items.ts'
import type { NodeContext, NodeRunner } from './kit/node.ts'

const MAX_NAMED = 20
const HISTORY = 10_000

/**
 * SKIP_SEEN: outputs {items}, those whose value no execution before has seen; it counts as seen from then on. All items of
 * one input with the same value stay together. Fails with InvalidInput for an item that has nothing of what is compared.
 */
export const runSkipSeen: NodeRunner = async (context) => {
  const { config, spot, signal, idempotencyKey: callKey } = context
  const items = await readItems(context)
  if (items.length === 0) return { output: { items } }
  const keys = await readKeys(context, items)
  const { history: keep = HISTORY } = config as { history?: number }
  const isNew = await retryOutages(signal, () =>
    takeUnseen(spot.store, placeOf(context), keys.map(hashKey), { callKey, keep }),
  )
  const kept = [...items.keys()].filter((at) => isNew[at])
  const from = config.grouped === true ? groupPlaces(kept, keys) : kept
  return { output: { items: from.map((at) => items[at]) }, places: { of: items, from } }
}

/** The text of a value, or its JSON: the same for the same value. */
type Key = { text: string; isJson: boolean }

const hashKey = ({ text, isJson }: Key) => hashSeen(`${isJson ? 'json' : 'text'} ${text}`)

async function readKeys(context: NodeContext, items: unknown[]): Promise<Key[]> {
  const by = context.config.by as string | string[] | undefined
  const rows = by === undefined ? items.map((item) => [item]) : await readFields(context, items, [by].flat())
  const empty = rows.flatMap((row, at) =>
    row.every((value) => value === null || value === undefined) ? [at] : [],
  )
  if (empty.length > 0) {
    const named = empty.slice(0, MAX_NAMED).map((at) => `items[${at}]`)
    const more = empty.length > MAX_NAMED ? ` (and ${empty.length - MAX_NAMED} more)` : ''
    const message = `${named.join(', ')}${more}: has no value to compare`
    throw new NodeFailure(message, { type: 'InvalidInput' })
  }
  const pace = createPacer()
  const keys: Key[] = []
  for (const row of rows) {
    await pace()
    const [only] = row
    const isJson = row.length > 1 || typeof only !== 'string'
    keys.push({ text: isJson ? await writeKey(row, pace) : only, isJson })
  }
  return keys
}

function placeOf({ config, bindings, spot }: NodeContext) {
  const { shared } = config as { shared?: string }
  // Names cannot be taken for ids of nodes.
  const name = shared === undefined ? `node ${spot.nodeId}` : `name ${shared}`
  return { workflowId: String(bindings.execution.workflowId), name }
}

/** Places with the same key beside each other, those of whole numbers first and in their order: as the keys of an object. */
function groupPlaces(places: number[], keys: Key[]): number[] {
  const groups: Record<string, number[]> = Object.create(null)
  for (const at of places) {
    const { text } = keys[at]!
    const group = groups[text]
    if (group) group.push(at)
    else groups[text] = [at]
  }
  return Object.values(groups).flat()
}
