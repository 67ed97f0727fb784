import { Context } from '@temporalio/activity'
import { ApplicationFailure, CancelledFailure } from '@temporalio/common'
import type { AttemptInput, AttemptResult, SegmentInput } from '../../workflows/run/messages.ts'
import type { NodeRecord } from '../../workflows/run/records.ts'
import type { ActivityDeps } from '../deps.ts'
import type { Outsides } from '../egress/outside.ts'
import type { HttpClient } from '../http/http.ts'
import { labelFailure } from '../metrics.ts'
import type { TracedSpan, Tracing } from '../tracing.ts'

/** Counts, times and traces one attempt of a node; without metrics and tracing it only executes it. */
export async function observeAttempt(
  deps: ActivityDeps,
  input: AttemptInput,
  run: (deps: ActivityDeps, input: AttemptInput) => Promise<AttemptResult>,
): Promise<AttemptResult> {
  const { metrics, tracing } = deps
  if (!metrics && !tracing) return run(deps, input)
  const { type, id } = input.node
  const { info } = Context.current()
  const began = performance.now()
  metrics?.scheduleToStart.observe(Math.max(0, Date.now() - info.currentAttemptScheduledTimestampMs) / 1_000)
  const { traceparent: parent, tracestate: state } = input.context
  const span = parent
    ? tracing?.begin(type, {
        kind: 'internal',
        parent,
        state,
        attributes: nameNode(input.context.id, id, info.attempt),
      })
    : undefined
  const end = (outcome: string, failure?: string) => {
    metrics?.nodeDuration.observe({ node_type: type, outcome }, (performance.now() - began) / 1_000)
    if (failure !== undefined) metrics?.nodeErrors.inc({ node_type: type, error_type: labelFailure(failure) })
    span?.end({ failure, attributes: { 'perdure.node.outcome': outcome } })
  }
  try {
    const traced = span && tracing ? { ...deps, outside: traceOutsides(deps.outside, tracing, span) } : deps
    const result = await run(traced, input)
    end('SUCCESS')
    return result
  } catch (error) {
    if (error instanceof CancelledFailure) end('CANCELLED')
    // It has not begun, so it is no attempt of the node.
    else if (error instanceof ApplicationFailure && error.type === 'WorkerBusy') span?.end()
    else end('FAILED', error instanceof ApplicationFailure ? (error.type ?? 'Error') : 'Error')
    throw error
  }
}

/** Counts, times and traces the steps of a segment, from their records. */
export async function observeSegment(
  deps: ActivityDeps,
  segment: SegmentInput,
  walk: (deps: ActivityDeps, segment: SegmentInput) => Promise<NodeRecord[]>,
): Promise<NodeRecord[]> {
  const { metrics, tracing } = deps
  const records = await walk(deps, segment)
  const { id, traceparent: parent } = segment.context
  const traced = parent ? tracing : undefined
  if (!metrics && !traced) return records
  const types = new Map(segment.plan.nodes.map((node) => [node.id, node.type]))
  for (const record of records) {
    if (record.status === 'AWAY') continue
    const { nodeId, status, startedAt, completedAt } = record
    const error = record.status === 'FAILED' ? record.error : undefined
    const type = types.get(nodeId) ?? 'unknown'
    const attributes = { ...nameNode(id, nodeId, 1), 'perdure.node.outcome': status }
    traced
      ?.begin(type, { kind: 'internal', parent, at: startedAt, attributes })
      .end({ failure: error?.type, at: completedAt })
    if (status !== 'SUCCESS' && status !== 'FAILED') continue
    metrics?.nodeDuration.observe({ node_type: type, outcome: status }, (completedAt - startedAt) / 1_000)
    if (error) metrics?.nodeErrors.inc({ node_type: type, error_type: labelFailure(error.type) })
  }
  return records
}

function nameNode(executionId: string, nodeId: string, attempt: number) {
  return {
    'perdure.execution.id': executionId,
    'perdure.node.id': nodeId,
    'perdure.node.attempt': attempt,
  }
}

function traceOutsides(outside: Outsides, tracing: Tracing, parent: TracedSpan): Outsides {
  return {
    close: outside.close,
    async forTeam(teamId) {
      const { http, dial } = await outside.forTeam(teamId)
      return { dial, http: traceHttp(http, tracing, parent) }
    },
  }
}

/** An HTTP client that traces each request and sends its trace context, unless the user sets a traceparent. */
function traceHttp(http: HttpClient, tracing: Tracing, parent: TracedSpan): HttpClient {
  return {
    close: http.close,
    async request(req) {
      const method = req.method.toUpperCase()
      const span = tracing.begin(method, {
        kind: 'client',
        parent: parent.traceparent,
        state: parent.tracestate,
        attributes: { 'http.request.method': method },
      })
      try {
        const { traceparent, tracestate } = span
        // A tracestate belongs to its traceparent, so none goes with a traceparent of the user's.
        const own = Object.keys(req.headers ?? {}).some((name) => /^trace(parent|state)$/i.test(name))
        const state: Record<string, string> = tracestate === undefined || own ? {} : { tracestate }
        // The client lets later headers win, whatever their case, so the user's come last.
        const headers = { traceparent, ...state, ...req.headers }
        const response = await http.request({ ...req, headers })
        const { status } = response
        const failure = status >= 400 ? String(status) : undefined
        span.end({ failure, attributes: { 'http.response.status_code': status } })
        return response
      } catch (error) {
        span.end({ failure: (error as { kind?: string }).kind ?? 'Error' })
        throw error
      }
    },
  }
}
