import { createPacer } from '../expressions/pace.ts'
import type { ModelMessage } from '../models/model.ts'
import { writeJson } from '../nodes/kit/json.ts'
import type { AskedCall } from './state.ts'
import type { TaskOutcome } from './step.ts'

/** The most characters of JSON of an outcome that the model is shown. */
const MAX_SHOWN = 65_536

/** The messages that tell the model what came of its calls, in their order. */
export function answerCalls(asked: AskedCall[], outcomes: TaskOutcome[]): ModelMessage[] {
  const byId = new Map(outcomes.map((outcome) => [outcome.callId, outcome]))
  return asked.map(({ id, name, fault }) => {
    const outcome = byId.get(id)
    if (fault === undefined && outcome && 'output' in outcome)
      return { role: 'tool', toolCallId: id, toolName: name, result: outcome.output }
    const error =
      fault ?? (outcome && 'error' in outcome ? describeError(outcome.error) : 'the call was not made')
    return { role: 'tool', toolCallId: id, toolName: name, result: { error }, failed: true }
  })
}

function describeError({ type, message }: { type: string; message: string }): string {
  return type === 'OutcomeUnknown' ? 'outcome unknown' : message
}

/**
 * The outcome as the model sees it: only its beginning, if it is long. The rest is only in the record: the next turn,
 * which reads the outcomes of up to 50 calls at once, does not open it.
 */
export async function showOutcome(output: unknown): Promise<unknown> {
  const text = await writeJson(output ?? null, createPacer())
  if (text.length <= MAX_SHOWN) return output ?? null
  const cut = (typeof output === 'string' ? output : text).slice(0, MAX_SHOWN).toWellFormed()
  return { cut, note: `this is only the beginning: the whole result has ${text.length} characters of JSON` }
}
