import { setTimeout as pause } from 'node:timers/promises'
import type { Transaction } from 'kysely'
import { ACTS, type Act, covers, type Role } from './acts.ts'
import { appendAudit, INSTANCE } from './audit.ts'
import type { Db } from './connection.ts'
import { Fault, missing } from './fault.ts'
import type { DB } from './schema.ts'
import type { Keys } from './seal.ts'

/** Where things are kept, and the keys that seal them. */
export type Store = { db: Db; keys: Keys }

export type Actor = { kind: 'USER' | 'SDK_TOKEN' | 'SYSTEM'; id: string | null; name: string }

/** Who asks: made once per request by the authentication, passed to every verb. */
export type Scope = {
  store: Store
  actor: Actor
  /** The person behind a session or a token; null for the service itself. */
  userId: string | null
  instanceAdmin: boolean
  /** The caller's effective role by team id. A team that is not in here is not the caller's. */
  roles: ReadonlyMap<string, Role>
  requestId: string | null
  ip: string | null
}

export type Tx = Transaction<DB>

/** What a verb did: its result, and what the audit entry says of it. */
export type Changed<T> = { result: T; resourceId: string | null; details?: Record<string, unknown> }

/** Throws FORBIDDEN unless the caller holds at least `least` in the team. */
export function demand(scope: Scope, teamId: string, least: Role): void {
  const role = scope.roles.get(teamId)
  if (!role) throw new Fault('FORBIDDEN', 'You have no access to this team')
  if (!covers(role, least)) throw new Fault('FORBIDDEN', `This needs the role ${least}; yours is ${role}`)
}

/** The same for a team that the caller named: NOT_FOUND where no such team exists. */
export async function demandTeam(scope: Scope, teamId: string, least: Role): Promise<void> {
  if (!scope.roles.has(teamId)) {
    const team = await scope.store.db
      .selectFrom('teams')
      .select('id')
      .where('id', '=', teamId)
      .executeTakeFirst()
    if (!team) throw missing('team')
  }
  demand(scope, teamId, least)
}

/**
 * The only door to a write on somebody's behalf: checks the right that `act` needs, opens the transaction,
 * and appends the audit entry last (its lock then lives only until the commit). `work` may run again after a
 * serialization failure or deadlock, so it does nothing outside `tx`. An act decided inside `work`
 * (WORKFLOW_UPDATED or WORKFLOW_ACTIVATED) is given as `changed.act`, of the same least role. Throws NOT_FOUND
 * where the team has been deleted meanwhile.
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

/** Throws FORBIDDEN to all but the instance's admin. */
export function demandInstance(scope: Scope): void {
  if (!scope.instanceAdmin) throw new Fault('FORBIDDEN', "Only the instance's admin may see and change this")
}

/** As `change`, of what is the instance's: for its admin, in a chain of its own. */
export async function changeInstance<T>(
  scope: Scope,
  act: Act,
  work: (tx: Tx) => Promise<Changed<T>>,
): Promise<T> {
  demandInstance(scope)
  return record(scope.store, async (tx) => {
    const changed = await work(tx)
    await appendAudit(tx, scope, act, INSTANCE, changed)
    return changed.result
  })
}

/** Nobody deletes the team meanwhile, so its chain ends with TEAM_DELETED and nothing behind it. */
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

/**
 * The narrow door for what the service notes by itself (runs, projections, counters): a transaction without
 * an audit entry. Never open to a handler except through a verb that has checked the right.
 */
export async function record<T>(store: Store, work: (tx: Tx) => Promise<T>): Promise<T> {
  return persist(() => store.db.transaction().execute(work))
}

/** A lock that was not to be waited for: whoever has it gets his turn first. */
const LOCKED = '55P03'
/** How often something is tried by what PostgreSQL says: serialization failure and deadlock are the others. */
const TRIES: Record<string, number> = { '40001': 5, '40P01': 5, [LOCKED]: 30 }

/** Does a transaction, or a statement alone, again where PostgreSQL undid it for the sake of another. */
export async function persist<T>(work: () => Promise<T>): Promise<T> {
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
