import { setTimeout as sleep } from 'node:timers/promises'
import { placeOf } from '../../../db/send/notes.ts'
import {
  keepStaticData,
  MAX_STATIC_DATA,
  readStaticData,
  type StaticData,
} from '../../../db/workflows/kept/staticdata.ts'
import { isObject } from '../../../workflows/json.ts'
import { retryOutages } from '../../run/outages.ts'
import { NodeFailure } from '../kit/failure.ts'
import type { NodeContext, NodeResult } from '../kit/node.ts'

/** How often code is run again because another execution has changed the data meanwhile. */
const MAX_RUNS = 30
const PAUSE_MS = 100

/** A run of code: what the node outputs, and the data as the code has left it; undefined if it has not run. */
export type StaticRun = { result: NodeResult; left: unknown }

/**
 * Runs code with what its workflow keeps, as n8n's `$getWorkflowStaticData` gives it, and keeps what it changes together
 * with the note of its output: an attempt that comes again outputs the same and changes nothing. Code that another
 * execution was faster than is run again with the newer data. An execution of a draft changes nothing, and is told so.
 * Throws a NodeFailure: OutputTooLarge for more than 256 KB, CodeFailed if others are always faster.
 */
export async function runWithStaticData(
  context: NodeContext,
  run: (data: Record<keyof StaticData, unknown>) => Promise<StaticRun>,
): Promise<NodeResult> {
  const { spot, idempotencyKey, signal, bindings } = context
  const { store, nodeId } = spot
  const place = { workflowId: String(bindings.execution.workflowId), nodeId }
  const message = placeOf(spot.executionId, idempotencyKey)
  for (let runs = 0; runs < MAX_RUNS; runs++) {
    signal.throwIfAborted()
    const read = await retryOutages(signal, () => readStaticData(store, place, message))
    if ('noted' in read) return { output: read.noted }
    const before = read.data
    const { result, left } = await run({ global: parse(before.global), node: parse(before.node) })
    const after = { global: writeData(left, 'global', before), node: writeData(left, 'node', before) }
    if (after.global === before.global && after.node === before.node) return result
    const change = { before, after, changes: read.changes, output: result.output }
    const done = await retryOutages(signal, () => keepStaticData(store, place, message, change))
    if (done === 'kept') return result
    if (done === 'draft') {
      const text = 'The execution is of a draft: what the code changes of the static data is not kept'
      const warnings = [...(result.notes?.warnings ?? []), { path: 'config.code', message: text }]
      return { ...result, notes: { ...result.notes, warnings } }
    }
    await sleep(Math.random() * PAUSE_MS * (runs + 1), undefined, { signal }).catch(() => {})
  }
  const text = `other executions have changed the static data ${MAX_RUNS} times while the code ran: let fewer run at once`
  throw new NodeFailure(text, { type: 'CodeFailed', retryable: true })
}

const parse = (text: string): unknown => (text === '' ? {} : JSON.parse(text))

/** The data as text; what it was if the code has left none. */
function writeData(left: unknown, which: keyof StaticData, before: StaticData): string {
  const data = isObject(left) ? left[which] : undefined
  if (!isObject(data)) return before[which]
  const text = JSON.stringify(data)
  if (Buffer.byteLength(text) > MAX_STATIC_DATA)
    throw new NodeFailure(`the static data may have at most ${MAX_STATIC_DATA / 1024} KB`, {
      type: 'OutputTooLarge',
    })
  return text === '{}' && before[which] === '' ? '' : text
}
