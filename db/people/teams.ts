import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import type { Role } from '../acts.ts'
import { bidTeamFarewell } from '../audit/siem/farewell.ts'
import { change } from '../change.ts'
import type { Db, Tx } from '../connection.ts'
import { takeAllOpenings } from '../credentials/opens.ts'
import { forgetExecutions } from '../executions/executions.ts'
import { Fault, missing } from '../fault.ts'
import { describeChange } from '../redaction/difference.ts'
import { demandTeam, type Scope, type Store } from '../scope.ts'
import { isInstanceAdmin } from './rights.ts'

export const TEAM_PLANS = ['FREE', 'TEAM', 'BUSINESS', 'ENTERPRISE'] as const
export type TeamPlan = (typeof TEAM_PLANS)[number]

export type Team = { id: string; name: string; description: string | null; createdAt: Date }
export type TeamItem = {
  id: string
  name: string
  memberCount: number
  plan: TeamPlan
  /** The caller's role in the team. */
  role: Role
  createdAt: Date
}

export type TeamDetail = Team & {
  memberCount: number
  workflowCount: number
  credentialCount: number
  plan: TeamPlan
  /** For how many days messages of chats are kept; null is until they are deleted. */
  chatRetentionDays: number | null
  updatedAt: Date
}

export type Membership = { teamId: string; teamName: string; role: Role }

/** The caller's teams, by name. An SDK token has only its own team. */
export async function listTeams(scope: Scope): Promise<TeamItem[]> {
  const { rows } = await sql<Omit<TeamItem, 'role'>>`
    select id, name, (select count(*) from members m where m.team_id = t.id) as member_count, plan, created_at
    from teams t where id = any(${[...scope.roles.keys()]}::uuid[]) order by name, id`.execute(scope.store.db)
  return rows.map(({ createdAt, ...row }) => ({ ...row, role: scope.roles.get(row.id)!, createdAt }))
}

/** A team of the caller, with the numbers of its members, workflows and credentials (VIEWER). Throws NOT_FOUND. */
export async function readTeam(scope: Scope, teamId: string): Promise<TeamDetail> {
  await demandTeam(scope, teamId, 'VIEWER')
  return describeTeam(scope.store.db, teamId)
}

/** How many teams one person may have created: each has limits of its own. Not for the instance's admin. */
const MAX_CREATED = 20

/**
 * Creates a team with the caller as its ADMIN. Without a `plan` it gets the default of the database. Throws
 * FORBIDDEN for an SDK token, which can belong to one team only, and CONFLICT if the caller has too many.
 */
export async function createTeam(
  scope: Scope,
  input: { name: string; description?: string | null | undefined; plan?: TeamPlan | undefined },
): Promise<Team> {
  const { userId } = scope
  if (scope.actor.kind !== 'USER' || userId === null) {
    throw new Fault('FORBIDDEN', 'Only a signed-in user can create a team')
  }
  const id = uuid()
  const { name, description = null, plan } = input
  // `change` checks the caller's right in the team, which they get only by creating it.
  const founder: Scope = { ...scope, roles: new Map([...scope.roles, [id, 'ADMIN']]) }
  return change(founder, 'TEAM_CREATED', id, async (tx) => {
    if (!(await isInstanceAdmin(tx, scope))) await demandRoom(tx, userId)
    const createdAt = await addTeam(tx, { id, name, description, plan, userId })
    return { result: { id, name, description, createdAt }, resourceId: id, details: { name } }
  })
}

async function demandRoom(tx: Tx, userId: string): Promise<void> {
  // If two requests come at once, the second counts the team of the first.
  await tx.selectFrom('users').select('id').where('id', '=', userId).forNoKeyUpdate().execute()
  const { count } = await tx
    .selectFrom('teams')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('createdBy', '=', userId)
    .executeTakeFirstOrThrow()
  if (count < MAX_CREATED) return
  throw new Fault(
    'CONFLICT',
    `You have created ${MAX_CREATED} teams, and may have no more: delete one, or have the instance's admin ` +
      'create the next one and add you',
  )
}

/** Changes the given fields and keeps the others (ADMIN). Throws NOT_FOUND. */
export async function updateTeam(
  scope: Scope,
  teamId: string,
  patch: {
    name?: string | undefined
    description?: string | null | undefined
    chatRetentionDays?: number | null | undefined
  },
): Promise<TeamDetail> {
  return change(scope, 'TEAM_UPDATED', teamId, async (tx) => {
    const old = await tx
      .selectFrom('teams')
      .select(['name', 'description', 'chatRetentionDays'])
      .where('id', '=', teamId)
      .forNoKeyUpdate()
      .executeTakeFirstOrThrow()
    const name = patch.name ?? old.name
    const description = patch.description === undefined ? old.description : patch.description
    const { chatRetentionDays = old.chatRetentionDays } = patch
    const told = describeChange(old, { name, description, chatRetentionDays })
    if (told.changed.length > 0) await setTeam(tx, teamId, { name, description, chatRetentionDays })
    const result = await describeTeam(tx, teamId)
    return { result, resourceId: teamId, details: { name, ...told } }
  })
}

/** Changes a team's plan. Throws FORBIDDEN unless for the operator: no role in the team allows it. */
export async function changePlan(scope: Scope, teamId: string, plan: TeamPlan): Promise<void> {
  if (scope.actor.kind !== 'SYSTEM')
    throw new Fault('FORBIDDEN', 'Only the operator can change the plan of a team')
  await change(scope, 'TEAM_PLAN_CHANGED', teamId, async (tx) => {
    const old = await tx
      .selectFrom('teams')
      .select('plan')
      .where('id', '=', teamId)
      .forNoKeyUpdate()
      .executeTakeFirstOrThrow()
    await setTeam(tx, teamId, { plan })
    const told = describeChange(old, { plan })
    return { result: undefined, resourceId: teamId, details: { plan, ...told } }
  })
}

/**
 * Deletes a team and everything in it (ADMIN). Returns the ids of the executions that Temporal may still
 * know: their DELETE is queued. The audit chain is kept; its last entry is this act.
 */
export async function deleteTeam(scope: Scope, teamId: string): Promise<string[]> {
  return change(scope, 'TEAM_DELETED', teamId, async (tx) => {
    await tx.selectFrom('teams').select('id').where('id', '=', teamId).forUpdate().execute()
    // `change` has locked the team's row: new members and workflows wait, and then find no team. So do executions that
    // a caller asks for; those of triggers wait for their workflow, and then find none.
    await tx
      .selectFrom('workflows')
      .select('id')
      .where('teamId', '=', teamId)
      .orderBy('id')
      .forUpdate()
      .execute()
    const { name, memberCount, workflowCount, credentialCount } = await describeTeam(tx, teamId)
    const also = await takeAllOpenings(tx, teamId)
    await bidTeamFarewell(tx, teamId)
    const executions = await forgetExecutions(tx, 'teamId', teamId)
    // The workflows first: a trigger deletes their execution counts with them.
    await tx.deleteFrom('workflows').where('teamId', '=', teamId).execute()
    await tx.deleteFrom('teams').where('id', '=', teamId).execute()
    const counts = { memberCount, workflowCount, credentialCount }
    const details = { name, ...counts, openOrRecentExecutions: executions.length }
    return { result: executions, resourceId: teamId, details, also }
  })
}

/** All teams, oldest first. Checks no rights: for the operator's commands, never for a handler. */
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

/** Inserts a team and its first ADMIN. Returns when the team was created. */
export async function addTeam(
  tx: Tx,
  input: {
    id: string
    name: string
    description: string | null
    plan?: TeamPlan | undefined
    userId: string
  },
): Promise<Date> {
  const { id, name, description, plan, userId } = input
  const { createdAt } = await tx
    .insertInto('teams')
    .values({ id, name, description, createdBy: userId, ...(plan ? { plan } : {}) })
    .returning('createdAt')
    .executeTakeFirstOrThrow()
  await tx.insertInto('members').values({ teamId: id, userId, role: 'ADMIN' }).execute()
  return createdAt
}

async function describeTeam(db: Db, teamId: string): Promise<TeamDetail> {
  const { rows } = await sql<TeamDetail>`
    select id, name, description, (select count(*) from members where team_id = t.id) as member_count,
      (select count(*) from workflows where team_id = t.id) as workflow_count, 
      (select count(*) from credentials where team_id = t.id) as credential_count,
      plan, chat_retention_days, created_at, updated_at
    from teams t where id = ${teamId}`.execute(db)
  if (!rows[0]) throw missing('team')
  return rows[0]
}

function setTeam(
  tx: Tx,
  teamId: string,
  fields: Partial<Pick<TeamDetail, 'name' | 'description' | 'plan' | 'chatRetentionDays'>>,
) {
  return tx
    .updateTable('teams')
    .set({ ...fields, updatedAt: sql<Date>`now()` })
    .where('id', '=', teamId)
    .execute()
}
