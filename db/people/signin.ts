import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import { noteRefusal } from '../audit/refusals/refusals.ts'
import { INSTANCE_CHAIN } from '../audit/signing.ts'
import { perDatabase } from '../cache.ts'
import { noteEvent, record } from '../change.ts'
import { Fault } from '../fault.ts'
import { accountScope, type Origin, type Scope, type Store } from '../scope.ts'
import { type Device, isKnownTo, rememberPerson } from './devices.ts'
import { confirmEmail } from './emails.ts'
import { hashEmailToken, queueConfirmation } from './mails.ts'
import { readNetwork } from './network.ts'
import { queueHashing } from './passwords.ts'
import { createSession, type Session } from './sessions.ts'
import { findByEmail, findById, nameOf, type Person, provesPassword } from './users.ts'

/**
 * How password guessing is slowed down: after `free` failures each further one doubles the wait, from 1 s to
 * `maxSeconds`. An account's wait stays short, so that an attacker cannot lock out its owner for long.
 */
type Rule = { free: number; maxSeconds: number }
const ACCOUNT: Rule = { free: 4, maxSeconds: 60 }
const ADDRESS: Rule = { free: 50, maxSeconds: 300 }
const FORGET_MINUTES = 15

/** More counts than these are not kept: those that changed longest ago are forgotten first. */
const MAX_COUNTS = 100_000

/** What failures are counted against. The first of an attempt's budgets is forgiven when it succeeds. */
type Budget = { key: string; rule: Rule; locks: 'account' | 'device' | 'session' | 'address' }

export type SignInAttempt = {
  email: string
  password: string
  /** The token in the link that was mailed to the e-mail: it opens the account. */
  emailToken?: string | undefined
  ip: string
  device?: Device | null
} & Omit<Origin, 'ip'>

export type SignedIn = { person: Person; session: Session; device: Device }

/**
 * Opens a session for the user with this e-mail and password. Throws UNAUTHENTICATED, with the same message and after
 * the same time whether the e-mail is unknown or the password wrong; THROTTLED after too many failures; FORBIDDEN for
 * the right password of an account whose link was not opened yet, to which another one is mailed. Only failures count:
 * those of a device on which the person has signed in count against the device alone, and those of all others against
 * the account and the address. So guessing strangers cannot shut a person out of their account.
 */
export async function signIn(store: Store, attempt: SignInAttempt): Promise<SignedIn> {
  const { email, password, emailToken, ip, requestId, userAgent, device = null } = attempt
  const tokenHash = emailToken === undefined ? null : hashEmailToken(emailToken)
  const origin = { ip, requestId, userAgent }
  const stranger = accountScope(store, null, origin)
  let failed: Person | null = null
  // Twice, because another sign-in may have replaced an outdated hash of the same password in between.
  for (let round = 1; round <= 2; round++) {
    const { folded, person } = await findByEmail(store, email, tokenHash)
    const known = person !== null && isKnownTo(person, device)
    const budgets: Budget[] = known
      ? [{ key: `device:${device.id}:${person.id}`, rule: ACCOUNT, locks: 'device' }]
      : [
          {
            key: `account:${hash(person ? person.id : `unknown ${folded}`)}`,
            rule: ACCOUNT,
            locks: 'account',
          },
          { key: `ip:${readNetwork(ip)}`, rule: ADDRESS, locks: 'address' },
        ]
    const proven = await provePassword(stranger, person, password, budgets, known)
    failed = person
    if (!proven) break
    if (person?.linkUnopened) await openAccount(store, proven, { email, emailToken }, origin)
    const session = await createSession(store, proven, origin)
    if (session) return { person: proven, session, device: rememberPerson(device, proven) }
  }
  await auditFailure(stranger, failed)
  throw new Fault('UNAUTHENTICATED', 'The e-mail or the password is wrong')
}

/** Opens the account of a person who has signed up, or has the link mailed once more. Throws FORBIDDEN, CONFLICT. */
async function openAccount(
  store: Store,
  person: Person,
  { email, emailToken }: Pick<SignInAttempt, 'email' | 'emailToken'>,
  origin: Origin,
): Promise<void> {
  if (store.emailProof?.() !== 'mail') return
  const scope = accountScope(store, { id: person.id, name: nameOf(person) }, origin)
  if (emailToken !== undefined) {
    const opened = await confirmEmail(scope, emailToken).then(
      () => true,
      (error) => {
        if (!(error instanceof Fault) || error.code !== 'INVALID') throw error
        return false
      },
    )
    if (opened) return
  }
  await record(store, (tx) => queueConfirmation(tx, person.id, email))
  const message =
    'This account is not open yet: open the link that was mailed to its e-mail, and sign in there. If it does not ' +
    'come, sign in here again in a minute, and another one is mailed'
  throw new Fault('FORBIDDEN', message)
}

/** The audit does not name an unknown e-mail: some people type their password there. */
async function auditFailure(scope: Scope, person: Person | null): Promise<void> {
  const details = { email: person?.email ?? null }
  await noteRefusal({ act: 'SIGN_IN_FAILED', scope, resourceId: person?.id ?? null, details })
}

/** There are few of them: each takes several failures, whose passwords were compared. */
async function auditLock(scope: Scope, person: Person | null, { locks }: Budget): Promise<void> {
  // An account that does not exist has no entry.
  if (locks === 'account' && person === null) return
  await noteEvent(scope, 'ACCOUNT_LOCKED', INSTANCE_CHAIN, async () => ({
    result: undefined,
    resourceId: locks === 'address' ? null : (person?.id ?? null),
    details: { locks, ...(locks === 'address' ? {} : { email: person?.email ?? null }) },
  }))
}

/**
 * The user if the password is theirs, else null: for those who are signed in and have to confirm it. Throws THROTTLED
 * after too many failures, which only that person can cause.
 */
export async function confirmPassword(
  scope: Scope,
  userId: string,
  password: string,
): Promise<Person | null> {
  const person = await findById(scope.store, userId)
  const budgets = [{ key: `confirm:${userId}`, rule: ACCOUNT, locks: 'session' as const }]
  const proven = await provePassword(scope, person, password, budgets, true)
  if (!proven) await auditFailure(scope, person)
  return proven
}

async function provePassword(
  scope: Scope,
  person: Person | null,
  password: string,
  budgets: Budget[],
  known: boolean,
): Promise<Person | null> {
  const { store } = scope
  const keys = budgets.map(({ key }) => key)
  await refuseBlocked(store, keys, FAILED)
  const work = async () => {
    // Guesses sent at the same time wait here: those beyond the limit are counted and refused, but not tried.
    const wait = await readWait(store, keys)
    const proven = wait > 0 ? null : await provesPassword(store, person, password)
    if (proven) {
      await record(store, (tx) => tx.deleteFrom('signinFailures').where('key', '=', keys[0]!).execute())
      return proven
    }
    for (const budget of budgets) {
      const failures = await noteAttempt(store, budget)
      if (failures === budget.rule.free + 1) await auditLock(scope, person, budget)
    }
    if (wait > 0) throw throttled(wait, FAILED)
    return null
  }
  return queueHashing(work, { ahead: known })
}

/** Counts a sign-up, successful or not, against its address. Throws THROTTLED after too many. */
export async function countSignUp(store: Store, ip: string): Promise<void> {
  const key = `signup:${readNetwork(ip)}`
  await refuseBlocked(store, [key], 'sign-ups from this address')
  await noteAttempt(store, { key, rule: ADDRESS })
}

const FAILED = 'failed sign-ins'

async function refuseBlocked(store: Store, keys: string[], what: string): Promise<void> {
  const wait = await readWait(store, keys)
  if (wait > 0) throw throttled(wait, what)
}

async function readWait(store: Store, keys: string[]): Promise<number> {
  const found = await sql<{ wait: number | null }>`
    select extract(epoch from max(blocked_until) - now())::float8 as wait
    from signin_failures where key = any(${keys})`.execute(store.db)
  return Math.max(0, found.rows[0]?.wait ?? 0)
}

function throttled(seconds: number, what: string): Fault {
  const retryAfter = Math.ceil(seconds)
  return new Fault('THROTTLED', `Too many ${what}; try again in ${retryAfter} s`, { retryAfter })
}

/** Counts a failure, or a sign-up. Resolves to how many there have been. */
async function noteAttempt(store: Store, { key, rule }: Pick<Budget, 'key' | 'rule'>): Promise<number> {
  const { free, maxSeconds } = rule
  const { rows } = await record(store, (tx) =>
    sql<{ failures: number }>`
    insert into signin_failures as f (key, failures, blocked_until) values (${key}, 1, now())
    on conflict (key) do update set
      failures = case when f.updated_at < now() - ${FORGET_MINUTES} * interval '1 minute' then 1
        else least(f.failures + 1, 1000000) end,
      blocked_until = now() + interval '1 second' * case
        when f.updated_at < now() - ${FORGET_MINUTES} * interval '1 minute' or f.failures + 1 <= ${free} then 0
        else least(${maxSeconds}::float8, power(2::float8, least(f.failures - ${free}, 20))) end,
      updated_at = now()
    returning failures`.execute(tx),
  )
  await forgetFailures(store)
  return rows[0]!.failures
}

const forgottenOf = perDatabase(() => ({ minute: 0 }))

/** Once a minute while there are failures, old ones are removed, so that the table stays small. */
async function forgetFailures(store: Store): Promise<void> {
  const forgotten = forgottenOf(store.db)
  const minute = Math.floor(Date.now() / 60_000)
  if (forgotten.minute === minute) return
  forgotten.minute = minute
  await purgeFailures(store)
}

/** Forgets failures that are too old to count, and the oldest beyond `most`. */
export async function purgeFailures(store: Store, most = MAX_COUNTS): Promise<void> {
  await record(store, (tx) =>
    sql`delete from signin_failures where updated_at < now() - ${FORGET_MINUTES} * interval '1 minute'
      or key in (select key from signin_failures order by updated_at desc offset ${most})`.execute(tx),
  )
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}
