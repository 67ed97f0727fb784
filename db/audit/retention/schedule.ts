import { sql } from 'kysely'
import { write } from '../../change.ts'
import { selectFree } from '../../queue.ts'
import { type Store, serviceScope } from '../../scope.ts'
import type { PrefixChecker } from '../verify/prefixes.ts'
import { finishPurges, purgeIfDue, type TellFailure } from './purge.ts'

/** Who removes old entries by itself, in the words of the audit. */
const ACTOR = { kind: 'SYSTEM', id: null, name: 'audit retention' } as const

/**
 * Removes the entries that are older than their teams' retention periods, once a day for each team that wants that, and
 * goes on with what other processes have begun. The rows say when a team was looked at, so that any number of processes
 * share the work; after a failure a team is looked at again within the hour. `tell` is called with failures: the other
 * teams go on. `check` verifies what is to be removed, if not this thread. Stops early when `signal` is aborted.
 * Resolves to how many entries were removed.
 */
export async function purgeByPolicy(
  store: Store,
  tell: TellFailure,
  { signal, check }: { signal?: AbortSignal; check?: PrefixChecker | undefined } = {},
): Promise<number> {
  await finishPurges(store, tell, signal)
  let removed = 0
  while (!signal?.aborted) {
    const teamId = await claimTeam(store)
    if (teamId === undefined) break
    try {
      const scope = serviceScope(store, ACTOR, [[teamId, 'ADMIN']])
      removed += (await purgeIfDue(scope, teamId, check))?.purgedCount ?? 0
      await write(store, (tx) =>
        sql`update audit_retention set looked_at = now() where team_id = ${teamId}`.execute(tx),
      )
    } catch (error) {
      tell(teamId, error)
    }
  }
  return removed
}

/** Takes a team that was not looked at for a day, for an hour; undefined if no team is due. */
async function claimTeam(store: Store): Promise<string | undefined> {
  const { rows } = await write(store, (tx) =>
    sql<{ teamId: string }>`
      update audit_retention set looked_at = now() - interval '23 hours' where team_id = (
        ${selectFree('audit_retention', {
          columns: sql`q.team_id`,
          which: sql`q.auto_delete_enabled and (q.looked_at is null or q.looked_at < now() - interval '24 hours')`,
          order: sql`q.looked_at nulls first`,
          limit: 1,
        })})
      returning team_id`.execute(tx),
  )
  return rows[0]?.teamId
}
