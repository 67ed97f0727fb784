import { sql } from 'kysely'
import type { Db } from '../../connection.ts'
import { GOLD_STANDARD } from './cases.ts'

/** The state of a case. CANCELLED is one that its batch has not come to. */
export const CASE_STATUSES = ['PENDING', 'RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED'] as const
type CaseStatus = (typeof CASE_STATUSES)[number]

export type CaseRow = {
  id: string
  place: number
  input: Record<string, unknown>
  actualOutput: string | null
  expectedOutput: string | null
  status: CaseStatus
  reason: string | null
  executionId: string | null
  compositeScore: number | null
  passed: boolean | null
  goldStandardMatch: boolean | null
  goldStandardRung: string | null
  goldStandardReasoning: string | null
  startedAt: Date | null
  completedAt: Date | null
  judgements: { dimension: string; score: number | null; explanation: string; flagged: boolean }[]
}

export type CaseFilter = {
  status?: CaseStatus | undefined
  passed?: boolean | undefined
  goldStandardMatch?: boolean | undefined
}

const STATUS = sql<CaseStatus>`case when c.status in ('PENDING', 'RUNNING') and r.status not in ('PENDING', 'RUNNING')
  then 'CANCELLED' else c.status end`

/** Up to `limit` cases of a batch, from those after `after` on, in their order. */
export async function readCases(
  db: Db,
  runId: string,
  { after = -1, skip = 0, limit }: { after?: number | undefined; skip?: number; limit: number },
  { status, passed, goldStandardMatch }: CaseFilter = {},
): Promise<CaseRow[]> {
  const { rows } = await sql<CaseRow>`
    select c.id, c.place, c.input, c.actual_output, c.expected_output, ${STATUS} as status, c.reason, c.execution_id,
      c.composite_score, c.passed, c.gold_standard_match, c.gold_standard_rung, c.gold_standard_reasoning, c.started_at,
      c.completed_at, (select coalesce(json_agg(json_build_object('dimension', j.dimension, 'score', j.score,
        'explanation', j.explanation, 'flagged', j.flagged) order by j.dimension), '[]') from batch_judgements j
        where j.case_id = c.id and j.dimension <> ${GOLD_STANDARD}) as judgements
    from batch_cases c join batch_runs r on r.id = c.run_id
    where c.run_id = ${runId} and c.place > ${after} and (${status ?? null}::text is null or ${STATUS} = ${status ?? null})
      and (${passed ?? null}::boolean is null or c.passed = ${passed ?? null})
      and (${goldStandardMatch ?? null}::boolean is null or c.gold_standard_match = ${goldStandardMatch ?? null})
    order by c.place limit ${limit} offset ${skip}`.execute(db)
  return rows
}

/** How often each value comes, so that thousands of cases are a few rows. */
export type Counted<T> = { value: T; n: number }

/** What a summary of a batch is made from. */
export type CaseCounts = {
  /** `value` is null where the judge gave no answer. */
  scores: (Counted<number | null> & { dimension: string })[]
  composites: Counted<number>[]
  flagged: number
  gold: { match: number; miss: number; rungs: Counted<string>[] }
  reasons: Counted<string>[]
}

const MOST_REASONS = 20

export async function countCases(db: Db, runId: string): Promise<CaseCounts> {
  const scores = await sql<CaseCounts['scores'][number]>`
    select j.dimension, j.score as value, count(*)::int as n from batch_judgements j join batch_cases c on c.id = j.case_id
    where c.run_id = ${runId} and j.dimension <> ${GOLD_STANDARD} group by 1, 2 order by 1, 2`.execute(db)
  const composites = await sql<
    Counted<number>
  >`select composite_score as value, count(*)::int as n from batch_cases
    where run_id = ${runId} and composite_score is not null group by 1 order by 1`.execute(db)
  const flagged = await sql<{
    n: number
  }>`select count(*)::int as n from batch_cases c where run_id = ${runId}
    and exists (select from batch_judgements j where j.case_id = c.id and j.flagged)`.execute(db)
  const gold = await sql<{ rung: string; match: boolean; n: number }>`
    select gold_standard_rung as rung, gold_standard_match as match,
      count(*)::int as n from batch_cases where run_id = ${runId} and gold_standard_match is not null
    group by 1, 2 order by 1, 2`.execute(db)
  const reasons = await sql<Counted<string>>`
    select coalesce(left(reason, 200), 'Below the threshold') as value, count(*)::int as n from batch_cases
    where run_id = ${runId} and passed = false group by 1 order by 2 desc, 1 limit ${MOST_REASONS}`.execute(
    db,
  )
  const sum = (match: boolean) => gold.rows.reduce((all, row) => all + (row.match === match ? row.n : 0), 0)
  const rungs = Map.groupBy(gold.rows, ({ rung }) => rung)
  return {
    scores: scores.rows,
    composites: composites.rows,
    flagged: flagged.rows[0]!.n,
    gold: {
      match: sum(true),
      miss: sum(false),
      rungs: [...rungs].map(([value, rows]) => ({ value, n: rows.reduce((all, { n }) => all + n, 0) })),
    },
    reasons: reasons.rows,
  }
}

/** A case of two batches: the same place, and the same input. */
export type CasePair = {
  before: PairedCase
  after: PairedCase
}
type PairedCase = { composite: number | null; passed: boolean | null; scores: Record<string, number | null> }

/** The pairs of two batches' cases that have ended, and how many other ended cases each of them has. */
export async function pairCases(
  db: Db,
  beforeId: string,
  afterId: string,
): Promise<{ pairs: CasePair[]; unpaired: { before: number; after: number } }> {
  const shown = (name: string) => sql`json_build_object('composite', ${sql.ref(`${name}.composite_score`)},
    'passed', ${sql.ref(`${name}.passed`)}, 'scores', (select coalesce(json_object_agg(j.dimension, j.score), '{}')
      from batch_judgements j where j.case_id = ${sql.ref(`${name}.id`)} and j.dimension <> ${GOLD_STANDARD}))`
  const { rows } = await sql<CasePair>`select ${shown('a')} as before, ${shown('b')} as after
    from batch_cases a join batch_cases b on b.place = a.place and b.input_hash = a.input_hash
    where a.run_id = ${beforeId} and b.run_id = ${afterId} and a.passed is not null and b.passed is not null
    order by a.place`.execute(db)
  const ended = await sql<{ before: number; after: number }>`
    select count(*) filter (where run_id = ${beforeId})::int as before, count(*) filter (where run_id = ${afterId})::int as after
    from batch_cases where run_id in (${beforeId}, ${afterId}) and passed is not null`.execute(db)
  const { before, after } = ended.rows[0]!
  return { pairs: rows, unpaired: { before: before - rows.length, after: after - rows.length } }
}
