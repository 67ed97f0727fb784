import { pino } from 'pino'
import type { ModelUsage } from '../../../../activities/models/model.ts'
import { createMeter } from '../../../../activities/models/usage.ts'
import type { AttemptInput } from '../../../../workflows/run/messages.ts'
import type { Service } from '../../service.ts'

/** Which attempt calls a model, and with which signals. */
export type MeteredAttempt = {
  executionId: string
  workflowId: string
  teamId?: string
  /** The activity: `node`, `node#iteration`, with `!step` at its end for a step of an agent. */
  activityId: string
  attempt?: number
  signal?: AbortSignal
}

/** The meter that an attempt of an activity gets, for tests that need no engine. */
export function openMeter(
  { store, teamId: first }: Pick<Service, 'store' | 'teamId'>,
  { executionId, workflowId, teamId = first, activityId, attempt = 1, signal }: MeteredAttempt,
) {
  const [, nodeId, iteration = '', step] = /^([^#!]+)(?:#([^!]+))?(?:!(\d+))?$/.exec(activityId)!
  const agent = step === undefined ? undefined : { step: Number(step) }
  const input = { context: { id: executionId, workflowId }, node: { id: nodeId }, iteration, agent }
  const over = signal ?? new AbortController().signal
  const metered = {
    info: { activityId, attempt },
    teamId,
    signal: over,
    unwanted: over,
    pause: () => () => {},
  }
  return createMeter({ store, log: pino({ level: 'silent' }) }, input as unknown as AttemptInput, metered)
}

/** A call that has been answered. */
export function answered(usage: Partial<ModelUsage> | null) {
  const none = { input: 0, output: 0, cached: 0, cacheWrite: 0, reasoning: 0 }
  return { status: 'SUCCESS', usage: usage && { ...none, ...usage }, firstMs: 12.4, latencyMs: 99.6 } as const
}

export const GPT_4O = { provider: 'OPENAI', model: 'gpt-4o', credentialId: crypto.randomUUID() }
export const REFUSED = { status: 'REFUSED', usage: null, firstMs: null, latencyMs: 5 } as const
export const LOST = { status: 'LOST', usage: null, firstMs: 3, latencyMs: 5 } as const
