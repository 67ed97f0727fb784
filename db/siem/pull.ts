import { type AuditEntryView, findSpan, streamViews } from '../audit/list.ts'
import { change } from '../change.ts'
import type { Db } from '../connection.ts'
import type { Scope } from '../scope.ts'

export const SIEM_FORMATS = ['json', 'syslog', 'cef'] as const
export type SiemFormat = (typeof SIEM_FORMATS)[number]

/** Which entries a SIEM asks for. Times as in the list; `after` is the number of an entry, exclusive. */
export type SiemQuery = {
  format: SiemFormat
  from?: Date | undefined
  to?: Date | undefined
  after?: number | undefined
  /** At most this many: the first ones if there is a `from` or an `after`, else the newest. */
  limit: number
}

/** `next` is the `after` with which to ask for what follows; `more`: some of it is there already. */
export type SiemExport = { next: number; more: boolean; pieces: AsyncGenerator<AuditEntryView[]> }

/** Numbers of entries, both inclusive, and the last one that there is. */
type Part = { low: number; high: number; end: number }

/**
 * Opens a team's entries for a SIEM, always oldest first (ADMIN; with an audit entry, which is not among them).
 * `pieces` has at most 500 entries at a time, and reads the next ones only when they are asked for. Throws FORBIDDEN,
 * and NOT_FOUND if there is no such team.
 */
export async function openSiemExport(scope: Scope, teamId: string, query: SiemQuery): Promise<SiemExport> {
  const { db } = scope.store
  const { low, high, end } = await change(scope, 'AUDIT_SIEM_READ', teamId, async (tx) => {
    const result = await findPart(tx, teamId, query)
    const isEmpty = result.low > result.high
    const read = isEmpty ? { entries: 'none' } : { fromSeq: result.low, toSeq: result.high }
    return { result, resourceId: teamId, details: { ...query, ...read } }
  })
  const { after } = query
  if (low > high) return { next: after ?? high, more: false, pieces: streamNothing() }
  return {
    next: high,
    more: high < end,
    pieces: streamViews(db, teamId, { after: low - 1, before: high + 1 }),
  }
}

async function findPart(db: Db, teamId: string, query: SiemQuery): Promise<Part> {
  const { from, to, after, limit } = query
  if (from === undefined && after === undefined) {
    const span = await findSpan(db, teamId, { to, newest: limit })
    return { ...span, end: span.high }
  }
  const { low, high: end } = await findSpan(db, teamId, { from, to, after })
  if (end - low < limit) return { low, high: end, end }
  // Numbers can be missing, so the last one is looked up.
  const last = await db
    .selectFrom('auditEntries')
    .select('seq')
    .where('teamId', '=', teamId)
    .where('seq', '>=', low)
    .where('seq', '<=', end)
    .orderBy('seq')
    .offset(limit - 1)
    .limit(1)
    .executeTakeFirst()
  return { low, high: last?.seq ?? end, end }
}

async function* streamNothing(): AsyncGenerator<never> {}
