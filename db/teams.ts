import { v7 as uuid } from 'uuid'
import type { Role } from './acts.ts'
import { Fault } from './fault.ts'
import { change, type Scope, type Store, type Tx } from './scope.ts'

export type Team = { id: string; name: string; description: string | null; createdAt: string }

export type Membership = { teamId: string; teamName: string; role: Role }

/** Makes a team whose ADMIN is the caller. Throws FORBIDDEN to an SDK token: it belongs to the one team it has. */
export async function createTeam(
  scope: Scope,
  input: { name: string; description?: string | undefined },
): Promise<Team> {
  const { userId } = scope
  if (scope.actor.kind !== 'USER' || userId === null) {
    throw new Fault('FORBIDDEN', 'Only a signed-in user can create a team')
  }
  const id = uuid()
  const description = input.description ?? null
  // The creator's right in the team begins with the team.
  const founder: Scope = { ...scope, roles: new Map([...scope.roles, [id, 'ADMIN']]) }
  return change(founder, 'TEAM_CREATED', id, async (tx) => {
    const createdAt = await addTeam(tx, { id, name: input.name, description, userId })
    const result = { id, name: input.name, description, createdAt: createdAt.toISOString() }
    return { result, resourceId: id, details: { name: input.name } }
  })
}

/** The user's teams, by name. */
export async function readMemberships(store: Store, userId: string): Promise<Membership[]> {
  const rows = await store.db
    .selectFrom('members')
    .innerJoin('teams', 'teams.id', 'members.teamId')
    .select(['teams.id as teamId', 'teams.name as teamName', 'members.role'])
    .where('members.userId', '=', userId)
    .orderBy('teams.name')
    .orderBy('teams.id')
    .execute()
  return rows.map((row) => ({ ...row, role: row.role as Role }))
}

/** The rows of a team and its first ADMIN; returns when. */
export async function addTeam(
  tx: Tx,
  input: { id: string; name: string; description: string | null; userId: string },
): Promise<Date> {
  const { id, name, description, userId } = input
  const { createdAt } = await tx
    .insertInto('teams')
    .values({ id, name, description })
    .returning('createdAt')
    .executeTakeFirstOrThrow()
  await tx.insertInto('members').values({ teamId: id, userId, role: 'ADMIN' }).execute()
  return createdAt
}
