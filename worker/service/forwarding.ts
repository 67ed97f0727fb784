import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { SiemCarrier } from '../../activities/siem/deliver.ts'
import { FORWARDER_LEASE_MS, forwardEntries } from '../../activities/siem/forward.ts'
import { claimForwarder } from '../../db/siem/sending.ts'

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
  const stopping = new AbortController()
  const { signal } = stopping
  const busy = new Map<string, Promise<void>>()
  const slow = new Set<string>()
  const failing = new Set<string>()

  async function claimAll(): Promise<void> {
    while (busy.size - slow.size < AT_ONCE && busy.size < MOST && !signal.aborted) {
      const some = { failing: failing.size < MOST_FAILING }
      const claimed = await claimForwarder(carrier.store, leaseMs, [...busy.keys()], some)
      if (!claimed) return
      const { teamId } = claimed
      if (claimed.failures > 0) failing.add(teamId)
      const onSlow = (isSlow: boolean) => (isSlow ? slow.add(teamId) : slow.delete(teamId))
      const sending = forwardEntries(carrier, claimed, { signal, leaseMs, onSlow }).finally(() => {
        for (const kept of [busy, slow, failing]) kept.delete(teamId)
      })
      busy.set(teamId, sending)
    }
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      await claimAll().catch((error) =>
        carrier.log.warn({ err: error }, 'the audit forwarders that are due could not be read'),
      )
      await sleep(everyMs, undefined, { signal }).catch(() => {})
    }
  }

  const running = run()
  return async () => {
    stopping.abort()
    await running
    await Promise.all(busy.values())
  }
}
