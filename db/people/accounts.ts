import { record } from '../change.ts'
import type { Tx } from '../connection.ts'
import { Fault, invalid } from '../fault.ts'
import type { Scope, Store } from '../scope.ts'
import { hashPassword, queueHashing } from './passwords.ts'
import { demandCredential } from './rights.ts'
import { endSessions } from './sessions.ts'
import { confirmPassword, countSignUp } from './signin.ts'
import type { Membership } from './teams.ts'
import {
  createUser,
  demandPassword,
  hasEmail,
  holdPassword,
  type NewUser,
  type Person,
  readUser,
  type User,
} from './users.ts'

export type Account = User & { instanceAdmin: boolean; createdAt: Date; teams: Membership[] }

/**
 * Creates an account without a team, for somebody who signs up. Throws CONFLICT if the e-mail is taken,
 * INVALID for a weak password, THROTTLED after too many sign-ups from the address.
 */
export async function registerUser(store: Store, input: NewUser & { ip: string }): Promise<User> {
  await countSignUp(store, input.ip)
  return createUser(store, input)
}

/** The caller's own account. Throws FORBIDDEN for an SDK token. */
export async function readAccount(scope: Scope): Promise<Account> {
  const { store } = scope
  const userId = demandPerson(scope)
  const { teams, ...user } = await readUser(store, userId)
  const more = await store.db
    .selectFrom('users')
    .select(['instanceAdmin', 'createdAt'])
    .where('id', '=', userId)
    .executeTakeFirstOrThrow()
  return { ...user, ...more, teams }
}

/**
 * Changes the given fields and keeps the others. Throws FORBIDDEN for an SDK token, INVALID for a new e-mail
 * without the right `currentPassword`, CONFLICT if the e-mail is taken, THROTTLED after too many wrong
 * passwords.
 */
export async function updateAccount(
  scope: Scope,
  patch: {
    firstName?: string | undefined
    lastName?: string | undefined
    email?: string | undefined
    currentPassword?: string | undefined
  },
): Promise<Account> {
  const { store } = scope
  const old = await readUser(store, demandPerson(scope))
  const { firstName = old.firstName, lastName = old.lastName, email = old.email, currentPassword } = patch
  const person = email === old.email ? null : await demandCurrent(scope, old, currentPassword)
  await record(store, async (tx) => {
    await demandCredential(tx, scope)
    if (person && !(await holdPassword(tx, person))) throw wrongPassword()
    await tx.updateTable('users').set({ firstName, lastName, email }).where('id', '=', old.id).execute()
  }).catch((error) => {
    if (error.constraint !== 'users_email') throw error
    throw new Fault('CONFLICT', 'This e-mail already has an account')
  })
  return readAccount(scope)
}

/**
 * Changes the caller's password and ends their other sessions. Returns the person with the new one. Throws
 * FORBIDDEN for an SDK token, INVALID if the current password is wrong or the new one weak, THROTTLED after too
 * many wrong passwords.
 */
export async function changePassword(
  scope: Scope,
  input: { currentPassword: string; newPassword: string },
): Promise<Person> {
  const user = await readUser(scope.store, demandPerson(scope))
  const { currentPassword, newPassword } = input
  demandPassword(newPassword, 'newPassword', user)
  const person = await demandCurrent(scope, user, currentPassword)
  const passwordHash = await queueHashing(() => hashPassword(newPassword), { ahead: true })
  await record(scope.store, async (tx) => {
    if (!(await holdPassword(tx, person))) throw wrongPassword()
    await demandCredential(tx, scope)
    await replacePassword(tx, user.id, passwordHash, scope.credential?.id ?? null)
  })
  return { ...person, passwordHash }
}

/**
 * Changes a user's password on the operator's behalf and ends all their sessions. Throws NOT_FOUND, or
 * INVALID for a weak password.
 */
export async function setPassword(store: Store, email: string, password: string): Promise<User> {
  const user = await findUser(store, email)
  demandPassword(password, 'password', user)
  const passwordHash = await queueHashing(() => hashPassword(password), { ahead: true })
  await record(store, (tx) => replacePassword(tx, user.id, passwordHash, null))
  return user
}

/** Finds a user by e-mail, ignoring case. Throws NOT_FOUND. */
export async function findUser(store: Store, email: string): Promise<User> {
  const user = await store.db
    .selectFrom('users')
    .select(['id', 'firstName', 'lastName', 'email'])
    .where(hasEmail(email))
    .executeTakeFirst()
  if (!user) throw new Fault('NOT_FOUND', 'Nobody has an account with this e-mail')
  return user
}

async function replacePassword(
  tx: Tx,
  userId: string,
  passwordHash: string,
  keep: string | null,
): Promise<void> {
  // A session that is being opened or refreshed waits for this lock, or is there already and is ended below.
  await tx.selectFrom('users').select('id').where('id', '=', userId).forUpdate().execute()
  await tx.updateTable('users').set({ passwordHash }).where('id', '=', userId).execute()
  await endSessions(tx, userId, keep)
}

async function demandCurrent(scope: Scope, user: User, password: string | undefined): Promise<Person> {
  if (password === undefined) {
    throw invalid([{ path: 'currentPassword', message: 'is required to change the e-mail' }])
  }
  const person = await confirmPassword(scope.store, user.id, password)
  if (!person) throw wrongPassword()
  return person
}

function wrongPassword(): Fault {
  return invalid([{ path: 'currentPassword', message: 'is wrong' }])
}

function demandPerson(scope: Scope): string {
  if (scope.actor.kind !== 'USER' || scope.userId === null) {
    throw new Fault('FORBIDDEN', 'An SDK token has no account: sign in with e-mail and password')
  }
  return scope.userId
}
