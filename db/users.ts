import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import type { Db } from './connection.ts'
import { Fault, invalid, missing } from './fault.ts'
import { checkPassword, hashPassword, queueWork } from './passwords.ts'
import { change, record, type Scope, type Store, type Tx } from './scope.ts'
import { findPasswordFault } from './strength.ts'
import { addTeam, type Membership, type Plan, readMemberships } from './teams.ts'

export type NewUser = { email: string; password: string; firstName: string; lastName: string }

export type User = { id: string; firstName: string; lastName: string; email: string }

/** Makes a user of no team. Throws CONFLICT where the e-mail (in any case) is taken, INVALID for a poor password. */
export async function createUser(
  store: Store,
  input: NewUser,
  { instanceAdmin = false }: { instanceAdmin?: boolean } = {},
): Promise<User> {
  demandPassword(input.password, 'password', input)
  const passwordHash = await queueWork(() => hashPassword(input.password))
  return record(store, (tx) => addUser(tx, { ...input, passwordHash, instanceAdmin }))
}

const FIRST_ADMIN = 7_226_002

/**
 * Makes the instance's admin and a first team with them as its ADMIN; null where there are users already. Any
 * number of processes may try at once: one makes them.
 */
export async function createFirstAdmin(
  store: Store,
  input: NewUser & { teamName: string; plan?: Plan | undefined },
): Promise<{ user: User; teamId: string } | null> {
  if (await hasUsers(store.db)) return null
  demandPassword(input.password, 'password', input)
  const passwordHash = await queueWork(() => hashPassword(input.password))
  const userId = uuid()
  const teamId = uuid()
  const scope: Scope = {
    store,
    actor: { kind: 'USER', id: userId, name: `${input.firstName} ${input.lastName}`.trim() || input.email },
    userId,
    instanceAdmin: true,
    roles: new Map([[teamId, 'ADMIN']]),
    requestId: null,
    ip: null,
  }
  const work = async (tx: Tx) => {
    const user = await addUser(tx, { ...input, id: userId, passwordHash, instanceAdmin: true })
    await addTeam(tx, { id: teamId, name: input.teamName, description: null, plan: input.plan, userId })
    return { result: { user, teamId }, resourceId: teamId, details: { name: input.teamName } }
  }
  try {
    return await change(scope, 'TEAM_CREATED', teamId, async (tx) => {
      // Two first starts at once: the second waits here for the first one's commit.
      await sql`select pg_advisory_xact_lock(${FIRST_ADMIN})`.execute(tx)
      if (await hasUsers(tx)) throw new Fault('CONFLICT', 'There are users already')
      return work(tx)
    })
  } catch (error) {
    if (error instanceof Fault && error.code === 'CONFLICT') return null
    throw error
  }
}

/** The user whose e-mail and password these are, else null. Takes as long for an e-mail that nobody has. */
export async function verifyPassword(store: Store, email: string, password: string): Promise<User | null> {
  const row = await store.db
    .selectFrom('users')
    .select(['id', 'firstName', 'lastName', 'email', 'passwordHash'])
    .where((eb) => eb(eb.fn<string>('lower', ['email']), '=', eb.fn<string>('lower', [eb.val(email)])))
    .executeTakeFirst()
  const { right, stale } = await checkPassword(row?.passwordHash ?? null, password)
  if (!row || !right) return null
  const { passwordHash, ...user } = row
  if (stale) {
    const fresh = await hashPassword(password)
    await record(store, (tx) =>
      tx
        .updateTable('users')
        .set({ passwordHash: fresh })
        .where('id', '=', user.id)
        .where('passwordHash', '=', passwordHash)
        .execute(),
    )
  }
  return user
}

/** The user with their teams, by team name. Throws NOT_FOUND. */
export async function readUser(store: Store, userId: string): Promise<User & { teams: Membership[] }> {
  const user = await store.db
    .selectFrom('users')
    .select(['id', 'firstName', 'lastName', 'email'])
    .where('id', '=', userId)
    .executeTakeFirst()
  if (!user) throw missing('user')
  return { ...user, teams: await readMemberships(store, userId) }
}

/** Refuses a new password that breaks the rules: INVALID, under the name of the field it came in. */
export function demandPassword(password: string, field: string, user: Omit<NewUser, 'password'>): void {
  const message = findPasswordFault(password, [user.email, user.firstName, user.lastName])
  if (message) throw invalid([{ path: field, message }])
}

async function hasUsers(db: Db): Promise<boolean> {
  return (await db.selectFrom('users').select('id').limit(1).executeTakeFirst()) !== undefined
}

async function addUser(
  tx: Tx,
  input: Omit<User, 'id'> & { id?: string; passwordHash: string; instanceAdmin: boolean },
): Promise<User> {
  const { id = uuid(), email, firstName, lastName, passwordHash, instanceAdmin } = input
  const added = await tx
    .insertInto('users')
    .values({ id, email, firstName, lastName, passwordHash, instanceAdmin })
    .onConflict((oc) => oc.doNothing())
    .executeTakeFirst()
  if (added.numInsertedOrUpdatedRows === 0n) throw new Fault('CONFLICT', 'This e-mail has an account already')
  return { id, firstName, lastName, email }
}
