import { setImmediate as breathe } from 'node:timers/promises'
import { type RawBuilder, sql } from 'kysely'
import type { Db } from '../connection.ts'
import { NO_WORKFLOW } from './usage/calls.ts'

/** How the executions of a workflow ended in an hour. Those that evaluations, playbooks and tests of drafts started do not. */
export type ExecutionHour = {
  workflowId: string
  hour: Date
  /** All that ended, also those that failed or were cancelled. */
  ended: number
  failed: number
  cancelled: number
  /** How often their nodes were tried again. */
  retries: number
  /**
   * How many of those that had begun took how long, from their start to their end: the first number is of those shorter
   * than the first of DURATION_BOUNDS, the last one of those that took the last one or longer.
   */
  durations: number[]
}

/** At how many milliseconds each bucket of durations begins, but for the first one: each is 1.25 times the one before. */
export const DURATION_BOUNDS: readonly number[] = Array.from({ length: 87 }, (_, k) =>
  Math.round(10 * 1.25 ** k),
)

const HOUR_MS = 3_600_000

/** How many hours are read at once: each may have as many workflows as the team. */
const HOURS = 24

/**
 * How the executions of a team's workflows ended in the hours (UTC) that begin in a span, in their order; hours in which
 * nothing ended are left out. Checks no rights: for the service itself.
 */
export async function readExecutionHours(
  db: Db,
  teamId: string,
  { from, to }: { from: Date; to: Date },
): Promise<ExecutionHour[]> {
  const found: ExecutionHour[] = []
  const end = to.getTime()
  for (let begin = from.getTime(); begin < end; begin += HOURS * HOUR_MS) {
    const span = { from: new Date(begin), to: new Date(Math.min(begin + HOURS * HOUR_MS, end)) }
    found.push(...(await readHours(db, teamId, span)))
    await breathe()
  }
  return found
}

/**
 * The same of one workflow, or of all the team's workflows together: then `workflowId` is NO_WORKFLOW. The span has a
 * month's hours at most.
 */
export async function readOneByHours(
  db: Db,
  teamId: string,
  { from, to, workflowId }: { from: Date; to: Date; workflowId: string | undefined },
): Promise<ExecutionHour[]> {
  return readHours(db, teamId, { from, to }, workflowId ?? NO_WORKFLOW)
}

/** The same of each workflow, over the whole span together; `hour` is its beginning. */
export async function readByWorkflow(
  db: Db,
  teamId: string,
  { from, to }: { from: Date; to: Date },
): Promise<ExecutionHour[]> {
  // Sums of positions are much faster than to take each array apart.
  const buckets = Array.from(
    { length: DURATION_BOUNDS.length + 1 },
    (_, at) => sql`coalesce(sum(durations[${sql.lit(at + 1)}]), 0)::integer`,
  )
  const { rows } = await sql<ExecutionHour>`
    with live as (${countLive(sql`e.workflow_id`, teamId, { from, to })}), hours as (
      select workflow_id, ended, failed, cancelled, retries, durations from execution_hours
      where team_id = ${teamId} and hour >= ${from}::timestamptz and hour < ${to}::timestamptz
        and workflow_id <> ${NO_WORKFLOW}
      union all select workflow_id, ended, failed, cancelled, retries, durations from live
    )
    select workflow_id, ${from}::timestamptz as hour, sum(ended)::integer as ended, sum(failed)::integer as failed,
      sum(cancelled)::integer as cancelled, sum(retries)::integer as retries, array[${sql.join(buckets)}] as durations
    from hours group by workflow_id having sum(ended) > 0`.execute(db)
  return rows
}

/** Counts what is not folded yet. */
function countLive(
  workflow: RawBuilder<unknown>,
  teamId: string,
  { from, to }: { from: Date; to: Date },
  ofWorkflow: RawBuilder<unknown> = sql`true`,
) {
  return countEnded(
    workflow,
    sql`e.team_id = ${teamId} and e.completed_at >= greatest(${from}::timestamptz,
      (select until from execution_hour_folds where team_id = ${teamId})) and e.completed_at < ${to}::timestamptz
      and ${ofWorkflow}`,
  )
}

/** The hours of each workflow, or of `only`; that is NO_WORKFLOW for all together. */
async function readHours(
  db: Db,
  teamId: string,
  span: { from: Date; to: Date },
  only?: string,
): Promise<ExecutionHour[]> {
  const { from, to } = span
  const together = only === NO_WORKFLOW
  const workflow = together ? sql`${NO_WORKFLOW}::uuid` : sql`e.workflow_id`
  const ofWorkflow = only === undefined || together ? sql`true` : sql`e.workflow_id = ${only}`
  const { rows } = await sql<ExecutionHour>`
    with live as (${countLive(workflow, teamId, span, ofWorkflow)}), kept as (
      select workflow_id, hour, ended, failed, cancelled, retries, durations from execution_hours
      where team_id = ${teamId} and hour >= ${from}::timestamptz and hour < ${to}::timestamptz
        and ${only === undefined ? sql`workflow_id <> ${NO_WORKFLOW}` : sql`workflow_id = ${only}`}
    )
    select workflow_id, hour, coalesce(k.ended, 0) + coalesce(l.ended, 0) as ended,
      coalesce(k.failed, 0) + coalesce(l.failed, 0) as failed,
      coalesce(k.cancelled, 0) + coalesce(l.cancelled, 0) as cancelled,
      coalesce(k.retries, 0) + coalesce(l.retries, 0) as retries,
      case when k.durations is null then l.durations when l.durations is null then k.durations
        else add_durations(k.durations, l.durations) end as durations
    from kept k full join live l using (workflow_id, hour) where coalesce(k.ended, 0) + coalesce(l.ended, 0) > 0
    order by hour, workflow_id`.execute(db)
  return rows
}

/**
 * About how many milliseconds a fraction of executions stayed under, such as 0.95 of them, by how many are in each bucket:
 * in the bucket of the truth, and so within 25 % of it. Null if there are none.
 */
export function estimateDuration(durations: readonly number[], fraction: number): number | null {
  const total = durations.reduce((sum, n) => sum + n, 0)
  if (total <= 0) return null
  const rank = fraction * total
  let below = 0
  const bucket = durations.findIndex((n) => {
    if (n > 0 && below + n >= rank) return true
    below += n
    return false
  })
  const [low, high] = [DURATION_BOUNDS[bucket - 1] ?? 0, DURATION_BOUNDS[bucket]]
  if (high === undefined) return low
  return Math.round(low + (high - low) * ((rank - below) / durations[bucket]!))
}

/** About how long they took on average, in milliseconds: each counts as the middle of its bucket. Null if there are none. */
export function estimateAverage(durations: readonly number[]): number | null {
  const total = durations.reduce((sum, n) => sum + n, 0)
  if (total <= 0) return null
  const middle = (bucket: number) => {
    const low = DURATION_BOUNDS[bucket - 1] ?? 0
    return (low + (DURATION_BOUNDS[bucket] ?? low)) / 2
  }
  return Math.round(durations.reduce((sum, n, bucket) => sum + n * middle(bucket), 0) / total)
}

/** Selects the sums of executions `e` by hour and by what `workflow` is. */
export function countEnded(workflow: RawBuilder<unknown>, where: RawBuilder<unknown>) {
  return sql`select ${workflow} as workflow_id, date_trunc('hour', e.completed_at, 'UTC') as hour,
      count(*)::integer as ended, count(*) filter (where e.status = 'FAILED')::integer as failed,
      count(*) filter (where e.status = 'CANCELLED')::integer as cancelled,
      coalesce(sum((select sum(n.retry_count) from node_executions n where n.execution_id = e.id)), 0)::integer as retries,
      count_durations(array_agg(duration_bucket(e.started_at, e.completed_at))) as durations
    from executions e where ${where} and is_counted(e) group by 1, 2`
}
