import { cancellationSignal } from '@temporalio/activity'
import { hasEnded } from '../db/executions.ts'
import type { GraphNode } from '../workflows/graph.ts'
import type { PlanNode } from '../workflows/plan.ts'
import type { SegmentInput } from '../workflows/run.ts'
import { emptyOutcomes, isStep, type NodeRecord, next, settleFailure, sourcesOf } from '../workflows/walk.ts'
import { NodeFailure } from './nodes/failure.ts'
import type { NodeContext } from './nodes/node.ts'
import {
  type ActivityDeps,
  createValues,
  describeFailure,
  endedBefore,
  finalIfDeleted,
  isInfrastructure,
  loadNode,
  packResult,
  prepareStep,
  runStep,
  type Values,
} from './step.ts'

const MAX_RECORDS = 500
const MAX_BYTES = 1_000_000
/** Values of steps stay in memory until their segment ends. */
const MAX_HELD_BYTES = 48_000_000
/** A longer segment would only hold back the work that waits behind it. */
const MAX_MS = 5_000

/**
 * A local activity: walks every pure node that becomes ready, with the workflow's own `next`, up to a join that
 * waits or a side effect. A node's failure is a record, never a throw; what throws is infrastructure and is retried.
 */
export async function walkSegment(deps: ActivityDeps, segment: SegmentInput): Promise<NodeRecord[]> {
  const { plan, context } = segment
  const outcomes = emptyOutcomes(segment.outcomes)
  const started = new Set(segment.started)
  const values = createValues(deps, context.id, segment.outputs)
  const records: NodeRecord[] = []
  const begun = Date.now()
  let bytes = 0
  try {
    for (;;) {
      const ready = next(plan, outcomes, started).filter(isStep)
      if (ready.length === 0) return records
      for (const node of ready) {
        const sources = sourcesOf(plan, node.id, outcomes)
        const record = await takeStep(deps, segment, values, node, sources)
        records.push(record)
        if (record.status === 'FAILED' && settleFailure(node, record.error!) === 'fatal') return records
        if (record.status === 'WAITING') started.add(node.id)
        else outcomes[node.id] = { handle: record.handle }
        if (record.output && 'v' in record.output) bytes += record.output.bytes
        if (records.length >= MAX_RECORDS || bytes > MAX_BYTES || Date.now() - begun > MAX_MS) return records
        if (values.held() > MAX_HELD_BYTES) return records
      }
    }
  } catch (error) {
    throw finalIfDeleted(error)
  } finally {
    deps.touch(context.id)
  }
}

async function takeStep(
  deps: ActivityDeps,
  segment: SegmentInput,
  values: Values,
  node: PlanNode,
  sources: string[],
): Promise<NodeRecord> {
  const { plan, context } = segment
  const startedAt = Date.now()
  const head = { nodeId: node.id, iteration: '', startedAt }
  if (node.kind === 'trigger' && node.id === plan.triggerNodeId) {
    // The start may have lain in Temporal's hands, or on the way to it, while the run was cancelled.
    if (await hasEnded(deps.store, context.id)) throw endedBefore()
    values.outputs[node.id] = segment.input
    return { ...head, status: 'SUCCESS', output: segment.input, handle: null, completedAt: startedAt }
  }
  const graphNode = await loadNode(deps, context, node.id)
  let prepared: NodeContext | undefined
  try {
    prepared = await prepareStep(deps, values, {
      node: graphNode,
      context,
      sources,
      needs: node.needs,
      triggerNodeId: plan.triggerNodeId,
      attempt: 1,
      idempotencyKey: `${context.id}:${node.id}`,
      signal: cancellationSignal(),
    })
    const result = await runStep(graphNode, prepared)
    demandShort(graphNode, startedAt, result.until)
    const output = await packResult(deps, context.id, values, { sources }, result.output, plan.inlineBytes)
    values.write(node.id, output, result.output)
    const waits = result.until !== undefined && result.until > Date.now()
    return {
      ...head,
      status: waits ? 'WAITING' : 'SUCCESS',
      output,
      handle: node.silent ? node.silent.handle : (result.handle ?? null),
      ...(waits ? { until: result.until! } : {}),
      completedAt: Date.now(),
    }
  } catch (error) {
    if (!prepared && !(error instanceof NodeFailure)) throw error
    if (finalIfDeleted(error) !== error || isInfrastructure(error)) throw error
    return failStep(deps, segment, values, node, head, describeFailure(error))
  }
}

/** A wait that its node's own limit would cut short fails at once: it is known before. */
function demandShort(node: GraphNode, startedAt: number, until: number | undefined): void {
  if (node.timeoutMs === undefined || until === undefined) return
  const wait = until - startedAt
  if (wait <= node.timeoutMs) return
  const message = `The wait of ${wait} ms is longer than the node's limit of ${node.timeoutMs} ms`
  throw new NodeFailure(message, { type: 'NodeTimedOut' })
}

async function failStep(
  deps: ActivityDeps,
  segment: SegmentInput,
  values: Values,
  node: PlanNode,
  head: Pick<NodeRecord, 'nodeId' | 'iteration' | 'startedAt'>,
  error: { message: string; type: string },
): Promise<NodeRecord> {
  const record = { ...head, status: 'FAILED' as const, error, handle: null, completedAt: Date.now() }
  const handled = settleFailure(node, error)
  if (handled === 'fatal') return record
  const output = await packResult(
    deps,
    segment.context.id,
    values,
    { sources: [] },
    handled.output,
    segment.plan.inlineBytes,
  )
  values.write(node.id, output, handled.output)
  return { ...record, output, handle: handled.handle }
}
