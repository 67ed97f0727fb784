import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { record } from '../change.ts'
import type { Db, Tx } from '../connection.ts'
import { lockFor } from '../locks.ts'
import { trustsEmails } from '../people/proof.ts'
import type { Store } from '../scope.ts'
import { type MailSpender, spendMail } from './bounds.ts'
import { foldAddress } from './choices.ts'

/**
 * Whether a team's mail goes to an address by the service's own server. ASKED: its owner was asked, and has not said yes.
 * NOT_ASKED: the mail that asks was not sent yet. REFUSED: they want no mail.
 */
export const RECIPIENT_STATES = ['READY', 'ASKED', 'NOT_ASKED', 'REFUSED'] as const
export type RecipientState = (typeof RECIPIENT_STATES)[number]

/** An address with its state, as the API shows it. */
export type RecipientView = { address: string; state: RecipientState }

/** How many mails may ask one mailbox in a month, for all teams and by all its addresses. */
const QUESTIONS_A_MONTH = 3
const MONTH_DAYS = 30

/** Says for each address whether a team's mail goes there at this moment. */
export async function judgeRecipients(
  store: Store,
  teamId: string,
  addresses: readonly string[],
  db: Db = store.db,
): Promise<Map<string, RecipientState>> {
  if (addresses.length === 0) return new Map()
  const { rows } = await sql<RecipientView>`
    select r.address, case
      when c.state = 'NO' or exists (select from mail_refusals f where f.address = r.folded) then 'REFUSED'
      when c.state = 'YES' or exists (
        select from members m join users u on u.id = m.user_id
        where m.team_id = ${teamId} and lower(u.email) = lower(r.address)
          and (u.email_confirmed_at is not null or ${trustsEmails(store)}::boolean)) then 'READY'
      when c.asked_at is not null then 'ASKED' else 'NOT_ASKED' end as state
    from unnest(${addresses}::text[], ${addresses.map(foldAddress)}::text[]) as r(address, folded)
      left join mail_choices c on c.team_id = ${teamId} and c.address = r.folded`.execute(db)
  const isOpen = (state: RecipientState) => state === 'ASKED' || state === 'NOT_ASKED'
  return new Map(
    rows.map(({ address, state }) => [
      address,
      isOpen(state) && isNamedDomain(store, address) ? 'READY' : state,
    ]),
  )
}

/** Whether the operator lets mail go to all addresses of this one's domain. */
function isNamedDomain({ mailDomains = [] }: Store, address: string): boolean {
  if (mailDomains === 'any') return true
  const folded = foldAddress(address)
  const domain = folded.slice(folded.lastIndexOf('@') + 1)
  return mailDomains.some((named) =>
    named.startsWith('*.') ? domain.endsWith(named.slice(1)) : domain === named,
  )
}

/**
 * The reason why the service's own server holds a team's mail back from all recipients; null if it does not. `userId`
 * made or changed the mail's source last; if that is unknown, an ADMIN of the team must have a confirmed address.
 */
export async function findMailHold(
  store: Store,
  { teamId, userId }: MailSpender,
  db: Db = store.db,
): Promise<string | null> {
  const { rows } = await sql<{ confirmed: boolean }>`
    select exists (
      select from users u left join members m on m.user_id = u.id and m.team_id = ${teamId}
      where (u.email_confirmed_at is not null or ${trustsEmails(store)}::boolean)
        and (u.id = ${userId}::uuid or ${userId}::uuid is null and m.role = 'ADMIN')) as confirmed`.execute(
    db,
  )
  if (rows[0]!.confirmed) return null
  return userId === null
    ? 'No ADMIN of the team has confirmed their e-mail: let one do that, and save it again'
    : 'Who has changed it last has not confirmed their e-mail: let them do that, or somebody else save it'
}

/**
 * Has those asked who were not yet, if that is not too much: what is not asked now is asked when the next mail is due. Only
 * where mail is sent at all.
 */
export async function askRecipients(
  store: Store,
  spender: MailSpender,
  addresses: readonly string[],
): Promise<void> {
  if (store.emailProof?.() !== 'mail' || addresses.length === 0) return
  if ((await findMailHold(store, spender)) !== null) return
  const states = await judgeRecipients(store, spender.teamId, addresses)
  for (const address of addresses.filter((one) => states.get(one) === 'NOT_ASKED')) {
    if (await wasAskedEnough(store.db, address)) continue
    if ((await spendMail(store, spender, true)) !== null) return
    await record(store, (tx) => queueQuestion(tx, spender.teamId, address))
  }
}

/** The mailbox of an address: `ada+news@example.com` is one that Ada has, as are all others that she may be asked by. */
function findMailbox(address: string): string {
  return foldAddress(address).replace(/^([^+@]+)\+[^@]*@/, '$1@')
}

async function queueQuestion(tx: Tx, teamId: string, address: string): Promise<void> {
  const [folded, mailbox] = [foldAddress(address), findMailbox(address)]
  await lockFor(tx, 'askedMailboxes', mailbox)
  if (await wasAskedEnough(tx, address)) return
  const { rows } = await sql`
    insert into mail_choices as c (id, team_id, address, asked_at) values (${uuid()}, ${teamId}, ${folded}, now())
    on conflict (team_id, address) do update set asked_at = now() where c.asked_at is null and c.state is null
    returning id`.execute(tx)
  if (rows.length === 0) return
  await sql`insert into mail_questions (id, address, team_id) values (${uuid()}, ${mailbox}, ${teamId})`.execute(
    tx,
  )
  await sql`insert into mails (id, kind, team_id, email, due_at, own_due_at)
    values (${uuid()}, 'QUESTION', ${teamId}, ${address}, 'infinity', now())`.execute(tx)
}

async function wasAskedEnough(db: Db, address: string): Promise<boolean> {
  const { rows } = await sql<{ asked: number }>`
    select count(*)::int as asked from mail_questions
    where address = ${findMailbox(address)} and created_at > now() - ${MONTH_DAYS} * interval '1 day'`.execute(
    db,
  )
  return rows[0]!.asked >= QUESTIONS_A_MONTH
}

/** Forgets who was asked more than a month ago. Called hourly. */
export async function purgeMailQuestions(store: Store): Promise<void> {
  await record(store, (tx) =>
    sql`delete from mail_questions where created_at < now() - ${MONTH_DAYS} * interval '1 day'`.execute(tx),
  )
}
