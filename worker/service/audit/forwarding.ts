import type { Logger } from 'pino'
import type { SiemCarrier } from '../../../activities/audit/siem/deliver.ts'
import { FORWARDER_LEASE_MS, forwardEntries } from '../../../activities/audit/siem/forward.ts'
import { type ClaimedForwarder, claimForwarder } from '../../../db/audit/siem/sending.ts'
import { startQueue } from '../queue.ts'

const EVERY_MS = 2_000

/** How many forwarders a process sends for at the same time, each for another team, besides those that wait. */
const AT_ONCE = 8

/**
 * The number of forwarders that are sent for at a time, slow receivers included: a receiver that hangs is waited for
 * for half a minute, and many of them must not keep the others from sending. Fewer of those that have failed before are
 * let in.
 */
const MOST = 64
const MOST_FAILING = 16

/**
 * Sends the audit entries of teams to where their forwarders say, soon after they are written. Any number of processes may
 * do so: a forwarder is sent for by one at a time. Returns the function that ends it: it breaks off what is being sent,
 * which is then sent again by another process.
 */
export function startForwarding(
  carrier: SiemCarrier & { log: Logger },
  { everyMs = EVERY_MS, leaseMs = FORWARDER_LEASE_MS } = {},
): () => Promise<void> {
  const slow = new Set<string>()
  const { stop } = startQueue<ClaimedForwarder>({
    what: 'the audit forwarders that are due',
    everyMs,
    atOnce: () => Math.min(MOST, AT_ONCE + slow.size),
    ofTeam: 1,
    log: carrier.log,
    async claim({ full }, held) {
      const failing = held.filter(({ failures }) => failures > 0).length < MOST_FAILING
      const claimed = await claimForwarder(carrier.store, leaseMs, full, { failing })
      return claimed ? [claimed] : []
    },
    work(claimed, signal) {
      const { teamId } = claimed
      const onSlow = (isSlow: boolean) => (isSlow ? slow.add(teamId) : slow.delete(teamId))
      return forwardEntries(carrier, claimed, { signal, leaseMs, onSlow }).finally(() => slow.delete(teamId))
    },
  })
  return stop
}
