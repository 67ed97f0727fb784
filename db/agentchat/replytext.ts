import { isObject } from '../../workflows/json.ts'
import type { Envelope } from '../../workflows/run/plan.ts'
import { openEnvelope } from '../records/outputs.ts'
import type { ExecutionShape } from '../records/stored.ts'
import type { Store } from '../scope.ts'
import { readCompiledPlan } from '../workflows/compiled.ts'
import { readStoredText } from './chunks.ts'

/**
 * The text of the node that replies in an ended execution, as its records have it: an LLM's text, or the texts of all
 * turns of an agent, in their order. It is '' if there is none, with the `reason`.
 */
export async function readReplyText(
  store: Store,
  execution: ExecutionShape,
): Promise<{ text: string; reason: string }> {
  const node = await findReply(store, execution)
  if (!node) return { text: '', reason: 'The workflow has no node that replies' }
  const records = await store.db
    .selectFrom('nodeExecutions')
    .select(['step', 'tool', 'status', 'output', 'errorMessage'])
    .where('executionId', '=', execution.id)
    .where('nodeId', '=', node.id)
    .where((eb) => eb.or([eb('iteration', '=', ''), eb('step', 'is not', null)]))
    .orderBy('step')
    .execute()
  const own = records.find(({ step }) => step === null)
  if (!own) return { text: '', reason: `The execution ended without the node "${node.name}", which replies` }
  if (own.status !== 'SUCCESS')
    return { text: '', reason: own.errorMessage ?? `The node "${node.name}" did not succeed` }
  if (own.output === null) return { text: '', reason: 'The reply could not be stored' }
  const turns = records.filter(({ step, tool }) => step !== null && tool === null)
  let text = ''
  for (const { output } of turns.length > 0 ? turns : [own])
    if (output !== null) text += textOf(await openEnvelope(store, execution.id, output as Envelope))
  return { text, reason: `The node "${node.name}" gave no text` }
}

/** What there is of the text of a reply whose execution was stopped: '' if there is nothing. */
export async function readTextSoFar(store: Store, execution: ExecutionShape): Promise<string> {
  const stored = await readStoredText(store, execution.id)
  return stored === '' ? (await readReplyText(store, execution)).text : stored
}

async function findReply(store: Store, execution: ExecutionShape) {
  const { nodes } = await readCompiledPlan(store, execution)
  return nodes.find(({ reply }) => reply)
}

function textOf(value: unknown): string {
  return isObject(value) && typeof value.text === 'string' ? value.text : ''
}
