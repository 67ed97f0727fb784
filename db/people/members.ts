import type { Role } from '../acts.ts'
import { change } from '../change.ts'
import type { Db, Tx } from '../connection.ts'
import { Fault } from '../fault.ts'
import { describeChange } from '../redaction/difference.ts'
import { demandTeam, type Scope } from '../scope.ts'
import { findUser } from './accounts.ts'
import { demandConfirmed } from './emails.ts'

/** The roles of members, from the most to the fewest rights. Only an SDK token can be a VIEWER. */
export const MEMBER_ROLES = ['ADMIN', 'BUILDER', 'OPERATOR'] as const satisfies Role[]
export type MemberRole = (typeof MEMBER_ROLES)[number]

export type Member = {
  userId: string
  firstName: string
  lastName: string
  email: string
  role: MemberRole
  joinedAt: Date
}

/** A team's members, in the order in which they joined (ADMIN). */
export async function listMembers(scope: Scope, teamId: string): Promise<Member[]> {
  await demandTeam(scope, teamId, 'ADMIN')
  const rows = await selectMembers(scope.store.db, teamId).orderBy('m.joinedAt').orderBy('u.id').execute()
  return rows.map((row) => ({ ...row, role: row.role as MemberRole }))
}

/**
 * Adds the user with an e-mail, ignoring case (ADMIN). Throws NOT_FOUND if no user has it, CONFLICT if they have not
 * confirmed it, or are a member already.
 */
export async function addMember(
  scope: Scope,
  teamId: string,
  input: { email: string; role: MemberRole },
): Promise<Member> {
  const { email, role } = input
  return change(scope, 'MEMBER_ADDED', teamId, async (tx) => {
    const user = await findUser({ ...scope.store, db: tx }, email)
    await demandConfirmed(tx, scope.store, user.id)
    const added = await tx
      .insertInto('members')
      .values({ teamId, userId: user.id, role })
      .onConflict((oc) => oc.doNothing())
      .executeTakeFirst()
    if (added.numInsertedOrUpdatedRows === 0n)
      throw new Fault('CONFLICT', 'This user is a member of the team already')
    const result = await readMember(tx, teamId, user.id)
    return { result, resourceId: user.id, details: { email: result.email, role } }
  })
}

/** Changes a member's role (ADMIN). Throws NOT_FOUND, or CONFLICT if the team would have no ADMIN left. */
export async function changeRole(
  scope: Scope,
  teamId: string,
  userId: string,
  role: MemberRole,
): Promise<Member> {
  return change(scope, 'MEMBER_ROLE_CHANGED', teamId, async (tx) => {
    const admins = await lockAdmins(tx, teamId)
    const { role: before } = await readMember(tx, teamId, userId)
    if (role !== 'ADMIN') demandOther(admins, userId)
    await tx
      .updateTable('members')
      .set({ role })
      .where('teamId', '=', teamId)
      .where('userId', '=', userId)
      .execute()
    const result = await readMember(tx, teamId, userId)
    return {
      result,
      resourceId: userId,
      details: { email: result.email, from: before, to: role, ...describeChange({ role: before }, { role }) },
    }
  })
}

/**
 * Removes a member from the team and revokes the SDK tokens they created in it, which would otherwise be
 * valid again if they came back (ADMIN). Throws NOT_FOUND, or CONFLICT for the last ADMIN.
 */
export async function removeMember(scope: Scope, teamId: string, userId: string): Promise<void> {
  await change(scope, 'MEMBER_REMOVED', teamId, async (tx) => {
    const admins = await lockAdmins(tx, teamId)
    const { email, role } = await readMember(tx, teamId, userId)
    demandOther(admins, userId)
    const revoked = await tx
      .updateTable('sdkTokens')
      .set((eb) => ({ revokedAt: eb.fn<Date>('now') }))
      .where('teamId', '=', teamId)
      .where('userId', '=', userId)
      .where('revokedAt', 'is', null)
      .executeTakeFirst()
    await tx.deleteFrom('members').where('teamId', '=', teamId).where('userId', '=', userId).execute()
    const details = { email, role, revokedCount: Number(revoked.numUpdatedRows) }
    return { result: undefined, resourceId: userId, details }
  })
}

/** Locks all ADMINs in one order, so that of two who demote each other the second sees what the first did. */
async function lockAdmins(tx: Tx, teamId: string): Promise<string[]> {
  const rows = await tx
    .selectFrom('members')
    .select('userId')
    .where('teamId', '=', teamId)
    .where('role', '=', 'ADMIN')
    .orderBy('userId')
    .forUpdate()
    .execute()
  return rows.map((row) => row.userId)
}

function demandOther(admins: string[], userId: string): void {
  if (admins.length === 1 && admins[0] === userId) {
    throw new Fault('CONFLICT', 'This is the last ADMIN of the team: make another member ADMIN first')
  }
}

/** Reads a member and locks the row, so that of two concurrent removals one throws NOT_FOUND. */
async function readMember(tx: Tx, teamId: string, userId: string): Promise<Member> {
  const row = await selectMembers(tx, teamId).where('m.userId', '=', userId).forUpdate('m').executeTakeFirst()
  if (!row) throw new Fault('NOT_FOUND', 'The team has no such member')
  return { ...row, role: row.role as MemberRole }
}

function selectMembers(db: Db, teamId: string) {
  return db
    .selectFrom('members as m')
    .innerJoin('users as u', 'u.id', 'm.userId')
    .select(['m.userId', 'u.firstName', 'u.lastName', 'u.email', 'm.role', 'm.joinedAt'])
    .where('m.teamId', '=', teamId)
}
