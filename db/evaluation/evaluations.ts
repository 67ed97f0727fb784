import { sql } from 'kysely'
import { chatPrivacyOf, isHiddenFrom } from '../chat/privacy.ts'
import { missing } from '../fault.ts'
import { readOwner } from '../owners.ts'
import { countRows, makePage, type Page, type PageRequest } from '../page.ts'
import { demand, type Scope } from '../scope.ts'

export const EVALUATION_STATUSES = ['PENDING', 'SCORED', 'FAILED', 'SKIPPED'] as const
type EvaluationStatus = (typeof EVALUATION_STATUSES)[number]

/** How a run was judged. */
export type Evaluation = {
  id: string
  workflowId: string
  executionId: string
  status: EvaluationStatus
  /** Why it is FAILED or SKIPPED. */
  reason: string | null
  provider: string | null
  model: string | null
  scores: {
    dimension: string
    score: number | null
    reason: string | null
    /** Null also if the run is part of another owner's chat. */
    explanation: string | null
    flagged: boolean
  }[]
  composite: number | null
  failureThreshold: number | null
  failed: boolean | null
  flagged: boolean
  tokens: number
  /** US dollars; null if it is not known. */
  cost: number | null
  createdAt: Date
  judgedAt: Date | null
}

/** `from` (inclusive) and `to` (exclusive) are on createdAt. */
export type EvaluationQuery = {
  status?: EvaluationStatus | undefined
  failed?: boolean | undefined
  from?: Date | undefined
  to?: Date | undefined
}

export type EvaluationSummary = {
  total: number
  scored: number
  /** Runs that have passed, as a fraction of those that have a composite; null if none has. */
  passRate: number | null
  composite: number | null
  dimensions: { dimension: string; mean: number; scored: number }[]
  days: { day: string; scored: number; failed: number; composite: number | null }[]
}

/** One page of a workflow's evaluations, newest first (VIEWER). Throws NOT_FOUND. */
export async function listEvaluations(
  scope: Scope,
  workflowId: string,
  query: EvaluationQuery & PageRequest,
): Promise<Page<Evaluation>> {
  await open(scope, workflowId)
  const total = await countRows(filter(scope, workflowId, query))
  const rows = await select(scope, workflowId, query)
    .orderBy('evaluations.createdAt', 'desc')
    .orderBy('evaluations.id', 'desc')
    .limit(query.size)
    .offset(query.page * query.size)
    .execute()
  return makePage(
    rows.map((row) => show(scope, row)),
    total,
    query,
  )
}

/** One evaluation of a workflow (VIEWER). Throws NOT_FOUND. */
export async function readEvaluation(scope: Scope, workflowId: string, id: string): Promise<Evaluation> {
  await open(scope, workflowId)
  const row = await select(scope, workflowId, {}).where('evaluations.id', '=', id).executeTakeFirst()
  if (!row) throw missing('evaluation')
  return show(scope, row)
}

/** What the evaluations of a time come to, in all and by day (UTC) (VIEWER). Throws NOT_FOUND. */
export async function summarizeEvaluations(
  scope: Scope,
  workflowId: string,
  { from, to }: { from: Date; to: Date },
): Promise<EvaluationSummary> {
  await open(scope, workflowId)
  const { db } = scope.store
  const within = sql`e.workflow_id = ${workflowId} and e.created_at >= ${from} and e.created_at < ${to}`
  type Day = { day: string; total: number; scored: number; failed: number; sum: string | number | null }
  const { rows: days } = await sql<Day>`
    select to_char(e.created_at at time zone 'UTC', 'YYYY-MM-DD') as day, count(*)::int as total,
      count(e.composite)::int as scored, count(*) filter (where e.failed)::int as failed, sum(e.composite) as sum
    from evaluations e where ${within} group by 1 order by 1`.execute(db)
  const { rows: dimensions } = await sql<{ dimension: string; mean: string | number; scored: number }>`
    select s.dimension, round(avg(s.score), 2) as mean, count(s.score)::int as scored
    from evaluations e join evaluation_scores s on s.evaluation_id = e.id
    where ${within} and s.score is not null group by 1 order by 1`.execute(db)
  const add = (pick: (day: Day) => number) => days.reduce((sum, day) => sum + pick(day), 0)
  const scored = add((day) => day.scored)
  return {
    total: add((day) => day.total),
    scored,
    passRate: scored === 0 ? null : 1 - add((day) => day.failed) / scored,
    composite: mean(
      add((day) => Number(day.sum ?? 0)),
      scored,
    ),
    dimensions: dimensions.map((one) => ({ ...one, mean: Number(one.mean) })),
    days: days
      .filter((day) => day.scored > 0)
      .map(({ day, sum, ...counts }) => ({
        day,
        scored: counts.scored,
        failed: counts.failed,
        composite: mean(Number(sum), counts.scored),
      })),
  }
}

const mean = (sum: number, count: number) => (count === 0 ? null : Math.round((100 * sum) / count) / 100)

async function open(scope: Scope, workflowId: string): Promise<void> {
  demand(scope, await readOwner(scope.store, 'workflows', workflowId), 'VIEWER')
}

function filter(scope: Scope, workflowId: string, { status, failed, from, to }: EvaluationQuery) {
  return scope.store.db
    .selectFrom('evaluations')
    .where('evaluations.workflowId', '=', workflowId)
    .$if(status !== undefined, (query) => query.where('evaluations.status', '=', status!))
    .$if(failed !== undefined, (query) => query.where('evaluations.failed', '=', failed!))
    .$if(from !== undefined, (query) => query.where('evaluations.createdAt', '>=', from!))
    .$if(to !== undefined, (query) => query.where('evaluations.createdAt', '<', to!))
}

type StoredScore = Evaluation['scores'][number] & { tokens: number; cost: number | null }

function select(scope: Scope, workflowId: string, query: EvaluationQuery) {
  return filter(scope, workflowId, query)
    .innerJoin('executions', 'executions.id', 'evaluations.executionId')
    .select(['evaluations.id', 'evaluations.workflowId', 'evaluations.executionId', 'evaluations.status'])
    .select(['evaluations.teamId', 'evaluations.reason', 'evaluations.provider', 'evaluations.model'])
    .select(['evaluations.composite', 'evaluations.failureThreshold', 'evaluations.failed'])
    .select(['evaluations.flagged', 'evaluations.createdAt', 'evaluations.judgedAt'])
    .select(chatPrivacyOf().as('privacy'))
    .select(
      sql<
        StoredScore[]
      >`coalesce((select json_agg(json_build_object('dimension', s.dimension, 'score', s.score,
        'reason', s.reason, 'explanation', s.explanation, 'flagged', s.flagged,
        'tokens', s.input_tokens + s.output_tokens, 'cost', s.cost)
        order by array_position(evaluations.dimensions, s.dimension), s.dimension)
        from evaluation_scores s where s.evaluation_id = evaluations.id), '[]')`.as('said'),
    )
}

type EvaluationRow = Awaited<ReturnType<ReturnType<typeof select>['execute']>>[number]

function show(scope: Scope, { said, privacy, teamId, ...row }: EvaluationRow): Evaluation {
  const hidden = isHiddenFrom(scope, teamId, privacy)
  const costs = said.map(({ cost }) => cost)
  return {
    ...row,
    status: row.status as EvaluationStatus,
    composite: row.composite === null ? null : Number(row.composite),
    failureThreshold: row.failureThreshold === null ? null : Number(row.failureThreshold),
    scores: said.map(({ tokens, cost, explanation, ...one }) => ({
      ...one,
      explanation: hidden ? null : explanation,
    })),
    tokens: said.reduce((sum, { tokens }) => sum + tokens, 0),
    cost: costs.includes(null) ? null : sumCosts(costs as number[]),
  }
}

/** In full precision: costs have ten decimal places. */
const sumCosts = (costs: number[]) => Number(costs.reduce((sum, cost) => sum + cost, 0).toFixed(10))
