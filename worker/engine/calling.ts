import { type CallbackCarrier, deliverCallback } from '../../activities/http/callbacks.ts'
import type { Bus } from '../../db/bus.ts'
import { claimCallbacks } from '../../db/executions/callbacks.ts'
import { startQueue } from '../service/queue.ts'

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
  const { stop } = startQueue({
    what: 'the callbacks that are due',
    everyMs: EVERY_MS,
    atOnce: AT_ONCE,
    ofTeam: OF_TEAM,
    log: carrier.log,
    wokenBy: bus.onErrands,
    claim: ({ limit, full }) =>
      claimCallbacks(carrier.store, { limit, ofTeam: OF_TEAM, leaseMs: LEASE_MS, busy: full }),
    work: (callback, signal) => deliverCallback(carrier, callback, signal),
    graceMs: GRACE_MS,
  })
  return stop
}
