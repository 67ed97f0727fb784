import * as v from 'valibot'
import { described, strictObject } from '../object.ts'
import { GuardrailChecks } from './guardrails.ts'

const MAX_REFUSAL = 10_000

/** The guardrails of an agent: what its model is asked, what its tools answer, and what it says. */
export const AgentGuards = v.pipe(
  strictObject(
    described(
      {
        input: v.optional(GuardrailChecks),
        toolResults: v.optional(GuardrailChecks),
        output: v.optional(GuardrailChecks),
        refusal: v.optional(
          v.pipe(
            v.string('must be a string'),
            v.check((text) => text.trim() !== '', 'must not be empty'),
            v.maxLength(MAX_REFUSAL, `must have at most ${MAX_REFUSAL} characters`),
          ),
        ),
      },
      {
        input:
          'What is checked of the prompt, in a chat of the message. The instructions are yours, and are not checked.',
        toolResults: 'What is checked of the answers of tools before the model gets them.',
        output: 'What is checked of what the model says, and of what it calls tools with.',
        refusal: 'What is said in place of a reply that is blocked. Without it the node fails.',
      },
    ),
  ),
  v.check(
    ({ input, toolResults, output }) => [input, toolResults, output].some((checks) => checks !== undefined),
    'must say what is checked: set input, toolResults or output',
  ),
)
export type AgentGuards = v.InferOutput<typeof AgentGuards>

/** A refusal is told by `blocked` in the output, for which a field of an item has no room. */
export function demandRoomForRefusal<
  T extends { into?: unknown; guardrails?: { refusal?: string | undefined } | undefined },
>() {
  return v.rawCheck<T>(({ dataset, addIssue }) => {
    if (!dataset.typed) return
    const { value } = dataset
    if (value.into === undefined || value.guardrails?.refusal === undefined) return
    const path = { type: 'object', origin: 'value', input: value, key: 'guardrails', value: value.guardrails }
    addIssue({
      message: 'must have no refusal with into: a reply that is blocked fails the node then',
      path: [path as unknown as v.ObjectPathItem],
    })
  })
}
