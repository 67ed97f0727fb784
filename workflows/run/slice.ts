import { createFrame, type Frame, framesTo, listFrames } from './frame.ts'
import type { Task } from './loops.ts'
import type { Envelope, Plan } from './plan.ts'
import { isStep } from './walk.ts'

/**
 * The part of a run's state that a segment needs for these tasks: their frames and the frames around them.
 * Other iterations become stubs, and the root keeps only the outputs that a step may still read.
 */
export function sliceState(plan: Plan, root: Frame, tasks: Task[]): Frame {
  const kept = new Set<Frame>()
  for (const task of tasks) {
    const { phase, node, frame } = task
    for (const around of framesTo(plan, root, frame)) kept.add(around)
    if (phase === 'test') kept.add(task.body)
    if (phase !== 'turn') continue
    for (const body of frame.loops[node.id]!.frames.flatMap(listFrames)) kept.add(body)
  }
  return { ...copy(root, kept), outputs: chooseOutputs(plan, root) }
}

function copy(frame: Frame, kept: Set<Frame>): Frame {
  const loops = Object.entries(frame.loops).map(([id, loop]) => {
    const frames = loop.frames.map((body) =>
      kept.has(body)
        ? copy(body, kept)
        : { ...createFrame(body.loopId, body.iteration, body.at), elsewhere: true as const },
    )
    return [id, { ...loop, frames }] as const
  })
  return { ...frame, loops: Object.fromEntries(loops) }
}

function chooseOutputs(plan: Plan, root: Frame): Record<string, Envelope> {
  const chosen: Record<string, Envelope> = Object.create(null)
  const take = (id: string) => {
    const output = root.outputs[id]
    if (output) chosen[id] = output
  }
  for (const node of plan.nodes) {
    if (!isStep(node) || root.outcomes[node.id]) continue
    node.needs.forEach(take)
    node.pairs?.forEach(take)
  }
  for (const { source, target } of plan.edges) if (!root.outcomes[target]) take(source)
  return chosen
}
