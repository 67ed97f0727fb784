import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { change } from '../../change.ts'
import type { Db } from '../../connection.ts'
import { Fault, missing } from '../../fault.ts'
import { lockFor } from '../../locks.ts'
import { demandTeam, type Scope } from '../../scope.ts'
import { cleanText } from '../../text.ts'
import { findPolicy } from '../retention/policy.ts'

export const REPORT_TYPES = ['COMPLIANCE', 'ACTIVITY', 'SECURITY'] as const
export type ReportType = (typeof REPORT_TYPES)[number]

/** PENDING until a worker begins with it, RUNNING until it has made it; then it is what it is. */
export const REPORT_STATUSES = ['PENDING', 'RUNNING', 'COMPLETED', 'FAILED'] as const
type ReportStatus = (typeof REPORT_STATUSES)[number]

export const REPORT_FORMATS = ['html', 'json'] as const
export type ReportFormat = (typeof REPORT_FORMATS)[number]

/** The size of a report's files, and what they hash to; `sha256` is hexadecimal. */
export type ReportFiles = Record<ReportFormat, { bytes: number; sha256: string }>

export type AuditReport = {
  id: string
  teamId: string
  name: string
  type: ReportType
  /** The period: `from` is inclusive, `to` exclusive. */
  from: Date
  to: Date
  status: ReportStatus
  createdAt: Date
  /** Who asked for it, as they were called then. */
  createdBy: { id: string | null; name: string }
  startedAt: Date | null
  finishedAt: Date | null
  /** When it is removed. */
  expiresAt: Date
  /** Why it could not be made; null unless it is FAILED. */
  error: string | null
  /** Null until it is COMPLETED. */
  files: ReportFiles | null
}

/** How many reports of a team may wait or be made, and how many there may be. */
const MAX_OPEN = 10
const MAX_KEPT = 1_000

/**
 * Asks for a report on a team's period (ADMIN): a worker makes it. Throws CONFLICT if ten of the team are waiting, or
 * 1,000 are kept, and as `change`.
 */
export async function createReport(
  scope: Scope,
  teamId: string,
  { name, type, from, to }: { name: string; type: ReportType; from: Date; to: Date },
): Promise<AuditReport> {
  const id = uuid()
  return change(scope, 'AUDIT_REPORT_CREATED', teamId, async (tx) => {
    // If two requests come at once, the second counts the report of the first.
    await lockFor(tx, 'auditReports', teamId)
    await demandRoomFor(tx, teamId)
    const { reportRetentionDays } = await findPolicy(tx, teamId)
    await tx
      .insertInto('auditReports')
      .values({
        ...{ id, teamId, name, type, fromAt: from, toAt: to },
        createdBy: scope.userId,
        createdByName: cleanText(scope.actor.name, 320),
        expiresAt: sql<Date>`now() + ${reportRetentionDays * 24} * interval '1 hour'`,
      })
      .execute()
    const result = await findReport(tx, teamId, id)
    return { result, resourceId: id, details: { name, type, from, to, reportRetentionDays } }
  })
}

async function demandRoomFor(db: Db, teamId: string): Promise<void> {
  const { open, kept } = await db
    .selectFrom('auditReports')
    .where('teamId', '=', teamId)
    .select(sql<number>`count(*) filter (where status in ('PENDING', 'RUNNING'))`.as('open'))
    .select(sql<number>`count(*)`.as('kept'))
    .executeTakeFirstOrThrow()
  if (open >= MAX_OPEN)
    throw new Fault('CONFLICT', `${MAX_OPEN} reports of this team are not ready yet: wait for one of them`)
  if (kept >= MAX_KEPT) throw new Fault('CONFLICT', `This team has ${MAX_KEPT} reports: delete one first`)
}

/** A team's reports, newest first, at most 1,000 (ADMIN). Throws FORBIDDEN, and NOT_FOUND if there is no such team. */
export async function listReports(scope: Scope, teamId: string): Promise<AuditReport[]> {
  await demandTeam(scope, teamId, 'ADMIN')
  const rows = await selectReports(scope.store.db, teamId)
    .orderBy('createdAt', 'desc')
    .orderBy('id', 'desc')
    .execute()
  return rows.map(toReport)
}

/** One report of a team (ADMIN). Throws FORBIDDEN and NOT_FOUND. */
export async function readReport(scope: Scope, teamId: string, id: string): Promise<AuditReport> {
  await demandTeam(scope, teamId, 'ADMIN')
  return findReport(scope.store.db, teamId, id)
}

/**
 * Removes a report with its files, even while it is being made (ADMIN). `expired` says that its time was over. Throws
 * NOT_FOUND, and as `change`.
 */
export async function deleteReport(
  scope: Scope,
  teamId: string,
  id: string,
  { expired = false }: { expired?: boolean } = {},
): Promise<void> {
  await change(scope, 'AUDIT_REPORT_DELETED', teamId, async (tx) => {
    const row = await tx
      .deleteFrom('auditReports')
      .where('teamId', '=', teamId)
      .where('id', '=', id)
      .returning(['name', 'type', 'status'])
      .executeTakeFirst()
    if (!row) throw missing('report')
    return { result: undefined, resourceId: id, details: { ...row, ...(expired ? { expired } : {}) } }
  })
}

/** The caller must have checked the right. */
export async function findReport(db: Db, teamId: string, id: string): Promise<AuditReport> {
  const row = await selectReports(db, teamId).where('id', '=', id).executeTakeFirst()
  if (!row) throw missing('report')
  return toReport(row)
}

function selectReports(db: Db, teamId: string) {
  return db
    .selectFrom('auditReports')
    .select(['id', 'teamId', 'name', 'type', 'fromAt', 'toAt', 'status', 'createdAt', 'createdBy'])
    .select(['createdByName', 'startedAt', 'finishedAt', 'expiresAt', 'error', 'files'])
    .where('teamId', '=', teamId)
}

type ReportRow = NonNullable<Awaited<ReturnType<ReturnType<typeof selectReports>['executeTakeFirst']>>>

function toReport({ fromAt, toAt, createdBy, createdByName, ...row }: ReportRow): AuditReport {
  return {
    ...row,
    type: row.type as ReportType,
    status: row.status as ReportStatus,
    files: row.files as ReportFiles | null,
    ...{ from: fromAt, to: toAt, createdBy: { id: createdBy, name: createdByName } },
  }
}
