import { type RawBuilder, sql } from 'kysely'
import { record } from '../change.ts'
import { queueNotice } from '../monitoring/notices/notices.ts'
import {
  claim,
  isDue,
  postpone,
  purge,
  type Queue,
  renew,
  selectFree,
  selectTeams,
  settle,
  updateHeld,
} from '../queue.ts'
import type { Store } from '../scope.ts'

/** An evaluation that this process works on, until its time is over. */
export type EvaluationClaim = {
  id: string
  claim: string
  teamId: string
  workflowId: string
  executionId: string
  tries: number
}

/** What a judge has said of one dimension; `reason` says why there is no score. */
export type DimensionScore = {
  dimension: string
  score: number | null
  reason: string | null
  explanation: string | null
  flagged: boolean
  tokens: { input: number; output: number }
  cost: number | null
}

/** How an evaluation has ended. */
export type EvaluationEnd =
  | { status: 'SCORED'; composite: number; threshold: number; notify: boolean; flagged: boolean }
  | { status: 'FAILED' | 'SKIPPED'; reason: string; flagged?: boolean }

/** The number of evaluations of a team that are begun on a day (UTC); those beyond it are SKIPPED. */
export const MOST_A_DAY = 1_000
/** Longer than one dimension can take: the claim is renewed before each. */
const CLAIM_MS = 180_000
const KEEP_DAYS = 90
const PURGED_AT_ONCE = 5_000

const EVALUATIONS: Queue = {
  table: 'evaluations',
  id: 'id',
  open: sql`q.status = 'PENDING'`,
  due: 'due_at',
  token: 'claim',
  tries: 'tries',
}

/**
 * Takes evaluations that are due, at most `most` of a team, and none of the teams in `busy`. Others take them over when
 * a claim is not renewed in time.
 */
export async function claimEvaluations(
  store: Store,
  { most, teams, busy }: { most: number; teams: number; busy: string[] },
): Promise<EvaluationClaim[]> {
  const of = (team: RawBuilder<unknown>) =>
    sql`q.team_id = ${team} and ${EVALUATIONS.open} and ${isDue(sql`q.due_at`)}`
  const due = selectFree('evaluations', {
    which: of(sql`c.team_id`),
    order: sql`q.due_at`,
    limit: most,
  })
  const chosen = sql`
    with recursive ${selectTeams(EVALUATIONS)},
    chosen as (
      select t.team_id from teams t where t.team_id is not null and t.team_id <> all(${busy}::uuid[])
        and exists (select from evaluations q where ${of(sql`t.team_id`)})
      order by random() limit ${teams})
    select d.id from chosen c cross join lateral (${due}) d`
  const returning = sql`id, claim, team_id, workflow_id, execution_id, tries`
  return record(store, (tx) =>
    claim<EvaluationClaim>(tx, EVALUATIONS, { chosen, leaseMs: CLAIM_MS, returning }),
  )
}

/** Counts an evaluation that is begun for the first time. False if its team has had enough of them today. */
export async function countBegun(store: Store, teamId: string): Promise<boolean> {
  return record(store, async (tx) => {
    const { rows } = await sql`insert into evaluation_days as d (team_id, day, begun)
      values (${teamId}, (now() at time zone 'UTC')::date, 1)
      on conflict (team_id, day) do update set begun = d.begun + 1 where d.begun < ${MOST_A_DAY}
      returning begun`.execute(tx)
    return rows.length > 0
  })
}

/** The scores that another process had saved before it died. */
export async function readSavedScores(store: Store, id: string): Promise<DimensionScore[]> {
  const rows = await store.db
    .selectFrom('evaluationScores')
    .selectAll()
    .where('evaluationId', '=', id)
    .execute()
  return rows.map(({ inputTokens, outputTokens, cost, ...row }) => ({
    dimension: row.dimension,
    score: row.score,
    reason: row.reason,
    explanation: row.explanation,
    flagged: row.flagged,
    tokens: { input: Number(inputTokens), output: Number(outputTokens) },
    cost: cost === null ? null : Number(cost),
  }))
}

/** Holds an evaluation for the next dimension. False if another process has taken it over, or it is deleted. */
export async function renewEvaluation(store: Store, held: EvaluationClaim): Promise<boolean> {
  return record(store, (tx) => renew(tx, EVALUATIONS, held, CLAIM_MS))
}

/** Keeps the score of a dimension, even if another process holds the evaluation by now: it was paid for. */
export async function saveScore(store: Store, { id }: EvaluationClaim, said: DimensionScore): Promise<void> {
  const { dimension, score, reason, explanation, flagged, tokens, cost } = said
  await record(store, (tx) =>
    sql`insert into evaluation_scores (evaluation_id, dimension, score, reason, explanation, flagged, input_tokens,
        output_tokens, cost)
      select id, ${dimension}, ${score}, ${reason}, ${explanation}, ${flagged}, ${tokens.input}, ${tokens.output},
        ${cost === null ? null : cost.toFixed(10)}::numeric
      from evaluations where id = ${id} for key share
      on conflict do nothing`.execute(tx),
  )
}

/** Notes by what an evaluation is judged, if this process still holds it. */
export async function noteJudge(
  store: Store,
  held: EvaluationClaim,
  { provider, model, dimensions }: { provider: string | null; model: string | null; dimensions: string[] },
): Promise<void> {
  const set = sql`provider = ${provider}, model = ${model}, dimensions = ${dimensions}`
  await record(store, (tx) => updateHeld(tx, EVALUATIONS, held, set))
}

/** Ends an evaluation, if this process still holds it, and tells of a composite that is too low. */
export async function endEvaluation(store: Store, held: EvaluationClaim, end: EvaluationEnd): Promise<void> {
  const { id, teamId, workflowId } = held
  const scored = end.status === 'SCORED' ? end : undefined
  const failed = scored ? scored.composite < scored.threshold : null
  const set = sql`status = ${end.status}, reason = ${end.status === 'SCORED' ? null : end.reason},
    composite = ${scored?.composite ?? null}, failure_threshold = ${scored?.threshold ?? null}, failed = ${failed},
    flagged = ${end.flagged ?? false}, judged_at = now()`
  await record(store, async (tx) => {
    const isEnded = await settle(tx, EVALUATIONS, held, set)
    if (!isEnded || !scored?.notify || !failed) return
    const { composite, threshold } = scored
    await queueNotice(tx, {
      teamId,
      kind: 'EVALUATION',
      subjectId: id,
      workflowId,
      alertType: null,
      severity: composite < 2 ? 'HIGH' : 'MEDIUM',
      title: 'A run has scored too low',
      message: `The evaluation ${id} came to ${composite} of 5; below ${threshold} it has failed.`,
    })
  })
}

/** Gives an evaluation back, to be taken again in so many seconds. */
export async function giveBackEvaluation(
  store: Store,
  held: EvaluationClaim,
  seconds: number,
): Promise<void> {
  await record(store, (tx) => postpone(tx, EVALUATIONS, held, seconds * 1_000))
}

/** Removes evaluations after 90 days, and the counts of days that are over. Returns how many evaluations it removed. */
export async function purgeEvaluations(store: Store): Promise<number> {
  await record(store, async (tx) => {
    await sql`delete from evaluation_days where day < (now() at time zone 'UTC')::date - 2`.execute(tx)
  })
  const which = sql`q.created_at < now() - ${KEEP_DAYS} * interval '1 day'`
  return purge(store, 'evaluations', { which, order: sql`q.created_at`, piece: PURGED_AT_ONCE, pieces: 1 })
}
