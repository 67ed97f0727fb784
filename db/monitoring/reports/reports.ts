import { type Selectable, sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { parseCron } from '../../../workflows/cron/cron.ts'
import { change } from '../../change.ts'
import type { Db, Tx } from '../../connection.ts'
import { demandMailCredential } from '../../credentials/references.ts'
import { Fault } from '../../fault.ts'
import { lockFor } from '../../locks.ts'
import { askRecipients } from '../../mail/recipients.ts'
import { type MailView, viewMails } from '../../mail/view.ts'
import { demandRoom, findOwned } from '../../owned.ts'
import type { ScheduledReports } from '../../schema.ts'
import { demandTeam, type Scope, type Store } from '../../scope.ts'
import { findNextSlot } from './slots.ts'

export const REPORT_METRICS = ['token_usage', 'anomalies', 'drift', 'sentiment'] as const
export type ReportMetric = (typeof REPORT_METRICS)[number]

/** The outcome of a mail. PENDING: it is not sent, or its outcome is not known yet. SKIPPED: its slot was missed. */
export const REPORT_RUN_STATUSES = ['PENDING', 'SENT', 'FAILED', 'SKIPPED'] as const
export type ReportRunStatus = (typeof REPORT_RUN_STATUSES)[number]

/** What a team says of a report. */
type Settings = {
  name: string
  /** Five fields. */
  schedule: string
  timezone: string
  recipients: string[]
  metrics: ReportMetric[]
  enabled: boolean
  /** The credential of the team's own mail server; null: the service's own server sends it. */
  credentialId: string | null
}

/** A change: what is left out stays as it is. */
export type ScheduledReportUpdate = Omit<Settings, 'timezone' | 'enabled' | 'credentialId'> & {
  timezone?: string | undefined
  enabled?: boolean | undefined
  credentialId?: string | null | undefined
}

/** A report as the API shows it. */
export type ScheduledReport = Settings &
  MailView & {
    id: string
    createdAt: Date
    updatedAt: Date
    /** Null while it is not enabled. */
    nextRunAt: Date | null
    /** The slot of the last run, and what came of it. */
    lastRunAt: Date | null
    lastStatus: ReportRunStatus | null
  }

/** How many reports a team may have. */
export const MAX_SCHEDULED_REPORTS = 100

/** How many mails an hour those that are enabled may come to, all together. */
export const MAX_REPORTS_AN_HOUR = 120

/** The reports of a team, the oldest first (VIEWER). Throws FORBIDDEN, and NOT_FOUND if there is no such team. */
export async function listScheduledReports(scope: Scope, teamId: string): Promise<ScheduledReport[]> {
  await demandTeam(scope, teamId, 'VIEWER')
  const rows = await select(scope.store.db, teamId).orderBy('r.createdAt').orderBy('r.id').execute()
  return show(scope.store, teamId, rows)
}

/** Adds a report (ADMIN). Throws as `change`, and CONFLICT if the team has too many, or too many slots an hour. */
export async function createScheduledReport(
  scope: Scope,
  teamId: string,
  input: Settings,
): Promise<ScheduledReport> {
  const made = await change(scope, 'SCHEDULED_REPORT_CREATED', teamId, async (tx) => {
    await lockReportCounts(tx, teamId)
    await demandMailCredential(tx, teamId, input.credentialId, 'credentialId')
    await demandRoom(tx, 'scheduled_reports', teamId, MAX_SCHEDULED_REPORTS)
    const id = uuid()
    await demandFewSlots(tx, teamId, id, input)
    const nextAt = input.enabled ? findNextSlot(input, await readClock(tx)) : null
    await tx
      .insertInto('scheduledReports')
      .values({ id, teamId, ...input, nextAt, changedBy: scope.userId })
      .execute()
    const result = await find(tx, teamId, id)
    return { result, resourceId: id, details: describe(result) }
  })
  return askAndShow(scope.store, teamId, made)
}

/**
 * Changes a report (ADMIN). A mail that is due and not sent yet goes unchanged to those who were recipients at its
 * slot, unless the report is no longer enabled: then it is not sent. Throws as `change`, NOT_FOUND, and CONFLICT for
 * too many slots an hour.
 */
export async function updateScheduledReport(
  scope: Scope,
  teamId: string,
  id: string,
  given: ScheduledReportUpdate,
): Promise<ScheduledReport> {
  const changed = await change(scope, 'SCHEDULED_REPORT_UPDATED', teamId, async (tx) => {
    await lockReportCounts(tx, teamId)
    const known = await lockReport(tx, teamId, id)
    const before = await find(tx, teamId, id)
    const { timezone = known.timezone, enabled = known.enabled, credentialId = known.credentialId } = given
    const input = { ...given, timezone, enabled, credentialId }
    if (credentialId !== known.credentialId)
      await demandMailCredential(tx, teamId, credentialId, 'credentialId')
    await demandFewSlots(tx, teamId, id, input)
    const isSamePlan = known.enabled && known.schedule === input.schedule && known.timezone === input.timezone
    let nextAt = isSamePlan ? known.nextAt : findNextSlot(input, await readClock(tx))
    if (!input.enabled) {
      nextAt = null
      await tx
        .updateTable('scheduledReportRuns')
        .set({
          status: sql`case when cardinality(told) > 0 then 'SENT' else 'SKIPPED' end`,
          error: 'The report was disabled before it was sent',
          ...{ claim: null, claimedUntil: null },
        })
        .where('reportId', '=', id)
        .where('status', '=', 'PENDING')
        .where('manual', '=', false)
        .execute()
    }
    await tx
      .updateTable('scheduledReports')
      .set({ ...input, nextAt, changedBy: scope.userId, updatedAt: sql<Date>`now()` })
      .where('id', '=', id)
      .execute()
    const result = await find(tx, teamId, id)
    return { result, resourceId: id, details: { before: describe(before), after: describe(result) } }
  })
  return askAndShow(scope.store, teamId, changed)
}

/** Deletes a report, its runs and what is due of it (ADMIN). Throws as `change`, and NOT_FOUND. */
export async function deleteScheduledReport(scope: Scope, teamId: string, id: string): Promise<void> {
  await change(scope, 'SCHEDULED_REPORT_DELETED', teamId, async (tx) => {
    await lockReport(tx, teamId, id)
    const known = await find(tx, teamId, id)
    await tx.deleteFrom('scheduledReports').where('id', '=', id).execute()
    return { result: undefined, resourceId: id, details: describe(known) }
  })
}

/** All teams share the server that sends mail: no team may fill it. Throws CONFLICT. */
async function demandFewSlots(
  tx: Tx,
  teamId: string,
  id: string,
  { schedule, enabled }: Pick<Settings, 'schedule' | 'enabled'>,
): Promise<void> {
  if (!enabled) return
  const others = await tx
    .selectFrom('scheduledReports')
    .select('schedule')
    .where('teamId', '=', teamId)
    .where('id', '<>', id)
    .where('enabled', '=', true)
    .execute()
  const schedules = [schedule, ...others.map((other) => other.schedule)]
  const anHour = schedules.reduce((sum, text) => sum + parseCron(text).cron.minute.length, 0)
  if (anHour <= MAX_REPORTS_AN_HOUR) return
  throw new Fault(
    'CONFLICT',
    `The reports of a team may have ${MAX_REPORTS_AN_HOUR} slots an hour together, and would have ${anHour}`,
  )
}

/** Locks the row of a report, so that no slot of it begins meanwhile. Throws NOT_FOUND. */
export async function lockReport(
  tx: Tx,
  teamId: string,
  id: string,
): Promise<Omit<Selectable<ScheduledReports>, 'metrics'> & { metrics: ReportMetric[] }> {
  const rows = tx.selectFrom('scheduledReports').selectAll().where('id', '=', id).where('teamId', '=', teamId)
  const row = await findOwned(rows.forUpdate(), 'report')
  return { ...row, metrics: row.metrics as ReportMetric[] }
}

/** Two that are added to a team's reports or mails at once are counted one after the other. */
export async function lockReportCounts(tx: Tx, teamId: string): Promise<void> {
  await lockFor(tx, 'scheduledReports', teamId)
}

/** The time by the database's clock, which all processes share. */
export async function readClock(db: Db): Promise<Date> {
  const { rows } = await sql<{ at: Date }>`select now()::timestamptz(3) as at`.execute(db)
  return rows[0]!.at
}

function select(db: Db, teamId: string) {
  return db
    .selectFrom('scheduledReports as r')
    .leftJoinLateral(
      (eb) =>
        eb
          .selectFrom('scheduledReportRuns as one')
          .select(['one.slot', 'one.status'])
          .whereRef('one.reportId', '=', 'r.id')
          .orderBy('one.slot', 'desc')
          .orderBy('one.id', 'desc')
          .limit(1)
          .as('last'),
      (join) => join.onTrue(),
    )
    .where('r.teamId', '=', teamId)
    .select(['r.id', 'r.name', 'r.schedule', 'r.timezone', 'r.recipients', 'r.enabled'])
    .select(sql<ReportMetric[]>`r.metrics`.as('metrics'))
    .select([
      'r.credentialId',
      'r.changedBy',
      'r.createdAt',
      'r.updatedAt',
      'r.nextAt as nextRunAt',
      'last.slot as lastRunAt',
    ])
    .select(sql<ReportRunStatus | null>`replace(last.status, 'SENDING', 'PENDING')`.as('lastStatus'))
}

type ReportRow = Omit<ScheduledReport, keyof MailView> & { changedBy: string | null }

/** Has those asked who have not said yes. */
async function askAndShow(store: Store, teamId: string, row: ReportRow): Promise<ScheduledReport> {
  const { recipients, credentialId, changedBy, enabled } = row
  if (enabled && credentialId === null) await askRecipients(store, { teamId, userId: changedBy }, recipients)
  const [shown] = await show(store, teamId, [row])
  return shown!
}

async function show(store: Store, teamId: string, rows: ReportRow[]): Promise<ScheduledReport[]> {
  const views = await viewMails(store, teamId, rows)
  return rows.map(({ changedBy: _, ...row }, index) => ({ ...row, ...views[index]! }))
}

const find = (db: Db, teamId: string, id: string): Promise<ReportRow> =>
  findOwned(select(db, teamId).where('r.id', '=', id), 'report')

/** What the audit says of a report. */
function describe({ name, schedule, timezone, recipients, metrics, enabled, credentialId }: Settings) {
  return { name, schedule, timezone, recipients, metrics, enabled, credentialId }
}
