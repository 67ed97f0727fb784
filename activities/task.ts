import { cancellationSignal } from '@temporalio/activity'
import { hasEnded } from '../db/executions.ts'
import { hasBegun } from '../db/outbox.ts'
import { type Frame, outputsAround } from '../workflows/frame.ts'
import type { GraphNode } from '../workflows/graph.ts'
import type { SegmentInput } from '../workflows/messages.ts'
import type { Envelope } from '../workflows/plan.ts'
import { resultOf, type Task } from '../workflows/state.ts'
import { EXHAUSTED, type NodeRecord, nodesIn, settleFailure, sourcesOf, stepKey } from '../workflows/walk.ts'
import { endWaits } from './ends.ts'
import { foldResults, gatherResults, readItems } from './loop.ts'
import { NodeFailure } from './nodes/failure.ts'
import type { NodeContext, NodeResult } from './nodes/node.ts'
import {
  type ActivityDeps,
  describeFailure,
  endedBefore,
  finalIfDeleted,
  isInfrastructure,
  loadNode,
  packResult,
  prepareStep,
  runStep,
  type Step,
  type Values,
} from './step.ts'

/** A segment at work. */
export type Walk = { deps: ActivityDeps; segment: SegmentInput; root: Frame; values: Values }

/** Does one step of a segment. A node's failure is in the record; what throws is infrastructure, to be tried again. */
export async function takeTask(walk: Walk, task: Task): Promise<NodeRecord> {
  const { deps, segment, values } = walk
  const { node, frame } = task
  const { plan, context } = segment
  const startedAt = Date.now()
  const head = { nodeId: node.id, iteration: frame.iteration, handle: null, startedAt }
  if (node.id === plan.triggerNodeId) {
    // The start may have lain in Temporal's hands, or on the way to it, while the run was cancelled.
    const begun = await hasBegun(deps.store, context.id)
    if (!begun && (await hasEnded(deps.store, context.id))) throw endedBefore()
    if (!node.given) return { ...head, status: 'SUCCESS', output: segment.input, completedAt: startedAt }
  }
  if (node.given) {
    const { output, handle } = node.given
    return { ...head, status: 'SUCCESS', output, handle, completedAt: startedAt }
  }
  const step = placeStep(walk, task, await loadNode(deps, context, node.id))
  const pack = (output: unknown) => packResult(deps, values, step, output, plan.inlineBytes)
  const prepared = await prepare(walk, task, step)
  try {
    if (prepared instanceof NodeFailure) throw prepared
    const done = await doTask(walk, task, step.node, prepared, pack)
    return { ...head, ...done, completedAt: Date.now() }
  } catch (error) {
    if (finalIfDeleted(error) !== error || isInfrastructure(error)) throw error
    const failure = describeFailure(error)
    const failed = { ...head, status: 'FAILED' as const, error: failure, completedAt: Date.now() }
    const handled = settleFailure(node, failure)
    if (handled === 'fatal' && frame.loopId !== '') {
      await endWaits(deps, context.id, plan.nodes, frame.loopId, frame.iteration, true)
    }
    return handled === 'fatal'
      ? failed
      : { ...failed, output: await pack(handled.output), handle: handled.handle }
  }
}

function placeStep({ segment, root }: Walk, { node, frame, body }: Task, graphNode: GraphNode): Step {
  const { plan, context } = segment
  const key = frame.iteration === '' ? node.id : stepKey(node.id, frame.iteration)
  return {
    node: graphNode,
    context,
    sources: sourcesOf(plan, node.id, frame.outcomes),
    needs: node.needs,
    find: outputsAround(plan, root, body ?? frame),
    triggerNodeId: plan.triggerNodeId,
    iteration: frame.iteration,
    item: frame.item,
    attempt: 1,
    idempotencyKey: `${context.id}:${key}`,
    signal: cancellationSignal(),
  }
}

/** What the node is given; the failure is the node's own if it asks for too much. */
async function prepare(
  walk: Walk,
  { phase }: Task,
  step: Step,
): Promise<NodeContext | NodeFailure | undefined> {
  if (phase === 'fold' || phase === 'close') return undefined
  try {
    return await prepareStep(walk.deps, walk.values, step)
  } catch (error) {
    if (error instanceof NodeFailure) return error
    throw error
  }
}

type Done = Pick<NodeRecord, 'status'> & Partial<NodeRecord>
type Pack = (output: unknown) => Promise<Envelope>

async function doTask(
  walk: Walk,
  task: Task,
  graphNode: GraphNode,
  prepared: NodeContext | undefined,
  pack: Pack,
): Promise<Done> {
  const { deps, segment, values } = walk
  const { phase, node, frame } = task
  if (phase === 'fold') {
    return {
      status: 'FOLDED',
      ...(await foldResults(deps, segment.context.id, values, frame.loops[node.id]!)),
    }
  }
  if (phase === 'close') {
    const output = await closeLoop(walk, task, pack)
    const exhausted = node.loop!.mode === 'repeat' && !frame.loops[node.id]!.over
    return { status: 'SUCCESS', output, handle: exhausted ? EXHAUSTED : null }
  }
  if (phase === 'test') return { status: 'TURNED', over: await testLoop(walk, task, prepared!) }
  if (node.loop) return openLoop(walk, task, prepared!, pack)
  const result = await runStep(graphNode, prepared!, phase === 'resume')
  if (result.pause) return { status: 'WAITING', until: result.pause.until, pause: true }
  demandShort(graphNode, result)
  const handle = node.silent ? node.silent.handle : (result.handle ?? null)
  const waits = result.until !== undefined && result.until > Date.now()
  const until = waits ? { until: result.until! } : {}
  return { status: waits ? 'WAITING' : 'SUCCESS', output: await pack(result.output), handle, ...until }
}

/** A wait that its node's own limit would cut short fails at once: it is known before. */
function demandShort(node: GraphNode, { until }: NodeResult): void {
  if (node.timeoutMs === undefined || until === undefined) return
  const wait = until - Date.now()
  if (wait <= node.timeoutMs) return
  const message = `The wait of ${wait} ms is longer than the node's limit of ${node.timeoutMs} ms`
  throw new NodeFailure(message, { type: 'NodeTimedOut' })
}

async function openLoop(
  { deps, segment }: Walk,
  { node }: Task,
  prepared: NodeContext,
  pack: Pack,
): Promise<Done> {
  const { mode, max } = node.loop!
  const empty = nodesIn(segment.plan, node.id).length === 0
  if (mode === 'repeat') {
    if (empty) return { status: 'SUCCESS', output: await pack(prepared.input) }
    return { status: 'LOOPING', loop: { count: max, pages: [] } }
  }
  const { pages, items } = await readItems(deps, segment.context.id, prepared)
  if (empty) return { status: 'SUCCESS', output: await pack({ items }) }
  return { status: 'LOOPING', loop: { count: items.length, pages } }
}

/** What a loop puts out; throws the failure that ended it. */
async function closeLoop(walk: Walk, { node, frame }: Task, pack: Pack): Promise<Envelope> {
  const { deps, segment, values } = walk
  const loop = frame.loops[node.id]!
  await endWaits(deps, segment.context.id, segment.plan.nodes, node.id, frame.iteration)
  if (loop.failure) {
    const { message, type, nodeId, at } = loop.failure
    const failed = segment.plan.nodes.find(({ id }) => id === nodeId)
    // Without a name of its own a node is called by its type, as others may be.
    const name = failed && failed.name !== failed.type ? failed.name : nodeId
    throw new NodeFailure(`Iteration ${at} failed at "${name}": ${message}`, { type })
  }
  if (node.loop!.mode === 'each') return pack({ items: await gatherResults(values, loop) })
  const last = loop.last && 'result' in loop.last ? loop.last.result : undefined
  if (last && ('v' in last || 'ref' in last)) return last
  return pack(last ? await values.readResult(last) : null)
}

/** Whether REPEAT is over: its condition, over what the iteration came to. */
async function testLoop({ segment, values }: Walk, { body }: Task, prepared: NodeContext): Promise<boolean> {
  const input = await values.readResult(resultOf(segment.plan, body!))
  const bindings = { ...prepared.bindings, input, item: input, index: body!.at }
  return prepared.evaluator.test(prepared.config.until, bindings)
}

/** Folds what the loops that are only this segment's have come to: their results need not travel one by one. */
export async function foldPure(walk: Walk, others: ReadonlySet<string>): Promise<NodeRecord[]> {
  const { segment, root } = walk
  const open: Task[] = []
  const visit = (frame: Frame) => {
    for (const [id, loop] of Object.entries(frame.loops)) {
      const node = segment.plan.nodes.find((candidate) => candidate.id === id)!
      if (others.has(stepKey(id, frame.iteration))) continue
      if (node.loop!.pure && loop.results.length > 0) open.push({ phase: 'fold', node, frame })
      for (const body of loop.frames) if (!body.elsewhere) visit(body)
    }
  }
  visit(root)
  const folds: NodeRecord[] = []
  for (const task of open) folds.push(await takeTask(walk, task))
  return folds
}
