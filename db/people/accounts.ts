import { v7 as uuid } from 'uuid'
import { changeAccount } from '../change.ts'
import type { Db, Tx } from '../connection.ts'
import { Fault, invalid } from '../fault.ts'
import { describeChange } from '../redaction/difference.ts'
import { accountScope, demandPerson, type Origin, type Scope, type Store } from '../scope.ts'
import { changeEmail, type EmailState, guardEmail, NO_MAILBOX, readEmail } from './emails.ts'
import { lockAddress, queueConfirmation } from './mails.ts'
import { hashPassword, queueHashing } from './passwords.ts'
import { endSessions } from './sessions.ts'
import { confirmPassword, countSignUp } from './signin.ts'
import type { Membership } from './teams.ts'
import {
  addUser,
  demandPassword,
  hasEmail,
  hashNewPassword,
  holdPassword,
  type NewUser,
  nameOf,
  type Person,
  readUser,
  type User,
} from './users.ts'

export type Account = User & EmailState & { instanceAdmin: boolean; createdAt: Date; teams: Membership[] }

/**
 * Creates an account without a team, for a person who signs up. Where mail is sent, a link is mailed to its e-mail,
 * which the account gets once that is opened; if another one has the e-mail, its owner is told instead. Resolves to
 * null then, in both cases and after the same work: the caller does not learn which it was. Otherwise it throws
 * CONFLICT if the e-mail is taken. Throws INVALID for a weak password, THROTTLED after too many sign-ups from the
 * address.
 */
export async function registerUser(
  store: Store,
  input: NewUser & { ip: string },
  origin: Origin,
): Promise<User | null> {
  await countSignUp(store, input.ip)
  const passwordHash = await hashNewPassword(input)
  const id = uuid()
  const scope = accountScope(store, { id, name: nameOf(input) }, origin)
  const made = { ...input, id, passwordHash, instanceAdmin: false, confirmed: false }
  if (store.emailProof?.() === 'mail') return registerByMail(scope, made, origin)
  return changeAccount(scope, 'ACCOUNT_CREATED', async (tx) => {
    const user = await addUser(tx, made)
    return { result: user, resourceId: id, details: { email: user.email } }
  })
}

async function registerByMail(
  scope: Scope,
  made: Parameters<typeof addUser>[1] & { id: string },
  origin: Origin,
): Promise<null> {
  const { store } = scope
  const { id, email } = made
  const known = await findHolder(store.db, email)
  // No account is made for a known address, so the entry names no person.
  const asker = known ? accountScope(store, null, origin) : scope
  return changeAccount(asker, 'ACCOUNT_CREATED', async (tx) => {
    await lockAddress(tx, email)
    const holder = known && (await findHolder(tx, email))
    if (holder) {
      // If the address has got too many mails lately, this one is left out, as that to a new account is.
      await queueConfirmation(tx, null, holder.email, 'KNOWN')
      return { act: 'SIGN_UP_REPEATED', result: null, resourceId: holder.id, details: {} }
    }
    await addUser(tx, { ...made, email: `unopened-${id}${NO_MAILBOX}`, wanted: email })
    await queueConfirmation(tx, id, email)
    return { result: null, resourceId: id, details: { email } }
  })
}

async function findHolder(db: Db, email: string) {
  return db.selectFrom('users').select(['id', 'email']).where(hasEmail(email)).executeTakeFirst()
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
  return { ...user, ...(await readEmail(store, userId)), ...more, teams }
}

/**
 * Changes the given fields and keeps the others. A new e-mail takes effect when it is confirmed; until then a
 * `pendingEmail` of null withdraws it. Throws FORBIDDEN for an SDK token, INVALID for a new e-mail
 * without the right `currentPassword`, CONFLICT if the e-mail is taken, THROTTLED after too many wrong
 * passwords.
 */
export async function updateAccount(
  scope: Scope,
  patch: {
    firstName?: string | undefined
    lastName?: string | undefined
    email?: string | undefined
    pendingEmail?: string | null | undefined
    currentPassword?: string | undefined
  },
): Promise<Account> {
  const { store } = scope
  const old = await readUser(store, demandPerson(scope))
  const { firstName = old.firstName, lastName = old.lastName, email = old.email, currentPassword } = patch
  const person = email === old.email ? null : await demandCurrent(scope, old, currentPassword)
  const named = async (tx: Tx) => {
    const before = await tx
      .selectFrom('users')
      .select(['firstName', 'lastName', 'pendingEmail'])
      .where('id', '=', old.id)
      .forNoKeyUpdate()
      .executeTakeFirstOrThrow()
    await tx
      .updateTable('users')
      .set({ firstName, lastName })
      .$if(patch.pendingEmail === null, (query) => query.set({ pendingEmail: null }))
      .where('id', '=', old.id)
      .execute()
    const names = { firstName: before.firstName, lastName: before.lastName }
    return { pendingEmail: before.pendingEmail, ...describeChange(names, { firstName, lastName }) }
  }
  const result = undefined
  const saved = changeAccount(scope, 'ACCOUNT_UPDATED', async (tx) => {
    if (person && !(await holdPassword(tx, person))) throw wrongPassword()
    const { pendingEmail, ...names } = await named(tx)
    const withdrawn = person === null && patch.pendingEmail === null && pendingEmail !== null
    const state = person ? await changeEmail(tx, store, old.id, email) : undefined
    if (withdrawn || (state !== undefined && state !== 'unchanged')) {
      const about = withdrawn ? { withdrawn: pendingEmail } : (state as object)
      const details = { from: old.email, to: email, ...about, ...(names.changed.length > 0 ? names : {}) }
      return { act: 'EMAIL_CHANGED', result, resourceId: old.id, details }
    }
    if (names.changed.length === 0) return { result, unchanged: true }
    return { result, resourceId: old.id, details: names }
  })
  await guardEmail(saved)
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
  const passwordHash = await replacePassword(scope, user, newPassword, async (tx) => {
    if (!(await holdPassword(tx, person))) throw wrongPassword()
    return scope.access?.id ?? null
  })
  return { ...person, passwordHash }
}

/**
 * Changes a user's password on the operator's behalf and ends all their sessions. Throws NOT_FOUND, or
 * INVALID for a weak password.
 */
export async function setPassword(scope: Scope, email: string, password: string): Promise<User> {
  const user = await findUser(scope.store, email)
  demandPassword(password, 'password', user)
  await replacePassword(scope, user, password, async () => null)
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

/**
 * Sets a new password and ends the user's sessions, except the one that `findKept` names, which may throw.
 * Returns the hash.
 */
async function replacePassword(
  scope: Scope,
  { id, email }: User,
  password: string,
  findKept: (tx: Tx) => Promise<string | null>,
): Promise<string> {
  const passwordHash = await queueHashing(() => hashPassword(password), { ahead: true })
  return changeAccount(scope, 'PASSWORD_CHANGED', async (tx) => {
    const kept = await findKept(tx)
    // A session that is being opened or refreshed waits for this lock, or is there already and is ended
    // below.
    await tx.selectFrom('users').select('id').where('id', '=', id).forUpdate().execute()
    await tx.updateTable('users').set({ passwordHash }).where('id', '=', id).execute()
    await endSessions(tx, id, kept)
    return { result: passwordHash, resourceId: id, details: { email } }
  })
}

async function demandCurrent(scope: Scope, user: User, password: string | undefined): Promise<Person> {
  if (password === undefined) {
    throw invalid([{ path: 'currentPassword', message: 'is required to change the e-mail' }])
  }
  const person = await confirmPassword(scope, user.id, password)
  if (!person) throw wrongPassword()
  return person
}

function wrongPassword(): Fault {
  return invalid([{ path: 'currentPassword', message: 'is wrong' }])
}
