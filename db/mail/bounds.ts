import { sql } from 'kysely'
import { record, write } from '../change.ts'
import type { Store } from '../scope.ts'

/**
 * The number of mails an hour that the service's own server takes of an account, of a team, and of all together unless
 * the operator sets it.
 */
export const MAILS_AN_HOUR = { account: 200, team: 120, instance: 1_000 } as const

/** How many strangers an account can have asked in an hour whether they want mail. */
const QUESTIONS_AN_HOUR = 20

/** For whom a mail is sent. */
export type MailSpender = { teamId: string; userId: string | null }

/** Why no mail can be sent at the moment, and when the next one can be. */
export type SpentFault = { message: string; waitMs: number }

/**
 * Counts a mail that is about to be sent. Resolves to why it must not be, if its hour is used up: then nothing is
 * counted.
 */
export async function spendMail(
  store: Store,
  { teamId, userId }: MailSpender,
  isQuestion = false,
): Promise<SpentFault | null> {
  const { account, team, instance } = MAILS_AN_HOUR
  const ofInstance = store.mailsPerHour ?? instance
  // In this order for all, and the bound that all share last, because it is held until the commit.
  const bounds = [
    ...(userId === null ? [] : [{ key: `account ${userId}`, most: account, whose: 'you can send' }]),
    ...(userId !== null && isQuestion
      ? [{ key: `asked ${userId}`, most: QUESTIONS_AN_HOUR, whose: 'you can ask strangers with' }]
      : []),
    { key: `team ${teamId}`, most: team, whose: 'a team can send' },
    { key: 'instance', most: ofInstance, whose: 'this service sends for its teams' },
  ]
  try {
    await record(store, async (tx) => {
      for (const { key, most, whose } of bounds) {
        const { rows } = await sql`
          insert into mail_counts as c (key, hour, mails) values (${key}, date_trunc('hour', now(), 'UTC'), 1)
          on conflict (key, hour) do update set mails = c.mails + 1 where c.mails < ${most}
          returning mails`.execute(tx)
        if (rows.length === 0) throw new UsedUp(`The ${most} mails an hour that ${whose} are used up`)
      }
    })
    return null
  } catch (error) {
    if (!(error instanceof UsedUp)) throw error
    return { message: `${error.message}: it goes on in the next hour`, waitMs: await readWait(store) }
  }
}

/** Gives back what was counted for a mail that no server has seen. */
export async function returnMail(store: Store, { teamId, userId }: MailSpender): Promise<void> {
  const keys = [`account ${userId}`, `team ${teamId}`, 'instance']
  await write(store, (tx) =>
    sql`update mail_counts set mails = mails - 1
      where hour = date_trunc('hour', now(), 'UTC') and mails > 0 and key = any(${keys})`.execute(tx),
  )
}

/** Forgets the hours that are over. Called hourly. */
export async function purgeMailCounts(store: Store): Promise<void> {
  await write(store, (tx) => sql`delete from mail_counts where hour < now() - interval '2 hours'`.execute(tx))
}

class UsedUp extends Error {}

async function readWait(store: Store): Promise<number> {
  const { rows } = await sql<{ ms: number }>`
    select extract(epoch from date_trunc('hour', now(), 'UTC') + interval '1 hour' - now())::float8 * 1000 as ms`.execute(
    store.db,
  )
  return Math.ceil(rows[0]!.ms) + 1_000
}
