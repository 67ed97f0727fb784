import { sql } from 'kysely'
import { Fault } from '../../fault.ts'
import { type Store, serviceScope } from '../../scope.ts'
import { deleteReport } from './reports.ts'

/** Who removes reports by itself, in the words of the audit. */
const ACTOR = { kind: 'SYSTEM', id: null, name: 'audit retention' } as const

const BATCH = 100

/**
 * Removes the reports whose time is over, each with an entry of the audit. `tell` is called with failures, such as of
 * a team whose chain is broken: the others go on. Any number of processes may do so. Resolves to how many there were.
 */
export async function removeExpiredReports(
  store: Store,
  tell: (teamId: string, error: unknown) => void,
  signal?: AbortSignal,
): Promise<number> {
  let removed = 0
  let after = '00000000-0000-0000-0000-000000000000'
  for (;;) {
    const rows = await store.db
      .selectFrom('auditReports')
      .select(['id', 'teamId'])
      .where('expiresAt', '<=', sql<Date>`now()`)
      .where('id', '>', after)
      .orderBy('id')
      .limit(BATCH)
      .execute()
    for (const { id, teamId } of rows) {
      if (signal?.aborted) return removed
      try {
        await deleteReport(serviceScope(store, ACTOR, [[teamId, 'ADMIN']]), teamId, id, { expired: true })
        removed++
      } catch (error) {
        // Another process has removed it.
        if (!(error instanceof Fault && error.code === 'NOT_FOUND')) tell(teamId, error)
      }
    }
    if (rows.length < BATCH) return removed
    after = rows.at(-1)!.id
  }
}
