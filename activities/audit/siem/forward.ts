import type { Logger } from 'pino'
import type { AuditEntryView } from '../../../db/audit/list.ts'
import {
  type ClaimedForwarder,
  noteDelivered,
  postponeForwarder,
  readBatch,
  releaseForwarder,
} from '../../../db/audit/siem/sending.ts'
import { DELIVERY_MS, deliverEntries, type SiemCarrier } from './deliver.ts'

/** How long a forwarder is held without a sign of life: more than one delivery takes. */
export const FORWARDER_LEASE_MS = DELIVERY_MS + 30_000

/** A receiver that has taken a batch after this long is slow: others need not wait for it. */
const SLOW_MS = 1_000

/** After this time others have their turn. */
const TURN_MS = 30_000

const BATCH_ENTRIES = 200
const BATCH_BYTES = 512 * 1024

const RETRY_MS = 5_000
const MAX_RETRY_MS = 15 * 60_000

/**
 * Sends what a claimed forwarder has to send, batch after batch in the order of the chain, and gives it back: when nothing
 * is left, after half a minute, or with the error, and then it is due later. The place is moved only when the receiver has
 * taken a batch, so an entry arrives at least once. `onSlow` is told when there is nothing to do for it but to wait for
 * a slow receiver, and when there is again. Never throws.
 */
export async function forwardEntries(
  carrier: SiemCarrier & { log: Logger },
  claimed: ClaimedForwarder,
  {
    signal,
    leaseMs,
    onSlow = () => {},
  }: { signal: AbortSignal; leaseMs: number; onSlow?: (slow: boolean) => void },
): Promise<void> {
  const { store, log } = carrier
  const { id, teamId, failures, lastSeq } = claimed
  const began = Date.now()
  let { sentSeq } = claimed
  try {
    while (!signal.aborted && Date.now() - began < TURN_MS) {
      const { entries, missed } = await readBatch(store, { teamId, sentSeq, lastSeq }, BATCH_ENTRIES)
      const batch = limitBytes(entries)
      const last = batch.at(-1)
      if (!last) {
        if (sentSeq === claimed.sentSeq)
          throw new Error(`The entries after ${sentSeq} are missing in the chain: verify it`)
        break
      }
      if (missed > 0)
        log.warn({ forwarderId: id, teamId, missed }, 'audit entries were purged before they were sent')
      const timer = setTimeout(() => onSlow(true), SLOW_MS)
      await deliverEntries(carrier, teamId, claimed, batch, signal).finally(() => {
        clearTimeout(timer)
        onSlow(false)
      })
      const held = { ...claimed, sentSeq }
      if (!(await noteDelivered(store, held, { seq: last.seq, missed, leaseMs }))) return
      sentSeq = last.seq
    }
    await releaseForwarder(store, claimed)
  } catch (error) {
    const tries = sentSeq === claimed.sentSeq ? failures : 0
    const delayMs = Math.min(MAX_RETRY_MS, RETRY_MS * 2 ** Math.min(tries, 10))
    const noted = signal.aborted
      ? releaseForwarder(store, claimed)
      : postponeForwarder(store, claimed, { error: (error as Error).message, delayMs })
    if (!signal.aborted)
      log.warn({ err: error, forwarderId: id, teamId }, 'audit entries could not be sent yet')
    await noted.catch((lost) =>
      log.warn({ err: lost, forwarderId: id }, 'the failure of a forwarder was not noted'),
    )
  }
}

/** The first entries that are about half a megabyte together, but at least one. */
function limitBytes(entries: AuditEntryView[]): AuditEntryView[] {
  let bytes = 0
  const most = entries.findIndex((entry, at) => {
    bytes += Buffer.byteLength(JSON.stringify(entry))
    return at > 0 && bytes > BATCH_BYTES
  })
  return most === -1 ? entries : entries.slice(0, most)
}
