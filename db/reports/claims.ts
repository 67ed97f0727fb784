import { sql } from 'kysely'
import { v4 as uuid } from 'uuid'
import { record, write } from '../change.ts'
import { json } from '../connection.ts'
import type { Store } from '../scope.ts'
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
 * Claims a report that nobody makes, for `leaseMs`: the oldest of the team whose last one was begun the longest ago, so
 * that one team's many do not keep the others waiting. A team's are made one after the other. Undefined if there is none.
 */
export async function claimReport(store: Store, leaseMs: number): Promise<ClaimedReport | undefined> {
  const claim = uuid()
  const { rows } = await write(store, (tx) =>
    sql<ClaimedReport>`
      update audit_reports set status = 'RUNNING', claim = ${claim}, attempts = attempts + 1,
        started_at = clock_timestamp(), due_at = now() + ${leaseMs} * interval '1 millisecond'
      where id = (
        select id from audit_reports r
        where status in ('PENDING', 'RUNNING') and due_at <= now() and not exists (
          select from audit_reports o
          where o.team_id = r.team_id and o.id <> r.id and o.status = 'RUNNING' and o.due_at > now())
        order by (select max(started_at) from audit_reports o where o.team_id = r.team_id) nulls first, created_at, id
        limit 1 for update skip locked)
      returning id, team_id, name, type, from_at, to_at, created_at, created_by, created_by_name, attempts, claim`.execute(
      tx,
    ),
  )
  return rows[0]
}

type Claimed = Pick<ClaimedReport, 'id' | 'claim'>

/** Whether the claim still holds, and goes on for `leaseMs`. */
export async function renewClaim(store: Store, { id, claim }: Claimed, leaseMs: number): Promise<boolean> {
  const { rows } = await write(store, (tx) =>
    sql`update audit_reports set due_at = now() + ${leaseMs} * interval '1 millisecond'
      where id = ${id} and claim = ${claim} and status = 'RUNNING' returning id`.execute(tx),
  )
  return rows.length > 0
}

/** Lets another process begin after `delayMs`. With `free` this attempt does not count. */
export async function releaseClaim(
  store: Store,
  { id, claim }: Claimed,
  { delayMs = 0, free = false }: { delayMs?: number; free?: boolean } = {},
): Promise<void> {
  await write(store, (tx) =>
    sql`update audit_reports set status = 'PENDING', claim = null, attempts = attempts - ${free ? 1 : 0},
        due_at = now() + ${delayMs} * interval '1 millisecond'
      where id = ${id} and claim = ${claim} and status = 'RUNNING'`.execute(tx),
  )
}

/** Notes that a report cannot be made; `error` is for those who asked for it. */
export async function failReport(store: Store, { id, claim }: Claimed, error: string): Promise<void> {
  await write(store, (tx) =>
    sql`update audit_reports set status = 'FAILED', claim = null, error = ${error}, finished_at = clock_timestamp()
      where id = ${id} and claim = ${claim} and status = 'RUNNING'`.execute(tx),
  )
}

/** A file as it was made, in pieces. */
export type MadeFile = { format: ReportFormat; parts: Uint8Array[]; bytes: number; sha256: string }

/**
 * Keeps the files, and makes the report COMPLETED, in one transaction: of two that have made it, only the one that has
 * the claim does. Resolves to whether this was it.
 */
export async function keepReport(store: Store, { id, claim }: Claimed, made: MadeFile[]): Promise<boolean> {
  const files = Object.fromEntries(
    made.map(({ format, bytes, sha256 }) => [format, { bytes, sha256 }]),
  ) as ReportFiles
  return record(store, async (tx) => {
    const { rows } = await sql`
      update audit_reports set status = 'COMPLETED', claim = null, files = ${json(files)}, finished_at = clock_timestamp()
      where id = ${id} and claim = ${claim} and status = 'RUNNING' returning id`.execute(tx)
    if (rows.length === 0) return false
    for (const { format, parts } of made)
      for (const [part, bytes] of parts.entries())
        await sql`insert into audit_report_parts (report_id, format, part, bytes)
          values (${id}, ${format}, ${part}, ${bytes})`.execute(tx)
    return true
  })
}
