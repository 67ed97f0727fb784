import { Context } from '@temporalio/activity'
import { ApplicationFailure } from '@temporalio/common'
import { missing } from '../../db/fault.ts'
import { findOwner } from '../../db/owners.ts'
import type { FailureType } from '../../workflows/nodes/failures.ts'
import { listFrames } from '../../workflows/run/frame.ts'
import type { AttemptInput, AttemptResult, SegmentInput } from '../../workflows/run/messages.ts'
import type { ExecutionContext, PlanNode } from '../../workflows/run/plan.ts'
import type { NodeRecord } from '../../workflows/run/records.ts'
import type { ActivityDeps } from '../deps.ts'
import { EXPRESSIONS_BUSY } from '../expressions/failures.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import { readNotes } from '../run/calls/notes.ts'

/** How long a segment keeps its slot to get a process: long enough for those ahead of it if their jobs are small. */
const PATIENCE_MS = 50

/**
 * How it works: api/docs/guide/how-fairness-works.md.
 *
 * Runs an attempt if its team has less than half of the slots of its queue. Else it returns its slot at once, which counts
 * nowhere: Temporal makes the next attempt after a while, as if there had been none.
 */
export async function attemptInPlace(
  deps: ActivityDeps,
  input: AttemptInput,
  run: (deps: ActivityDeps, input: AttemptInput) => Promise<AttemptResult>,
): Promise<AttemptResult> {
  const activity = Context.current()
  const team = await findTeam(deps, input.context)
  // A worker that stops lets calls to models end, whatever they have to evaluate.
  const evaluator = deps.evaluator.for({ team, answered: input.node.queue === 'models' })
  // A run of the release before has attempts to spare, but not without end.
  if (activity.info.retryPolicy?.maximumAttempts) {
    return run({ ...deps, evaluator: evaluator.for({ patienceMs: undefined }) }, input)
  }
  // What its call takes up is taken up already.
  if (deps.calls.has(activity.info, readNotes(activity.info).failures))
    return run({ ...deps, evaluator }, input)
  const { queue = 'attempts' } = input.node
  const place = deps.places[queue].take(team)
  if ('comeAgainMs' in place) {
    deps.metrics?.turnedAway.inc({ kind: kindOfSlot(input.node) })
    throw returnSlot(activity, place.comeAgainMs)
  }
  let served = true
  try {
    return await run({ ...deps, evaluator }, input)
  } catch (error) {
    const busy: FailureType = 'WorkerBusy'
    served = !(error instanceof ApplicationFailure && error.type === busy)
    throw error
  } finally {
    place.leave(served)
  }
}

/** The kind of slot that a node's attempts take, as metrics name it. */
export function kindOfSlot({ queue }: PlanNode): 'node' | 'model' {
  return queue === 'models' ? 'model' : 'node'
}

/**
 * Walks a segment if its team has less than half of the slots, and as long as it gets a process whenever it
 * needs one. Else it gives its slot back, and the last record tells the run how long to wait.
 */
export async function segmentInPlace(
  deps: ActivityDeps,
  segment: SegmentInput,
  walk: (deps: ActivityDeps, segment: SegmentInput) => Promise<NodeRecord[]>,
): Promise<NodeRecord[]> {
  const { places, metrics, firstTasks } = deps
  const { plan, context, root } = segment
  const team = await findTeam(deps, context)
  const isFirst = root.outcomes[plan.triggerNodeId] === undefined
  firstTasks.begun(context.id, team, isFirst ? Date.parse(context.startedAt) : undefined)
  const turnAway = (comeAgainMs: number) => {
    metrics?.turnedAway.inc({ kind: 'segment' })
    return stayAway(comeAgainMs)
  }
  const place = places.segments.take(team)
  if ('comeAgainMs' in place) return [turnAway(place.comeAgainMs)]
  const large = isLarge(segment) ? places.large.take(team) : undefined
  if (large && 'comeAgainMs' in large) {
    place.leave()
    return [turnAway(large.comeAgainMs)]
  }
  let evaluated = false
  const waits = () => () => {
    evaluated = true
  }
  const evaluator = deps.evaluator.for({ team, patienceMs: PATIENCE_MS, waits })
  try {
    const records = await walk({ ...deps, evaluator }, segment)
    if (records.at(-1)?.status === 'AWAY') {
      return [...records.slice(0, -1), turnAway(places.processes.turnAway(team))]
    }
    if (evaluated) places.processes.served(team)
    return records
  } finally {
    large?.leave()
    place.leave()
  }
}

const LARGE_BYTES = 1_000_000

/** Whether the stored values that a segment may read are large, all together. */
function isLarge({ root, input }: SegmentInput): boolean {
  const outputs = listFrames(root).flatMap((frame) => Object.values(frame.outputs))
  let bytes = 0
  for (const envelope of [input, ...outputs]) if ('ref' in envelope) bytes += envelope.bytes
  return bytes > LARGE_BYTES
}

/** Whether a segment or an attempt has to give its slot back because it has waited for a process. */
export function isTurnedAway(error: unknown): boolean {
  return error instanceof NodeFailure && error.type === EXPRESSIONS_BUSY
}

/** The record of a segment that has given its slot back before it was done. It is no node's. */
export function stayAway(forMs: number): NodeRecord {
  const now = Date.now()
  return {
    nodeId: '',
    iteration: '',
    startedAt: now,
    completedAt: now,
    status: 'AWAY',
    forMs,
    handle: null,
  }
}

/** The failure with which an attempt returns its slot. It leaves no trace but its count, to be subtracted. */
function returnSlot(activity: Context, nextRetryDelay: number): ApplicationFailure {
  const before = readNotes(activity.info)
  activity.heartbeat({ ...before, returned: before.returned + 1 })
  const type: FailureType = 'WorkerBusy'
  const message = 'The team has its half of the worker'
  // Nothing is wrong, so the SDK logs nothing.
  return ApplicationFailure.create({ message, type, nextRetryDelay, category: 'BENIGN' })
}

/**
 * The team of a run. While PostgreSQL cannot say which it is, every workflow counts as a team: the work itself
 * waits until it can.
 */
export async function findTeam(
  { store }: Pick<ActivityDeps, 'store'>,
  { workflowId }: ExecutionContext,
): Promise<string> {
  const team = await findOwner(store, 'workflows', workflowId).catch(() => undefined)
  return team ?? workflowId
}

/** The team of a run, which is certain: for what the team's calls may open and reach. Throws NOT_FOUND. */
export async function readRunTeam(
  { store }: Pick<ActivityDeps, 'store'>,
  { workflowId }: ExecutionContext,
): Promise<string> {
  const team = await findOwner(store, 'workflows', workflowId)
  if (team === undefined) throw missing('workflow')
  return team
}
