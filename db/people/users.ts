import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { INSTANCE_CHAIN } from '../audit/signing.ts'
import { change, changeAccount, record } from '../change.ts'
import type { Db, Tx } from '../connection.ts'
import { Fault, invalid, missing } from '../fault.ts'
import { lockFirstAdmin } from '../locks.ts'
import { demandInstance, type Scope, type Store, serviceScope } from '../scope.ts'
import { checkPassword, hashPassword, queueHashing } from './passwords.ts'
import { findPasswordFault } from './strength.ts'
import { addTeam, type Membership, readMemberships, type TeamPlan } from './teams.ts'

export type NewUser = { email: string; password: string; firstName: string; lastName: string }

export type User = { id: string; firstName: string; lastName: string; email: string }

/** A user with what their password is checked against. */
export type Person = User & { passwordHash: string }

/**
 * Creates a user without a team, with a confirmed e-mail: for the operator, who vouches for it, with an audit entry in
 * the instance's chain. Throws CONFLICT if the e-mail is taken, INVALID for a weak password, FORBIDDEN.
 */
export async function createUser(
  scope: Scope,
  input: NewUser,
  { instanceAdmin = false }: { instanceAdmin?: boolean } = {},
): Promise<User> {
  demandInstance(scope)
  const passwordHash = await hashNewPassword(input)
  return changeAccount(scope, 'ACCOUNT_CREATED', async (tx) => {
    const user = await addUser(tx, { ...input, passwordHash, instanceAdmin, confirmed: true })
    return { result: user, resourceId: user.id, details: { email: user.email, instanceAdmin } }
  })
}

/** Checks and hashes the password of an account that is to be made. Throws INVALID for a weak one. */
export async function hashNewPassword(input: NewUser): Promise<string> {
  demandPassword(input.password, 'password', input)
  return queueHashing(() => hashPassword(input.password))
}

/**
 * Creates the instance's admin and a first team with them as its ADMIN; resolves to null if there are users
 * already. Any number of processes may call this at once: only one creates them. Throws INVALID for a weak
 * password.
 */
export async function createFirstAdmin(
  store: Store,
  input: NewUser & { teamName: string; plan?: TeamPlan | undefined },
): Promise<{ user: User; teamId: string } | null> {
  if (await hasUsers(store.db)) return null
  const passwordHash = await hashNewPassword(input)
  const userId = uuid()
  const teamId = uuid()
  const actor = { kind: 'USER', id: userId, name: nameOf(input) } as const
  const scope = serviceScope(store, actor, [[teamId, 'ADMIN']], { userId, instanceAdmin: true })
  const work = async (tx: Tx) => {
    const person = { ...input, id: userId, passwordHash, instanceAdmin: true, confirmed: true }
    const user = await addUser(tx, person)
    await addTeam(tx, { id: teamId, name: input.teamName, description: null, plan: input.plan, userId })
    const made = {
      ...{ act: 'ACCOUNT_CREATED' as const, chain: INSTANCE_CHAIN, resourceId: userId },
      details: { email: user.email, instanceAdmin: true },
    }
    return { result: { user, teamId }, resourceId: teamId, details: { name: input.teamName }, also: [made] }
  }
  try {
    return await change(scope, 'TEAM_CREATED', teamId, async (tx) => {
      await lockFirstAdmin(tx)
      if (await hasUsers(tx)) throw new Fault('CONFLICT', 'There are users already')
      return work(tx)
    })
  } catch (error) {
    if (error instanceof Fault && error.code === 'CONFLICT') return null
    throw error
  }
}

/** The name of a person in the audit log. */
export function nameOf({ firstName, lastName, email }: Omit<User, 'id'>): string {
  return `${firstName} ${lastName}`.trim() || email
}

/** The condition for the account of this e-mail, whose case does not count. */
export function hasEmail(email: string) {
  return sql<boolean>`lower(email) = lower(${email})`
}

/** The user with this e-mail and password, else null. Takes the same time if no user has the e-mail. */
export async function verifyPassword(store: Store, email: string, password: string): Promise<Person | null> {
  return provesPassword(store, (await findByEmail(store, email)).person, password)
}

/** Who signs in. `linkUnopened`: the link that was mailed when they signed up was not opened yet. */
export type Entrant = Person & { linkUnopened: boolean }

/**
 * The user with this e-mail, and the e-mail as the database compares it: all spellings that find the same user are
 * `folded` into one, whether or not there is a user. If no user has it, it is the last person who has signed up with it
 * and has not opened the link; with the `tokenHash` of a link, the person to whom it was mailed.
 */
export async function findByEmail(
  { db }: Store,
  email: string,
  tokenHash: Buffer | null = null,
): Promise<{ folded: string; person: Entrant | null }> {
  const { rows } = await sql<Entrant & { folded: string }>`
    select lower(${email}) as folded, u.*
    from (select) as one left join lateral (
      select u.id, u.first_name, u.last_name, u.email, u.password_hash, u.link_unopened from users u
      where lower(u.email) = lower(${email}) or u.link_unopened and lower(u.pending_email) = lower(${email})
      order by exists (
          select from email_tokens t where t.token_hash = ${tokenHash}::bytea and t.user_id = u.id) desc,
        u.link_unopened, u.created_at desc, u.id
      limit 1) u on true`.execute(db)
  const { folded, ...person } = rows[0]!
  return { folded, person: person.id === null ? null : person }
}

export async function findById({ db }: Store, id: string): Promise<Person | null> {
  const person = await db
    .selectFrom('users')
    .select(['id', 'firstName', 'lastName', 'email', 'passwordHash'])
    .where('id', '=', id)
    .executeTakeFirst()
  return person ?? null
}

/**
 * The person with the hash of today if the password is theirs, else null. Takes the same time without a person.
 */
export async function provesPassword(
  store: Store,
  person: Person | null,
  password: string,
): Promise<Person | null> {
  const { right, stale } = await checkPassword(person?.passwordHash ?? null, password)
  if (!person || !right) return null
  if (!stale) return person
  const passwordHash = await hashPassword(password)
  await record(store, (tx) =>
    tx
      .updateTable('users')
      .set({ passwordHash })
      .where('id', '=', person.id)
      .where('passwordHash', '=', person.passwordHash)
      .execute(),
  )
  return { ...person, passwordHash }
}

/**
 * Whether the password that a person has proven is still theirs. It cannot be changed until the transaction ends, so a
 * session that is opened with it is ended by the change.
 */
export async function holdPassword(tx: Tx, { id, passwordHash }: Person): Promise<boolean> {
  const held = await tx
    .selectFrom('users')
    .select('id')
    .where('id', '=', id)
    .where('passwordHash', '=', passwordHash)
    .forUpdate()
    .executeTakeFirst()
  return held !== undefined
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

/** Throws INVALID if a new password is too weak for the user. `field` is the field that it was sent in. */
export function demandPassword(password: string, field: string, user: Omit<NewUser, 'password'>): void {
  const message = findPasswordFault(password, [user.email, user.firstName, user.lastName])
  if (message) throw invalid([{ path: field, message }])
}

/** Whether any account exists yet. */
export async function hasUsers(db: Db): Promise<boolean> {
  return (await db.selectFrom('users').select('id').limit(1).executeTakeFirst()) !== undefined
}

/** Inserts a user. Throws CONFLICT if the e-mail is taken. */
export async function addUser(
  tx: Tx,
  input: Omit<User, 'id'> & {
    id?: string
    passwordHash: string
    instanceAdmin: boolean
    /** Whether the e-mail is known to be the person's own. */
    confirmed: boolean
    /**
     * The e-mail that takes the place of `email` once the link that is mailed to it is opened. Until then the account
     * cannot be signed in to.
     */
    wanted?: string
  },
): Promise<User> {
  const { id = uuid(), email, firstName, lastName, passwordHash, instanceAdmin, confirmed, wanted } = input
  const emailConfirmedAt = confirmed ? sql<Date>`now()` : null
  const unopened = wanted === undefined ? {} : { pendingEmail: wanted, linkUnopened: true }
  const added = await tx
    .insertInto('users')
    .values({ id, email, firstName, lastName, passwordHash, instanceAdmin, emailConfirmedAt, ...unopened })
    .onConflict((oc) => oc.doNothing())
    .executeTakeFirst()
  if (added.numInsertedOrUpdatedRows === 0n) throw new Fault('CONFLICT', 'This e-mail already has an account')
  return { id, firstName, lastName, email }
}
