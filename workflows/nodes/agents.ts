import * as v from 'valibot'
import { AgentGuards, demandRoomForRefusal } from './agentguards.ts'
import { computed, credentialField, nodeTypeRow, textField, wholeNumber } from './fields.ts'
import { intoField } from './into.ts'
import { approversField, waitLimitField } from './pauses.ts'
import { listToolCode, listToolCredentials, listToolReads, readToolText, toolsField } from './tools.ts'

/** How many steps an agent may have, and how many it has if its config does not say. */
const MAX_AGENT_STEPS = 500
const DEFAULT_AGENT_STEPS = 25

const amount = v.pipe(
  v.number('must be a number'),
  v.finite('must be finite'),
  v.minValue(0, 'must not be negative'),
)

/** Node types that work in steps: calls to a model, and of the tools that it asks for. */
export const AGENT_NODES = {
  AI_AGENT: nodeTypeRow('agent', {
    summary:
      'A model that works towards an answer with tools: each of its calls is a step with a record of its own; ' +
      'outputs {text, steps}.',
    config: v.pipe(
      v.object({
        credentialId: credentialField,
        model: textField,
        instructions: textField,
        prompt: v.optional(textField),
        tools: v.optional(toolsField, []),
        temperature: v.optional(computed(v.pipe(amount, v.maxValue(2, 'must be at most 2')))),
        maxSteps: v.optional(wholeNumber(1, MAX_AGENT_STEPS), DEFAULT_AGENT_STEPS),
        maxTokens: v.optional(wholeNumber(1, 1_000_000_000)),
        maxCost: v.optional(amount),
        into: v.optional(intoField),
        reply: v.optional(v.boolean('must be true or false')),
        approvers: v.optional(approversField),
        approvalTimeoutMs: v.optional(waitLimitField),
        guardrails: v.optional(AgentGuards),
      }),
      demandRoomForRefusal(),
    ),
    conditions: listToolCode,
    credentialUses: ['LLM'],
    moreCredentials: listToolCredentials,
    texts: readToolText,
    reads: listToolReads,
    retry: { maxAttempts: 3, initialIntervalMs: 1_000, backoffCoefficient: 2, maxIntervalMs: 30_000 },
    timeoutMs: 300_000,
    queue: 'models',
  }),
} as const
