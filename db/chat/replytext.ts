import { isObject } from '../../workflows/json.ts'
import type { Envelope } from '../../workflows/run/plan.ts'
import { openEnvelope } from '../executions/records/outputs.ts'
import type { ExecutionShape } from '../executions/records/stored.ts'
import type { Store } from '../scope.ts'
import { readCompiledPlan } from '../workflows/compiled.ts'

/**
 * The text of the node that replies in an ended execution, as its records have it: an LLM's text, or the texts of all
 * turns of an agent, in their order. Without a text it is '', with the `reason`; `refusal` is the node's answer in
 * place of a text that its guardrails have blocked.
 */
export async function readReplyText(
  store: Store,
  execution: ExecutionShape,
): Promise<{ text: string; reason: string; refusal?: string }> {
  const node = await findReply(store, execution)
  if (!node) return { text: '', reason: 'The workflow has no node that replies' }
  const { own, turns } = await readReplyRecords(store, execution.id, node.id)
  if (!own) return { text: '', reason: `The execution ended without the node "${node.name}", which replies` }
  if (own.status !== 'SUCCESS')
    return { text: '', reason: own.errorMessage ?? `The node "${node.name}" did not succeed` }
  if (own.output === null) return { text: '', reason: 'The reply could not be stored' }
  const last = turns.at(-1)?.output
  if (last) {
    const said = await openEnvelope(store, execution.id, last as Envelope)
    if (isObject(said) && said.blocked === true) {
      const refusal = textOf(await openEnvelope(store, execution.id, own.output as Envelope))
      return { text: '', reason: BLOCKED, refusal }
    }
  }
  const text = await joinTexts(store, execution.id, turns.length > 0 ? turns : [own])
  return { text, reason: `The node "${node.name}" gave no text` }
}

/**
 * The text of what is finished of a reply, as the records have it: of the whole node, or of an agent's turns up to the
 * first one that is not. It is what is left if PostgreSQL has lost the chunks.
 */
export async function readFinishedText(store: Store, execution: ExecutionShape): Promise<string> {
  const node = await findReply(store, execution)
  if (!node) return ''
  const { own, turns } = await readReplyRecords(store, execution.id, node.id)
  const records = turns.length > 0 ? turns : own ? [own] : []
  const unfinished = records.findIndex(({ status, output }) => status !== 'SUCCESS' || output === null)
  return joinTexts(store, execution.id, unfinished < 0 ? records : records.slice(0, unfinished))
}

const BLOCKED = "The reply was blocked by the node's guardrails"

async function readReplyRecords(store: Store, executionId: string, nodeId: string) {
  const records = await store.db
    .selectFrom('nodeExecutions')
    .select(['step', 'tool', 'status', 'output', 'errorMessage'])
    .where('executionId', '=', executionId)
    .where('nodeId', '=', nodeId)
    .where((eb) => eb.or([eb('iteration', '=', ''), eb('step', 'is not', null)]))
    .orderBy('step')
    .execute()
  const own = records.find(({ step }) => step === null)
  return { own, turns: records.filter(({ step, tool }) => step !== null && tool === null) }
}

async function joinTexts(store: Store, executionId: string, records: { output: unknown }[]): Promise<string> {
  let text = ''
  for (const { output } of records)
    if (output !== null) text += textOf(await openEnvelope(store, executionId, output as Envelope))
  return text
}

async function findReply(store: Store, execution: ExecutionShape) {
  const { nodes } = await readCompiledPlan(store, execution)
  return nodes.find(({ reply }) => reply)
}

function textOf(value: unknown): string {
  return isObject(value) && typeof value.text === 'string' ? value.text : ''
}
