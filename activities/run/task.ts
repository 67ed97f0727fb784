import { cancellationSignal } from '@temporalio/activity'
import { hasEnded } from '../../db/executions/executions.ts'
import { isDatabaseError } from '../../db/operation/outage.ts'
import { wasJustStarted } from '../../db/outbox.ts'
import { listCredentials } from '../../workflows/graph/credentials.ts'
import type { GraphNode } from '../../workflows/graph/graph.ts'
import { itemsOf } from '../../workflows/input.ts'
import type { FailureType } from '../../workflows/nodes/failures.ts'
import { type Frame, inputOf, outputsAround, trailOf } from '../../workflows/run/frame.ts'
import { resultOf, type Task } from '../../workflows/run/loops.ts'
import type { SegmentInput } from '../../workflows/run/messages.ts'
import type { Envelope, LoopNode } from '../../workflows/run/plan.ts'
import type { ItemPage, NodeRecord, StepResult } from '../../workflows/run/records.ts'
import { EXHAUSTED, findLoop, nodesIn, settleFailure, stepKey } from '../../workflows/run/walk.ts'
import { createCredentials } from '../credentials/credentials.ts'
import type { ActivityDeps } from '../deps.ts'
import { findTeam, isTurnedAway } from '../fairness/turns.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import type { NodeContext, NodeResult } from '../nodes/kit/node.ts'
import { abandonPauses } from './abandon.ts'
import { describeFailure, endedBefore, finalIfDeleted, isInfrastructure, reportFailure } from './failures.ts'
import { createItemOutput } from './items/output.ts'
import { gatherCalls } from './loops/calls.ts'
import { foldResults, gatherResults, packLoopItems, renderLoopItems } from './loops/loop.ts'
import { takeOverIterations } from './loops/takeover.ts'
import { giveUpStep } from './outages.ts'
import { loadNode, type NodeStep, prepareStep, runStep } from './step.ts'
import { packResult, packValue, type RunValues } from './values.ts'

/** A segment that is being executed: its input, the root frame, and the values it has opened. */
export type SegmentWalk = { deps: ActivityDeps; segment: SegmentInput; root: Frame; values: RunValues }

/** Does one step of a segment. A node's failure is in the record; throws for outages and deleted rows. */
export async function takeTask(walk: SegmentWalk, task: Task): Promise<NodeRecord> {
  const { deps, segment, values } = walk
  const { node, frame } = task
  const { plan, context } = segment
  const startedAt = Date.now()
  const head = { nodeId: node.id, iteration: frame.iteration, startedAt }
  if (node.id === plan.triggerNodeId) {
    // The execution may have been cancelled while its start was queued in Temporal or on the way to it.
    const isFresh = await wasJustStarted(deps.store, context.id)
    if (!isFresh && (await hasEnded(deps.store, context.id))) throw endedBefore()
    if (!node.given) {
      return { ...head, status: 'SUCCESS', output: segment.input, handle: null, completedAt: startedAt }
    }
  }
  if (node.given) {
    const { output, handle } = node.given
    return { ...head, status: 'SUCCESS', output, handle, completedAt: startedAt }
  }
  const key = `${context.id} ${stepKey(node.id, frame.iteration)}`
  const ready = await prepare(walk, task, key)
  const noted = () => (ready instanceof NodeFailure ? {} : (ready.prepared?.notes.kept() ?? {}))
  try {
    if (ready instanceof NodeFailure) throw ready
    const { step, prepared } = ready
    const pack = (output: unknown) => packResult(deps, values, step, output, plan.inlineBytes)
    const done = await doTask(walk, task, step.node, prepared, pack)
    return { ...head, ...done, ...noted(), completedAt: Date.now() }
  } catch (thrown) {
    if (finalIfDeleted(thrown) !== thrown || isInfrastructure(thrown) || isTurnedAway(thrown)) throw thrown
    const error = isDatabaseError(thrown) ? giveUpStep(deps.store, key, thrown, deps.patienceMs) : thrown
    reportFailure(deps, error, { executionId: context.id, nodeId: node.id, iteration: frame.iteration })
    const failure = describeFailure(error)
    const failed = { ...head, status: 'FAILED' as const, error: failure, ...noted(), completedAt: Date.now() }
    const handled = settleFailure(node, failure)
    if (handled !== 'fatal') {
      const output = await packValue(deps, context.id, handled.output, plan.inlineBytes)
      return { ...failed, output, handle: handled.handle }
    }
    if (frame.loopId !== '') {
      await abandonPauses(deps, context.id, plan.nodes, frame.loopId, frame.iteration, true)
    }
    return { ...failed, handle: null }
  }
}

function placeStep(
  { segment, root }: SegmentWalk,
  task: Task,
  loaded: Pick<NodeStep, 'node' | 'language' | 'names' | 'leads'>,
): NodeStep {
  const { plan, context } = segment
  const { node, frame } = task
  const key = frame.iteration === '' ? node.id : stepKey(node.id, frame.iteration)
  const { taken, around } = inputOf(plan, root, node, frame)
  return {
    ...loaded,
    context,
    sources: [...new Set(taken.map(({ source }) => source))],
    taken,
    around,
    trail: trailOf(plan, root, node, frame),
    needs: [...node.needs, ...(node.pairs ?? [])],
    find: outputsAround(plan, root, task.phase === 'test' ? task.body : frame),
    triggerNodeId: plan.triggerNodeId,
    iteration: frame.iteration,
    item: frame.item,
    attempt: 1,
    idempotencyKey: `${context.id}:${key}`,
    signal: cancellationSignal(),
  }
}

/**
 * The step and the context for its runner (undefined for phases without one), or the node's failure. Throws
 * while another try may help.
 */
async function prepare(
  walk: SegmentWalk,
  task: Task,
  key: string,
): Promise<{ step: NodeStep; prepared: NodeContext | undefined } | NodeFailure> {
  const { deps, segment, values } = walk
  try {
    const step = placeStep(walk, task, await loadNode(deps, segment.context, task.node.id))
    if (task.phase === 'fold' || task.phase === 'close') return { step, prepared: undefined }
    const prepared = await prepareStep(deps, values, step)
    // Runs that began before the secret of the node was moved into a credential have the node as a step of theirs.
    const isMoved = listCredentials(step.node).length > 0 && !step.node.disabled
    if (!isMoved) return { step, prepared }
    const teamId = await findTeam(deps, segment.context)
    const { http } = await deps.outside.forTeam(teamId)
    const { workflowId } = segment.context
    const credentials = createCredentials(deps.store, http, { teamId, workflowId })
    return { step, prepared: { ...prepared, credentials } }
  } catch (error) {
    if (error instanceof NodeFailure) return error
    return giveUpStep(deps.store, key, error, deps.patienceMs)
  }
}

type Pack = (output: unknown) => Promise<Envelope>

async function doTask(
  walk: SegmentWalk,
  task: Task,
  graphNode: GraphNode,
  prepared: NodeContext | undefined,
  pack: Pack,
): Promise<StepResult> {
  const { deps, segment, values } = walk
  const { phase, node, frame } = task
  if (phase === 'fold') {
    const folded = await foldResults(deps, segment.context.id, values, frame.loops[node.id]!)
    return { status: 'FOLDED', ...folded, handle: null }
  }
  if (phase === 'close') {
    if (node.items) return closeCalls(walk, node, graphNode, frame, pack)
    const output = await closeLoop(walk, node, frame, pack)
    const exhausted = node.loop.mode === 'repeat' && !frame.loops[node.id]!.over
    return { status: 'SUCCESS', output, handle: exhausted ? EXHAUSTED : null }
  }
  if (phase === 'test') {
    return { status: 'TURNED', over: await testLoop(walk, task.body, prepared!), handle: null }
  }
  if (node.items && node.loop) return openCalls(walk, node as LoopNode, graphNode, prepared!, pack)
  if (node.loop) return openLoop(walk, node as LoopNode, prepared!, pack)
  const result = await runStep(graphNode, prepared!, phase === 'resume')
  if (result.pause) return { status: 'WAITING', until: result.pause.until, handle: null, pause: true }
  demandWithinLimit(graphNode, result)
  const handle = node.silent ? node.silent.handle : (result.handle ?? null)
  const output = await pack(result.output)
  if (result.until === undefined || result.until <= Date.now()) return { status: 'SUCCESS', output, handle }
  return { status: 'WAITING', until: result.until, output, handle }
}

/** Fails a wait at once if it is longer than its node's limit, instead of when the time is up. */
function demandWithinLimit(node: GraphNode, { until }: NodeResult): void {
  if (node.timeoutMs === undefined || until === undefined) return
  const wait = until - Date.now()
  if (wait <= node.timeoutMs) return
  const message = `The wait of ${wait} ms is longer than the node's limit of ${node.timeoutMs} ms`
  throw new NodeFailure(message, { type: 'NodeTimedOut' })
}

async function openLoop(
  walk: SegmentWalk,
  node: LoopNode,
  prepared: NodeContext,
  pack: Pack,
): Promise<StepResult> {
  const { deps, segment } = walk
  const { mode, max } = node.loop
  const empty = nodesIn(segment.plan, node.id).length === 0
  if (mode === 'repeat') {
    if (empty) return { status: 'SUCCESS', output: await pack(prepared.input), handle: null }
    return { status: 'LOOPING', loop: { count: max, pages: [] }, handle: null }
  }
  const items = await renderLoopItems(prepared)
  const pages = await packLoopItems(deps, segment.context.id, items)
  if (empty) return { status: 'SUCCESS', output: await pack({ items }), handle: null }
  return beginLoop(walk, node, items, pages)
}

async function beginLoop(
  walk: SegmentWalk,
  node: LoopNode,
  items: unknown[],
  pages: ItemPage[],
): Promise<StepResult> {
  const taken = await takeOverIterations(walk, node, items)
  const loop = { count: items.length, pages, ...(taken ? { taken } : {}) }
  return { status: 'LOOPING', loop, handle: null }
}

/** Begins a node's calls for the items that come to it; without any it is done. */
async function openCalls(
  walk: SegmentWalk,
  node: LoopNode,
  graphNode: GraphNode,
  prepared: NodeContext,
  pack: Pack,
): Promise<StepResult> {
  const all = prepared.inputs.flatMap(itemsOf)
  const items = graphNode.itemOptions?.firstOnly ? all.slice(0, 1) : all
  const pages = await packLoopItems(walk.deps, walk.segment.context.id, items)
  if (items.length > 0) return beginLoop(walk, node, items, pages)
  const { output, handle = null } = createItemOutput(graphNode).finish()
  return { status: 'SUCCESS', output: await pack(output), handle }
}

/** What a node outputs whose calls for its items are all made. Throws the failure that ended them. */
async function closeCalls(
  { deps, segment, values }: SegmentWalk,
  node: LoopNode,
  graphNode: GraphNode,
  frame: Frame,
  pack: Pack,
): Promise<StepResult> {
  const loop = frame.loops[node.id]!
  await abandonPauses(deps, segment.context.id, segment.plan.nodes, node.id, frame.iteration)
  if (loop.failure) {
    const { message, type, at } = loop.failure
    const where = loop.count === 1 ? '' : `Item ${at}: `
    throw new NodeFailure(where + message, { type: type as FailureType })
  }
  const { output, handle = null } = await gatherCalls(values, loop, graphNode)
  return { status: 'SUCCESS', output: await pack(output), handle }
}

/** The output of a loop that is over. Throws the failure that ended it. */
async function closeLoop(walk: SegmentWalk, node: LoopNode, frame: Frame, pack: Pack): Promise<Envelope> {
  const { deps, segment, values } = walk
  const loop = frame.loops[node.id]!
  await abandonPauses(deps, segment.context.id, segment.plan.nodes, node.id, frame.iteration)
  if (loop.failure) {
    const { message, type, nodeId, at } = loop.failure
    const failed = segment.plan.nodes.find(({ id }) => id === nodeId)
    // A node without a name of its own is named after its type, as others may be: use its id.
    const name = failed && failed.name !== failed.type ? failed.name : nodeId
    // A failure that was stored when the iteration failed, so its type is one of ours.
    const failure = { type: type as FailureType }
    throw new NodeFailure(`Iteration ${at} failed at "${name}": ${message}`, failure)
  }
  if (node.loop.mode === 'each') return pack({ items: await gatherResults(values, loop) })
  const last = loop.last && 'result' in loop.last ? loop.last.result : undefined
  if (last && ('v' in last || 'ref' in last)) return last
  return pack(last ? await values.readResult(last) : null)
}

/** Whether a REPEAT is over: tests its condition on the result of the iteration. */
async function testLoop(
  { segment, values }: SegmentWalk,
  body: Frame,
  prepared: NodeContext,
): Promise<boolean> {
  const input = await values.readResult(resultOf(segment.plan, body))
  const bindings = { ...prepared.bindings, input, item: input, index: body.at }
  return prepared.evaluator.test(prepared.config.until, bindings)
}

/** Folds the results of the loops that only this segment works on, so that they do not travel one by one. */
export async function foldPureLoops(walk: SegmentWalk, others: ReadonlySet<string>): Promise<NodeRecord[]> {
  const { segment, root } = walk
  const open: Task[] = []
  const visit = (frame: Frame) => {
    for (const [id, loop] of Object.entries(frame.loops)) {
      const node = findLoop(segment.plan, id)
      if (others.has(stepKey(id, frame.iteration))) continue
      if (node.loop.pure && loop.results.length > 0) open.push({ phase: 'fold', node, frame })
      for (const body of loop.frames) if (!body.elsewhere) visit(body)
    }
  }
  visit(root)
  const folds: NodeRecord[] = []
  for (const task of open) folds.push(await takeTask(walk, task))
  return folds
}
