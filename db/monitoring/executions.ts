import { LRUCache } from 'lru-cache'
import { perDatabase } from '../cache.ts'
import type { Db } from '../connection.ts'
import { inLine } from '../operation/lines.ts'
import { demandTeam, type Scope } from '../scope.ts'
import {
  DURATION_BOUNDS,
  type ExecutionHour,
  estimateAverage,
  estimateDuration,
  readByWorkflow,
  readOneByHours,
} from './executionhours.ts'

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

/** By what workflows can be sorted, the largest first. */
export const WORKFLOW_ORDERS = [
  'executions',
  'failed',
  'failureRate',
  'durationAverageMs',
  'durationP95Ms',
] as const

/** `workflowName` is null if the workflow has been deleted. */
export type WorkflowStatistics = ExecutionStatistics & {
  workflowId: string
  workflowName: string | null
  durationAverageMs: number | null
}

/** What took longer than this to read is not read again within so long. */
const LONG_MS = 200
const KEPT_MS = 30_000
const statisticsOf = perDatabase(() => new LRUCache<string, WorkflowStatistics[]>({ max: 50, ttl: KEPT_MS }))

/**
 * How the executions of each of a team's workflows ended in a span (VIEWER), as readExecutionStatistics has it: the
 * first `size` of those by which something ended, and how many these are.
 */
export async function readWorkflowStatistics(
  scope: Scope,
  teamId: string,
  { from, to, sort, size }: { from: Date; to: Date; sort: (typeof WORKFLOW_ORDERS)[number]; size: number },
): Promise<{ workflows: WorkflowStatistics[]; workflowsTotal: number }> {
  await demandTeam(scope, teamId, 'VIEWER')
  const { db } = scope.store
  const known = statisticsOf(db)
  const key = JSON.stringify([teamId, from, to])
  const began = performance.now()
  const all =
    known.get(key) ?? (await inLine(db, `statistics ${teamId}`, 1, () => readAll(db, teamId, { from, to })))
  if (performance.now() - began > LONG_MS) known.set(key, all)
  const sorted = all.toSorted(
    (a, b) =>
      (b[sort] ?? -1) - (a[sort] ?? -1) ||
      b.executions - a.executions ||
      (a.workflowId < b.workflowId ? -1 : 1),
  )
  return { workflows: sorted.slice(0, size), workflowsTotal: all.length }
}

async function readAll(
  db: Db,
  teamId: string,
  span: { from: Date; to: Date },
): Promise<WorkflowStatistics[]> {
  const found = await readByWorkflow(db, teamId, span)
  const named = await db.selectFrom('workflows').select(['id', 'name']).where('teamId', '=', teamId).execute()
  const names = new Map(named.map(({ id, name }) => [id, name]))
  return found.map((one) => ({
    workflowId: one.workflowId,
    workflowName: names.get(one.workflowId) ?? null,
    ...describe([one]),
    durationAverageMs: estimateAverage(one.durations),
  }))
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
