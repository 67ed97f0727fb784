import { setTimeout as pause } from 'node:timers/promises'
import { ACTS, type Act } from './acts.ts'
import { appendAudit, INSTANCE_CHAIN } from './audit/audit.ts'
import type { Database, Tx } from './connection.ts'
import { missing } from './fault.ts'
import { demandInstance, demandTeam, type Scope, type Store } from './scope.ts'

/** What a verb did: its result, and what the audit entry says about it. */
export type Changed<T> = { result: T; resourceId: string | null; details?: Record<string, unknown> }

/**
 * The door to every write on somebody's behalf: checks the right that `act` needs, opens a transaction, and
 * appends the audit entry last, so that the chain is locked only until the commit. `work` may run again after
 * a serialization failure or a deadlock, so it must do nothing outside `tx`. It may return another `act` of
 * the same least role (WORKFLOW_ACTIVATED instead of WORKFLOW_UPDATED). Throws FORBIDDEN, or NOT_FOUND if the
 * team no longer exists.
 */
export async function change<T>(
  scope: Scope,
  act: Act,
  teamId: string,
  work: (tx: Tx) => Promise<Changed<T> & { act?: Act }>,
): Promise<T> {
  await demandTeam(scope, teamId, ACTS[act].role)
  return record(scope.store, async (tx) => {
    if (act !== 'TEAM_CREATED') await holdTeam(tx, teamId, act)
    const changed = await work(tx)
    await appendAudit(tx, scope, changed.act ?? act, teamId, changed)
    return changed.result
  })
}

/** Like `change`, for what belongs to the instance: only for its admin, with an audit chain of its own. */
export async function changeInstance<T>(
  scope: Scope,
  act: Act,
  work: (tx: Tx) => Promise<Changed<T>>,
): Promise<T> {
  demandInstance(scope)
  return record(scope.store, async (tx) => {
    const changed = await work(tx)
    await appendAudit(tx, scope, act, INSTANCE_CHAIN, changed)
    return changed.result
  })
}

/**
 * The door for what the service notes by itself (projections, streams, sign-ins): a transaction without an
 * audit entry. A handler reaches it only through a verb that has checked the right. `work` may run again, as
 * in `change`.
 */
export async function record<T>(store: Store, work: (tx: Tx) => Promise<T>): Promise<T> {
  return persist(() => (store.db as Database).transaction().execute(work))
}

/** Like `record` for a single statement: without BEGIN and COMMIT it saves two round trips. */
export async function write<T>(store: Pick<Store, 'db'>, statement: (tx: Tx) => Promise<T>): Promise<T> {
  return persist(() => statement(store.db as Tx))
}

/** Prevents the deletion of the team until the commit, so that its audit chain ends with TEAM_DELETED. */
async function holdTeam(tx: Tx, teamId: string, act: Act): Promise<void> {
  const team = await tx
    .selectFrom('teams')
    .select('id')
    .where('id', '=', teamId)
    .$if(act === 'TEAM_DELETED', (query) => query.forUpdate())
    .$if(act !== 'TEAM_DELETED', (query) => query.forKeyShare())
    .executeTakeFirst()
  if (!team) throw missing('team')
}

/** PostgreSQL's lock_not_available: a statement with a short lock_timeout gave up waiting for a lock. */
const LOCKED = '55P03'

/** How often work is tried if it fails with LOCKED, a serialization failure (40001) or a deadlock (40P01). */
const TRIES: Record<string, number> = { '40001': 5, '40P01': 5, [LOCKED]: 30 }

async function persist<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      const code = (error as { code?: string }).code
      if (attempt >= (TRIES[code ?? ''] ?? 0)) throw error
      if (code === LOCKED) await pause(Math.random() * 10 * attempt)
    }
  }
}
