import { change } from '../../change.ts'
import type { Db } from '../../connection.ts'
import { demandTeam, type Scope } from '../../scope.ts'
import type { ViewSpan } from '../filter.ts'
import { type AuditEntryView, findSpan, streamViews } from '../list.ts'

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

/** `next` is the `after` with which to ask for what follows. */
export type SiemExport = { next: number; pieces: AsyncGenerator<AuditEntryView[]> }

/**
 * Opens a team's entries for a SIEM, always oldest first (ADMIN; with an audit entry, which is not among them).
 * `pieces` has at most 200 entries at a time, and reads the next ones only when they are asked for. Throws FORBIDDEN,
 * and NOT_FOUND if there is no such team.
 */
export async function openSiemExport(scope: Scope, teamId: string, query: SiemQuery): Promise<SiemExport> {
  const { db } = scope.store
  const { low, high } = await change(scope, 'AUDIT_SIEM_READ', teamId, async (tx) => {
    const result = await findPart(tx, teamId, query)
    const isEmpty = result.low > result.high
    const read = isEmpty ? { entries: 'none' } : { fromSeq: result.low, toSeq: result.high }
    return { result, resourceId: teamId, details: { ...query, ...read } }
  })
  const next = findNext(query, { low, high })
  if (low > high) return { next, pieces: streamNothing() }
  return { next, pieces: streamViews(db, teamId, { after: low - 1, before: high + 1 }) }
}

/** The `next` of what would be read (ADMIN). Nothing is, so there is no entry. Throws as openSiemExport. */
export async function peekSiemExport(scope: Scope, teamId: string, query: SiemQuery): Promise<number> {
  await demandTeam(scope, teamId, 'ADMIN')
  return findNext(query, await findPart(scope.store.db, teamId, query))
}

function findNext({ after }: SiemQuery, { low, high }: ViewSpan): number {
  return low <= high ? high : (after ?? high)
}

async function findPart(db: Db, teamId: string, query: SiemQuery): Promise<ViewSpan> {
  const { from, to, after, limit } = query
  if (from === undefined && after === undefined) return findSpan(db, teamId, { to, newest: limit })
  const { low, high } = await findSpan(db, teamId, { from, to, after })
  if (high - low < limit) return { low, high }
  // Numbers can be missing, so the last one is looked up.
  const last = await db
    .selectFrom('auditEntries')
    .select('seq')
    .where('teamId', '=', teamId)
    .where('seq', '>=', low)
    .where('seq', '<=', high)
    .orderBy('seq')
    .offset(limit - 1)
    .limit(1)
    .executeTakeFirst()
  return { low, high: last?.seq ?? high }
}

async function* streamNothing(): AsyncGenerator<never> {}
