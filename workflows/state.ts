import { createFrame, type Failure, type Frame, type Loop, type Result } from './frame.ts'
import type { Plan, PlanNode } from './plan.ts'
import {
  endsOf,
  findNode,
  loopsAround,
  type NodeRecord,
  next,
  nodesIn,
  settleFailure,
  sourcesOf,
  stepKey,
} from './walk.ts'

/**
 * Something to do. `run` a node; `resume` a pause that was nudged; `turn` a loop of pure steps, which a segment
 * carries on by itself; `test` REPEAT's condition after `body`; `fold` results into a chunk; `close` a loop.
 */
export type Task = {
  phase: 'run' | 'resume' | 'turn' | 'test' | 'fold' | 'close'
  node: PlanNode
  frame: Frame
  body?: Frame
}

/** A loop keeps so many results, and so many bytes of them, before they are folded. */
const FOLD_COUNT = 100
const FOLD_BYTES = 16_000
const DRAINED_BYTES = 500

export type Rules = {
  /** In a segment, which carries pure loops on by itself; outside a `turn` is all that is seen of them. */
  segment: boolean
  /** Whether one more iteration may begin now. */
  begins: (node: PlanNode, loop: Loop) => boolean
  /** Whether a failed iteration may be ended now: nobody else is at work in it, or what they do is let go. */
  ends: Ends
  /** Whether somebody is at work in the loop, who might close it too. */
  holds: (node: PlanNode, frame: Frame) => boolean
  /** All that loops have come to is folded, so that little is carried over. */
  drains: boolean
}

export type Ends = (node: PlanNode, body: Frame) => boolean

const always: Ends = () => true

/** Whether a key of `busy` is of a step in a loop's body, in the iteration at `path` or further in. */
export function isWithin(plan: Plan, key: string, loopId: string, path: string): boolean {
  const [nodeId = '', iteration = ''] = key.split('#')
  const node = findNode(plan, nodeId)
  if (!node || !loopsAround(plan, node).some(({ id }) => id === loopId)) return false
  const at = iteration.split('!')[0]!
  return path === '' || at === path || at.startsWith(`${path}.`)
}

/**
 * All that can be done now and that nobody is at (`busy`, by stepKey), in a fixed order. On the way iterations that
 * are over are ended, and new ones begun as the rules allow.
 */
export function collect(plan: Plan, root: Frame, busy: ReadonlySet<string>, rules: Rules): Task[] {
  const tasks: Task[] = []

  function visit(frame: Frame): void {
    const { iteration, loops, waits } = frame
    const isBusy = (id: string) => busy.has(stepKey(id, iteration))
    const started = { has: (id: string) => isBusy(id) || id in loops || id in waits }
    for (const node of next(plan, frame.outcomes, started, frame.loopId)) {
      tasks.push({ phase: 'run', node, frame })
    }
    for (const [id, wait] of Object.entries(waits)) {
      if (wait.due && wait.pause && !isBusy(id)) {
        tasks.push({ phase: 'resume', node: findNode(plan, id)!, frame })
      }
    }
    for (const id of Object.keys(loops)) if (!isBusy(id)) turn(frame, findNode(plan, id)!, loops[id]!)
  }

  function turn(frame: Frame, node: PlanNode, loop: Loop): void {
    const spec = node.loop!
    if (spec.pure && !rules.segment) {
      tasks.push({ phase: 'turn', node, frame })
      return
    }
    for (const body of [...loop.frames]) {
      if (!body.elsewhere && !body.failure) visit(body)
    }
    endIterations(plan, node, loop, rules.ends)
    const [body] = loop.frames
    if (spec.mode === 'repeat' && body && !body.elsewhere && isOver(plan, body)) {
      tasks.push({ phase: 'test', node, frame, body })
      return
    }
    const goesOn = () => !loop.failure && !loop.over && loop.next < loop.count
    while (goesOn() && loop.frames.length < spec.concurrency && rules.begins(node, loop)) {
      visit(beginIteration(node, frame, loop))
    }
    if (busy.has(foldKey(node, frame))) return
    if (!goesOn() && loop.frames.length === 0) {
      if (!rules.holds(node, frame)) tasks.push({ phase: 'close', node, frame })
    } else if (!spec.pure && isFull(loop, rules.drains)) tasks.push({ phase: 'fold', node, frame })
  }

  visit(root)
  return tasks
}

/** The key under which a task's work is under way. */
export function taskKey({ phase, node, frame }: Task): string {
  return phase === 'fold' ? foldKey(node, frame) : stepKey(node.id, frame.iteration)
}

function foldKey(node: PlanNode, frame: Frame): string {
  return `${stepKey(node.id, frame.iteration)}!fold`
}

function isFull({ results }: Loop, drains: boolean): boolean {
  if (results.length >= FOLD_COUNT) return true
  const bytes = results.reduce((sum, { bytes }) => sum + bytes, 0)
  return drains ? bytes > DRAINED_BYTES : results.length > 1 && bytes > FOLD_BYTES
}

function isOver(plan: Plan, body: Frame): boolean {
  return nodesIn(plan, body.loopId).every((node) => body.outcomes[node.id])
}

/** What an iteration that is over came to. */
export function resultOf(plan: Plan, body: Frame): Result {
  const ends = endsOf(plan, body.outcomes, body.loopId)
  if (ends.length === 1) return body.outputs[ends[0]!]!
  return { ends: Object.fromEntries(ends.map((id) => [id, body.outputs[id]!])) }
}

/**
 * Takes the iterations that are over out of the loop. A failure is, by the loop's choice, its iteration's result, or
 * ends the loop with all that is under way in it.
 */
function endIterations(plan: Plan, node: PlanNode, loop: Loop, ends: Ends): void {
  const { mode, collects } = node.loop!
  for (const body of [...loop.frames]) {
    if (body.elsewhere || (body.failure && !ends(node, body))) continue
    if (body.failure && !collects) {
      loop.failure = body.failure
      loop.frames = []
      return
    }
    if (!body.failure && (mode === 'repeat' || !isOver(plan, body))) continue
    const { message = '', type = '', nodeId = '' } = body.failure ?? {}
    const result = body.failure ? { error: { message, type, nodeId } } : resultOf(plan, body)
    loop.frames.splice(loop.frames.indexOf(body), 1)
    loop.results.push({ at: body.at, result, bytes: JSON.stringify(result).length })
  }
}

/**
 * endIterations for whoever only notes records: branches that were not taken keep no iteration open, or its result
 * would count once more when somebody walks it.
 */
function endSettled(plan: Plan, node: PlanNode, loop: Loop, ends: Ends): void {
  for (const { outcomes } of loop.frames) next(plan, outcomes, { has: () => false }, node.id)
  endIterations(plan, node, loop, ends)
}

function beginIteration(node: PlanNode, frame: Frame, loop: Loop): Frame {
  const at = loop.next++
  const iteration = frame.iteration === '' ? String(at) : `${frame.iteration}.${at}`
  const page = loop.pages.findLast(({ from }) => from <= at)
  const deep = page?.deep ? { deep: page.deep } : {}
  const item = page ? { page: page.items, at: at - page.from, ...deep } : loop.last!
  const body = createFrame(node.id, iteration, at, item)
  loop.frames.push(body)
  return body
}

/**
 * Notes what a step did. Whatever belongs to an iteration that is over by now is let go. Answers the failure that
 * ends the run, if it is one.
 */
export function settle(plan: Plan, root: Frame, record: NodeRecord, ends = always): Failure | undefined {
  const node = findNode(plan, record.nodeId)
  const frame = node && findFrame(plan, root, node, record.iteration, ends)
  if (!frame) return undefined
  const { nodeId, status } = record
  if (status === 'FOLDED' || status === 'TURNED') {
    settleLoop(plan, node, frame.loops[nodeId], record, ends)
    return undefined
  }
  if (record.output) frame.outputs[nodeId] = record.output
  if (status === 'WAITING') {
    const { until = null, handle, pause } = record
    frame.waits[nodeId] = { until, handle, ...(pause ? { pause } : {}) }
  } else if (status === 'LOOPING') frame.loops[nodeId] = openLoop(plan, frame, node, record)
  else {
    delete frame.waits[nodeId]
    delete frame.loops[nodeId]
    if (record.error && settleFailure(node, record.error) === 'fatal') {
      const failure = { ...record.error, nodeId, at: frame.at }
      if (frame === root) return failure
      frame.failure = failure
    } else frame.outcomes[nodeId] = { handle: record.handle }
  }
  return undefined
}

function openLoop(plan: Plan, frame: Frame, node: PlanNode, { loop }: NodeRecord): Loop {
  const open = { ...loop!, next: 0, frames: [], results: [], chunks: [] }
  if (node.loop!.mode === 'each') return open
  const before = sourcesOf(plan, node.id, frame.outcomes).map((id) => frame.outputs[id]!)
  return { ...open, last: before.length === 0 && frame.item ? frame.item : { result: { merge: before } } }
}

function settleLoop(
  plan: Plan,
  node: PlanNode,
  loop: Loop | undefined,
  record: NodeRecord,
  ends: Ends,
): void {
  if (!loop) return
  if (record.status === 'TURNED') {
    const body = loop.frames.shift()
    if (body) loop.last = { result: resultOf(plan, body) }
    if (record.over) loop.over = true
    return
  }
  endSettled(plan, node, loop, ends)
  const folded = new Set(record.folded)
  loop.results = loop.results.filter(({ at }) => !folded.has(at))
  loop.chunks.splice(loop.chunks.length - (record.merged ?? 0))
  loop.chunks.push(record.output!)
}

/** The frame of a step. An iteration that a segment has begun by itself begins here too; one that is over is none. */
function findFrame(
  plan: Plan,
  root: Frame,
  node: PlanNode,
  iteration: string,
  ends: Ends,
): Frame | undefined {
  let frame: Frame | undefined = root
  const path = iteration.split('.')
  for (const [depth, around] of loopsAround(plan, node).entries()) {
    const loop: Loop | undefined = frame.loops[around.id]
    if (!loop || loop.failure) return undefined
    const at = Number(path[depth])
    if (at >= loop.next) {
      endSettled(plan, around, loop, ends)
      while (loop.next <= at) beginIteration(around, frame, loop)
    }
    frame = loop.frames.find((body) => body.at === at)
    if (!frame || frame.failure) return undefined
  }
  return frame
}
