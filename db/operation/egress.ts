import { LRUCache } from 'lru-cache'
import { perDatabase } from '../cache.ts'
import { changeInstance } from '../change.ts'
import type { Db, Tx } from '../connection.ts'
import { missing } from '../fault.ts'
import { demandInstance, type Scope, type Store } from '../scope.ts'

/** What the instance's admin has set for the calls of a team. Without an entry, the instance's settings hold alone. */
export type TeamEgress = { allow: string[]; deny: string[]; updatedAt: Date | null }

/** How long a process works with what it has read. */
const TTL_MS = 2_000

type AllRules = Promise<Map<string, TeamEgress>>

const cacheOf = perDatabase(() => new LRUCache<'all', AllRules>({ max: 1, ttl: TTL_MS }))

/**
 * The egress rules of a team, up to two seconds old; undefined if it has none. Rejects while PostgreSQL is away,
 * because the team's rules are then unknown.
 */
export async function findTeamEgress({ db }: Store, teamId: string): Promise<TeamEgress | undefined> {
  const cache = cacheOf(db)
  let known = cache.get('all')
  if (!known) {
    known = listTeamEgress(db)
    cache.set('all', known)
    known.catch(() => cache.peek('all') === known && cache.delete('all'))
  }
  return (await known).get(teamId)
}

/** Reads what is set for a team. Throws NOT_FOUND, and FORBIDDEN unless for the instance's admin. */
export async function readTeamEgress(scope: Scope, teamId: string): Promise<TeamEgress> {
  demandInstance(scope)
  return loadTeamEgress(scope.store.db, teamId)
}

/**
 * Sets what a team may reach, and may not. It holds for every connection that is made from now on, in other
 * processes after two seconds at most. Throws NOT_FOUND, and FORBIDDEN unless for the instance's admin.
 */
export async function updateTeamEgress(
  scope: Scope,
  teamId: string,
  { allow, deny }: Pick<TeamEgress, 'allow' | 'deny'>,
): Promise<TeamEgress> {
  const changed = await changeInstance(scope, 'TEAM_EGRESS_UPDATED', async (tx) => {
    const old = await loadTeamEgress(tx, teamId)
    if (JSON.stringify([old.allow, old.deny]) === JSON.stringify([allow, deny]))
      return { result: old, unchanged: true }
    const result = { allow, deny, updatedAt: new Date() }
    await saveTeamEgress(tx, teamId, result)
    return {
      result,
      resourceId: teamId,
      details: { allow, deny, before: { allow: old.allow, deny: old.deny }, after: { allow, deny } },
    }
  })
  cacheOf(scope.store.db).clear()
  return changed
}

async function saveTeamEgress(tx: Tx, teamId: string, { allow, deny, updatedAt }: TeamEgress): Promise<void> {
  const values = { allow, deny, updatedAt: updatedAt! }
  await tx
    .insertInto('teamEgress')
    .values({ teamId, ...values })
    .onConflict((conflict) => conflict.column('teamId').doUpdateSet(values))
    .execute()
}

async function loadTeamEgress(db: Db, teamId: string): Promise<TeamEgress> {
  const row = await db
    .selectFrom('teams')
    .leftJoin('teamEgress', 'teamEgress.teamId', 'teams.id')
    .select(['allow', 'deny', 'teamEgress.updatedAt'])
    .where('teams.id', '=', teamId)
    .executeTakeFirst()
  if (!row) throw missing('team')
  return { allow: row.allow ?? [], deny: row.deny ?? [], updatedAt: row.updatedAt }
}

async function listTeamEgress(db: Db): Promise<Map<string, TeamEgress>> {
  const rows = await db.selectFrom('teamEgress').selectAll().execute()
  return new Map(rows.map(({ teamId, ...rules }) => [teamId, rules]))
}
