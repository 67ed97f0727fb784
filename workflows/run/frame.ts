import type { Agent, Envelope, Plan, PlanNode } from './plan.ts'
import type { ItemPage, NodeError, TakenIterations } from './records.ts'
import {
  emptyOutcomes,
  findNode,
  isEntry,
  loopsAround,
  type Outcomes,
  type TakenEdge,
  takenInto,
} from './walk.ts'

/**
 * The result of an iteration. The outputs in `ends` (by node id) and in `merge` are yet to be put together.
 */
export type Result =
  | Envelope
  | { ends: Record<string, Envelope> }
  | { merge: (Envelope & Pick<TakenEdge, 'part'>)[] }
  | { error: NodeError & { nodeId: string } }

/**
 * Where an iteration's item is: in a page at an index, or in a REPEAT, the result of the iteration before.
 */
export type Item = { page: Envelope; at: number; deep?: true } | { result: Result }

/**
 * A node that waits until an instant in epoch milliseconds (null: without a limit), then leaves by `handle`. `pause`:
 * it waits for an answer from outside the run. `due`: the pause was nudged or its time is up, so a segment has to look
 * at it. `step`: the agent's step that waits.
 */
export type Wait = { until: number | null; handle: string | null; pause?: true; due?: true; step?: number }

/** The state of the root or of one iteration of a loop: all that is settled or open in it. Plain JSON. */
export type Frame = {
  /** '' for the root, '3' for a loop's fourth iteration, '3.0' for the first iteration of a loop in that. */
  iteration: string
  loopId: string
  at: number
  item?: Item
  outcomes: Outcomes
  outputs: Record<string, Envelope>
  loops: Record<string, Loop>
  waits: Record<string, Wait>
  /** The agents that are under way. */
  agents: Record<string, Agent>
  failure?: Failure
  /** In a slice: a stub of an iteration that the segment does not work on. */
  elsewhere?: true
}

export type Failure = NodeError & { nodeId: string; at: number }

/** An open loop. */
export type Loop = {
  /** The most iterations that the loop may have. */
  count: number
  pages: ItemPage[]
  next: number
  frames: Frame[]
  /** The results of iterations that are over and not yet folded into a chunk. */
  results: { at: number; result: Result; bytes: number }[]
  chunks: Envelope[]
  /** The iterations that are taken over: they do not begin, and their results are in the first chunks. */
  taken?: TakenIterations
  /** REPEAT: the item of the next iteration, and whether the condition held, which ends the loop. */
  last?: Item
  over?: true
  failure?: Failure
}

export function createFrame(loopId = '', iteration = '', at = 0, item?: Item): Frame {
  const frame = { iteration, loopId, at, ...(item ? { item } : {}) }
  return {
    ...frame,
    outcomes: emptyOutcomes(),
    outputs: bare(),
    loops: bare(),
    waits: bare(),
    agents: bare(),
  }
}

/** Restores a frame from JSON: its records by node id get no prototype, since an id may be `toString`. */
export function reviveFrame(frame: Frame): Frame {
  const loops = Object.entries(frame.loops).map(
    ([id, loop]) => [id, { ...loop, frames: loop.frames.map(reviveFrame) }] as const,
  )
  return {
    ...frame,
    outcomes: bare(frame.outcomes),
    outputs: bare(frame.outputs),
    loops: bare(Object.fromEntries(loops)),
    waits: bare(frame.waits),
    // Frames of the release before have none.
    agents: bare(frame.agents ?? {}),
  }
}

function bare<T>(from: Record<string, T> = {}): Record<string, T> {
  return Object.assign(Object.create(null), from)
}

/** The frames around a frame, from the root down to itself; fewer if it is no longer under way. */
export function framesTo(plan: Plan, root: Frame, frame: Frame): Frame[] {
  const trail = [root]
  if (frame.loopId === '') return trail
  const loops = [...loopsAround(plan, findNode(plan, frame.loopId)!), findNode(plan, frame.loopId)!]
  const path = frame.iteration.split('.').map(Number)
  for (const [depth, loop] of loops.entries()) {
    const body = trail[depth]!.loops[loop.id]?.frames.find(({ at }) => at === path[depth])
    if (!body) break
    trail.push(body)
  }
  return trail
}

/**
 * The input of a node: its taken in-edges or, for the first nodes of a body, the item. A node that works on one item
 * gets that item, and the input of the node whose item it is only if its config reads it.
 */
export function inputOf(
  plan: Plan,
  root: Frame,
  node: PlanNode,
  frame: Frame,
): { taken: TakenEdge[]; around?: Item } {
  const { itemOf } = node
  if (itemOf === undefined) return { taken: takenInto(plan, node.id, frame.outcomes) }
  if (!node.readsInput) return { taken: [] }
  const outer = framesTo(plan, root, frame).at(-2)!
  const around = isEntry(plan, findNode(plan, itemOf)!) ? outer.item : undefined
  return { taken: takenInto(plan, itemOf, outer.outcomes), ...(around ? { around } : {}) }
}

/** The taken in-edges of a node and of those through which its items came, by node id. */
export type Trail = { nodeId: string; taken: Record<string, TakenEdge[]> }

/** The trail of a node that pairs its items with those of nodes before it. */
export function trailOf(plan: Plan, root: Frame, node: PlanNode, frame: Frame): Trail | undefined {
  if (!node.pairs) return undefined
  const nodeId = node.itemOf ?? node.id
  const around = framesTo(plan, root, frame)
  const taken: Record<string, TakenEdge[]> = Object.create(null)
  for (const id of [nodeId, ...node.pairs]) {
    const loopId = findNode(plan, id)?.parentId ?? ''
    const place = around.find((one) => one.loopId === loopId)
    if (place) taken[id] = takenInto(plan, id, place.outcomes)
  }
  return { nodeId, taken }
}

/** Whether a frame is still under way. */
export function isUnder(plan: Plan, root: Frame, frame: Frame): boolean {
  return framesTo(plan, root, frame).at(-1) === frame
}

/** A frame and all iterations under way in it, each before those within it. */
export function listFrames(frame: Frame): Frame[] {
  const bodies = Object.values(frame.loops).flatMap((loop) => loop.frames)
  return [frame, ...bodies.flatMap(listFrames)]
}

/** Returns a function that finds the output of a node in a frame, or in one around it. */
export function outputsAround(
  plan: Plan,
  root: Frame,
  frame: Frame,
): (nodeId: string) => Envelope | undefined {
  const around = framesTo(plan, root, frame).reverse()
  return (nodeId) => around.find(({ outputs }) => outputs[nodeId])?.outputs[nodeId]
}
