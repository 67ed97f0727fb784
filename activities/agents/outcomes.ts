import { createPacer } from '../expressions/pace.ts'
import type { ModelMessage } from '../models/model.ts'
import { writeJson } from '../nodes/kit/json.ts'
import type { AskedCall } from './state.ts'
import type { TaskOutcome } from './step.ts'

/** The most characters of JSON of an outcome that the model is shown. */
const MAX_SHOWN = 65_536

/** The messages that tell the model what came of its calls, in their order. */
export async function answerCalls(asked: AskedCall[], outcomes: TaskOutcome[]): Promise<ModelMessage[]> {
  const byId = new Map(outcomes.map((outcome) => [outcome.callId, outcome]))
  const pace = createPacer()
  const messages: ModelMessage[] = []
  for (const { id, name, fault } of asked) {
    const told = { role: 'tool', toolCallId: id, toolName: name } as const
    const outcome = byId.get(id)
    if (fault === undefined && outcome && 'output' in outcome) {
      messages.push({ ...told, result: await showOutcome(outcome.output, pace) })
      continue
    }
    const error =
      fault ?? (outcome && 'error' in outcome ? describeError(outcome.error) : 'the call was not made')
    messages.push({ ...told, result: { error }, failed: true })
  }
  return messages
}

function describeError({ type, message }: { type: string; message: string }): string {
  return type === 'OutcomeUnknown' ? 'outcome unknown' : message
}

/** The outcome as the model sees it: its beginning only, if it is long. */
async function showOutcome(output: unknown, pace: ReturnType<typeof createPacer>): Promise<unknown> {
  const text = await writeJson(output ?? null, pace)
  if (text.length <= MAX_SHOWN) return output ?? null
  const cut = (typeof output === 'string' ? output : text).slice(0, MAX_SHOWN).toWellFormed()
  return { cut, note: `this is only the beginning: the whole result has ${text.length} characters of JSON` }
}
