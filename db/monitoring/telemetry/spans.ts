import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import { type Work, workInTurns } from '../../../workflows/turns.ts'
import { record } from '../../change.ts'
import type { Tx } from '../../connection.ts'
import { FOLDS } from '../../locks.ts'
import { holdRight } from '../../people/rights.ts'
import { demandTeam, type Scope } from '../../scope.ts'
import { cleanText } from '../../text.ts'
import { NO_WORKFLOW } from '../usage/calls.ts'
import { addLateCalls } from './late.ts'
import { findLatencyBucket } from './latency.ts'

/**
 * The tokens as a vendor reports them: those from and into a cache are among the input's, those of the reasoning among
 * the output's.
 */
export type CallTokens = {
  input: number
  output: number
  cached: number
  cacheWrite: number
  reasoning: number
}

/** All that is kept of a span of a model, an agent or a tool. Ids are lower-case hex. */
export type TelemetrySpan = {
  traceId: string
  spanId: string
  startedAt: Date
  durationMs: number
  failed: boolean
  /** The name of the service that has sent it, '' if it has none. */
  service: string
  operation: string
  /** '' for a span that names no model. */
  provider: string
  model: string
  agent: string
  /** Null unless it is a call to a model. The cost is in US dollars, null if it is not known. */
  call: {
    status: 'SUCCESS' | 'REFUSED' | 'LOST'
    tokens: CallTokens | null
    cost: string | null
    price: unknown
  } | null
}

/** The number of spans that one statement stores. */
const PORTION = 1_000
const MOST_NAME = 200
/** PostgreSQL's largest integer. */
const LONGEST_MS = 2 ** 31 - 1

/**
 * Stores what spans have told (OPERATOR), each once in 30 days: calls to models as usage, and all of them by the hour. Sums
 * of hours that are folded already grow in the same transaction. Throws NOT_FOUND, FORBIDDEN and UNAUTHENTICATED.
 */
export async function storeTelemetry(scope: Scope, teamId: string, spans: TelemetrySpan[]): Promise<void> {
  await demandTeam(scope, teamId, 'OPERATOR')
  const rows = await workInTurns(makeRows(teamId, spans), teamId)
  const first = new Date(Math.min(...spans.map(({ startedAt }) => startedAt.getTime())))
  await record(scope.store, async (tx) => {
    await holdRight(tx, { scope, least: 'OPERATOR' }, teamId)
    // A transaction that folds an hour waits, or this one has waited for it. Hours are folded 15 minutes after their
    // end at the earliest.
    await sql`select pg_advisory_xact_lock(${FOLDS.modelCalls}, hashtext(${teamId}))
      where ${first}::timestamptz < now() - interval '5 minutes'`.execute(tx)
    for (let at = 0; at < rows.length; at += PORTION)
      await storePortion(tx, teamId, rows.slice(at, at + PORTION))
  })
}

/** What making a row takes, in units of work. */
const ROW_UNITS = 10

/** All in one order, so that two that store the same spans do not wait for each other. */
function* makeRows(teamId: string, spans: TelemetrySpan[]): Work<ReturnType<typeof toRow>[]> {
  const rows: [key: string, row: ReturnType<typeof toRow>][] = []
  for (const span of spans) {
    yield ROW_UNITS
    rows.push([span.traceId + span.spanId, toRow(teamId, span)])
  }
  return rows.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row)
}

const clean = (name: string) => cleanText(name, MOST_NAME)

function toRow(teamId: string, { call, ...span }: TelemetrySpan) {
  return {
    trace: span.traceId,
    span: span.spanId,
    call_id: nameCall(teamId, span),
    started: span.startedAt.toISOString(),
    ms: Math.min(LONGEST_MS, span.durationMs),
    bucket: findLatencyBucket(span.durationMs),
    failed: span.failed,
    service: clean(span.service),
    operation: span.operation,
    provider: clean(span.provider),
    model: clean(span.model),
    agent: clean(span.agent),
    status: call?.status ?? null,
    input: call?.tokens?.input ?? null,
    output: call?.tokens?.output ?? null,
    cached: call?.tokens?.cached ?? null,
    cache_write: call?.tokens?.cacheWrite ?? null,
    reasoning: call?.tokens?.reasoning ?? null,
    cost: call?.cost ?? null,
    price: call?.price ?? null,
  }
}

/** The UUID of the call of a span: the same whenever the span is sent. */
function nameCall(teamId: string, { traceId, spanId }: Pick<TelemetrySpan, 'traceId' | 'spanId'>): string {
  const hash = createHash('sha256').update(`${teamId}|${traceId}|${spanId}`).digest('hex')
  return `${hash.slice(0, 8)}-${hash.slice(8, 12)}-8${hash.slice(13, 16)}-8${hash.slice(17, 20)}-${hash.slice(20, 32)}`
}

async function storePortion(tx: Tx, teamId: string, rows: ReturnType<typeof toRow>[]): Promise<void> {
  await sql`
    with given as materialized (
      select * from json_to_recordset(${JSON.stringify(rows)}::json) as g (trace text, span text, call_id uuid,
        started timestamptz, ms integer, bucket smallint, failed boolean, service text, operation text, provider text,
        model text, agent text, status text, input integer, output integer, cached integer, cache_write integer,
        reasoning integer, cost numeric, price json)
    ), fresh as (
      insert into telemetry_spans (team_id, trace_id, span_id)
      select ${teamId}, decode(trace, 'hex'), decode(span, 'hex') from given order by trace, span
      on conflict do nothing returning trace_id, span_id
    ), spans as (
      select g.*, date_trunc('hour', g.started, 'UTC') as hour from given g
      join fresh f on f.trace_id = decode(g.trace, 'hex') and f.span_id = decode(g.span, 'hex')
    ), calls as (
      insert into model_calls (execution_id, activity_id, attempt, caller, call, team_id, workflow_id, node_id,
        iteration, service, provider, model, status, input_tokens, output_tokens, cached_tokens, cache_write_tokens,
        reasoning_tokens, cost, price, latency_ms, created_at)
      select call_id, 'telemetry ' || trace || ' ' || span, 1, call_id, 1, ${teamId}, ${NO_WORKFLOW}, 'telemetry', '',
        service, provider, model, status, input, output, cached, cache_write, reasoning, cost, price, ms, started
      from spans where status is not null
      on conflict do nothing returning execution_id
    ), late as materialized (
      select s.hour, s.provider, s.model, count(*) as calls, count(*) filter (where s.cost is null) as unpriced,
        count(*) filter (where s.status = 'SUCCESS' and s.cost is not null) as priced, coalesce(sum(s.input), 0) as input,
        coalesce(sum(s.output), 0) as output, coalesce(sum(s.cached), 0) as cached,
        coalesce(sum(s.reasoning), 0) as reasoning, coalesce(sum(s.cost), 0) as cost
      from spans s join calls c on c.execution_id = s.call_id group by s.hour, s.provider, s.model
    ), folds as materialized (
      select until, nodes_until, days_until from model_call_folds where team_id = ${teamId}
    ), ${addLateCalls(teamId)}
    insert into telemetry_hours as h (team_id, hour, service, operation, provider, model, agent, bucket, calls, errors,
      input, output)
    select ${teamId}, hour, service, operation, provider, model, agent, bucket, count(*),
      count(*) filter (where failed), coalesce(sum(input), 0), coalesce(sum(output), 0)
    from spans group by hour, service, operation, provider, model, agent, bucket
    order by hour, service, operation, provider, model, agent, bucket
    on conflict (team_id, hour, service, operation, provider, model, agent, bucket) do update set
      calls = h.calls + excluded.calls, errors = h.errors + excluded.errors, input = h.input + excluded.input,
      output = h.output + excluded.output`.execute(tx)
}
