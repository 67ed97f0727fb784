import { type RawBuilder, sql } from 'kysely'
import type { Db } from '../../connection.ts'
import { demandTeam, type Scope } from '../../scope.ts'
import { readLatency } from './latency.ts'

/** What spans have told of one service, operation, model or agent. Latencies are null where there are no spans. */
type TelemetryUse = {
  calls: number
  errors: number
  p50Ms: number | null
  p95Ms: number | null
  inputTokens: number
  outputTokens: number
}

export type TelemetryTotals = {
  total: TelemetryUse
  services: (TelemetryUse & { service: string })[]
  operations: (TelemetryUse & { operation: string })[]
  models: (TelemetryUse & { provider: string; model: string })[]
  agents: (TelemetryUse & { agent: string })[]
}

/** The number of names of each kind that are told: those with the most spans. */
const MOST_NAMED = 200

type TelemetryRow = {
  kind: string
  name: string[]
  calls: number
  errors: number
  input: number
  output: number
  buckets: Record<string, number>
}

/**
 * What the telemetry of a team's own services has told (VIEWER), of the hours that begin from `from` on and before `to`.
 * Throws NOT_FOUND.
 */
export async function readTelemetry(
  scope: Scope,
  teamId: string,
  { from, to }: { from: Date; to: Date },
): Promise<TelemetryTotals> {
  await demandTeam(scope, teamId, 'VIEWER')
  const found = await readKinds(scope.store.db, teamId, { from, to })
  const listKind = (kind: string) =>
    found.filter((row) => row.kind === kind).map((row) => [row.name, readUse(row)] as const)
  const [total, services, operations] = [listKind('total'), listKind('service'), listKind('operation')]
  const [models, agents] = [listKind('model'), listKind('agent')]
  return {
    total: total[0]?.[1] ?? {
      calls: 0,
      errors: 0,
      p50Ms: null,
      p95Ms: null,
      inputTokens: 0,
      outputTokens: 0,
    },
    services: services.map(([[service = ''], use]) => ({ service, ...use })),
    operations: operations.map(([[operation = ''], use]) => ({ operation, ...use })),
    models: models.map(([[provider = '', model = ''], use]) => ({ provider, model, ...use })),
    agents: agents.map(([[agent = ''], use]) => ({ agent, ...use })),
  }
}

/** The sums of each kind of name, those with the most spans first. The hours are read once, for all kinds. */
async function readKinds(
  db: Db,
  teamId: string,
  { from, to }: { from: Date; to: Date },
): Promise<TelemetryRow[]> {
  const kinds = KINDS.map(
    ([kind, name, only]) => sql`(
      select ${kind} as kind, name, sum(calls)::bigint as calls, sum(errors)::bigint as errors, sum(input)::bigint as input,
        sum(output)::bigint as output, json_object_agg(bucket, calls) as buckets
      from (
        select ${name} as name, bucket, sum(calls) as calls, sum(errors) as errors, sum(input) as input,
          sum(output) as output
        from hours where ${only} group by name, bucket) named
      group by name order by sum(calls) desc, name limit ${MOST_NAMED})`,
  )
  const { rows } = await sql<TelemetryRow>`
    with hours as materialized (
      select service, operation, provider, model, agent, bucket, sum(calls) as calls, sum(errors) as errors,
        sum(input) as input, sum(output) as output
      from telemetry_hours where team_id = ${teamId} and hour >= ${from} and hour < ${to}
      group by 1, 2, 3, 4, 5, 6)
    ${sql.join(kinds, sql` union all `)}`.execute(db)
  return rows
}

const KINDS: [kind: string, name: RawBuilder<unknown>, only: RawBuilder<unknown>][] = [
  ['total', sql`array[]::text[]`, sql`true`],
  ['service', sql`array[service]`, sql`true`],
  ['operation', sql`array[operation]`, sql`true`],
  ['model', sql`array[provider, model]`, sql`model <> ''`],
  ['agent', sql`array[agent]`, sql`agent <> ''`],
]

function readUse({
  calls,
  errors,
  input,
  output,
  buckets,
}: Omit<TelemetryRow, 'kind' | 'name'>): TelemetryUse {
  const counts = new Map(Object.entries(buckets).map(([bucket, count]) => [Number(bucket), Number(count)]))
  return {
    calls,
    errors,
    p50Ms: readLatency(counts, 0.5),
    p95Ms: readLatency(counts, 0.95),
    inputTokens: input,
    outputTokens: output,
  }
}
