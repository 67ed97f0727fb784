import { deliverMail, type MailCarrier } from '../../activities/mail/deliver.ts'
import type { Bus } from '../../db/bus.ts'
import { claimMails } from '../../db/people/mails.ts'

const EVERY_MS = 5_000
const AT_ONCE = 5
/** More than the longest time that sending one mail can take. */
const LEASE_MS = 120_000

/**
 * Sends mails as soon as the bus reports them, and those that are due again. Any number of processes may do so.
 * Returns the function that ends it: it breaks off what is being sent, which is then sent again later.
 */
export function startMailing(carrier: MailCarrier, bus: Bus): () => Promise<void> {
  const stopping = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let sending: Promise<void> | undefined
  let more = false

  function send(): void {
    if (stopping.signal.aborted) return
    clearTimeout(timer)
    more = true
    sending ??= sendAll().finally(() => {
      sending = undefined
      if (!stopping.signal.aborted) timer = setTimeout(send, EVERY_MS)
    })
  }

  async function sendAll(): Promise<void> {
    while (more && !stopping.signal.aborted) {
      more = false
      try {
        const mails = await claimMails(carrier.store, AT_ONCE, LEASE_MS)
        await Promise.all(mails.map((mail) => deliverMail(carrier, mail, stopping.signal)))
        if (mails.length === AT_ONCE) more = true
      } catch (error) {
        carrier.log.warn({ err: error }, 'the mails that are due could not be read')
      }
    }
  }

  const leave = bus.onErrands(send)
  send()
  return async () => {
    stopping.abort()
    clearTimeout(timer)
    leave()
    await sending
  }
}
