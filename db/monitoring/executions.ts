import { demandTeam, type Scope } from '../scope.ts'
import { DURATION_BOUNDS, type ExecutionHour, estimateDuration, readOneByHours } from './executionhours.ts'

/** How executions ended. Those that evaluations and playbooks started do not count. */
export type ExecutionStatistics = {
  /** All that ended. */
  executions: number
  succeeded: number
  failed: number
  cancelled: number
  /** Which fraction of all failed; null if none ended. */
  failureRate: number | null
  /** How often their nodes were tried again. */
  retries: number
  /** Under how many milliseconds half of them stayed, and 95 %, about. Null if none of them had begun. */
  durationP50Ms: number | null
  durationP95Ms: number | null
}

const HOUR_MS = 3_600_000

/** Whole hours: those that begin from `from` on and before `to`, of one workflow or of all. */
export type StatisticsQuery = { from: Date; to: Date; workflowId?: string | undefined }

/**
 * How a team's executions ended, in all and in each hour (UTC) of a span, also those that are deleted since (VIEWER).
 * `from` and `to` are full hours, at most some months apart. Throws FORBIDDEN and NOT_FOUND.
 */
export async function readExecutionStatistics(
  scope: Scope,
  teamId: string,
  { from, to, workflowId }: StatisticsQuery,
): Promise<{ totals: ExecutionStatistics; hours: (ExecutionStatistics & { hour: Date })[] }> {
  await demandTeam(scope, teamId, 'VIEWER')
  const found = await readOneByHours(scope.store.db, teamId, { from, to, workflowId })
  const known = new Map(found.map((one) => [one.hour.getTime(), one]))
  const times: number[] = []
  for (let time = from.getTime(); time < to.getTime(); time += HOUR_MS) times.push(time)
  return {
    totals: describe(found),
    hours: times.map((time) => {
      const one = known.get(time)
      return { hour: new Date(time), ...describe(one ? [one] : []) }
    }),
  }
}

function describe(hours: ExecutionHour[]): ExecutionStatistics {
  const sum = (read: (hour: ExecutionHour) => number) => hours.reduce((total, hour) => total + read(hour), 0)
  const [executions, failed, cancelled] = [
    sum(({ ended }) => ended),
    sum((hour) => hour.failed),
    sum((hour) => hour.cancelled),
  ]
  const buckets = Array.from({ length: DURATION_BOUNDS.length + 1 }, (_, bucket) =>
    sum(({ durations }) => durations[bucket] ?? 0),
  )
  return {
    executions,
    succeeded: executions - failed - cancelled,
    failed,
    cancelled,
    failureRate: executions === 0 ? null : failed / executions,
    retries: sum(({ retries }) => retries),
    durationP50Ms: estimateDuration(buckets, 0.5),
    durationP95Ms: estimateDuration(buckets, 0.95),
  }
}
