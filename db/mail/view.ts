import type { Db } from '../connection.ts'
import type { Store } from '../scope.ts'
import { findMailHold, judgeRecipients, type RecipientView } from './recipients.ts'

/** What the API says of the mails of a report or a channel. */
export type MailView = {
  /** Whose yes is missing, among others. */
  recipientStates: RecipientView[]
  /** Why nothing is sent at all; null if it is. */
  held: string | null
}

/**
 * A team's source of mails, and the person on whose behalf they go out. With a credential the team itself answers for
 * the recipients.
 */
export type Mailed = { recipients: string[]; credentialId: string | null; changedBy: string | null }

/** Says for each of what a team mails whom it reaches. */
export async function viewMails(
  store: Store,
  teamId: string,
  list: readonly Mailed[],
  db: Db = store.db,
): Promise<MailView[]> {
  const own = list.filter(({ credentialId }) => credentialId === null)
  const states = await judgeRecipients(store, teamId, [...new Set(own.flatMap((one) => one.recipients))], db)
  const holds = new Map<string | null, string | null>()
  for (const userId of new Set(own.map(({ changedBy }) => changedBy)))
    holds.set(userId, await findMailHold(store, { teamId, userId }, db))
  return list.map(({ recipients, credentialId, changedBy }) => ({
    recipientStates: recipients.map((address) => ({
      address,
      state: credentialId === null ? states.get(address)! : 'READY',
    })),
    held: credentialId === null ? (holds.get(changedBy) ?? null) : null,
  }))
}
