import type { Envelope, Plan } from './plan.ts'
import { emptyOutcomes, findNode, loopsAround, type NodeError, type Outcomes, type Page } from './walk.ts'

/** What an iteration came to; `ends` and `merge` are values yet to be put together. */
export type Result =
  | Envelope
  | { ends: Record<string, Envelope> }
  | { merge: Envelope[] }
  | { error: NodeError & { nodeId: string } }

/** Where an iteration's item is: an entry of a page, or what REPEAT's iteration before came to. */
export type Item = { page: Envelope; at: number; deep?: true } | { result: Result }

export type Wait = { until: number | null; handle: string | null; pause?: true; due?: true }

/** The root, or one iteration of a loop's body, with all that is settled and open in it. Plain JSON. */
export type Frame = {
  /** '' of the root; '3' of a loop's fourth iteration, '3.0' of the first of a loop in it. */
  iteration: string
  loopId: string
  at: number
  item?: Item
  outcomes: Outcomes
  outputs: Record<string, Envelope>
  loops: Record<string, Loop>
  waits: Record<string, Wait>
  failure?: Failure
  /** In a segment: somebody else is at it. */
  elsewhere?: true
}

export type Failure = NodeError & { nodeId: string; at: number }

/** An open loop. */
export type Loop = {
  /** Iterations at most. */
  count: number
  pages: Page[]
  next: number
  frames: Frame[]
  /** Of iterations that are over and in no chunk yet. */
  results: { at: number; result: Result; bytes: number }[]
  chunks: Envelope[]
  /** REPEAT: what the next iteration gets, and whether there is none. */
  last?: Item
  over?: true
  failure?: Failure
}

export function createFrame(loopId = '', iteration = '', at = 0, item?: Item): Frame {
  const frame = { iteration, loopId, at, ...(item ? { item } : {}) }
  return { ...frame, outcomes: emptyOutcomes(), outputs: bare(), loops: bare(), waits: bare() }
}

/** A state that has been JSON, with node ids for keys again (`toString` is one). */
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
  }
}

function bare<T>(from: Record<string, T> = {}): Record<string, T> {
  return Object.assign(Object.create(null), from)
}

/** The frames around a frame, from the root down to itself. */
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

/** Whether a frame is still under way. */
export function isUnder(plan: Plan, root: Frame, frame: Frame): boolean {
  return framesTo(plan, root, frame).at(-1) === frame
}

/** A frame and all iterations under way in it, each before those within it. */
export function listFrames(frame: Frame): Frame[] {
  const bodies = Object.values(frame.loops).flatMap((loop) => loop.frames)
  return [frame, ...bodies.flatMap(listFrames)]
}

/** Finds the output of a node in a frame, or in one around it. */
export function outputsAround(
  plan: Plan,
  root: Frame,
  frame: Frame,
): (nodeId: string) => Envelope | undefined {
  const around = framesTo(plan, root, frame).reverse()
  return (nodeId) => around.find(({ outputs }) => outputs[nodeId])?.outputs[nodeId]
}
