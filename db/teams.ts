import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import type { Role } from './acts.ts'
import type { Db } from './connection.ts'
import { forgetExecutions } from './executions.ts'
import { Fault, missing } from './fault.ts'
import { change, demandTeam, type Scope, type Store, type Tx } from './scope.ts'

export const PLANS = ['FREE', 'TEAM', 'BUSINESS', 'ENTERPRISE'] as const
export type Plan = (typeof PLANS)[number]

export type Team = { id: string; name: string; description: string | null; createdAt: Date }
export type TeamItem = {
  id: string
  name: string
  memberCount: number
  plan: Plan
  /** The caller's. */
  role: Role
  createdAt: Date
}
export type TeamDetail = Team & {
  memberCount: number
  workflowCount: number
  credentialCount: number
  plan: Plan
  updatedAt: Date
}
export type Membership = { teamId: string; teamName: string; role: Role }

/** The caller's teams by name; an SDK token has one. */
export async function listTeams(scope: Scope): Promise<TeamItem[]> {
  const { rows } = await sql<Omit<TeamItem, 'role'>>`
    select id, name, (select count(*) from members m where m.team_id = t.id) as member_count, plan, created_at
    from teams t where id = any(${[...scope.roles.keys()]}::uuid[]) order by name, id`.execute(scope.store.db)
  return rows.map(({ createdAt, ...row }) => ({ ...row, role: scope.roles.get(row.id)!, createdAt }))
}

/** A team of the caller's, with what it holds. */
export async function readTeam(scope: Scope, teamId: string): Promise<TeamDetail> {
  await demandTeam(scope, teamId, 'VIEWER')
  return describeTeam(scope.store.db, teamId)
}

/**
 * Makes a team whose ADMIN is the caller; without a `plan` it is the database's default. Throws FORBIDDEN to an
 * SDK token: it belongs to the one team it has.
 */
export async function createTeam(
  scope: Scope,
  input: { name: string; description?: string | null | undefined; plan?: Plan | undefined },
): Promise<Team> {
  const { userId } = scope
  if (scope.actor.kind !== 'USER' || userId === null) {
    throw new Fault('FORBIDDEN', 'Only a signed-in user can create a team')
  }
  const id = uuid()
  const { name, description = null, plan } = input
  // The creator's right in the team begins with the team.
  const founder: Scope = { ...scope, roles: new Map([...scope.roles, [id, 'ADMIN']]) }
  return change(founder, 'TEAM_CREATED', id, async (tx) => {
    const createdAt = await addTeam(tx, { id, name, description, plan, userId })
    return { result: { id, name, description, createdAt }, resourceId: id, details: { name } }
  })
}

/** Changes what is given (ADMIN). */
export async function updateTeam(
  scope: Scope,
  teamId: string,
  patch: { name?: string | undefined; description?: string | null | undefined },
): Promise<TeamDetail> {
  return change(scope, 'TEAM_UPDATED', teamId, async (tx) => {
    const old = await tx
      .selectFrom('teams')
      .select(['name', 'description'])
      .where('id', '=', teamId)
      .forNoKeyUpdate()
      .executeTakeFirstOrThrow()
    const name = patch.name ?? old.name
    const description = patch.description === undefined ? old.description : patch.description
    const changed = [
      ...(name === old.name ? [] : ['name']),
      ...(description === old.description ? [] : ['description']),
    ]
    if (changed.length > 0) await setTeam(tx, teamId, { name, description })
    const result = await describeTeam(tx, teamId)
    return { result, resourceId: teamId, details: { name, changed } }
  })
}

/** Puts a team on a plan. The operator's alone: no role in the team gives this right. */
export async function changePlan(scope: Scope, teamId: string, plan: Plan): Promise<void> {
  if (scope.actor.kind !== 'SYSTEM') throw new Fault('FORBIDDEN', 'A plan is changed by the operator')
  await change(scope, 'TEAM_PLAN_CHANGED', teamId, async (tx) => {
    await setTeam(tx, teamId, { plan })
    return { result: undefined, resourceId: teamId, details: { plan } }
  })
}

/**
 * Removes a team with everything in it for good (ADMIN), and answers the executions that Temporal may still know:
 * their DELETE is queued. Its audit chain stays, closed by this act.
 */
export async function deleteTeam(scope: Scope, teamId: string): Promise<string[]> {
  return change(scope, 'TEAM_DELETED', teamId, async (tx) => {
    // `change` holds the team's lock: new members, workflows and executions wait, and then find no team.
    const { name, memberCount, workflowCount } = await describeTeam(tx, teamId)
    const executions = await forgetExecutions(tx, 'teamId', teamId)
    // Before the team, for their counters go with them.
    await tx.deleteFrom('workflows').where('teamId', '=', teamId).execute()
    await tx.deleteFrom('teams').where('id', '=', teamId).execute()
    const details = { name, memberCount, workflowCount, openOrRecentExecutions: executions.length }
    return { result: executions, resourceId: teamId, details }
  })
}

/** Every team of the installation, oldest first: for its operator, never for a handler. */
export async function listAllTeams({ db }: Store): Promise<Omit<TeamItem, 'role'>[]> {
  const { rows } = await sql<Omit<TeamItem, 'role'>>`
    select id, name, (select count(*) from members m where m.team_id = t.id) as member_count, plan, created_at
    from teams t order by created_at, id`.execute(db)
  return rows
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
  input: { id: string; name: string; description: string | null; plan?: Plan | undefined; userId: string },
): Promise<Date> {
  const { id, name, description, plan, userId } = input
  const { createdAt } = await tx
    .insertInto('teams')
    .values({ id, name, description, ...(plan ? { plan } : {}) })
    .returning('createdAt')
    .executeTakeFirstOrThrow()
  await tx.insertInto('members').values({ teamId: id, userId, role: 'ADMIN' }).execute()
  return createdAt
}

async function describeTeam(db: Db, teamId: string): Promise<TeamDetail> {
  // There is no table of credentials yet: a team has none.
  const { rows } = await sql<TeamDetail>`
    select id, name, description, (select count(*) from members where team_id = t.id) as member_count,
      (select count(*) from workflows where team_id = t.id) as workflow_count, 0 as credential_count,
      plan, created_at, updated_at
    from teams t where id = ${teamId}`.execute(db)
  if (!rows[0]) throw missing('team')
  return rows[0]
}

function setTeam(tx: Tx, teamId: string, fields: Partial<Pick<TeamDetail, 'name' | 'description' | 'plan'>>) {
  return tx
    .updateTable('teams')
    .set({ ...fields, updatedAt: sql<Date>`now()` })
    .where('id', '=', teamId)
    .execute()
}
