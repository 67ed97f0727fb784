import { type RawBuilder, sql } from 'kysely'
import { DateTime } from 'luxon'
import { demandTeam, type Scope } from '../scope.ts'
import { readSums, SUMS, SUMS_OF_SUMS, type Sums, type Usage } from './usage.ts'

/**
 * Which calls of a team count: those that began from `from` on and before `to`, of one workflow or of all. Without `to`
 * all count up to this moment, also by a clock that is ahead of this one.
 */
export type UsageQuery = { from: Date; to: Date | undefined; workflowId?: string | undefined }

/** `executions` is how many have made the calls. */
export type CountedUsage = Usage & { executions: number }

/** `date` is a calendar date, such as 2026-11-22. */
export type DailyUsage = CountedUsage & { date: string }

/** `provider` is the type of the credential. */
export type ModelUse = CountedUsage & { provider: string; model: string }

/** How many models one answer names: a name may come from an expression. */
const MOST_MODELS = 1_000

type Counted = Sums & { executions: number }

const NONE = { calls: 0, unpriced: 0, priced: 0, input: 0, output: 0, cached: 0, reasoning: 0, cost: 0 }

/** What a team's calls to models took (VIEWER). Throws NOT_FOUND. */
export async function readTokenUsage(scope: Scope, teamId: string, query: UsageQuery): Promise<CountedUsage> {
  await demandTeam(scope, teamId, 'VIEWER')
  const calls = selectCalls(teamId, query)
  const { rows } = await sql<Counted>`
    select count(*)::int as executions, ${SUMS_OF_SUMS} from (${calls}) s having count(*) > 0`.execute(
    scope.store.db,
  )
  return readCounted(rows[0])
}

/**
 * The same by the days of a time zone, the first one first: every day that the span touches, also those without calls.
 */
export async function readDailyUsage(
  scope: Scope,
  teamId: string,
  query: UsageQuery,
  timezone: string,
): Promise<DailyUsage[]> {
  await demandTeam(scope, teamId, 'VIEWER')
  const days = listDays(query, timezone)
  const starts = days.map((day) => writeStart(day.toUTC()))
  const calls = selectCalls(teamId, query, { day: sql`width_bucket(c.created_at, ${starts}::timestamptz[])` })
  const { rows } = await sql<Counted & { day: number }>`
    select day, count(*)::int as executions, ${SUMS_OF_SUMS} from (${calls}) s group by day`.execute(
    scope.store.db,
  )
  const known = new Map(rows.map((row) => [row.day, row]))
  return days.map((day, index) => ({ date: day.toISODate()!, ...readCounted(known.get(index + 1)) }))
}

/** The same by the models, those that cost most first, at most 1,000 of them. */
export async function readModelUsage(scope: Scope, teamId: string, query: UsageQuery): Promise<ModelUse[]> {
  await demandTeam(scope, teamId, 'VIEWER')
  const calls = selectCalls(teamId, query, { provider: sql`c.provider`, model: sql`c.model` })
  const { rows } = await sql<Counted & { provider: string; model: string }>`
    select provider, model, count(*)::int as executions, ${SUMS_OF_SUMS} from (${calls}) s group by provider, model
    order by sum(cost) desc, sum(input + output) desc, provider, model
    fetch first ${sql.lit(MOST_MODELS)} rows only`.execute(scope.store.db)
  return rows.map(({ provider, model, ...row }) => ({ provider, model, ...readCounted(row) }))
}

/** The sums of the calls by execution, and by `keys`: expressions over `model_calls c`, by their names. */
function selectCalls(
  teamId: string,
  { from, to, workflowId }: UsageQuery,
  keys: Record<string, RawBuilder<unknown>> = {},
) {
  const named = Object.entries(keys).map(([name, key]) => sql`${key} as ${sql.ref(name)}, `)
  const names = Object.keys(keys).map((name) => sql`, ${sql.ref(name)}`)
  const before = to === undefined ? sql`true` : sql`c.created_at < ${to}`
  const ofWorkflow = workflowId === undefined ? sql`true` : sql`c.workflow_id = ${workflowId}`
  return sql`select ${sql.join(named, sql``)}${SUMS} from model_calls c
    where c.team_id = ${teamId} and c.created_at >= ${from} and ${before} and ${ofWorkflow}
    group by c.execution_id${sql.join(names, sql``)}`
}

function readCounted(row: Counted | undefined): CountedUsage {
  return { ...readSums(row ?? NONE), executions: row?.executions ?? 0 }
}

/** A time as PostgreSQL reads it. The first day of the year 1 begins before it in the east, and no call is that old. */
function writeStart(start: DateTime): string {
  return start.year < 1 ? '-infinity' : start.toISO()!
}

/** When the days begin that a span touches, the first one before it. */
function listDays({ from, to = new Date() }: UsageQuery, timezone: string): DateTime[] {
  const days: DateTime[] = []
  for (
    let day = DateTime.fromJSDate(from, { zone: timezone }).startOf('day');
    from < to && day.toMillis() < to.getTime();
    day = day.plus({ days: 1 }).startOf('day')
  )
    days.push(day)
  return days
}
