import { covers, type Role } from './acts.ts'
import type { Db } from './connection.ts'
import { Fault, missing } from './fault.ts'
import type { Keys } from './seal.ts'

/** The database, and the keys that seal values in it. */
export type Store = { db: Db; keys: Keys }

export type Actor = { kind: 'USER' | 'SDK_TOKEN' | 'SYSTEM'; id: string | null; name: string }

/** Who makes a request, with which rights: created once by the authentication, and passed to every verb. */
export type Scope = {
  store: Store
  actor: Actor
  /** The person behind a session or a token; null for the service itself. */
  userId: string | null
  instanceAdmin: boolean
  /** What the caller has shown, so that an act can see whether it still holds; null for the service itself. */
  credential: { kind: 'SESSION' | 'SDK_TOKEN'; id: string } | null
  /** The caller's effective role by team id. The caller has no access to a team that is not in here. */
  roles: ReadonlyMap<string, Role>
  requestId: string | null
  ip: string | null
}

/**
 * A scope for the service itself, outside any request. It may do only what `roles` allow, and change the
 * instance's settings as an `instanceAdmin`. `userId` is the person on whose behalf it acts.
 */
export function serviceScope(
  store: Store,
  actor: Actor,
  roles: Iterable<readonly [teamId: string, role: Role]>,
  { userId = null, instanceAdmin = false }: Partial<Pick<Scope, 'userId' | 'instanceAdmin'>> = {},
): Scope {
  const about = { credential: null, requestId: null, ip: null }
  return { store, actor, userId, instanceAdmin, roles: new Map(roles), ...about }
}

/** Throws FORBIDDEN unless the caller holds at least `least` in the team. */
export function demand(scope: Scope, teamId: string, least: Role): void {
  const role = scope.roles.get(teamId)
  if (!role) throw new Fault('FORBIDDEN', 'You have no access to this team')
  if (!covers(role, least)) throw new Fault('FORBIDDEN', `This needs the role ${least}; yours is ${role}`)
}

/** Like `demand`, for a team id that the caller sent: throws NOT_FOUND if there is no such team. */
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

/** Throws FORBIDDEN unless the caller is the instance's admin. */
export function demandInstance(scope: Scope): void {
  if (!scope.instanceAdmin) throw new Fault('FORBIDDEN', "Only the instance's admin may see and change this")
}
