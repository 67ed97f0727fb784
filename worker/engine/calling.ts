import { type CallbackCarrier, deliverCallback } from '../../activities/http/callbacks.ts'
import type { Bus } from '../../db/bus.ts'
import { claimCallbacks } from '../../db/executions/callbacks.ts'

const EVERY_MS = 5_000
const AT_ONCE = 20
/** A team whose receivers are slow must not keep the others waiting. */
const OF_TEAM = 5
/** More than the longest time that delivering one can take. */
const LEASE_MS = 60_000
/** How long deliveries under way may take when the process stops: one that is broken off is made again. */
const GRACE_MS = 3_000

/**
 * Delivers callbacks as soon as the bus reports them, and those that are due again. Any number of processes may do
 * so. Returns the function that ends it.
 */
export function startCalling(carrier: CallbackCarrier, bus: Bus): () => Promise<void> {
  const stopping = new AbortController()
  const active = new Set<Promise<void>>()
  const ofTeam = new Map<string, number>()
  let timer: NodeJS.Timeout | undefined
  let filling: Promise<void> | undefined
  let more = false
  let stopped = false

  function fill(): void {
    more = true
    if (stopped) return
    clearTimeout(timer)
    filling ??= fillAll().finally(() => {
      filling = undefined
      if (!stopped) timer = setTimeout(fill, EVERY_MS)
    })
  }

  async function fillAll(): Promise<void> {
    while (more && !stopped && active.size < AT_ONCE) {
      more = false
      try {
        const busy = [...ofTeam].filter(([, count]) => count >= OF_TEAM).map(([id]) => id)
        const limit = AT_ONCE - active.size
        const due = await claimCallbacks(carrier.store, { limit, ofTeam: OF_TEAM, leaseMs: LEASE_MS, busy })
        for (const callback of due) begin(callback)
        if (due.length > 0) more = true
      } catch (error) {
        carrier.log.warn({ err: error }, 'the callbacks that are due could not be read')
      }
    }
  }

  function begin(callback: Awaited<ReturnType<typeof claimCallbacks>>[number]): void {
    const { teamId } = callback
    ofTeam.set(teamId, (ofTeam.get(teamId) ?? 0) + 1)
    const delivery = deliverCallback(carrier, callback, stopping.signal).finally(() => {
      active.delete(delivery)
      const left = ofTeam.get(teamId)! - 1
      if (left > 0) ofTeam.set(teamId, left)
      else ofTeam.delete(teamId)
      fill()
    })
    active.add(delivery)
  }

  const leave = bus.onErrands(fill)
  fill()
  return async () => {
    stopped = true
    clearTimeout(timer)
    leave()
    await filling
    const late = setTimeout(() => stopping.abort(), GRACE_MS)
    await Promise.all(active)
    clearTimeout(late)
  }
}
