import { sql } from 'kysely'
import { record, write } from '../../change.ts'
import { json } from '../../connection.ts'
import { claim, isDue, postpone, type Queue, renew, selectFree, settle } from '../../queue.ts'
import type { Store } from '../../scope.ts'
import type { ReportFiles, ReportFormat, ReportType } from './reports.ts'

/** A report that this process is to make. `attempts` counts this one too. */
export type ClaimedReport = {
  id: string
  teamId: string
  name: string
  type: ReportType
  fromAt: Date
  toAt: Date
  createdAt: Date
  createdBy: string | null
  createdByName: string
  attempts: number
  claim: string
}

/**
 * Claims a report that no process makes, for `leaseMs`: the oldest of the team whose last one was begun the longest
 * ago, so that the many reports of one team do not delay the others. A team's reports are made one after the other.
 * Undefined if no report is due.
 */
export async function claimReport(store: Store, leaseMs: number): Promise<ClaimedReport | undefined> {
  const chosen = selectFree('audit_reports', {
    which: sql`q.status in ('PENDING', 'RUNNING') and ${isDue(sql`q.due_at`)} and not exists (
      select from audit_reports o
      where o.team_id = q.team_id and o.id <> q.id and o.status = 'RUNNING' and not ${isDue(sql`o.due_at`)})`,
    order: sql`(select max(started_at) from audit_reports o where o.team_id = q.team_id) nulls first,
      q.created_at, q.id`,
    limit: 1,
  })
  const set = sql`status = 'RUNNING', started_at = clock_timestamp()`
  const returning = sql`id, team_id, name, type, from_at, to_at, created_at, created_by, created_by_name, attempts, claim`
  const rows = await write(store, (tx) =>
    claim<ClaimedReport>(tx, REPORTS, { chosen, leaseMs, set, returning }),
  )
  return rows[0]
}

/** Those that are being made: to settle, renew and postpone them. */
const REPORTS: Queue = {
  table: 'audit_reports',
  id: 'id',
  open: sql`q.status = 'RUNNING'`,
  due: 'due_at',
  token: 'claim',
  tries: 'attempts',
}

type Claimed = Pick<ClaimedReport, 'id' | 'claim'>

/** Whether the claim still holds, and goes on for `leaseMs`. */
export async function renewClaim(store: Store, report: Claimed, leaseMs: number): Promise<boolean> {
  return write(store, (tx) => renew(tx, REPORTS, report, leaseMs))
}

/** Lets another process begin after `delayMs`. With `free` this attempt does not count. */
export async function releaseClaim(
  store: Store,
  report: Claimed,
  { delayMs = 0, free = false }: { delayMs?: number; free?: boolean } = {},
): Promise<void> {
  const set = sql`status = 'PENDING', attempts = attempts - ${free ? 1 : 0}`
  await write(store, (tx) => postpone(tx, REPORTS, report, delayMs, set))
}

/** Notes that a report cannot be made; `error` is for those who asked for it. */
export async function failReport(store: Store, report: Claimed, error: string): Promise<void> {
  const set = sql`status = 'FAILED', error = ${error}, finished_at = clock_timestamp()`
  await write(store, (tx) => settle(tx, REPORTS, report, set))
}

/** A file as it was made, in pieces. */
export type MadeFile = { format: ReportFormat; parts: Uint8Array[]; bytes: number; sha256: string }

/**
 * Keeps the files, and makes the report COMPLETED, in one transaction: of two that have made it, only the one that has
 * the claim does. Resolves to whether this was it.
 */
export async function keepReport(store: Store, report: Claimed, made: MadeFile[]): Promise<boolean> {
  const files = Object.fromEntries(
    made.map(({ format, bytes, sha256 }) => [format, { bytes, sha256 }]),
  ) as ReportFiles
  return record(store, async (tx) => {
    const set = sql`status = 'COMPLETED', files = ${json(files)}, finished_at = clock_timestamp()`
    if (!(await settle(tx, REPORTS, report, set))) return false
    for (const { format, parts } of made)
      for (const [part, bytes] of parts.entries())
        await sql`insert into audit_report_parts (report_id, format, part, bytes)
          values (${report.id}, ${format}, ${part}, ${bytes})`.execute(tx)
    return true
  })
}
