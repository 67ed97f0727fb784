import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Info } from '@temporalio/activity'
import {
  readUnanswered,
  type SentRequest,
  type StartedAttempt,
} from '../../../db/executions/records/attempts.ts'
import { type Keys, purposeKey } from '../../../db/seal.ts'
import type { AttemptInput } from '../../../workflows/run/messages.ts'
import { joinStep } from '../../../workflows/run/walk.ts'
import type { ActivityDeps } from '../../deps.ts'
import type { Sending } from '../../nodes/kit/node.ts'
import { retryOutages } from '../outages.ts'

type Request = Parameters<Sending['begin']>[0]

/** The mark that an answer came. */
const ANSWERED = Buffer.alloc(0)

/** Nodes whose requests carry their key: an agent's are those of its tools, each a step of its own. */
const KEYED = new Set(['HTTP_REQUEST', 'AI_AGENT'])

/** How the record of an attempt names it. */
export function describeAttempt(
  { context, node, iteration, agent }: AttemptInput,
  { scheduledTimestampMs }: Pick<Info, 'scheduledTimestampMs'>,
  attempt: number,
): StartedAttempt {
  const at = new Date(scheduledTimestampMs)
  const { id: nodeId, name: nodeName, type: nodeType } = node
  const tool = agent?.kind === 'task' ? { tool: agent.task.tool } : {}
  const path = joinStep(iteration, agent?.step)
  return { executionId: context.id, nodeId, iteration: path, nodeName, nodeType, attempt, at, ...tool }
}

/**
 * Chooses the key of an attempt's request: that of the execution `retryOf`, if the same node sent the same
 * request there and no answer came, otherwise `idempotencyKey`. A request that is under way for long, or that gets
 * no answer, is noted for a retry of this execution; those that are answered soon cost no statement.
 */
export async function prepareSending(
  deps: Pick<ActivityDeps, 'store' | 'attempts' | 'log'>,
  attempt: StartedAttempt,
  { idempotencyKey }: { idempotencyKey: string },
  retryOf: string | undefined,
): Promise<Sending & { noteFailure(signal: AbortSignal): Promise<void> }> {
  const { store, attempts, log } = deps
  const { nodeType } = attempt
  const looks = retryOf !== undefined && KEYED.has(nodeType)
  const earlier = looks ? await readUnanswered(store, { ...attempt, executionId: retryOf }) : undefined
  let request: SentRequest | undefined
  let note: ReturnType<typeof attempts.noteRequest> | undefined
  let answered = false
  let ended: ReturnType<NonNullable<typeof note>['withdraw']> | undefined
  return {
    begin(sent) {
      const key = earlier && isSame(store.keys, earlier, sent) ? earlier.key : idempotencyKey
      request = { key, hash: hashRequest(store.keys, key, sent) }
      // There may be several, one after the other.
      answered = false
      ended = undefined
      note = attempts.noteRequest({ ...attempt, request })
      return key
    },
    answered() {
      answered = true
      ended ??= note?.withdraw()
    },
    /** The node fails, or its call was broken off: notes whether an answer came before others know of the failure. */
    async noteFailure(signal) {
      if (!request || !note) return
      ended ??= note.withdraw()
      const written = await ended
      // An attempt before this one may have noted that it got no answer.
      const isKnown = answered ? written === 'never' && attempt.attempt === 1 : written === 'written'
      if (isKnown) return
      const noted = { ...attempt, request: answered ? { ...request, hash: ANSWERED } : request }
      try {
        await retryOutages(signal, () => attempts.saveRequest(noted))
      } catch (error) {
        log.warn({ err: error, executionId: attempt.executionId }, 'the key of a request was not noted')
      }
    },
  }
}

/** Whether it is the request that was sent, as far as keys that are still known can tell. */
function isSame(keys: Keys, { key, hash }: SentRequest, request: Request): boolean {
  return [...keys.byId.keys()].some((id) => {
    const own = hashRequest(keys, key, request, id)
    return own.length === hash.length && timingSafeEqual(own, hash)
  })
}

/** Under a secret key, since bodies can be guessed; with the request's own key, so that equal requests do not show. */
function hashRequest(keys: Keys, key: string, { method, url, body }: Request, id = keys.current): Buffer {
  return createHmac('sha256', purposeKey(keys, 'request hash', id))
    .update(JSON.stringify([key, method, url, body !== undefined]))
    .update(body ?? '')
    .digest()
}
