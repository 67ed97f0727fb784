import type { Info } from '@temporalio/activity'
import { CancelledFailure } from '@temporalio/common'
import { LRUCache } from 'lru-cache'
import type { AttemptResult } from '../../../workflows/run/messages.ts'
import { NodeFailure } from '../../nodes/kit/failure.ts'
import type { NodeResult } from '../../nodes/kit/node.ts'
import { isInfrastructure } from '../failures.ts'
import { type AnswerRoom, createAnswerRoom, type KeptAnswer } from './answers.ts'

/** How long a call whose run is open waits for a new attempt to take it over. */
const WAIT_TO_BE_JOINED_MS = 60_000

/** The interval at which Temporal is asked about a call that no attempt waits for. */
const ASK_EVERY_MS = 1_000

/** For how long, how many, and of what size in all outcomes are kept, in case Temporal has not heard of them. */
const KEEP_MS = 300_000
const MOST_KEPT = 10_000
const MOST_KEPT_BYTES = 16_000_000

/** The activity that a call belongs to, as Temporal names it. */
export type CallPlace = { workflowId: string; runId: string; activityId: string }

/**
 * The controls that a call gets: `signal` is aborted once its result is not wanted, `answered` is told the node's
 * answer, and the form in which an earlier attempt has kept that answer.
 */
export type CallControl = { signal: AbortSignal; answered: (result: NodeResult, kept?: KeptAnswer) => void }

/** A call that an attempt waits for. */
type HeldCall = {
  done: Promise<AttemptResult>
  /**
   * What the node said, to travel to the next attempt: if only its storing is left, and there is room for it.
   * Only for a process that stops: the room is not given back.
   */
  keep(): KeptAnswer | undefined
  /** Ends the call, because its result is not wanted. */
  abort(): void
  /** The attempt is over for Temporal. The call goes on as long as its run may want it. */
  leave(): void
}

/**
 * The calls that are under way in this process. A call outlives its attempt if Temporal has only lost sight of
 * that: the next attempt of the same activity takes the call over instead of making it again.
 */
export type Calls = {
  /** Whether an attempt would take over a call, or its outcome, instead of making one. */
  has(info: Info, failures: number): boolean
  /**
   * Takes over the call of an earlier attempt, or its outcome; without one, makes it. `failures` is how many
   * failures of the node Temporal knows: a failure that is not among them is told again.
   */
  take(info: Info, failures: number, make: Make): HeldCall
  /** From now on no call is kept that no attempt waits for: this process takes no new attempts. */
  stop(): void
}

type Make = (control: CallControl) => Promise<AttemptResult>

type Call = {
  place: CallPlace
  done: Promise<AttemptResult>
  abort: () => void
  answer?: NodeResult
  /** Its answer travels on, whatever becomes of the call here. */
  kept: boolean
  /** The newest attempt that waits for it. */
  holder?: object | undefined
}

/** How a call has ended. `failures`: how many failures of the node Temporal knew when it began. */
type Outcome = { result: AttemptResult } | { error: NodeFailure; failures: number }

const sizeOf = ({ output }: AttemptResult) => ('ref' in output ? 0 : output.bytes)

type IsWanted = (place: CallPlace) => Promise<boolean>

/** The calls of this process, by their names. */
type State = {
  isWanted: IsWanted
  underWay: Map<string, Call>
  outcomes: LRUCache<string, Outcome>
  room: AnswerRoom
  stopped: boolean
}

/** `isWanted` asks Temporal whether the result of an activity is still wanted. It may reject. */
export function createCalls({ isWanted }: { isWanted: IsWanted }): Calls {
  const outcomes = new LRUCache<string, Outcome>({
    max: MOST_KEPT,
    ttl: KEEP_MS,
    maxSize: MOST_KEPT_BYTES,
    sizeCalculation: (kept) => 500 + ('error' in kept ? kept.error.message.length : sizeOf(kept.result)),
  })
  const state: State = { isWanted, underWay: new Map(), outcomes, room: createAnswerRoom(), stopped: false }
  return {
    has: (info, failures) =>
      state.underWay.has(nameCall(info)) || findOutcome(state, info, failures) !== undefined,
    take: (info, failures, make) => takeCall(state, info, failures, make),
    stop() {
      state.stopped = true
      for (const call of state.underWay.values()) if (!call.holder) call.abort()
    },
  }
}

function takeCall(state: State, info: Info, failures: number, make: Make): HeldCall {
  const outcome = findOutcome(state, info, failures)
  if (outcome) {
    const done = 'error' in outcome ? Promise.reject(outcome.error) : Promise.resolve(outcome.result)
    return { done, keep: () => undefined, abort() {}, leave() {} }
  }
  const key = nameCall(info)
  const { workflowId, runId } = info.workflowExecution!
  const place = { workflowId, runId, activityId: info.activityId }
  const call = state.underWay.get(key) ?? beginCall(state, key, place, failures, make)
  const attempt = {}
  call.holder = attempt
  return {
    done: call.done,
    keep() {
      const kept = call.answer && state.room.keep(runId, key, call.answer)
      call.kept = kept !== undefined
      return kept
    },
    abort() {
      if (call.holder === attempt) call.abort()
    },
    leave() {
      if (call.holder !== attempt) return
      call.holder = undefined
      void watchCall(state, key, call)
    },
  }
}

function findOutcome({ outcomes }: State, info: Info, failures: number): Outcome | undefined {
  const outcome = outcomes.get(nameCall(info))
  // An operator who resets an activity wants its first attempt again.
  const isKnown = outcome && 'error' in outcome && (outcome.failures !== failures || info.attempt === 1)
  return isKnown ? undefined : outcome
}

function beginCall(
  { underWay, outcomes, room }: State,
  key: string,
  place: CallPlace,
  failures: number,
  make: Make,
): Call {
  const ending = new AbortController()
  const { signal } = ending
  const answered = (answer: NodeResult, kept?: KeptAnswer) => {
    call.answer = answer
    if (kept) room.carry(place.runId, key, kept)
  }
  const call: Call = {
    place,
    kept: false,
    done: Promise.resolve().then(() => make({ signal, answered })),
    abort() {
      if (underWay.get(key) === call) underWay.delete(key)
      if (!call.kept) room.free(place.runId, key)
      ending.abort(new CancelledFailure('Nobody wants the result of this call any more'))
    },
  }
  underWay.set(key, call)
  const settle = (outcome: Outcome | undefined) => {
    if (underWay.get(key) !== call) return
    underWay.delete(key)
    room.free(place.runId, key)
    if (outcome) outcomes.set(key, outcome)
  }
  call.done.then(
    // A task that waits looks again under the same id, which may be scheduled in the same millisecond.
    (result) => settle(result.agent?.pause ? undefined : { result }),
    (error) => {
      const isOwn = error instanceof NodeFailure && !isInfrastructure(error)
      settle(isOwn ? { error, failures } : undefined)
    },
  )
  return call
}

/** Ends a call that no attempt waits for, unless its run is open and an attempt takes the call over in time. */
async function watchCall(state: State, key: string, call: Call): Promise<void> {
  let openSince: number | undefined
  while (state.underWay.get(key) === call && !call.holder) {
    const wanted = state.stopped ? false : await state.isWanted(call.place).catch(() => undefined)
    if (call.holder) return
    if (wanted) openSince ??= Date.now()
    const waited = openSince === undefined ? 0 : Date.now() - openSince
    if (wanted === false || waited > WAIT_TO_BE_JOINED_MS) return call.abort()
    await new Promise((resolve) => setTimeout(resolve, ASK_EVERY_MS).unref())
  }
}

/**
 * The same for all attempts of one activity, and for no other: an id may be scheduled again in the same run,
 * but not at the same time.
 */
function nameCall({ workflowExecution, activityId, scheduledTimestampMs }: Info): string {
  return `${workflowExecution?.runId} ${activityId} ${scheduledTimestampMs}`
}
