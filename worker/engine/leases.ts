import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '@temporalio/client'
import type { Logger } from 'pino'
import { failLostAttempts } from '../../activities/temporal/attempts.ts'
import { isDatabaseAway } from '../../db/connection.ts'
import {
  claimLost,
  type ExpiredLease,
  endLease,
  forgetLost,
  keepClaim,
  listFormer,
  listMaybeHeld,
  renewLease,
} from '../../db/operation/leases.ts'
import type { Store } from '../../db/scope.ts'
import { NODES } from '../../workflows/nodes/nodes.ts'
import { startLoop } from '../service/queue.ts'

const RENEW_EVERY_MS = 1_000

/** For this long a lease must be seen expired, by a process that renews its own all the while. */
const LOST_AFTER_MS = 5_000

/**
 * For this long after this process could not renew its own lease, no process counts as lost: others may have begun to connect
 * before PostgreSQL was back, and those of the release before give that up after 5 s only.
 */
const DOUBT_MS = 10_000

/** After this number of renewals that failed in a row, the lease is about to expire. */
const MISSED_TO_WARN = 2

/**
 * When Temporal is asked for the attempts of a lost process, and about how many runs: each is a question.
 * Attempts beyond these are found by Temporal itself, a minute later.
 */
const LOOKS = [
  { afterMs: 0, runs: 5_000 },
  ...[5_000, 10_000, 20_000, 40_000, 70_000].map((afterMs) => ({ afterMs, runs: 500 })),
]
const RUNS_AT_ONCE = 20

/** After this number of runs the claim is renewed, and the process may have turned up: with a slow Temporal that is 20 s. */
const RUNS_A_CLAIM = 100

/** How often a look tries the runs again that Temporal said nothing about. */
const MAX_PASSES = 3

/** Nodes of these kinds are carried out by no attempt while they are RUNNING. */
const WAITING = Object.entries(NODES).flatMap(([type, { kind }]) =>
  kind === 'wait' || kind === 'pause' || kind === 'loop' || kind === 'trigger' ? [type] : [],
)

export type LeaseOptions = {
  store: Store
  /** The connection for the lease, which must not wait for other work of this process. */
  leaseStore: Store
  client: Client
  processId: string
  /** The data folder that only one process at a time runs on, and on which machine; null for none. */
  place: string | null
  log: Logger
}

/**
 * Renews the lease of this process, and has the attempts of lost processes made again at once, which Temporal
 * would notice only by their heartbeats. While PostgreSQL is away no process can renew, so none is lost then.
 * `stop` ends the lease if all work has been put down; else others find it expired.
 */
export function startLeases(options: LeaseOptions): {
  /** False while others may not have renewed their leases for lack of PostgreSQL. */
  knowsLost(): boolean
  stop(hasPutDown: boolean): Promise<void>
} {
  const { leaseStore, processId: process, place, log } = options
  const stopping = new AbortController()
  const seen = new Map<string, { renewed: string; since: number }>()
  const retaking = new Set<Promise<void>>()
  let missed = 0
  let doubtUntil = 0

  const knowsLost = () => performance.now() >= doubtUntil

  async function renew(): Promise<void> {
    const expired = await renewLease(leaseStore, { process, place })
    const now = performance.now()
    for (const known of seen.keys()) if (!expired.some((lease) => lease.process === known)) seen.delete(known)
    for (const lease of expired) {
      const before = seen.get(lease.process)
      if (before?.renewed !== lease.renewed) seen.set(lease.process, { renewed: lease.renewed, since: now })
      else if (knowsLost() && now - before.since >= LOST_AFTER_MS) begin(lease)
    }
  }

  function begin(lease: ExpiredLease): void {
    seen.delete(lease.process)
    const work = retake(options, lease, stopping.signal).catch((error) => {
      if (!stopping.signal.aborted) log.warn({ err: error }, 'the attempts of a lost process were not failed')
    })
    retaking.add(work)
    void work.finally(() => retaking.delete(work))
  }

  let knowsFormer = place === null
  async function run(): Promise<void> {
    try {
      await renew()
      if (missed >= MISSED_TO_WARN) log.info('the lease of this process is renewed again')
      missed = 0
      if (!knowsFormer) for (const lease of await listFormer(leaseStore, process, place!)) begin(lease)
      knowsFormer = true
    } catch (error) {
      // If this process could not renew its lease, it cannot know whether others could.
      seen.clear()
      doubtUntil = performance.now() + DOUBT_MS
      missed++
      const level = isDatabaseAway(error) && missed !== MISSED_TO_WARN ? 'debug' : 'warn'
      log[level]({ err: error, missed }, 'the lease of this process could not be renewed')
    }
  }

  const renewing = startLoop({ what: 'the leases', everyMs: RENEW_EVERY_MS, log, run })
  return {
    knowsLost,
    async stop(hasPutDown) {
      stopping.abort()
      await renewing.stop()
      await Promise.all(retaking)
      if (!hasPutDown) return
      await endLease(leaseStore, process).catch((error) =>
        log.warn({ err: error }, 'the lease of this process could not be ended'),
      )
    },
  }
}

/**
 * Fails all attempts of a lost process, and forgets it. One that only hangs goes on to be given attempts
 * for as long as Temporal keeps its polls open, so there is more than one look, unless it renews its lease.
 */
async function retake(options: LeaseOptions, lease: ExpiredLease, stopping: AbortSignal) {
  const { store, log } = options
  const { process } = lease
  if (!(await claimLost(store, lease))) return
  const began = performance.now()
  log.warn({ process }, 'a process was lost; its calls are made again')
  for (const { afterMs, runs } of LOOKS) {
    await sleep(Math.max(0, afterMs - (performance.now() - began)), undefined, { signal: stopping })
    let left = await untilRead(() => listMaybeHeld(store, WAITING, runs), options, stopping)
    for (let pass = 1; left.length > 0 && pass <= MAX_PASSES; pass++) {
      if (pass > 1) await sleep(RENEW_EVERY_MS, undefined, { signal: stopping })
      const missed: string[] = []
      for (let at = 0; at < left.length; at += RUNS_A_CLAIM) {
        if (!(await untilRead(() => keepClaim(store, process), options, stopping))) return
        const some = left.slice(at, at + RUNS_A_CLAIM)
        missed.push(...(await failAttempts(options, process, some, stopping)))
      }
      left = missed
    }
    if (left.length > 0) log.warn({ process, runs: left.length }, 'Temporal was not reached about some runs')
  }
  await forgetLost(store, process)
}

/** While PostgreSQL is away there is nothing to do about a lost process, and no other can claim it. */
async function untilRead<T>(
  work: () => Promise<T>,
  { log }: LeaseOptions,
  stopping: AbortSignal,
): Promise<T> {
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!isDatabaseAway(error)) throw error
      log.debug({ err: error }, 'the attempts of a lost process could not be failed yet')
    }
    await sleep(RENEW_EVERY_MS, undefined, { signal: stopping })
  }
}

/** Returns the runs about which Temporal could not be asked or told, when it is done with all the others. */
async function failAttempts(
  { client, log }: LeaseOptions,
  process: string,
  runs: string[],
  stopping: AbortSignal,
): Promise<string[]> {
  const left = [...runs]
  const missed: string[] = []
  let attempts = 0
  const work = async () => {
    for (let id = left.shift(); id !== undefined; id = left.shift()) {
      stopping.throwIfAborted()
      try {
        attempts += await failLostAttempts(client, id, process)
      } catch (error) {
        missed.push(id)
        log.debug({ err: error, process, executionId: id }, 'attempts of a lost process were not failed yet')
      }
    }
  }
  const works = await Promise.allSettled(Array.from({ length: RUNS_AT_ONCE }, work))
  if (attempts > 0) log.info({ process, attempts }, 'attempts of a lost process were failed')
  for (const done of works) if (done.status === 'rejected') throw done.reason
  return missed
}
