import { createFrame, type Failure, type Frame, type Loop, type Result } from './frame.ts'
import type { LoopNode, Plan, PlanNode } from './plan.ts'
import type { LoopItems, NodeRecord } from './records.ts'
import type { LoopRules } from './rules.ts'
import {
  endsOf,
  findLoop,
  findNode,
  findReady,
  isStep,
  loopsAround,
  nodesIn,
  settleFailure,
  stepKey,
  takenInto,
} from './walk.ts'

/**
 * Something to do: `run` a node, `resume` a pause that is due, do the next `step` of an agent, have a segment carry on
 * a pure loop (`turn`), `test` REPEAT's condition on the iteration `body`, `fold` results into a chunk, or `close` a
 * loop.
 */
export type Task =
  | { phase: 'run' | 'resume' | 'step'; node: PlanNode; frame: Frame }
  | { phase: 'turn' | 'fold' | 'close'; node: LoopNode; frame: Frame }
  | { phase: 'test'; node: LoopNode; frame: Frame; body: Frame }

/** A loop's results are folded when there are this many, or more than this many bytes of them. */
const FOLD_COUNT = 100
const FOLD_BYTES = 16_000
/**
 * The limit in bytes while the run drains. It is lower, since results that are not folded are carried over.
 */
const DRAINED_BYTES = 500

/**
 * All tasks that can be done now and are not under way (`busy` has the keys of those that are), in a fixed
 * order. Also ends the iterations that are complete, and begins new ones as the rules allow.
 */
export function collectTasks(plan: Plan, root: Frame, busy: ReadonlySet<string>, rules: LoopRules): Task[] {
  const tasks: Task[] = []

  function visit(frame: Frame): void {
    const { iteration, loops, waits, agents } = frame
    const isBusy = (id: string) => busy.has(stepKey(id, iteration))
    const started = { has: (id: string) => isBusy(id) || id in loops || id in waits || id in agents }
    for (const node of findReady(plan, frame.outcomes, started, frame.loopId)) {
      tasks.push({ phase: 'run', node, frame })
    }
    for (const [id, wait] of Object.entries(waits)) {
      if (wait.due && wait.pause && !isBusy(id)) {
        tasks.push({ phase: 'resume', node: findNode(plan, id)!, frame })
      }
    }
    for (const id of Object.keys(agents)) {
      if (!isBusy(id) && !(id in waits)) tasks.push({ phase: 'step', node: findNode(plan, id)!, frame })
    }
    for (const id of Object.keys(loops)) if (!isBusy(id)) turn(frame, findLoop(plan, id), loops[id]!)
  }

  function turn(frame: Frame, node: LoopNode, loop: Loop): void {
    const { pure, mode, concurrency } = node.loop
    if (pure && !rules.segment) {
      tasks.push({ phase: 'turn', node, frame })
      return
    }
    for (const body of [...loop.frames]) {
      if (!body.elsewhere && !body.failure) visit(body)
    }
    endIterations(plan, node, loop, rules.ends)
    const [body] = loop.frames
    if (mode === 'repeat' && body && !body.elsewhere && isComplete(plan, body)) {
      tasks.push({ phase: 'test', node, frame, body })
      return
    }
    const goesOn = () => !loop.failure && !loop.over && loop.next < loop.count
    while (goesOn() && loop.frames.length < concurrency && rules.begins(node, loop)) {
      visit(beginIteration(node, frame, loop))
    }
    if (busy.has(foldKey(node, frame))) return
    if (!goesOn() && loop.frames.length === 0) {
      if (!rules.holds(node, frame)) tasks.push({ phase: 'close', node, frame })
    } else if (!pure && isFull(loop, rules.drains)) tasks.push({ phase: 'fold', node, frame })
  }

  visit(root)
  return tasks
}

/** Whether a segment does the task; otherwise it is an attempt. */
export function isForSegment({ phase, node }: Task): boolean {
  return phase === 'run' ? isStep(node) : node.kind !== 'agent'
}

/** The key of a task in `busy`. */
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

function isComplete(plan: Plan, body: Frame): boolean {
  return nodesIn(plan, body.loopId).every((node) => body.outcomes[node.id])
}

/** The result of an iteration that is complete. */
export function resultOf(plan: Plan, body: Frame): Result {
  const ends = endsOf(plan, body.outcomes, body.loopId)
  if (ends.length === 1) return body.outputs[ends[0]!]!
  return { ends: Object.fromEntries(ends.map((id) => [id, body.outputs[id]!])) }
}

/**
 * Takes the iterations that are complete or have failed out of the loop. Depending on onItemError, a failure
 * becomes its iteration's result, or ends the loop and everything under way in it.
 */
function endIterations(plan: Plan, node: LoopNode, loop: Loop, ends: LoopRules['ends']): void {
  const { mode, collects } = node.loop
  for (const body of [...loop.frames]) {
    if (body.elsewhere || (body.failure && !ends(node, body))) continue
    if (body.failure && !collects) {
      loop.failure = body.failure
      loop.frames = []
      return
    }
    // A complete iteration of REPEAT ends when its condition has been tested.
    if (!body.failure && (mode === 'repeat' || !isComplete(plan, body))) continue
    const { message = '', type = '', nodeId = '' } = body.failure ?? {}
    const result = body.failure ? { error: { message, type, nodeId } } : resultOf(plan, body)
    loop.frames.splice(loop.frames.indexOf(body), 1)
    loop.results.push({ at: body.at, result, bytes: JSON.stringify(result).length })
  }
}

/**
 * As endIterations, for records that are noted without a walk in between. It first settles the branches that
 * were not taken: otherwise an iteration would stay open, and its result would count again at the next walk.
 */
function endSettled(plan: Plan, node: LoopNode, loop: Loop, ends: LoopRules['ends']): void {
  for (const { outcomes } of loop.frames) findReady(plan, outcomes, { has: () => false }, node.id)
  endIterations(plan, node, loop, ends)
}

/** The first iteration from `at` on that is not taken over. */
function passTaken({ taken }: Pick<Loop, 'taken'>, at: number): number {
  let next = at
  for (const [from, to] of taken?.ranges ?? []) if (from <= next && next <= to) next = to + 1
  return next
}

function beginIteration(node: LoopNode, frame: Frame, loop: Loop): Frame {
  const at = loop.next
  loop.next = passTaken(loop, at + 1)
  const iteration = frame.iteration === '' ? String(at) : `${frame.iteration}.${at}`
  const page = loop.pages.findLast(({ from }) => from <= at)
  const deep = page?.deep ? { deep: page.deep } : {}
  const item = page ? { page: page.items, at: at - page.from, ...deep } : loop.last!
  const body = createFrame(node.id, iteration, at, item)
  loop.frames.push(body)
  return body
}

/**
 * Notes what a step did; a record of an iteration that has ended meanwhile is dropped. Returns the failure if
 * it is one that ends the run.
 */
export function settleRecord(
  plan: Plan,
  root: Frame,
  record: NodeRecord,
  ends: LoopRules['ends'] = () => true,
): Failure | undefined {
  const { nodeId } = record
  const node = findNode(plan, nodeId)
  const frame = node && findFrame(plan, root, node, record.iteration, ends)
  if (!frame) return undefined
  if (record.status === 'FOLDED' || record.status === 'TURNED') {
    const loop = frame.loops[nodeId]
    if (loop) advanceLoop(plan, node as LoopNode, loop, record, ends)
    return undefined
  }
  if ('output' in record && record.output) frame.outputs[nodeId] = record.output
  if (record.status === 'WAITING') {
    const { until, handle, pause } = record
    frame.waits[nodeId] = { until, handle, ...(pause ? { pause } : {}) }
    return undefined
  }
  if (record.status === 'LOOPING') {
    frame.loops[nodeId] = openLoop(plan, frame, node as LoopNode, record.loop)
    return undefined
  }
  delete frame.waits[nodeId]
  delete frame.loops[nodeId]
  delete frame.agents[nodeId]
  if (record.status === 'FAILED' && settleFailure(node, record.error) === 'fatal') {
    const failure = { ...record.error, nodeId, at: frame.at }
    if (frame === root) return failure
    frame.failure = failure
  } else frame.outcomes[nodeId] = { handle: record.handle }
  return undefined
}

function openLoop(plan: Plan, frame: Frame, node: LoopNode, items: LoopItems): Loop {
  const chunks = [...(items.taken?.chunks ?? [])]
  const loop = { ...items, next: passTaken(items, 0), frames: [], results: [], chunks }
  if (node.loop.mode === 'each') return loop
  const before = takenInto(plan, node.id, frame.outcomes).map(({ source, part }) =>
    part === undefined ? frame.outputs[source]! : { ...frame.outputs[source]!, part },
  )
  return { ...loop, last: before.length === 0 && frame.item ? frame.item : { result: { merge: before } } }
}

function advanceLoop(
  plan: Plan,
  node: LoopNode,
  loop: Loop,
  record: Extract<NodeRecord, { status: 'FOLDED' | 'TURNED' }>,
  ends: LoopRules['ends'],
): void {
  if (record.status === 'TURNED') {
    const body = loop.frames.shift()
    if (body) loop.last = { result: resultOf(plan, body) }
    if (record.over) loop.over = true
    return
  }
  endSettled(plan, node, loop, ends)
  const folded = new Set(record.folded)
  loop.results = loop.results.filter(({ at }) => !folded.has(at))
  loop.chunks.splice(loop.chunks.length - record.merged)
  loop.chunks.push(record.output)
}

/**
 * The frame that a step belongs to; undefined if its iteration has ended. An iteration that a segment began
 * by itself begins here too.
 */
function findFrame(
  plan: Plan,
  root: Frame,
  node: PlanNode,
  iteration: string,
  ends: LoopRules['ends'],
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
