import * as v from 'valibot'
import { described } from '../object.ts'
import { AgentGuards, demandRoomForRefusal } from './agentguards.ts'
import { computed, credentialField, nodeTypeRow, textField, wholeNumber } from './fields.ts'
import { INTO, intoField } from './into.ts'
import { ASKED } from './models.ts'
import { MEMORY, memoryField } from './nodememory.ts'
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
      v.object(
        described(
          {
            credentialId: credentialField,
            model: textField,
            instructions: textField,
            prompt: v.optional(textField),
            tools: v.optional(toolsField, []),
            temperature: v.optional(computed(v.pipe(amount, v.maxValue(2, 'must be at most 2')))),
            maxSteps: v.optional(wholeNumber(1, MAX_AGENT_STEPS), DEFAULT_AGENT_STEPS),
            maxTokens: v.optional(wholeNumber(1, 1_000_000_000)),
            maxCost: v.optional(amount),
            memory: v.optional(memoryField),
            into: v.optional(intoField),
            reply: v.optional(v.boolean('must be true or false')),
            approvers: v.optional(approversField),
            approvalTimeoutMs: v.optional(waitLimitField),
            guardrails: v.optional(AgentGuards),
          },
          {
            ...ASKED,
            instructions: 'Who the agent is, and what it is to do.',
            prompt: 'What it is asked. Without it the message of the chat, else the input as a text.',
            tools: 'What it may call.',
            temperature: 'How freely it answers: 0 is strict.',
            maxSteps: 'How many calls to the model and of tools it may make together.',
            maxTokens: 'How many tokens its calls to the model may use together.',
            maxCost: 'How many US dollars its calls to the model may cost together.',
            memory: MEMORY,
            into: INTO,
            reply: 'In a chat, the text of this node is the reply.',
            approvers:
              'Who may approve the tools that wait for it: e-mails of members, or roles. Without any: every OPERATOR.',
            approvalTimeoutMs: 'How long such a tool waits, in milliseconds. Without it for ever.',
            guardrails: 'What is checked of what comes in, of the answers of tools, and of the reply.',
          },
        ),
      ),
      demandRoomForRefusal(),
    ),
    main: ['credentialId', 'model', 'instructions', 'prompt', 'tools'],
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
