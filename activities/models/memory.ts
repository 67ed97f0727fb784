import { keepTurn, readMemory } from '../../db/workflows/kept/nodememory.ts'
import { MEMORY_DAYS, MEMORY_MESSAGES, type NodeMemory } from '../../workflows/nodes/nodememory.ts'
import { invalidConfig } from '../nodes/kit/failure.ts'
import type { NodeContext } from '../nodes/kit/node.ts'
import { retryOutages } from '../run/outages.ts'
import type { ModelMessage } from './model.ts'

/** The most characters of one message that are remembered: a memory is read with each question. */
const MAX_REMEMBERED = 100_000

/** The key of a node's memory; undefined without one, and for the reply of a chat, which remembers the chat. */
export async function renderMemoryKey({
  config,
  evaluator,
  bindings,
  reply,
}: NodeContext): Promise<string | undefined> {
  const memory = config.memory as NodeMemory | undefined
  if (!memory || reply) return undefined
  const key = await evaluator.render(memory.key, bindings)
  if (key === null || key === undefined || key === '')
    throw invalidConfig('memory.key', 'must have a value, but it is empty')
  return typeof key === 'string' ? key : JSON.stringify(key)
}

/** The messages under the key, oldest first. `clean` takes out of all texts what the model must not see. */
export async function recall(
  context: NodeContext,
  key: string,
  clean: (texts: string[]) => Promise<string[]> = async (texts) => texts,
): Promise<ModelMessage[]> {
  const { messages = MEMORY_MESSAGES } = context.config.memory as NodeMemory
  const { spot, signal, idempotencyKey } = context
  const bounds = { turns: Math.max(1, Math.floor(messages / 2)), callKey: idempotencyKey }
  const turns = await retryOutages(signal, () => readMemory(spot.store, placeOf(context, key), bounds))
  const texts = await clean(turns.flatMap(({ asked, answered }) => [asked, answered]))
  return texts.map((content, at) => ({ role: at % 2 === 0 ? 'user' : 'assistant', content }))
}

/** Keeps a question and its answer under the key. An attempt that comes again keeps nothing twice. */
export async function remember(
  context: NodeContext,
  key: string,
  { asked, answered }: { asked: string; answered: string },
): Promise<void> {
  const { days = MEMORY_DAYS } = context.config.memory as NodeMemory
  const { spot, signal, idempotencyKey: callKey } = context
  const turn = { asked: cut(context, asked), answered: cut(context, answered) }
  // A model takes no message that is empty.
  if (turn.asked === '' || turn.answered === '') return
  await retryOutages(signal, () =>
    keepTurn(spot.store, placeOf(context, key), { turn, callKey, days: Number(days) }),
  )
}

function placeOf({ config, bindings, spot }: NodeContext, key: string) {
  const { name } = config.memory as NodeMemory
  // Names cannot be taken for ids of nodes.
  const of = name === undefined ? `node ${spot.nodeId}` : `name ${name}`
  return { workflowId: String(bindings.execution.workflowId), name: of, key }
}

function cut({ notes }: NodeContext, text: string): string {
  if (text.length <= MAX_REMEMBERED) return text
  const message = `Only the first ${MAX_REMEMBERED} of ${text.length} characters are remembered`
  notes.add({ warnings: [{ path: 'config.memory', message }] })
  return text.slice(0, MAX_REMEMBERED).toWellFormed()
}
