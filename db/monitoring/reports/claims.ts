import { sql } from 'kysely'
import { write } from '../../change.ts'
import {
  claim,
  isDue,
  later,
  postpone,
  type Queue,
  renew,
  selectFree,
  settle,
  updateHeld,
} from '../../queue.ts'
import type { Store } from '../../scope.ts'
import { cleanText } from '../../text.ts'
import type { ReportMetric } from './reports.ts'

/** A run that this process works on: `claim` is by what it does. */
export type ClaimedReportRun = {
  id: string
  reportId: string
  teamId: string
  slot: Date
  periodFrom: Date
  name: string
  timezone: string
  recipients: string[]
  metrics: ReportMetric[]
  /** Who has got it, was refused by the server, may have got it, and has not said yes. */
  told: string[]
  refused: string[]
  uncertain: string[]
  withheld: string[]
  /** What the last try said. */
  error: string | null
  claim: string
  /** How often it was tried, with this time. */
  tries: number
  /** It is so long due that it is not tried again. */
  old: boolean
}

/** For how long a mail that no server takes is tried again. */
const PATIENCE_HOURS = 24

/** Among how many of the runs that are due the ones of other teams are looked for. */
const LOOKED_AT = 500

const MAX_ERROR = 1_000

const RUNS: Queue = {
  table: 'scheduled_report_runs',
  id: 'id',
  open: sql`q.status in ('PENDING', 'SENDING')`,
  due: 'due_at',
  until: 'claimed_until',
  token: 'claim',
  tries: 'tries',
}

/** The error of a run whose mails were handed over with an unknown outcome. */
export const UNCERTAIN = 'It may have been sent, but no answer came that says so'

/**
 * Claims up to `limit` runs that are due, for `leaseMs`: of each team one after another, so that one with many does not
 * hold up those of others. If the process dies, others claim them when the lease ends.
 */
export async function claimReportRuns(
  store: Store,
  limit: number,
  leaseMs: number,
): Promise<ClaimedReportRun[]> {
  const chosen = sql`with due as (
      select q.id, q.team_id, q.due_at from scheduled_report_runs q where q.status = 'PENDING'
        and ${isDue(sql`q.due_at`)} and (q.claimed_until is null or q.claimed_until < now())
      order by q.due_at, q.id limit ${sql.lit(LOOKED_AT)}
    ), turns as (
      select id as run_id, due_at as since, row_number() over (partition by team_id order by due_at, id) + (
        select count(*) from scheduled_report_runs o
        where o.team_id = due.team_id and o.status in ('PENDING', 'SENDING') and o.claimed_until >= now()) as turn
      from due
    ) ${selectFree('scheduled_report_runs', {
      join: sql`join turns on turns.run_id = q.id`,
      which: sql`q.status = 'PENDING' and (q.claimed_until is null or q.claimed_until < now())`,
      order: sql`turns.turn, turns.since, q.id`,
      limit,
    })}`
  const returning = sql`id, report_id, team_id, slot, period_from, name, timezone, recipients, metrics, told, refused,
    uncertain, withheld, error, claim, tries, created_at < now() - ${PATIENCE_HOURS} * interval '1 hour' as old`
  return write(store, (tx) => claim<ClaimedReportRun>(tx, RUNS, { chosen, leaseMs, returning }))
}

/** Keeps runs claimed for `leaseMs` more. */
export async function renewReportRuns(
  store: Store,
  runs: ClaimedReportRun[],
  leaseMs: number,
): Promise<void> {
  const ids = runs.map(({ id }) => id)
  const claims = [...new Set(runs.map(({ claim }) => claim))]
  await write(store, (tx) =>
    sql`update scheduled_report_runs set claimed_until = ${later(leaseMs)}
    where id = any(${ids}::uuid[]) and claim = any(${claims}::uuid[])`.execute(tx),
  )
}

/** How a report goes out: by whose server, and on whose behalf. Undefined if it was deleted. */
export async function readReportSender(
  { db }: Store,
  { reportId }: ClaimedReportRun,
): Promise<{ credentialId: string | null; changedBy: string | null } | undefined> {
  return db
    .selectFrom('scheduledReports')
    .select(['credentialId', 'changedBy'])
    .where('id', '=', reportId)
    .executeTakeFirst()
}

/**
 * Notes that the mail to one recipient is handed over now. False if it must not be: the report was deleted or disabled, its
 * next slot has come, or another process has the run.
 */
export async function noteReportSending(
  store: Store,
  run: ClaimedReportRun,
  recipient: string,
  leaseMs: number,
): Promise<boolean> {
  const set = sql`status = 'SENDING', handing = ${recipient}`
  return write(store, (tx) => renew(tx, RUNS, run, leaseMs, { set, where: sql`q.status = 'PENDING'` }))
}

/** The outcome of the mail to one recipient. */
export type ReportOutcome = 'told' | 'refused' | 'uncertain' | 'withheld'

/** Notes what came of the mail to one recipient; the others are still to get theirs. */
export async function noteReportOutcome(
  store: Store,
  run: ClaimedReportRun,
  recipient: string,
  outcome: ReportOutcome,
): Promise<void> {
  const column = sql.ref(outcome)
  const set = sql`status = 'PENDING', handing = null, ${column} = array_append(${column}, ${recipient})`
  await write(store, (tx) => updateHeld(tx, RUNS, run, set))
}

/**
 * Notes that nothing is left to be sent: it is SENT if at least one recipient has got it, and `error` names the others.
 */
export async function noteReportEnded(
  store: Store,
  run: ClaimedReportRun,
  error: string | null,
): Promise<void> {
  const said = error === null ? null : cleanText(error, MAX_ERROR)
  const set = sql`handing = null, error = ${said},
    status = case when cardinality(told) > 0 then 'SENT' else 'FAILED' end,
    sent_at = case when cardinality(told) > 0 then now() end`
  await write(store, (tx) => settle(tx, RUNS, run, set))
}

/** Notes that nothing more can be sent at the moment: it is tried again after `delayMs`, or is given up if that is null. */
export async function noteReportFailed(
  store: Store,
  run: ClaimedReportRun,
  { message, delayMs }: { message: string; delayMs: number | null },
): Promise<void> {
  if (delayMs === null) return noteReportEnded(store, run, message)
  const set = sql`status = 'PENDING', handing = null, error = ${cleanText(message, MAX_ERROR)}`
  await write(store, (tx) => postpone(tx, RUNS, run, delayMs, set))
}

/**
 * Takes back the mails that a process was handing over when it died: their outcome is unknown, so they are not sent
 * again. The remaining recipients get theirs. (A process of the release before hands over one mail to all.) Returns how
 * many.
 */
export async function endLostReportRuns(store: Store): Promise<number> {
  const which = sql`q.status = 'SENDING' and q.claimed_until < now()`
  const lost = selectFree('scheduled_report_runs', { which, limit: 1_000 })
  const { rows } = await write(store, (tx) =>
    sql`update scheduled_report_runs set status = 'PENDING', claim = null, claimed_until = null, handing = null,
      uncertain = case when handing is null then recipients else array_append(uncertain, handing) end
    where id = any(array(${lost}))
    returning id`.execute(tx),
  )
  return rows.length
}
