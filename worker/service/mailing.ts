import { deliverMail, type MailCarrier } from '../../activities/mail/deliver.ts'
import type { Bus } from '../../db/bus.ts'
import { claimMails } from '../../db/people/mails.ts'
import { startQueue } from './queue.ts'

const EVERY_MS = 5_000
const AT_ONCE = 5
/** More than the longest time that sending one mail can take. */
const LEASE_MS = 120_000

/**
 * Sends mails as soon as the bus reports them, and those that are due again. Any number of processes may do so.
 * Returns the function that ends it: it breaks off what is being sent, which is then sent again later.
 */
export function startMailing(carrier: MailCarrier, bus: Bus): () => Promise<void> {
  const { stop } = startQueue({
    what: 'the mails that are due',
    everyMs: EVERY_MS,
    atOnce: AT_ONCE,
    log: carrier.log,
    wokenBy: bus.onErrands,
    claim: ({ limit }) => claimMails(carrier.store, limit, LEASE_MS),
    work: (mail, signal) => deliverMail(carrier, mail, signal),
  })
  return stop
}
