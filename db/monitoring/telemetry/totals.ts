import { type RawBuilder, sql } from 'kysely'
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
  const sum = async (
    name: RawBuilder<string[]>,
    only = sql<boolean>`true`,
  ): Promise<[string[], TelemetryUse][]> => {
    const { rows } = await sql<TelemetryRow>`
      select name, sum(calls)::bigint as calls, sum(errors)::bigint as errors, sum(input)::bigint as input,
        sum(output)::bigint as output, json_object_agg(bucket, calls) as buckets
      from (
        select ${name} as name, bucket, sum(calls) as calls, sum(errors) as errors, sum(input) as input,
          sum(output) as output
        from telemetry_hours where team_id = ${teamId} and hour >= ${from} and hour < ${to} and ${only}
        group by 1, 2) found
      group by name order by sum(calls) desc, name limit ${MOST_NAMED}`.execute(scope.store.db)
    return rows.map(({ name, ...row }) => [name, readUse(row)])
  }
  const [total, services, operations, models, agents] = await Promise.all([
    sum(sql<string[]>`array[]::text[]`),
    sum(sql<string[]>`array[service]`),
    sum(sql<string[]>`array[operation]`),
    sum(sql<string[]>`array[provider, model]`, sql<boolean>`model <> ''`),
    sum(sql<string[]>`array[agent]`, sql<boolean>`agent <> ''`),
  ])
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

function readUse({ calls, errors, input, output, buckets }: Omit<TelemetryRow, 'name'>): TelemetryUse {
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
