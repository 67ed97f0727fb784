import { sql } from 'kysely'
import { DateTime } from 'luxon'
import { demandTeam, type Scope } from '../../scope.ts'
import { IS_OF_RUN, NO_WORKFLOW } from './calls.ts'
import { readSums, SUMS, SUMS_OF_SUMS, type Sums, type Usage } from './usage.ts'

/**
 * Which calls of a team count: those that began from `from` on and before `to`, of one workflow or of all. Without `to`
 * all count up to this moment, also by a clock that is ahead of this one.
 */
export type UsageQuery = { from: Date; to: Date | undefined; workflowId?: string | undefined }

/** `executions` is how many have made the calls; those of judges, and outside of executions, count for none. */
export type CountedUsage = Usage & { executions: number }

/** `date` is a calendar date, such as 2026-11-22. */
export type DailyUsage = CountedUsage & { date: string }

/** `provider` is the type of the credential. */
export type ModelUse = CountedUsage & { provider: string; model: string }

/** Null: outside of executions. */
export type WorkflowUse = CountedUsage & { workflowId: string | null; workflowName: string | null }

const MOST_WORKFLOWS = 1_000

/** How many models one answer names: a name may come from an expression. */
const MOST_MODELS = 1_000

type Counted = Sums & { executions: number }

const NONE = { calls: 0, unpriced: 0, priced: 0, input: 0, output: 0, cached: 0, reasoning: 0, cost: 0 }

/** What a team's calls to models took (VIEWER). Throws NOT_FOUND. */
export async function readTokenUsage(scope: Scope, teamId: string, query: UsageQuery): Promise<CountedUsage> {
  await demandTeam(scope, teamId, 'VIEWER')
  const { rows } = await sql<Counted>`
    ${sumSpans(teamId, query, [query])} select ${COUNTED} from found having count(*) > 0`.execute(
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
  const spans = days.map((day, index) => ({
    from: index === 0 ? query.from : day.toJSDate(),
    to: days[index + 1]?.toJSDate() ?? query.to,
  }))
  const { rows } = await sql<Counted & { span: number }>`
    ${sumSpans(teamId, query, spans)} select span, ${COUNTED} from found group by span`.execute(
    scope.store.db,
  )
  const known = new Map(rows.map((row) => [row.span, row]))
  return days.map((day, index) => ({ date: day.toISODate()!, ...readCounted(known.get(index + 1)) }))
}

/** The same by the models, those that cost most first, at most 1,000 of them. */
export async function readModelUsage(scope: Scope, teamId: string, query: UsageQuery): Promise<ModelUse[]> {
  await demandTeam(scope, teamId, 'VIEWER')
  const { rows } = await sql<Counted & { provider: string; model: string }>`
    ${sumSpans(teamId, query, [query], 'model')} select provider, model, ${COUNTED} from found group by provider, model
    order by sum(cost) desc, sum(input + output) desc, provider, model
    fetch first ${sql.lit(MOST_MODELS)} rows only`.execute(scope.store.db)
  return rows.map(({ provider, model, ...row }) => ({ provider, model, ...readCounted(row) }))
}

/**
 * The same by the workflows, those that cost most first, at most 1,000 of them. Calls outside of executions have none, and
 * the name of a workflow that is deleted is not known.
 */
export async function readWorkflowUsage(
  scope: Scope,
  teamId: string,
  query: UsageQuery,
): Promise<WorkflowUse[]> {
  await demandTeam(scope, teamId, 'VIEWER')
  const { rows } = await sql<Counted & { provider: string; workflowName: string | null }>`
    ${sumSpans(teamId, query, [query], 'workflow')}, totals as (
      select provider, ${COUNTED} from found group by provider)
    select t.*, w.name as workflow_name from totals t left join workflows w on w.id::text = t.provider
    order by t.cost desc, t.input + t.output desc, t.provider
    fetch first ${sql.lit(MOST_WORKFLOWS)} rows only`.execute(scope.store.db)
  return rows.map(({ provider, workflowName, ...row }) => ({
    workflowId: provider === NO_WORKFLOW ? null : provider,
    workflowName,
    ...readCounted(row),
  }))
}

const COUNTED = sql`sum(executions)::int as executions, ${SUMS_OF_SUMS}`

/**
 * The sums of spans, as `found` with the number of each span from 1: of its hours that are folded from these, of the
 * rest from the calls themselves. An execution counts where its first call in the span is. With `by` model, executions count
 * for each of their models; else provider and model are null, or of no meaning. By workflow, `provider` is its id.
 */
function sumSpans(
  teamId: string,
  { workflowId }: UsageQuery,
  spans: Pick<UsageQuery, 'from' | 'to'>[],
  by?: 'model' | 'workflow',
) {
  const byModel = by === 'model'
  const begins = spans.map(({ from }) => from.toISOString())
  const ends = spans.map(({ to }) => to?.toISOString() ?? 'infinity')
  const ofWorkflow = (table: string) =>
    workflowId === undefined ? sql`true` : sql`${sql.ref(table)}.workflow_id = ${workflowId}`
  const keysOf = (table: string) =>
    by === undefined
      ? sql`null::text as provider, null::text as model`
      : by === 'model'
        ? sql`${sql.ref(`${table}.provider`)} as provider, ${sql.ref(`${table}.model`)} as model`
        : sql`${sql.ref(`${table}.workflow_id`)}::text as provider, null::text as model`
  const ofOne = byModel ? sql`, c.provider, c.model` : by === 'workflow' ? sql`, c.workflow_id` : sql``
  const sameModel = byModel ? sql`b.provider = one.provider and b.model = one.model` : sql`true`
  const executions = byModel ? sql`firsts` : sql`starts`
  const hourly = workflowId === undefined && by !== 'workflow' ? 'modelCallTeamHours' : 'modelCallHours'
  return sql`with spans as materialized (
      select number, begun, ended, date_trunc('hour', begun + interval '1 hour' - interval '1 microsecond', 'UTC') as first,
        least(date_trunc('hour', ended, 'UTC'),
          coalesce((select until from model_call_folds where team_id = ${teamId}), '-infinity')) as last
      from unnest(${begins}::timestamptz[], ${ends}::timestamptz[]) with ordinality as s (begun, ended, number)
    ), ${splitDays(teamId)}, pieces as materialized (
      select number, begun, begun as first, ended as last, false as follows from spans where first >= last
      union all select number, begun, begun, first, false from spans where first < last and begun < first
      union all select number, begun, last, ended, true from spans where first < last and last < ended
    ), found as (
      select s.number::int as span, h.* from days s cross join lateral (
        select ${keysOf('h')}, sum(${executions}) as executions, ${SUMS_OF_SUMS} from model_call_days h
        where h.team_id = ${teamId} and h.day >= s.first_day and h.day < s.last_day and ${ofWorkflow('h')}
        group by 1, 2) h
      where s.first_day < s.last_day
      union all
      select s.number, h.* from hours s cross join lateral (
        select ${keysOf('h')}, sum(${executions}) as executions, ${SUMS_OF_SUMS} from ${sql.table(hourly)} h
        where h.team_id = ${teamId} and h.hour >= s.first and h.hour < s.last and ${ofWorkflow('h')}
        group by 1, 2) h
      union all
      select s.number, ${keysOf('r')}, (${byModel ? sql`r.before_of_model` : sql`r.before`} < s.begun)::int, 0,
        case when r.open = 0 or coalesce((
          select e.status in ('PENDING', 'RUNNING') from executions e where e.id = r.execution_id), false) then 0
        else r.open end, 0, 0, 0, 0, 0, 0
      from spans s join model_call_hour_runs r on r.team_id = ${teamId} and r.hour >= s.first and r.hour < s.last
      where ${ofWorkflow('r')}
      union all
      select p.number, c.* from pieces p cross join lateral (
        select provider, model, count(*) filter (where one.is_run and (not p.follows or coalesce((
            select max(b.created_at) < p.begun from model_calls b
            where b.execution_id = one.execution_id and b.created_at < p.first and ${sameModel}), true))) as executions,
          ${SUMS_OF_SUMS}
        from (
          select ${keysOf('c')}, c.execution_id, bool_and(${IS_OF_RUN}) as is_run, ${SUMS} from model_calls c
          where c.team_id = ${teamId} and c.created_at >= p.first and c.created_at < p.last and ${ofWorkflow('c')}
          group by c.execution_id${ofOne}) one
        group by provider, model) c
    )`
}

/**
 * Splits the hours of spans that are folded: `days` has the days that are whole and rolled up, from `first_day` to before
 * `last_day`, if that is later; `hours` has what is left of them.
 */
export function splitDays(teamId: string) {
  return sql`days as materialized (
      select number, first, last,
        date_trunc('day', first + interval '1 day' - interval '1 microsecond', 'UTC') as first_day,
        least(date_trunc('day', last, 'UTC'),
          coalesce((select days_until from model_call_folds where team_id = ${teamId}), '-infinity')) as last_day
      from spans where first < last
    ), hours as materialized (
      select number, first, last from days where first_day >= last_day
      union all select number, first, first_day from days where first_day < last_day and first < first_day
      union all select number, last_day, last from days where first_day < last_day and last_day < last
    )`
}

function readCounted(row: Counted | undefined): CountedUsage {
  return { ...readSums(row ?? NONE), executions: row?.executions ?? 0 }
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
