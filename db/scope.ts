import { covers, type Role } from './acts.ts'
import type { Db } from './connection.ts'
import { Fault, missing } from './fault.ts'
import type { Keys } from './seal.ts'

/**
 * The database, and the keys that seal values in it. `emailProof` says how accounts prove their e-mail addresses
 * at the moment; without it, it is 'operator'. To addresses of `mailDomains` mail goes by the service's own server without
 * a yes; without it, to none. `mailsPerHour` is how many it sends for all teams together.
 */
export type Store = {
  db: Db
  keys: Keys
  emailProof?: (() => EmailProof) | undefined
  mailDomains?: readonly string[] | 'any' | undefined
  mailsPerHour?: number | undefined
}

/**
 * 'mail': with a link that is mailed to the address. 'operator': not by themselves; the operator or the
 * instance's admin confirms them. 'none': every address counts as confirmed, on a developer's own machine.
 */
export type EmailProof = 'mail' | 'operator' | 'none'

/** The actor of an act. ANONYMOUS has not signed in. */
export type Actor = { kind: 'USER' | 'SDK_TOKEN' | 'SYSTEM' | 'ANONYMOUS'; id: string | null; name: string }

/** Who makes a request, with which rights: created once by the authentication, and passed to every verb. */
export type Scope = {
  store: Store
  actor: Actor
  /** The person behind a session or a token; null for the service itself. */
  userId: string | null
  instanceAdmin: boolean
  /**
   * What the caller has shown, so that an act can see whether it still holds; null for the service itself. `endsAt`: when it
   * ends by itself, in this process's performance.now(); not given, or null: never.
   */
  access: { kind: 'SESSION' | 'SDK_TOKEN'; id: string; endsAt?: number | null } | null
  /** The caller's effective role by team id. The caller has no access to a team that is not in here. */
  roles: ReadonlyMap<string, Role>
  requestId: string | null
  ip: string | null
  /** The program that the caller says it is, at most 500 characters; null outside of requests. */
  userAgent: string | null
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
  const about = { access: null, requestId: null, ip: null, userAgent: null }
  return { store, actor, userId, instanceAdmin, roles: new Map(roles), ...about }
}

/** Where a request comes from that is not signed in, for the audit. */
export type Origin = Pick<Scope, 'requestId' | 'ip' | 'userAgent'>

/** A scope in which the person, or with null an unknown one, acts on an account: it gives no rights. */
export function accountScope(
  store: Store,
  person: { id: string; name: string } | null,
  { requestId, ip, userAgent }: Origin,
): Scope {
  const actor: Actor = person
    ? { kind: 'USER', ...person }
    : { kind: 'ANONYMOUS', id: null, name: 'anonymous' }
  return { ...serviceScope(store, actor, [], { userId: person?.id ?? null }), requestId, ip, userAgent }
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

/** The id of the person who is signed in. Throws FORBIDDEN for an SDK token. */
export function demandPerson(scope: Scope): string {
  if (scope.actor.kind !== 'USER' || scope.userId === null) {
    throw new Fault('FORBIDDEN', 'An SDK token has no account: sign in with e-mail and password')
  }
  return scope.userId
}

/** Throws FORBIDDEN unless the caller is the instance's admin. */
export function demandInstance(scope: Scope): void {
  if (!scope.instanceAdmin) throw new Fault('FORBIDDEN', "Only the instance's admin may see and change this")
}
