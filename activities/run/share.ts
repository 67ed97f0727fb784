import type { Context } from '@temporalio/activity'
import { findOwner } from '../../db/owners.ts'
import type { Store } from '../../db/scope.ts'
import type { GraphNode } from '../../workflows/graph/graph.ts'
import { MAX_ANSWER_BYTES } from '../../workflows/nodes/calls.ts'
import { MAX_MAIL_BYTES } from '../../workflows/nodes/messages.ts'
import { nodeType } from '../../workflows/nodes/nodes.ts'
import type { Item } from '../../workflows/run/frame.ts'
import type { AttemptInput } from '../../workflows/run/messages.ts'
import type { Envelope } from '../../workflows/run/plan.ts'
import type { Budget, Share } from '../budget.ts'
import { MAX_SQL_BYTES } from '../database/session.ts'
import { createReturns } from '../fairness/returns.ts'
import { HELD_FOR_MODEL } from '../models/answer.ts'
import { HELD_FOR_CHAT } from '../nodes/chat.ts'
import { MAX_EXTRACTED_BYTES } from '../nodes/extract.ts'
import { MAX_PAGE_BYTES } from '../nodes/html.ts'
import { readHeldBytes } from '../nodes/kit/request.ts'
import { HELD_FOR_SHOWN, showsFiles } from '../nodes/models/conversation.ts'
import { findMediaBytes } from '../nodes/models/media.ts'

/** The longest that an attempt keeps its slot while it waits for its share. */
const PATIENCE_MS = 20_000

/** What Temporal's limit must leave, beyond the node's own, to store a result. */
const STORING_MS = 10_000

/** A stored value takes several times the bytes of its JSON once it is opened, and an expression may copy it. */
const OPENED_FACTOR = 4

/** How many attempts of one team may wait in their slots; the others return theirs. */
const LINE = 32

/** The attempt returns its slot: the worker has no room for it yet. It comes back after `afterMs`. */
export class NoRoom extends Error {
  readonly afterMs: number

  /** `what` there is no room for, in the words after `The worker has no room for`. */
  constructor(what: string, afterMs: number) {
    super(`The worker has no room for ${what} yet`)
    this.afterMs = afterMs
  }
}

/**
 * Takes the shares of attempts from the budget of the process: for the answer that a node asks for, and for the
 * stored values that it reads. They are taken at once, because two attempts that each held a part and waited
 * for more would wait for ever.
 */
export type Shares = {
  /**
   * The share that an attempt of this node needs before it starts; undefined if it needs none. No time limit of
   * the node may have begun. Throws NoRoom if it should wait elsewhere, and the reason of a cancellation.
   */
  take(
    node: GraphNode,
    input: AttemptInput,
    attempt: Pick<Context, 'info' | 'cancellationSignal'>,
  ): Promise<Share | undefined>
}

export function createShares(store: Store, budget: Budget, returns = createReturns(8)): Shares {
  const lines = new Map<string, number>()
  const turnAway = (team: string) => new NoRoom('the values of this node', returns.turnAway(team))

  function step(team: string, by: 1 | -1): void {
    const now = (lines.get(team) ?? 0) + by
    if (now === 0) lines.delete(team)
    else lines.set(team, now)
  }

  return {
    async take(node, input, { info, cancellationSignal }) {
      const inputs = OPENED_FACTOR * weighInputs(input)
      const answer = node.disabled ? 0 : findHeldBytes(node)
      if (inputs + answer === 0) return undefined
      // Large inputs may be more than a team may have at all: such an attempt waits for all of its half.
      const bytes = Math.min(inputs + answer, Math.floor(budget.read().most / 2))
      // While PostgreSQL cannot say which team it is, every workflow counts as one.
      const { workflowId } = input.context
      const team = (await findOwner(store, 'workflows', workflowId).catch(() => undefined)) ?? workflowId
      // A run of the release before has attempts to spare, but not without end: it goes on without a share.
      const isOld = (info.retryPolicy?.maximumAttempts ?? 0) > 0
      if (!isOld && (lines.get(team) ?? 0) >= LINE) throw turnAway(team)
      const spare = info.startToCloseTimeoutMs - input.node.timeoutMs - STORING_MS
      const patience = AbortSignal.timeout(Math.max(0, Math.min(PATIENCE_MS, spare)))
      step(team, 1)
      try {
        const share = await budget.take(team, bytes, AbortSignal.any([cancellationSignal, patience]))
        return {
          shrink: (to) => share.shrink(inputs + to),
          grow: share.grow,
          release() {
            share.release()
            returns.served(team)
          },
        }
      } catch (error) {
        if (cancellationSignal.aborted || !patience.aborted) throw error
        if (isOld) return undefined
        throw turnAway(team)
      } finally {
        step(team, -1)
      }
    },
  }
}

/** The most bytes that a node holds of what comes from outside of the run's values: an answer, or a file. */
function findHeldBytes({ type, config }: GraphNode): number {
  if (type === 'HTTP_REQUEST') return readHeldBytes(config)
  if (type === 'CONNECTOR') return MAX_ANSWER_BYTES
  if (type === 'DATABASE_QUERY') return MAX_SQL_BYTES
  if (type === 'CHAT_MESSAGE') return config.files === undefined ? 0 : HELD_FOR_CHAT * MAX_MAIL_BYTES
  if (type === 'AI_MEDIA') return findMediaBytes(config)
  if (nodeType(type)?.queue === 'models') return HELD_FOR_MODEL + (showsFiles(config) ? HELD_FOR_SHOWN : 0)
  if (type === 'HTML') return config.file === undefined ? 0 : 2 * MAX_PAGE_BYTES
  // A file is copied once, for the process that reads it.
  const packs = type === 'CONVERT_TO_FILE' && (config.format === 'zip' || config.format === 'gzip')
  return type === 'EXTRACT_FROM_FILE' || packs ? 2 * MAX_EXTRACTED_BYTES : 0
}

/** The bytes of JSON of the stored values that an attempt reads, each counted once. Small ones travel inline. */
export function weighInputs({ outputs, item, agent }: AttemptInput): number {
  const sizes = new Map<string, number>()
  const state = agent?.state ? [agent.state] : []
  if (agent?.kind === 'turn') {
    for (const { entries } of agent.log ?? []) state.push(entries)
    for (const task of agent.settled) if ('output' in task) state.push(task.output)
  }
  for (const envelope of [...Object.values(outputs), ...(item ? listEnvelopes(item) : []), ...state]) {
    if ('ref' in envelope) sizes.set(envelope.ref, envelope.bytes)
  }
  return [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0)
}

function listEnvelopes(item: Item): Envelope[] {
  if ('page' in item) return [item.page]
  const { result } = item
  if ('ends' in result) return Object.values(result.ends)
  if ('merge' in result) return result.merge
  return 'error' in result ? [] : [result]
}
