import { type Frame, isUnder, listFrames, reviveFrame } from '../workflows/frame.ts'
import type { SegmentInput } from '../workflows/messages.ts'
import type { PlanNode } from '../workflows/plan.ts'
import { collect, isWithin, type Rules, settle } from '../workflows/state.ts'
import { findNode, isStep, type NodeRecord, stepKey } from '../workflows/walk.ts'
import { type ActivityDeps, createValues, finalIfDeleted } from './step.ts'
import { foldPure, takeTask, type Walk } from './task.ts'

const MAX_RECORDS = 500
const MAX_BYTES = 1_000_000
/** Values of steps stay in memory until their segment ends. */
const MAX_HELD_BYTES = 48_000_000
const FORGET_BYTES = 8_000_000
/** A longer segment would only hold back the work that waits behind it. */
const MAX_MS = 5_000

/** Whether nobody else can begin the same iteration: all of the loop is here, or its only iteration is. */
const isOwn = ({ loop }: PlanNode) => loop!.pure || loop!.concurrency === 1

/** What a segment may do by itself. Where somebody else may fail too, it is for the workflow to end it: but once. */
export function createRules({ plan, busy, drains }: SegmentInput): Rules {
  return {
    segment: true,
    // While the run drains nobody is told to carry such a loop on: two segments might both.
    begins: (node) => isOwn(node) && (node.loop!.pure || !drains),
    ends: (node, body) =>
      (isOwn(node) || node.loop!.collects) &&
      !isWaiting(body) &&
      !busy.some((key) => isWithin(plan, key, node.id, body.iteration)),
    holds: () => false,
    drains: drains === true,
  }
}

/** What others are at, by stepKey. While the run drains its open loops of pure steps wait for the new run. */
export function findOthers({ plan, root, busy, drains }: SegmentInput): Set<string> {
  if (!drains) return new Set(busy)
  const open = listFrames(root).flatMap(({ loops, iteration }) =>
    Object.keys(loops).flatMap((id) => (findNode(plan, id)!.loop!.pure ? [stepKey(id, iteration)] : [])),
  )
  return new Set([...busy, ...open])
}

/**
 * A local activity: walks every pure node that becomes ready, with the workflow's own `collect` and `settle`, up to
 * a join that waits or a side effect. A node's failure is a record, never a throw; what throws is infrastructure
 * and is retried.
 */
export async function walkSegment(deps: ActivityDeps, segment: SegmentInput): Promise<NodeRecord[]> {
  const { plan } = segment
  const root = reviveFrame(segment.root)
  const others = findOthers(segment)
  const walk: Walk = { deps, segment, root, values: createValues(deps, segment.context.id) }
  const rules = createRules(segment)
  const records: NodeRecord[] = []
  const touched = new Set<Frame>()
  const begun = Date.now()
  let bytes = 0
  const add = (record: NodeRecord) => {
    records.push(record)
    bytes += Buffer.byteLength(JSON.stringify(record))
    return settle(plan, root, record, rules.ends)
  }
  const isFull = () =>
    records.length >= (deps.segmentRecords ?? MAX_RECORDS) ||
    bytes > MAX_BYTES ||
    Date.now() - begun > MAX_MS ||
    walk.values.held() > MAX_HELD_BYTES
  try {
    for (let round = 0; ; round++) {
      // Results are folded by whoever was told to: two segments may see the same ones.
      const tasks = collect(plan, root, others, rules).filter(({ phase, node }) =>
        phase === 'run' ? isStep(node) : phase !== 'fold' || round === 0,
      )
      if (tasks.length === 0) return records
      for (const task of tasks) {
        if (task.frame.failure) continue
        if (add(await takeTask(walk, task))) return records
        if (!isFull()) continue
        for (const fold of await foldPure(walk, others)) add(fold)
        return records
      }
      for (const { frame } of tasks) touched.add(frame)
      if (walk.values.held() > FORGET_BYTES) forgetEnded(walk, touched)
    }
  } catch (error) {
    throw finalIfDeleted(error)
  } finally {
    deps.touch(segment.context.id)
  }
}

function isWaiting({ waits, loops }: Frame): boolean {
  if (Object.keys(waits).length > 0) return true
  return Object.values(loops).some(({ frames }) => frames.some(isWaiting))
}

/** Lets go of the values of iterations that are over. */
function forgetEnded({ segment, root, values }: Walk, touched: Set<Frame>): void {
  for (const frame of touched) {
    if (isUnder(segment.plan, root, frame)) continue
    touched.delete(frame)
    for (const output of Object.values(frame.outputs)) values.forget(output)
  }
}
