import { ApplicationFailure } from '@temporalio/common'
import { isDatabaseError } from '../../db/operation/outage.ts'
import { type Frame, isUnder, reviveFrame } from '../../workflows/run/frame.ts'
import { collectTasks, isForSegment, settleRecord, type Task } from '../../workflows/run/loops.ts'
import type { SegmentInput } from '../../workflows/run/messages.ts'
import type { NodeRecord } from '../../workflows/run/records.ts'
import { findOthers, segmentRules } from '../../workflows/run/rules.ts'
import type { ActivityDeps } from '../deps.ts'
import { isTurnedAway, stayAway } from '../fairness/turns.ts'
import { demandIdentity } from '../temporal/identity.ts'
import { describeFailure, finalIfDeleted } from './failures.ts'
import { foldPureLoops, type SegmentWalk, takeTask } from './task.ts'
import { createRunValues } from './values.ts'

const MAX_RECORDS = 500
const MAX_BYTES = 1_000_000

/** Values of steps stay in memory until their segment ends; a segment ends when it holds more than this. */
const MAX_HELD_BYTES = 48_000_000
/** Above this, the values of iterations that are over are dropped. */
const FORGET_BYTES = 8_000_000

/** A longer segment would only delay the work that waits for it. */
const MAX_MS = 5_000

/** The most that the code of a segment's steps may take together, in milliseconds of processor time. */
const MAX_CODE_MS_TOGETHER = 30_000

/**
 * The local activity that executes every pure node that is or becomes ready, by the same rules as the
 * workflow (`collectTasks`, `settleRecord`), until only joins that wait and side effects are left or the
 * segment is full. A node's failure is a record. Errors are thrown only for outages, which are retried, and
 * for a deleted execution.
 */
export async function walkSegment(deps: ActivityDeps, segment: SegmentInput): Promise<NodeRecord[]> {
  const { plan } = segment
  const root = reviveFrame(segment.root)
  const others = findOthers(segment)
  const walk: SegmentWalk = { deps, segment, root, values: createRunValues(deps, segment.context.id) }
  const rules = segmentRules(segment)
  const records: NodeRecord[] = []
  const touched = new Set<Frame>()
  const begun = Date.now()
  let bytes = 0
  let codeMs = 0
  const add = (record: NodeRecord) => {
    records.push(record)
    bytes += Buffer.byteLength(JSON.stringify(record))
    return settleRecord(plan, root, record, rules.ends)
  }
  const isFull = () =>
    records.length >= (deps.segmentRecords ?? MAX_RECORDS) ||
    bytes > MAX_BYTES ||
    Date.now() - begun > MAX_MS ||
    walk.values.held() > MAX_HELD_BYTES
  try {
    await demandIdentity(deps.store, segment.context, { open: false })
    for (let round = 0; ; round++) {
      // Fold only in the first round, for which this segment was started: others may see the same results.
      const tasks = collectTasks(plan, root, others, rules).filter(
        (task) => isForSegment(task) && (task.phase !== 'fold' || round === 0),
      )
      if (tasks.length === 0) return records
      for (const task of tasks) {
        if (task.frame.failure) continue
        codeMs += (task.phase === 'run' && task.node.codeMs) || 0
        if (codeMs > MAX_CODE_MS_TOGETHER && records.length > 0) return records
        const record = await takeUnlessBusy(walk, task)
        if (record && add(record)) return records
        if (record && !isFull()) continue
        for (const fold of await foldPureLoops(walk, others)) add(fold)
        return record ? records : [...records, stayAway(0)]
      }
      for (const { frame } of tasks) touched.add(frame)
      if (walk.values.held() > FORGET_BYTES) forgetEnded(walk, touched)
    }
  } catch (error) {
    throw toSegmentFailure(deps, segment, error)
  } finally {
    deps.touch(segment.context.id)
  }
}

/** The failure of a segment that Temporal repeats or that ends the run. It never has the database's own words. */
function toSegmentFailure(deps: ActivityDeps, { context }: SegmentInput, error: unknown): unknown {
  const final = finalIfDeleted(error)
  if (final !== error || !isDatabaseError(error)) return final
  const { message, type } = describeFailure(error)
  deps.log.warn({ err: error, executionId: context.id }, 'a segment failed and is repeated')
  return ApplicationFailure.create({ message, type })
}

/** As takeTask. Undefined if the step needs a process, and its team cannot have one now. */
async function takeUnlessBusy(walk: SegmentWalk, task: Task): Promise<NodeRecord | undefined> {
  try {
    return await takeTask(walk, task)
  } catch (error) {
    if (isTurnedAway(error)) return undefined
    throw error
  }
}

/** Drops the values of iterations that are over. */
function forgetEnded({ segment, root, values }: SegmentWalk, touched: Set<Frame>): void {
  for (const frame of touched) {
    if (isUnder(segment.plan, root, frame)) continue
    touched.delete(frame)
    for (const output of Object.values(frame.outputs)) values.forget(output)
  }
}
