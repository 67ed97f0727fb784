import { sql } from 'kysely'
import { v4 as uuid } from 'uuid'
import { changeAccount, changeInstance } from '../change.ts'
import type { Tx } from '../connection.ts'
import { Fault, invalid, missing } from '../fault.ts'
import { demandPerson, type Scope, type Store } from '../scope.ts'
import { hashEmailToken, queueConfirmation, queueMail } from './mails.ts'
import { trustsEmails } from './proof.ts'
import { hasEmail, type User } from './users.ts'

export type EmailState = {
  email: string
  /** Whether the address counts for memberships and approvals. */
  emailConfirmed: boolean
  /** The address that takes the place of `email` once it is confirmed. */
  pendingEmail: string | null
}

type Owner = { id: string; email: string; emailConfirmedAt: Date | null; pendingEmail: string | null }

const OWNER = ['id', 'email', 'emailConfirmedAt', 'pendingEmail'] as const

/** A user's e-mail, and whether it is confirmed. Throws NOT_FOUND. */
export async function readEmail(store: Store, userId: string): Promise<EmailState> {
  const row = await store.db.selectFrom('users').select(OWNER).where('id', '=', userId).executeTakeFirst()
  if (!row) throw missing('user')
  const { email, emailConfirmedAt, pendingEmail } = row
  return { email, emailConfirmed: emailConfirmedAt !== null || trustsEmails(store), pendingEmail }
}

/**
 * Sets a new e-mail in the caller's transaction. It takes effect when it is confirmed; where every address
 * counts as confirmed, at once. Returns whether it still has to be, or that it
 * was wanted already. Throws CONFLICT if another account has it and no mail is sent,
 * THROTTLED after too many mails.
 */
export async function changeEmail(
  tx: Tx,
  store: Store,
  userId: string,
  email: string,
): Promise<{ pending: boolean } | 'unchanged'> {
  const owner = await lockOwner(tx, userId)
  if (owner.email === email) return 'unchanged'
  if (trustsEmails(store) || isSame(owner.email, email)) {
    await tx.updateTable('users').set({ email, pendingEmail: null }).where('id', '=', userId).execute()
    return { pending: false }
  }
  const holder = await lockHolder(tx, email)
  const isMailed = store.emailProof?.() === 'mail'
  // Where mail is sent, only the owner of the mailbox learns that there is such an account.
  if (holder?.emailConfirmedAt && !isMailed) throw taken()
  if (owner.pendingEmail && isSame(owner.pendingEmail, email)) return 'unchanged'
  await tx.updateTable('users').set({ pendingEmail: email }).where('id', '=', userId).execute()
  if (isMailed)
    refuse(await queueConfirmation(tx, userId, email, holder?.emailConfirmedAt ? 'KNOWN' : 'CONFIRM'))
  return { pending: true }
}

/**
 * Mails the link once more. Throws CONFLICT if there is nothing to confirm or nothing can send mail, THROTTLED
 * after too many mails, FORBIDDEN for an SDK token.
 */
export async function resendConfirmation(scope: Scope): Promise<void> {
  const { store } = scope
  const userId = demandPerson(scope)
  await changeAccount(scope, 'EMAIL_CONFIRMATION_SENT', async (tx) => {
    const { email, emailConfirmedAt, pendingEmail } = await lockOwner(tx, userId)
    if (pendingEmail === null && (emailConfirmedAt || trustsEmails(store))) {
      throw new Fault('CONFLICT', 'Your e-mail is confirmed already')
    }
    if (pendingEmail === null && email.endsWith(NO_MAILBOX)) {
      throw new Fault(
        'CONFLICT',
        'Your e-mail has become that of somebody who has proven it: set another one',
      )
    }
    if (store.emailProof?.() !== 'mail') throw new Fault('CONFLICT', `This service sends no mail: ${ASK}`)
    const to = pendingEmail ?? email
    const holder = pendingEmail === null ? undefined : await lockHolder(tx, to)
    refuse(await queueConfirmation(tx, userId, to, holder?.emailConfirmedAt ? 'KNOWN' : 'CONFIRM'))
    return { result: undefined, resourceId: userId, details: { to } }
  })
}

/**
 * Confirms the address to which the token was mailed. The caller must be the one who wanted it: an account that was
 * made with a stranger's address is not confirmed by the stranger. Throws INVALID for a token that is no longer valid,
 * CONFLICT if another account has confirmed the address before.
 */
export async function confirmEmail(scope: Scope, token: string): Promise<void> {
  const userId = demandPerson(scope)
  const work = async (tx: Tx) => {
    const owner = await lockOwner(tx, userId)
    const proven = await tx
      .deleteFrom('emailTokens')
      .where('tokenHash', '=', hashEmailToken(token))
      .where('userId', '=', userId)
      .where('expiresAt', '>', sql<Date>`now()`)
      .returning('email')
      .executeTakeFirst()
    const wanted = proven && [owner.email, owner.pendingEmail ?? ''].some((own) => isSame(own, proven.email))
    if (!proven || !wanted) {
      const message = 'has expired, has been used, or belongs to another account: ask for another mail'
      throw invalid([{ path: 'token', message }])
    }
    await settleEmail(tx, scope.store, owner, proven.email)
    return { result: undefined, resourceId: userId, details: { email: proven.email } }
  }
  await guardEmail(changeAccount(scope, 'EMAIL_CONFIRMED', work))
}

/**
 * Confirms an address for its user, who has it or wants to change to it, on the word of the instance's admin or
 * the operator. `userId` says whose it is if several accounts want it. Throws NOT_FOUND, or CONFLICT.
 */
export async function vouchForEmail(
  scope: Scope,
  { email, userId }: { email: string; userId?: string | undefined },
): Promise<User & EmailState> {
  const work = async (tx: Tx) => {
    const found = await tx
      .selectFrom('users')
      .select([...OWNER, 'firstName', 'lastName'])
      .where((eb) => eb.or([hasEmail(email), sql<boolean>`lower(pending_email) = lower(${email})`]))
      .$if(userId !== undefined, (query) => query.where('id', '=', userId!))
      .orderBy('id')
      .limit(5)
      .forUpdate()
      .execute()
    const [owner] = found
    if (!owner)
      throw new Fault('NOT_FOUND', 'Nobody has an account with this e-mail, or wants to change to it')
    if (found.length > 1) {
      const claims = found.map((one) => `${one.id} (${one.firstName} ${one.lastName}, now ${one.email})`)
      throw new Fault(
        'CONFLICT',
        `Several accounts claim this e-mail, give the user id: ${claims.join(', ')}`,
      )
    }
    await settleEmail(tx, scope.store, owner, email)
    const { id, firstName, lastName } = owner
    const now = isSame(owner.email, email) ? owner.email : email
    const details = { email: now, ...(now === owner.email ? {} : { from: owner.email }) }
    const result = { id, firstName, lastName, email: now, emailConfirmed: true, pendingEmail: null }
    return { result, resourceId: id, details }
  }
  return guardEmail(changeInstance(scope, 'EMAIL_CONFIRMED', work))
}

/** Throws CONFLICT, and says what to do, if the user's e-mail is not confirmed. */
export async function demandConfirmed(tx: Tx, store: Store, userId: string): Promise<void> {
  const state = await readEmail({ ...store, db: tx }, userId)
  if (state.emailConfirmed) return
  const todo =
    store.emailProof?.() === 'mail'
      ? 'they open the link that was mailed to them, or sign in and ask for another mail'
      : ASK
  throw new Fault('CONFLICT', `This e-mail is not confirmed yet: ${todo}. Then add them again`)
}

/** The end of the addresses of accounts that have lost theirs. No mail can be sent there (RFC 2606). */
export const NO_MAILBOX = '@perdure.invalid'

const ASK =
  "the instance's admin (POST /api/admin/users/confirm) or the operator (npx perdure user confirm) confirms it"

/** Makes a proven address the user's own. An account that has it without having proven it loses it. */
async function settleEmail(tx: Tx, store: Store, owner: Owner, proven: string): Promise<void> {
  const { id } = owner
  const stays = isSame(owner.email, proven)
  const holder = stays ? undefined : await lockHolder(tx, proven)
  if (holder?.emailConfirmedAt) throw taken()
  if (holder) {
    // The address is not made from the holder's id, which others know: it could have been registered before.
    const email = `released-${uuid()}${NO_MAILBOX}`
    await tx.updateTable('users').set({ email }).where('id', '=', holder.id).execute()
  }
  const email = stays ? owner.email : proven
  await tx
    .updateTable('users')
    .set({ email, emailConfirmedAt: sql<Date>`clock_timestamp()`, linkUnopened: false })
    // A change to another address that is still wanted goes on.
    .$if(!stays, (query) => query.set({ pendingEmail: null }))
    .where('id', '=', id)
    .execute()
  await tx
    .deleteFrom('emailTokens')
    .where('userId', '=', id)
    .where(sql<boolean>`lower(email) = lower(${proven})`)
    .execute()
  if (!stays && owner.emailConfirmedAt && store.emailProof?.() === 'mail') {
    await queueMail(tx, { kind: 'CHANGED', userId: id, email: owner.email })
  }
}

/** Locks a user's row, so that of two who confirm an address at once the second sees what the first did. */
async function lockOwner(tx: Tx, userId: string): Promise<Owner> {
  const row = await tx
    .selectFrom('users')
    .select(OWNER)
    .where('id', '=', userId)
    .forUpdate()
    .executeTakeFirst()
  if (!row) throw missing('user')
  return row
}

async function lockHolder(tx: Tx, email: string): Promise<Owner | undefined> {
  return tx.selectFrom('users').select(OWNER).where(hasEmail(email)).forUpdate().executeTakeFirst()
}

function isSame(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase()
}

/** Throws CONFLICT if another account gets the address at the same time. */
export async function guardEmail<T>(work: Promise<T>): Promise<T> {
  return work.catch((error: { constraint?: string }) => {
    throw error.constraint === 'users_email' ? taken() : error
  })
}

function taken(): Fault {
  return new Fault('CONFLICT', 'This e-mail already has an account')
}

function refuse(wait: number): void {
  if (wait === 0) return
  throw new Fault('THROTTLED', `Too many mails to confirm an e-mail; try again in ${wait} s`, {
    retryAfter: wait,
  })
}
