import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { findChannel } from '../../../db/monitoring/channels/channels.ts'
import {
  type ClaimedDelivery,
  DELIVERY_HOURS,
  noteTold,
  postponeDelivery,
  readSentNotice,
  renewDelivery,
  settleDelivery,
} from '../../../db/monitoring/channels/deliveries.ts'
import type { ChannelCarrier, SendFailure } from './carrier.ts'
import { describeNotice } from './messages.ts'
import { sendToChannel } from './send.ts'

/** How long a delivery is held without a sign of life, and how often one is given. */
export const DELIVERY_LEASE_MS = 30_000
const RENEWAL_MS = 10_000

const RETRY_MS = 10_000
const MAX_RETRY_MS = 3_600_000

/**
 * Sends a claimed delivery. If that fails, it is due again later, unless that is of no use or it is a day old. The
 * receiver may get it twice, with the same id, if this process dies in between. Never throws.
 */
export async function deliverNotification(
  carrier: ChannelCarrier & { log: Logger },
  delivery: ClaimedDelivery,
  stopped: AbortSignal,
  leaseMs = DELIVERY_LEASE_MS,
): Promise<void> {
  const { store, log } = carrier
  const facts = { deliveryId: delivery.id, teamId: delivery.teamId, attempts: delivery.attempts }
  const over = new AbortController()
  const lost = new AbortController()
  const renewing = renew(over.signal, lost)
  try {
    const failure = await send(AbortSignal.any([stopped, lost.signal]))
    if (!failure) return await settleDelivery(store, delivery, null)
    if (failure.final || delivery.old) {
      log.warn({ ...facts, reason: failure.message }, 'a notification is given up')
      const since = failure.final ? '' : ` (tried for ${DELIVERY_HOURS} hours)`
      return await settleDelivery(store, delivery, `${failure.message}${since}`)
    }
    const delayMs = chooseDelay(delivery.attempts, failure)
    await postponeDelivery(store, delivery, { delayMs, error: failure.message })
  } catch (error) {
    // Another process has claimed it, or its subject was deleted.
    if (lost.signal.aborted) return
    if (!stopped.aborted) log.warn({ err: error, ...facts }, 'a notification could not be worked on')
    const delayMs = stopped.aborted ? 0 : RETRY_MS
    // If the database is away, it is due again when its lease ends.
    await postponeDelivery(store, delivery, { delayMs, error: null }).catch(() => {})
  } finally {
    over.abort()
    await renewing
  }

  async function send(signal: AbortSignal): Promise<SendFailure | undefined> {
    const { teamId, channelId, noticeId, target, told } = delivery
    const channel = channelId === null ? null : await findChannel(store.db, teamId, channelId)
    if (channel === undefined) return { message: 'The channel was deleted', final: true }
    if (channel && !channel.enabled) return { message: 'The channel is disabled', final: true }
    if (channel === null && target !== 'email')
      return { message: 'The team has no such channel', final: true }
    const notice = await readSentNotice(store, noticeId)
    if (!notice) return { message: 'The notice was deleted', final: true }
    const message = describeNotice(delivery, notice, carrier.publicUrl)
    const onTold = (recipient: string) => noteTold(store, delivery, recipient)
    return sendToChannel(carrier, { teamId, channel }, message, { told, onTold }, signal)
  }

  async function renew(signal: AbortSignal, gone: AbortController): Promise<void> {
    const everyMs = Math.min(RENEWAL_MS, leaseMs / 3)
    for (;;) {
      await sleep(everyMs, undefined, { signal }).catch(() => {})
      if (signal.aborted) return
      const isHeld = await renewDelivery(store, delivery, leaseMs).catch(() => true)
      if (!isHeld) return gone.abort()
    }
  }
}

/** Doubles from ten seconds to an hour, with a fifth by chance; longer if the receiver asks for that. */
function chooseDelay(attempts: number, { retryAfterMs = 0 }: SendFailure): number {
  const delay = Math.min(MAX_RETRY_MS, RETRY_MS * 2 ** Math.min(attempts - 1, 10))
  return Math.max(delay * (0.9 + Math.random() * 0.2), retryAfterMs)
}
