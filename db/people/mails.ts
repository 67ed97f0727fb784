import { createHash, randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { record, write } from '../change.ts'
import type { Tx } from '../connection.ts'
import { lockFor } from '../locks.ts'
import { claim, isDue, postpone, type Queue, selectFree, settle } from '../queue.ts'
import type { Store } from '../scope.ts'

/**
 * What a mail is for. CONFIRM: to prove its address with a link. CHANGED: to tell an address it is replaced. KNOWN: to tell
 * the owner of an account that it was wanted for another one. QUESTION: whether a team's mails may come.
 */
type MailKind = 'CONFIRM' | 'CHANGED' | 'KNOWN' | 'QUESTION'

/**
 * A mail that is to be sent. Its text is made when it is sent: the link in it must not stand in the database. It is of an
 * account, or for a team.
 */
export type Mail = {
  id: string
  kind: MailKind
  userId: string | null
  teamId: string | null
  email: string
}

/** The kinds that processes of the release before do not know: they would take such a mail, and not send it. */
const HIDDEN = new Set<MailKind>(['KNOWN', 'QUESTION'])

/** A claimed mail. `attempts` counts this one too; a mail that is `old` is not tried again. */
export type DueMail = Mail & { attempts: number; old: boolean }

/** How many confirmations are mailed in an hour to one address, and to all addresses that a user gives. */
const PER_HOUR = 5
/** The least time between two confirmations to one address. */
const PAUSE_SECONDS = 60
/** How long a link works, and how long a mail that cannot be sent is tried again. */
export const MAIL_HOURS = 24

/** Queues a mail in the caller's transaction. The processes that can send mail do so after its commit. */
export async function queueMail(tx: Tx, mail: Omit<Mail, 'id' | 'teamId'>): Promise<void> {
  const due = HIDDEN.has(mail.kind) ? { dueAt: sql<Date>`'infinity'`, ownDueAt: sql<Date>`now()` } : {}
  await tx
    .insertInto('mails')
    .values({ id: uuid(), ...mail, ...due })
    .execute()
}

/**
 * Queues the mail with which a user confirms an address, or, if another account has proven it, the one that tells its
 * owner. Returns 0, or, if too many were asked for, after how many seconds the next one may be, so that a stranger's
 * mailbox cannot be filled with them. Both are counted alike, so that the wait does not tell which one it is.
 */
export async function queueConfirmation(
  tx: Tx,
  userId: string | null,
  email: string,
  kind: 'CONFIRM' | 'KNOWN' = 'CONFIRM',
): Promise<number> {
  await lockAddress(tx, email)
  const { rows } = await sql<{ wait: number | null }>`
    with lately as (
      select email, created_at, row_number() over (order by created_at desc) as nth from mails
      where kind in ('CONFIRM', 'KNOWN') and created_at > now() - interval '1 hour'
        and (user_id = ${userId} or lower(email) = lower(${email})))
    select extract(epoch from greatest(
      max(created_at + ${PAUSE_SECONDS} * interval '1 second') filter (where lower(email) = lower(${email})),
      max(created_at + interval '1 hour') filter (where nth = ${PER_HOUR})) - clock_timestamp())::float8 as wait
    from lately`.execute(tx)
  const wait = Math.ceil(Math.max(0, rows[0]?.wait ?? 0))
  if (wait === 0) await queueMail(tx, { kind, userId, email })
  return wait
}

/** If two want mail for one address, or an account with it, the second sees the rows of the first. */
export async function lockAddress(tx: Tx, email: string): Promise<void> {
  await lockFor(tx, 'addresses', sql`lower(${email})`)
}

/** The processes of the release before look at `due_at` only, which says of the HIDDEN kinds that they are never due. */
const MAILS: Queue = {
  table: 'mails',
  id: 'id',
  open: sql`q.settled_at is null`,
  due: 'due_at',
  tries: 'attempts',
  setDue: (time) => sql`due_at = case when own_due_at is null then ${time} else due_at end,
    own_due_at = case when own_due_at is null then null else ${time} end`,
}

/**
 * Claims up to `limit` due mails for `leaseMs`. If the process dies, they are due again when the lease ends:
 * a mail is sent at least once.
 */
export async function claimMails(store: Store, limit: number, leaseMs: number): Promise<DueMail[]> {
  const chosen = selectFree('mails', {
    which: sql`q.settled_at is null and (${isDue(sql`q.due_at`)} or ${isDue(sql`q.own_due_at`)})`,
    order: sql`coalesce(q.own_due_at, q.due_at), q.id`,
    limit,
  })
  const returning = sql`id, kind, user_id, team_id, email, attempts,
    created_at < now() - ${MAIL_HOURS} * interval '1 hour' as old`
  return write(store, (tx) => claim<DueMail>(tx, MAILS, { chosen, leaseMs, returning }))
}

/** Notes that a mail was sent, or, with the `error`, that it is given up. */
export async function settleMail(store: Store, id: string, error: string | null = null): Promise<void> {
  await write(store, (tx) => settle(tx, MAILS, { id }, sql`settled_at = now(), last_error = ${error}`))
}

/** Makes a mail that failed due again after `delayMs`. */
export async function postponeMail(store: Store, id: string, delayMs: number, error: string): Promise<void> {
  await write(store, (tx) => postpone(tx, MAILS, { id }, delayMs, sql`last_error = ${error}`))
}

/**
 * Makes the token for a confirmation mail, of which only a hash is stored. Undefined if the address no longer
 * needs one. The tokens of mails that were sent before stay valid: it may be one of those that arrives.
 */
export async function makeEmailToken(
  store: Store,
  { userId, email }: Pick<Mail, 'userId' | 'email'>,
): Promise<string | undefined> {
  const token = randomBytes(24).toString('base64url')
  const { rows } = await write(store, (tx) =>
    sql`insert into email_tokens (token_hash, user_id, email, expires_at)
    select ${hashEmailToken(token)}, id, ${email}, now() + ${MAIL_HOURS} * interval '1 hour' from users
    where id = ${userId} and (lower(pending_email) = lower(${email})
      or email_confirmed_at is null and lower(email) = lower(${email}))
    returning user_id`.execute(tx),
  )
  return rows.length > 0 ? token : undefined
}

// Plain SHA-256 is enough, because 192 random bits cannot be guessed.
export function hashEmailToken(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

/**
 * Removes mails that are older than a day, tokens that have expired, and accounts whose link was never opened, and
 * which were never used. Called hourly.
 */
export async function purgeMails(store: Store): Promise<void> {
  await record(store, async (tx) => {
    await sql`delete from email_tokens where expires_at <= now()`.execute(tx)
    await sql`delete from users u where link_unopened and created_at < now() - ${MAIL_HOURS + 2} * interval '1 hour'
      and not exists (select from email_tokens t where t.user_id = u.id)`.execute(tx)
    await sql`delete from mails where created_at < now() - ${MAIL_HOURS + 2} * interval '1 hour'`.execute(tx)
  })
}
