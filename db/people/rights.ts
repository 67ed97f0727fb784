import { type RawBuilder, sql } from 'kysely'
import { ACTS, type Act, covers, ROLES, type Role } from '../acts.ts'
import type { Db, Tx } from '../connection.ts'
import { Fault, missing } from '../fault.ts'
import { demand, demandInstance, type Scope } from '../scope.ts'

/** A right that an act needs: at least the role `least`, in the team that the act is about. */
export type Right = { scope: Scope; least: Role }

/**
 * Reads the caller's right in a team again, and holds it until the transaction ends: a transaction that takes it away
 * waits for the commit. An act that changes who may do what waits for all others (`alone`). Returns the scope with the
 * role as it is now. Throws UNAUTHENTICATED if the session or token has ended, else as demandTeam.
 */
export async function holdRight(
  tx: Tx,
  { scope, least }: Right,
  teamId: string,
  { alone = false }: { alone?: boolean } = {},
): Promise<Scope> {
  if (scope.access === null) {
    const { rows } = await sql<{ found: boolean }>`select hold_team(${teamId}, ${alone}) as found`.execute(tx)
    if (!rows[0]?.found) throw missing('team')
    return scope
  }
  const role = await readRole(tx, scope, teamId, alone)
  if (!role || !covers(role, least)) throw await explainRefusal(tx, { scope, least }, teamId)
  return { ...scope, roles: new Map([...scope.roles, [teamId, role]]) }
}

/** Whether an act changes who may do what in a team. */
export function changesRights(act: Act): boolean {
  return ['TEAM', 'MEMBER', 'SDK_TOKEN'].includes(ACTS[act].resource)
}

/**
 * Like holdRight, as a condition for an act of a single statement. Where the statement has done nothing, call
 * `demandStill` to learn whether this was the reason.
 */
export function rightHolds({ scope, least }: Right, teamId: string): RawBuilder<boolean> {
  if (scope.access === null) return sql<boolean>`hold_team(${teamId}, false)`
  const enough = ROLES.filter((role) => covers(role, least))
  return sql<boolean>`${roleOf(scope, teamId, false)} = any(${enough}::text[])`
}

/** Throws as holdRight does if the caller's right has ended. */
export async function demandStill(db: Db, right: Right, teamId: string): Promise<void> {
  const { scope, least } = right
  if (scope.access === null) return
  await demandAccess(db, scope)
  const team = await db.selectFrom('teams').select('id').where('id', '=', teamId).executeTakeFirst()
  if (!team) throw missing('team')
  const role = await readRole(db, scope, teamId, false)
  demand({ ...scope, roles: new Map(role ? [[teamId, role]] : []) }, teamId, least)
}

/** Throws UNAUTHENTICATED if the caller's session or token has ended since the request began. */
export async function demandAccess(db: Db, { access, userId }: Scope): Promise<void> {
  if (access === null) return
  const { rows } =
    access.kind === 'SESSION'
      ? await sql`select from sessions
          where id = ${access.id} and user_id = ${userId} and expires_at > now()`.execute(db)
      : await sql`select from sdk_tokens
          where id = ${access.id} and revoked_at is null and (expires_at is null or expires_at > now())`.execute(
          db,
        )
  if (rows.length > 0) return
  const message =
    access.kind === 'SESSION' ? 'The session has ended; sign in again' : 'The SDK token is not valid'
  throw new Fault('UNAUTHENTICATED', message)
}

/** Like demandAccess, and throws FORBIDDEN unless the caller is still the instance's admin. */
export async function demandInstanceStill(db: Db, scope: Scope): Promise<void> {
  if (scope.access === null) return
  await demandAccess(db, scope)
  demandInstance({ ...scope, instanceAdmin: await isInstanceAdmin(db, scope) })
}

/** Whether the caller is the instance's admin now. */
export async function isInstanceAdmin(db: Db, scope: Scope): Promise<boolean> {
  if (scope.access === null || !scope.instanceAdmin) return scope.instanceAdmin
  const user = await db
    .selectFrom('users')
    .select('instanceAdmin')
    .where('id', '=', scope.userId)
    .executeTakeFirst()
  return user?.instanceAdmin ?? false
}

async function readRole(db: Db, scope: Scope, teamId: string, alone: boolean): Promise<Role | null> {
  const role = roleOf(scope, teamId, alone)
  const { rows } = await sql<{ role: Role | null }>`select ${role} as role`.execute(db)
  return rows[0]?.role ?? null
}

function roleOf({ access, userId }: Scope, teamId: string, alone: boolean): RawBuilder<Role | null> {
  const session = access?.kind === 'SESSION' ? access.id : null
  const token = access?.kind === 'SDK_TOKEN' ? access.id : null
  return sql<Role | null>`hold_right(${teamId}, ${userId}, ${session}, ${token}, ${alone})`
}

async function explainRefusal(tx: Tx, right: Right, teamId: string): Promise<Fault> {
  await demandStill(tx, right, teamId)
  // The right came back between the two statements.
  return new Fault('UNAVAILABLE', 'Your rights have just changed; try again', { retryAfter: 1 })
}
