import type { Logger } from 'pino'
import type { ChannelCarrier } from '../../../activities/monitoring/channels/carrier.ts'
import { DELIVERY_LEASE_MS, deliverNotification } from '../../../activities/monitoring/channels/deliver.ts'
import { RUN_LEASE_MS, runPlaybook } from '../../../activities/monitoring/playbooks.ts'
import { type ClaimedDelivery, claimDeliveries } from '../../../db/monitoring/channels/deliveries.ts'
import { fanOutNotice } from '../../../db/monitoring/fanout.ts'
import { claimRuns } from '../../../db/monitoring/playbooks/runs.ts'
import { startRepeating } from '../repeating.ts'

const EVERY_MS = 1_000

/** How many notices and how many runs of playbooks one pass works on, before what is due to be sent is looked at again. */
const NOTICES = 100
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
  const stopping = new AbortController()
  const sending = new Map<Promise<void>, ClaimedDelivery>()

  function send(delivery: ClaimedDelivery): void {
    const sent = deliverNotification(deps, delivery, stopping.signal, leaseMs).finally(() =>
      sending.delete(sent),
    )
    sending.set(sent, delivery)
  }

  async function claimAll(): Promise<void> {
    const held = [...sending.values()]
    const failing = held.filter(({ attempts }) => attempts > 1).length
    const busy = new Map<string, number>()
    for (const { teamId } of held) busy.set(teamId, (busy.get(teamId) ?? 0) + 1)
    const limit = MOST - held.length
    if (limit <= 0) return
    const some = { limit: Math.min(limit, MOST_FAILING), ofTeam: OF_TEAM, leaseMs, busy }
    const claimed = await claimDeliveries(deps.store, { ...some, failing: failing < MOST_FAILING })
    for (const delivery of claimed) send(delivery)
  }

  const end = startRepeating({
    what: 'the notices that are due',
    everyMs,
    log: deps.log,
    async run(signal) {
      try {
        for (let some = 0; some < NOTICES && !signal.aborted && (await fanOutNotice(deps.store)); some++);
      } finally {
        // A notice that cannot be worked on holds nothing else up.
        if (!signal.aborted) {
          const runs = await claimRuns(deps.store, RUNS, RUN_LEASE_MS)
          await Promise.all(runs.map((run) => runPlaybook(deps, run, signal)))
          await claimAll()
        }
      }
    },
  })
  return async () => {
    stopping.abort()
    await end()
    await Promise.all(sending.keys())
  }
}
