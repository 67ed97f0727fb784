import { sql } from 'kysely'
import type { Db } from '../connection.ts'
import { makePage, type Page, type PageRequest } from '../page.ts'
import { demandTeam, type Scope } from '../scope.ts'
import { countAudit } from './counts.ts'
import { personBehind, type ViewFilter, type ViewSpan } from './filter.ts'

/** An entry of a chain as the API shows it. `hash` and `prevHash` are hexadecimal. */
export type AuditEntryView = {
  id: string
  teamId: string
  /** The person behind the act: who has signed in, or has made the SDK token. Null for the service itself. */
  userId: string | null
  /** The name of the actor, which is the token's for an SDK token. */
  userName: string | null
  action: string
  resourceType: string
  resourceId: string | null
  details: unknown
  createdAt: Date
  seq: number
  outcome: string
  actor: { kind: string; id: string | null; role: string | null }
  ip: string | null
  userAgent: string | null
  requestId: string | null
  hash: string
  prevHash: string
}

/**
 * One page of a team's entries, newest first (ADMIN). Throws FORBIDDEN, and NOT_FOUND if there is no such team.
 */
export async function listAudit(
  scope: Scope,
  teamId: string,
  { page, size, ...filter }: PageRequest & ViewFilter,
): Promise<Page<AuditEntryView>> {
  await demandTeam(scope, teamId, 'ADMIN')
  const { db } = scope.store
  const span = await findSpan(db, teamId, filter)
  const { low, high } = span
  const skip = page * size
  // Where no number is missing, both the total and the page follow from the numbers alone.
  if (!isPicky(filter) && (await isDense(db, teamId))) {
    const last = { low, high: high - skip }
    const rows = await select(db, teamId, filter, last, 'newest').limit(size).execute()
    return makePage(rows.map(toView), Math.max(0, high - low + 1), { page, size })
  }
  const total = await countAudit(db, teamId, filter, span)
  const rows =
    skip < total ? await select(db, teamId, filter, span, 'newest').limit(size).offset(skip).execute() : []
  return makePage(rows.map(toView), total, { page, size })
}

/** Entries of a chain in the order of their numbers. The caller must have checked the right. */
export async function readViews(
  db: Db,
  teamId: string,
  { limit, order, ...filter }: ViewFilter & { limit: number; order: 'newest' | 'oldest' },
): Promise<AuditEntryView[]> {
  const span = await findSpan(db, teamId, filter)
  return (await select(db, teamId, filter, span, order).limit(limit).execute()).map(toView)
}

const PIECE = 200

/**
 * All entries that `filter` finds, oldest first, in pieces of 200: those that there are at the beginning, and none
 * that come later. The caller must have checked the right.
 */
export async function* streamViews(
  db: Db,
  teamId: string,
  filter: ViewFilter,
): AsyncGenerator<AuditEntryView[]> {
  let { low, high } = await findSpan(db, teamId, filter)
  while (low <= high) {
    const rows = await select(db, teamId, filter, { low, high }, 'oldest').limit(PIECE).execute()
    if (rows.length > 0) yield rows.map(toView)
    if (rows.length < PIECE) return
    low = rows.at(-1)!.seq + 1
  }
}

/**
 * The first and the last number of the entries that `filter` asks for. Times become numbers here, once: in a chain they
 * go up together. Purged entries are outside, even if they are still being removed.
 */
export async function findSpan(db: Db, teamId: string, filter: ViewFilter): Promise<ViewSpan> {
  const { from, to, after, before, newest } = filter
  const entries = sql`audit_entries where team_id = ${teamId}`
  const { rows } = await sql<{ low: number; high: number }>`
    select greatest(${after ?? 0}::bigint + 1,
        coalesce((select max(base_seq) from audit_anchors where team_id = ${teamId}), 0) + 1,
        case when ${from !== undefined} then coalesce(
          (select seq from ${entries} and ts >= ${writeTime(from)}::timestamptz order by ts, seq limit 1),
          ${Number.MAX_SAFE_INTEGER}) end) as low,
      least(${before ?? Number.MAX_SAFE_INTEGER}::bigint - 1,
        coalesce((select seq from audit_heads where team_id = ${teamId}), 0),
        case when ${to !== undefined} then coalesce(
          (select seq from ${entries} and ts < ${writeTime(to)}::timestamptz order by ts desc, seq desc limit 1),
          0) end) as high`.execute(db)
  const { low, high } = rows[0]!
  if (newest === undefined || low > high) return { low, high }
  const first = await where(db, teamId, filter, { low, high })
    .select('seq')
    .orderBy('seq', 'desc')
    .offset(newest - 1)
    .limit(1)
    .executeTakeFirst()
  return { low: first?.seq ?? low, high }
}

/** Whether a filter leaves entries out within its span. */
function isPicky({ action, userId, resourceType, resourceId, outcome }: ViewFilter): boolean {
  return [action, userId, resourceType, resourceId, outcome].some((value) => value !== undefined)
}

/** Numbers are missing only before an entry that has reopened its chain. */
async function isDense(db: Db, teamId: string): Promise<boolean> {
  const reopened = await db
    .selectFrom('auditEntries')
    .select('seq')
    .where('teamId', '=', teamId)
    .where('action', '=', 'AUDIT_REOPENED')
    .limit(1)
    .executeTakeFirst()
  return reopened === undefined
}

function where(db: Db, teamId: string, filter: ViewFilter, { low, high }: ViewSpan) {
  const { action, userId, resourceType, resourceId, outcome } = filter
  let found = db
    .selectFrom('auditEntries')
    .where('teamId', '=', teamId)
    .where('seq', '>=', low)
    .where('seq', '<=', high)
  if (action !== undefined) found = found.where('action', '=', action)
  if (userId !== undefined) found = found.where(personBehind, '=', userId)
  if (resourceType !== undefined) found = found.where('resourceType', '=', resourceType)
  if (resourceId !== undefined) found = found.where('resourceId', '=', resourceId)
  if (outcome !== undefined) found = found.where('outcome', '=', outcome)
  return found
}

function select(db: Db, teamId: string, filter: ViewFilter, span: ViewSpan, order: 'newest' | 'oldest') {
  return where(db, teamId, filter, span)
    .select(['id', 'teamId', 'actorName', 'action', 'resourceType', 'resourceId', 'details', 'ts', 'seq'])
    .select([
      'outcome',
      'actorKind',
      'actorId',
      'actorRole',
      'srcIp',
      'userAgent',
      'requestId',
      'hash',
      'prev',
    ])
    .select(personBehind.as('userId'))
    .orderBy('seq', order === 'newest' ? 'desc' : 'asc')
}

type ViewRow = Awaited<ReturnType<ReturnType<typeof select>['execute']>>[number]

function toView(row: ViewRow): AuditEntryView {
  const { actorKind, actorId, actorRole, actorName, srcIp, ts, hash, prev } = row
  const { id, teamId, userId, action, resourceType, resourceId, details, seq, outcome } = row
  return {
    ...{ id, teamId, userId, userName: actorName, action, resourceType, resourceId, details },
    ...{ createdAt: ts, seq, outcome, actor: { kind: actorKind, id: actorId, role: actorRole } },
    ...{ ip: srcIp, userAgent: row.userAgent, requestId: row.requestId },
    ...{ hash: hash.toString('hex'), prevHash: prev.toString('hex') },
  }
}

const FIRST_TIME = Date.parse('0001-01-01T00:00:00Z')
const LAST_TIME = Date.parse('9999-12-31T23:59:59.999Z')

/** A time as PostgreSQL reads it, within the years that ISO 8601 writes with four digits. */
function writeTime(time: Date | undefined): string {
  return new Date(Math.min(LAST_TIME, Math.max(FIRST_TIME, time?.getTime() ?? FIRST_TIME))).toISOString()
}
