import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { change, record } from '../../change.ts'
import type { Db, Tx } from '../../connection.ts'
import { Fault, missing } from '../../fault.ts'
import { countRows, makePage, type Page, type PageRequest } from '../../page.ts'
import { purge } from '../../queue.ts'
import { demandTeam, type Scope, type Store } from '../../scope.ts'
import {
  lockReport,
  lockReportCounts,
  type ReportMetric,
  type ReportRunStatus,
  readClock,
} from './reports.ts'
import { findNextSlot, findSlotBefore, listSlots, MOST_PERIOD_MS, type SlotPlan } from './slots.ts'

/** A run as the API shows it. */
export type ReportRun = {
  id: string
  slot: Date
  manual: boolean
  /** The report is about the time from here to the slot. */
  periodFrom: Date
  recipients: string[]
  metrics: ReportMetric[]
  status: ReportRunStatus
  tries: number
  error: string | null
  refused: string[]
  /** Who had not said yes to mail of the team. */
  withheld: string[]
  sentAt: Date | null
  createdAt: Date
}

/** For how long runs are kept. */
const KEPT_DAYS = 90

/** How many runs one purge deletes at most, and how many reports one transaction begins slots of. */
const PURGED_AT_ONCE = 1_000
const BEGUN_AT_ONCE = 20

/** How many mails a team can ask for in an hour. */
export const ASKED_PER_HOUR = 20

/** How many missed slots are noted, the latest ones. */
const MOST_MISSED = 50

/** The runs of a report, the latest slot first (VIEWER). Throws FORBIDDEN and NOT_FOUND. */
export async function listReportRuns(
  scope: Scope,
  teamId: string,
  id: string,
  page: PageRequest,
): Promise<Page<ReportRun>> {
  await demandTeam(scope, teamId, 'VIEWER')
  const { db } = scope.store
  const report = db.selectFrom('scheduledReports').select('id').where('id', '=', id)
  if (!(await report.where('teamId', '=', teamId).executeTakeFirst())) throw missing('report')
  const found = db.selectFrom('scheduledReportRuns').where('reportId', '=', id)
  const [total, content] = await Promise.all([
    countRows(found),
    select(db)
      .where('reportId', '=', id)
      .orderBy('slot', 'desc')
      .orderBy('id', 'desc')
      .limit(page.size)
      .offset(page.page * page.size)
      .execute(),
  ])
  return makePage(content, total, page)
}

/**
 * Asks for a mail of a report now, also of one that is not enabled (ADMIN). It covers a time up to now that is as long
 * as that between two slots. If one that was asked for is not sent yet, that one is returned. Throws as `change`,
 * NOT_FOUND, and THROTTLED after 20 in an hour.
 */
export async function askForReport(scope: Scope, teamId: string, id: string): Promise<ReportRun> {
  return change(scope, 'SCHEDULED_REPORT_SENT', teamId, async (tx) => {
    await lockReportCounts(tx, teamId)
    const report = await lockReport(tx, teamId, id)
    const { name, timezone, recipients, metrics } = report
    const slot = await readClock(tx)
    const values = { name, timezone, recipients, metrics, slot, periodFrom: findPeriod(report, slot) }
    const row = { id: uuid(), reportId: id, teamId, manual: true, status: 'PENDING', ...values }
    const made = await tx
      .insertInto('scheduledReportRuns')
      .values(row)
      .onConflict((conflict) => conflict.doNothing())
      .returning('id')
      .executeTakeFirst()
    const open = select(tx).where('reportId', '=', id).where('manual', '=', true)
    const result = await open
      .where('status', 'in', ['PENDING', 'SENDING'])
      .orderBy('slot', 'desc')
      .executeTakeFirstOrThrow()
    if (!made) return { result, unchanged: true }
    await demandRoom(tx, teamId)
    return { result, resourceId: id, details: { name, runId: result.id, recipients } }
  })
}

/** Limits the reports that can be asked for, so that they cannot fill mailboxes. Throws THROTTLED. */
async function demandRoom(tx: Tx, teamId: string): Promise<void> {
  const { rows } = await sql<{ wait: number | null }>`
    select extract(epoch from min(created_at) + interval '1 hour' - now())::float8 as wait
    from (select created_at from scheduled_report_runs
      where team_id = ${teamId} and manual and created_at > now() - interval '1 hour'
      order by created_at desc limit ${ASKED_PER_HOUR + 1}) lately
    having count(*) > ${ASKED_PER_HOUR}`.execute(tx)
  if (rows.length === 0) return
  const wait = Math.max(1, Math.ceil(rows[0]!.wait ?? 0))
  throw new Fault('THROTTLED', `A team can ask for ${ASKED_PER_HOUR} mails an hour; try again in ${wait} s`, {
    retryAfter: wait,
  })
}

/** Where a period begins that ends now, and is as long as the time between two slots is now. */
function findPeriod(plan: SlotPlan, now: Date): Date {
  const before = findSlotBefore(plan, now)
  const next = findNextSlot(plan, now)
  const length = before && next ? next.getTime() - before.getTime() : MOST_PERIOD_MS
  return new Date(now.getTime() - Math.min(length, MOST_PERIOD_MS))
}

/**
 * Begins the slots that are due by the database's clock: each has one run, in whatever process it begins. If several
 * slots of a report have passed, only the latest one is sent. What an earlier slot has not sent by then is given up.
 * Returns how many reports were due.
 */
export async function beginSlots(store: Store): Promise<number> {
  return record(store, async (tx) => {
    const now = await readClock(tx)
    const due = await tx
      .selectFrom('scheduledReports')
      .selectAll()
      .where('nextAt', '<=', now)
      .orderBy('nextAt')
      .limit(BEGUN_AT_ONCE)
      .forUpdate()
      .skipLocked()
      .execute()
    for (const report of due) {
      const { id, teamId, name, timezone, recipients, metrics } = report
      // A slot that was listed before stays a slot, even if the time zone's rules have changed since.
      const listed = listSlots(report, report.nextAt!, now, MOST_MISSED)
      const slots = listed.length > 0 ? listed : [report.nextAt!]
      const nextAt = findNextSlot(report, now)
      await giveUpEarlier(tx, id)
      const rows = slots.map((slot, index) => ({
        ...{ id: uuid(), reportId: id, teamId, name, timezone, recipients, metrics, slot },
        periodFrom: findSlotBefore(report, slot) ?? new Date(slot.getTime() - MOST_PERIOD_MS),
        ...(index === slots.length - 1
          ? { status: 'PENDING' }
          : { status: 'SKIPPED', error: 'The service did not run at that time' }),
      }))
      await tx
        .insertInto('scheduledReportRuns')
        .values(rows)
        .onConflict((conflict) => conflict.doNothing())
        .execute()
      await tx.updateTable('scheduledReports').set({ nextAt }).where('id', '=', id).execute()
    }
    return due.length
  })
}

/** Ends the unsent mails of earlier slots. Mails that may be being sent now stay as they are. */
async function giveUpEarlier(tx: Tx, reportId: string): Promise<void> {
  await tx
    .updateTable('scheduledReportRuns')
    .set({
      status: sql`case when cardinality(told) > 0 then 'SENT' when tries = 0 then 'SKIPPED' else 'FAILED' end`,
      error: sql`coalesce(error || '. ', '') || 'It was given up at the next slot'`,
      ...{ claim: null, claimedUntil: null },
    })
    .where('reportId', '=', reportId)
    .where('status', '=', 'PENDING')
    .where('manual', '=', false)
    .execute()
}

/** Deletes runs that are older than 90 days, at most 1,000 at once. Returns how many. */
export async function purgeReportRuns(store: Store): Promise<number> {
  const which = sql`q.created_at < now() - ${KEPT_DAYS} * interval '1 day' and q.status not in ('PENDING', 'SENDING')`
  return purge(store, 'scheduled_report_runs', { which, piece: PURGED_AT_ONCE, pieces: 1 })
}

/** The columns of a run that the API shows. */
function select(db: Db) {
  return db
    .selectFrom('scheduledReportRuns')
    .select(['id', 'slot', 'manual', 'periodFrom', 'recipients', 'tries', 'error', 'refused', 'withheld'])
    .select(['sentAt', 'createdAt'])
    .select(sql<ReportMetric[]>`metrics`.as('metrics'))
    .select(sql<ReportRunStatus>`replace(status, 'SENDING', 'PENDING')`.as('status'))
}
