import {
  type ApplicationFailure,
  type CancellationScope,
  defineSignal,
  isCancellation,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow'
import { createCancellation } from './cancellation.ts'
import { engineFailure, nodeFailure } from './commands.ts'
import { createFrame, type Frame, reviveFrame } from './frame.ts'
import { settleRecord } from './loops.ts'
import type { AttemptInput, RunInput } from './messages.ts'
import type { NodeRecord } from './records.ts'
import { createTimers } from './timers.ts'
import { NUDGE } from './walk.ts'

const nudge = defineSignal<[string]>(NUDGE)

/** The state of a run while it walks its plan. */
export type Run = {
  readonly input: RunInput
  /** When the execution started and must end, in milliseconds. */
  readonly startedAt: number
  readonly deadline: number | null
  readonly context: AttemptInput['context']
  readonly root: Frame
  /** The keys of the pauses that signals have told of and that were not looked at yet. */
  readonly nudges: Set<string>
  /** The keys of what is under way. */
  readonly busy: Set<string>
  /** The keys of the tasks that segments are working on. */
  readonly walking: Set<string>
  readonly scopes: ReturnType<typeof createCancellation>
  readonly timers: ReturnType<typeof createTimers>
  /** How many pieces of work are under way. */
  working: number
  /** Grows when the walk should look again at what can be done. */
  progress: number
  /** The bytes of the records that travel with the next response, and whether the worker is made to give it. */
  unsent: number
  sending: boolean
  /** How many delays are not over, of segments that gave their slot back; the last ends at `awayUntil`. */
  away: number
  awayUntil: number
  /** How many segments in a row gave their slot back. */
  inVain: number
  failure: ApplicationFailure | undefined
  timedOut: boolean
}

/** Takes up a run where the one before it in the chain has left off, or at its trigger, and listens for nudges. */
export function openRun(input: RunInput): Run {
  const { plan, carried } = input
  const startedAt = carried?.startedAt ?? workflowInfo().startTime.getTime()
  const item = plan.item && { result: plan.item }
  const root = carried ? reviveFrame(carried.root) : createFrame('', '', 0, item)
  const nudges = new Set(carried?.nudges)
  const run: Run = {
    ...{ input, startedAt, root, nudges },
    deadline: carried ? carried.deadline : input.timeoutMs === null ? null : startedAt + input.timeoutMs,
    context: { ...input.context, startedAt: new Date(startedAt).toISOString() },
    ...{ busy: new Set(), walking: new Set() },
    scopes: createCancellation(plan, root),
    timers: createTimers(plan, root, () => wake(run)),
    ...{ working: 0, progress: 0, unsent: 0, sending: false, away: 0, awayUntil: 0, inVain: 0 },
    ...{ failure: undefined, timedOut: false },
  }
  // All who reach Temporal can send signals. One that the service did not seal for this run says nothing.
  setHandler(nudge, (key) => {
    if (typeof key !== 'string') return
    nudges.add(key)
    wake(run)
  })
  return run
}

/** Makes the walk look again at what can be done. */
export function wake(run: Run): void {
  run.progress++
}

/** One piece of work of a run, and what its end changes. */
type Work<T> = {
  within: CancellationScope
  /** The keys of its tasks. */
  keys: string[]
  work: () => Promise<T>
  done: (result: T) => void
  /** Gets its error, unless it was cancelled; by default the run fails. */
  failed?: (error: unknown) => void
}

/**
 * Starts a piece of work. We make few promises here: Temporal records the stack of each, which is half of what a
 * workflow task costs.
 */
export function beginWork<T>(run: Run, { within, keys, work, done, failed }: Work<T>): void {
  for (const key of keys) run.busy.add(key)
  run.working++
  const end = (settled: () => void) => {
    try {
      settled()
    } catch (error) {
      failRun(run, error)
    }
    run.working--
    for (const key of keys) run.busy.delete(key)
    wake(run)
  }
  within.run(work).then(
    (result) => end(() => done(result)),
    (error) =>
      end(() => {
        if (isCancellation(error)) return
        if (failed) failed(error)
        else failRun(run, error)
      }),
  )
}

function failRun(run: Run, error: unknown): void {
  run.failure ??= engineFailure(error)
}

/** Settles what a record tells of; a failure that nothing handles ends the run. */
export function noteRecord(run: Run, record: NodeRecord): void {
  const fatal = settleRecord(run.input.plan, run.root, record)
  if (fatal) run.failure ??= nodeFailure(fatal)
}
