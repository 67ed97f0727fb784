import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import { changeAccount, record } from '../change.ts'
import { Fault } from '../fault.ts'
import { accountScope, type Scope, type Store } from '../scope.ts'
import { queueHashing } from './passwords.ts'
import { hasEmail, type User, verifyPassword } from './users.ts'

/**
 * How password guessing is slowed down: after `free` failures each further one doubles the wait, from 1 s to
 * `maxSeconds`. An account's wait stays short, so that an attacker cannot lock out its owner for long.
 */
const ACCOUNT = { free: 4, maxSeconds: 60 }
const ADDRESS = { free: 50, maxSeconds: 300 }
const FORGET_MINUTES = 15

/**
 * The user with this e-mail and password. Throws UNAUTHENTICATED, with the same message and after the same
 * time whether the e-mail is unknown or the password wrong; THROTTLED after too many failures. Only failures
 * count.
 */
export async function signIn(store: Store, input: SignInAttempt): Promise<User> {
  const user = await provePassword(store, input)
  if (!user) throw new Fault('UNAUTHENTICATED', 'The e-mail or the password is wrong')
  return user
}

/** `by` is who confirms the own password, if somebody who is signed in does. */
export type SignInAttempt = {
  email: string
  password: string
  ip: string
  requestId: string | null
  by?: Scope
}

/**
 * Like signIn, but resolves to null if the e-mail or password is wrong. Also for users who are signed in and
 * have to confirm their password.
 */
export async function provePassword(store: Store, input: SignInAttempt): Promise<User | null> {
  const account = `account:${createHash('sha256').update(input.email.toLowerCase()).digest('base64url')}`
  const address = `ip:${input.ip}`
  await refuseBlocked(store, [account, address], FAILED)
  const proven = await queueHashing(async () => {
    // Guesses sent at the same time wait here: those beyond the limit are counted and refused, but not tried.
    const wait = await readWait(store, [account, address])
    const user = wait > 0 ? null : await verifyPassword(store, input.email, input.password)
    if (user) {
      await record(store, (tx) => tx.deleteFrom('signinFailures').where('key', '=', account).execute())
      return user
    }
    await noteAttempt(store, account, ACCOUNT)
    await noteAttempt(store, address, ADDRESS)
    if (wait > 0) throw throttled(wait, FAILED)
    return null
  })
  if (!proven) await auditFailure(store, input)
  return proven
}

/** Of an unknown e-mail the audit says nothing: some people type their password there. */
async function auditFailure(store: Store, { email, ip, requestId, by }: SignInAttempt): Promise<void> {
  const user = await store.db.selectFrom('users').select('id').where(hasEmail(email)).executeTakeFirst()
  const scope = by ?? accountScope(store, null, { requestId, ip })
  await changeAccount(scope, 'SIGN_IN_FAILED', async () => ({
    result: undefined,
    resourceId: user?.id ?? null,
    details: { email: user ? email : null },
  }))
}

/** Counts a sign-up, successful or not, against its IP address. Throws THROTTLED after too many. */
export async function countSignUp(store: Store, ip: string): Promise<void> {
  const key = `signup:${ip}`
  await refuseBlocked(store, [key], 'sign-ups from this address')
  await noteAttempt(store, key, ADDRESS)
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

async function noteAttempt(store: Store, key: string, rule: typeof ACCOUNT): Promise<void> {
  const { free, maxSeconds } = rule
  await record(store, (tx) =>
    sql`
    insert into signin_failures as f (key, failures, blocked_until) values (${key}, 1, now())
    on conflict (key) do update set
      failures = case when f.updated_at < now() - ${FORGET_MINUTES} * interval '1 minute' then 1
        else least(f.failures + 1, 1000000) end,
      blocked_until = now() + interval '1 second' * case
        when f.updated_at < now() - ${FORGET_MINUTES} * interval '1 minute' or f.failures + 1 <= ${free} then 0
        else least(${maxSeconds}::float8, power(2::float8, least(f.failures - ${free}, 20))) end,
      updated_at = now()`.execute(tx),
  )
}
