import type { Logger } from 'pino'
import type { ChannelCarrier } from '../../../activities/monitoring/channels/carrier.ts'
import { DELIVERY_LEASE_MS, deliverNotification } from '../../../activities/monitoring/channels/deliver.ts'
import { RUN_LEASE_MS, runPlaybook } from '../../../activities/monitoring/playbooks/playbooks.ts'
import { type ClaimedDelivery, claimDeliveries } from '../../../db/monitoring/channels/deliveries.ts'
import { fanOutNotice } from '../../../db/monitoring/notices/fanout.ts'
import { claimRuns } from '../../../db/monitoring/playbooks/runs.ts'
import { startLoop, startQueue } from '../queue.ts'

const EVERY_MS = 1_000

/** How many playbooks a process does the steps of at the same time. */
const RUNS = 10

/**
 * How many deliveries a process sends at the same time, and how many of one team: a receiver that hangs is waited for
 * for half a minute, and must not keep others from getting theirs. Fewer of those that have failed before are let in.
 */
const MOST = 96
const OF_TEAM = 4
const MOST_FAILING = 32

/**
 * Works on notices: writes what is to be sent and which playbooks run, sends it, and does the steps of the playbooks. Any
 * number of processes may do so. Returns the function that ends it: what it breaks off is begun again by others.
 */
export function startNotices(
  deps: ChannelCarrier & { log: Logger },
  { everyMs = EVERY_MS, leaseMs = DELIVERY_LEASE_MS } = {},
): () => Promise<void> {
  const { store, log } = deps
  const deliveries = startQueue<ClaimedDelivery>({
    what: 'the deliveries that are due',
    everyMs,
    atOnce: MOST,
    ofTeam: OF_TEAM,
    log,
    claim({ limit, teams }, held) {
      const failing = held.filter(({ attempts }) => attempts > 1).length < MOST_FAILING
      const some = { limit: Math.min(limit, MOST_FAILING), ofTeam: OF_TEAM, leaseMs, busy: teams }
      return claimDeliveries(store, { ...some, failing })
    },
    work: (delivery, signal) => deliverNotification(deps, delivery, signal, leaseMs),
  })
  const playbooks = startLoop({
    what: 'the playbooks that are due',
    everyMs,
    log,
    // Each claim takes one run of each team, and is done before the next.
    async run(signal) {
      const runs = await claimRuns(store, RUNS, RUN_LEASE_MS)
      await Promise.all(runs.map((run) => runPlaybook(deps, run, signal)))
      if (runs.length > 0) void deliveries.wake()
      return runs.length === RUNS
    },
  })
  const notices = startLoop({
    what: 'the notices that are due',
    everyMs,
    log,
    async run() {
      const hasFannedOut = await fanOutNotice(store)
      if (!hasFannedOut) return false
      void playbooks.wake()
      void deliveries.wake()
      return true
    },
  })
  return async () => {
    await Promise.all([notices, playbooks, deliveries].map((loop) => loop.stop()))
  }
}
