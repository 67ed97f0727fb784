import { type Frame, type Loop, listFrames } from './frame.ts'
import type { SegmentInput } from './messages.ts'
import type { LoopNode, Plan } from './plan.ts'
import { findLoop, isWithin, stepKey } from './walk.ts'

/**
 * The rules for beginning and ending the iterations of a loop. The workflow and its segments walk copies of the same
 * state at the same time, so for each iteration exactly one of them may begin it, and one may end it.
 */
export type LoopRules = {
  /** True in a segment, which takes the steps of pure loops. The workflow sees such a loop as one `turn`. */
  segment: boolean
  /** Whether another iteration of the loop may begin now. */
  begins: (node: LoopNode, loop: Loop) => boolean
  /** Whether a failed iteration may end now: no activity works in it, or its result will be discarded. */
  ends: (node: LoopNode, body: Frame) => boolean
  /** Whether a segment is at work in the loop: it might close the loop too. */
  holds: (node: LoopNode, frame: Frame) => boolean
  /** Whether the run is about to continue as new: small results are folded too, to carry over little. */
  drains: boolean
}

/** With more iterations under way than this, only loops that have none under way begin one. */
const MAX_ITERATIONS = 64

/** The workflow's rules. `walking` has the keys of the tasks that segments are working on. */
export function workflowRules(
  plan: Plan,
  root: Frame,
  walking: ReadonlySet<string>,
  drains: boolean,
): LoopRules {
  return {
    segment: false,
    begins: (_, { frames }) => !drains && (frames.length === 0 || listFrames(root).length <= MAX_ITERATIONS),
    ends: () => true,
    holds: (node, { iteration }) => [...walking].some((key) => isWithin(plan, key, node.id, iteration)),
    drains,
  }
}

/** A segment's rules: it begins and ends only the iterations that no one else can begin or end. */
export function segmentRules({ plan, busy, drains }: SegmentInput): LoopRules {
  return {
    segment: true,
    // While the run drains, two segments might both begin the next iteration of a loop that is not pure.
    begins: (node) => isSoleWalker(node) && (node.loop.pure || !drains),
    // If another activity of the iteration may fail too, the workflow ends it, so that it is done once.
    ends: (node, body) =>
      (isSoleWalker(node) || node.loop.collects) &&
      !isWaiting(body) &&
      !busy.some((key) => isWithin(plan, key, node.id, body.iteration)),
    holds: () => false,
    drains: drains === true,
  }
}

/**
 * The taskKeys that a segment must leave alone: what others are working on and, while the run drains, the
 * open pure loops, which wait for the new run.
 */
export function findOthers({ plan, root, busy, drains }: SegmentInput): Set<string> {
  if (!drains) return new Set(busy)
  const open = listFrames(root).flatMap(({ loops, iteration }) =>
    Object.keys(loops).flatMap((id) => (findLoop(plan, id).loop.pure ? [stepKey(id, iteration)] : [])),
  )
  return new Set([...busy, ...open])
}

/** A segment has the whole of a pure loop to itself, and the only iteration of one without concurrency. */
function isSoleWalker({ loop }: LoopNode): boolean {
  return loop.pure || loop.concurrency === 1
}

function isWaiting({ waits, agents, loops }: Frame): boolean {
  if (Object.keys(waits).length > 0 || Object.keys(agents).length > 0) return true
  return Object.values(loops).some(({ frames }) => frames.some(isWaiting))
}
