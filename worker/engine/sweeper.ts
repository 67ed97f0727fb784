import type { Client } from '@temporalio/client'
import type { Logger } from 'pino'
import type { Metrics } from '../../activities/metrics.ts'
import type { ErrandCarrier } from '../../activities/temporal/carrier.ts'
import { carryOutErrand } from '../../activities/temporal/outbox.ts'
import type { Projector } from '../../activities/temporal/projector.ts'
import type { Bus } from '../../db/bus.ts'
import { filterRunning } from '../../db/executions/records/lost.ts'
import { claimErrands, type ErrandLane } from '../../db/outbox.ts'
import type { Store } from '../../db/scope.ts'
import { startLoop } from '../service/queue.ts'
import { createReconciler } from './reconciler.ts'
import { createRunChecks, type LOST } from './runchecks.ts'

const EVERY_MS = 2_000
const LEASE_MS = 15_000
const ERRANDS_AT_ONCE = { urgent: 50, deletes: 10 }

/** Temporal's visibility store lags, so each search overlaps the one before by this much. */
const HINT_OVERLAP_MS = 15_000
const HINT_LIMIT = 1_000
const FIRST_LOOK_MS = 10 * 60_000

/**
 * Closes that run no workflow code, so that no worker reports
 * them. The others are searched for once, at the start.
 */
const QUIET_ENDS = 'AND ExecutionStatus IN ("Terminated", "TimedOut")'
// Without "ContinuedAsNew": such a run goes on, and waiting
// for its end would delay the live view of its execution.
const ALL_ENDS = 'AND ExecutionStatus IN ("Completed", "Failed", "Canceled", "Terminated", "TimedOut")'

export type SweeperDeps = {
  store: Store
  bus: Bus
  client: Client
  carrier: ErrandCarrier
  projector: Projector
  /** Tests set other times than the defaults. */
  stuckAfterMs?: number | undefined
  sweepEveryMs?: number | undefined
  lost?: typeof LOST | undefined
  metrics?: Metrics | undefined
  log: Logger
}

/**
 * Starts the sweeper, which finds what no process reported: errands whose process
 * died, runs that closed while no worker was there, runs that are stuck in
 * their workflow code or that Temporal has lost. Any number of processes may sweep at the same time.
 */
export function startSweeper(deps: SweeperDeps): { stop(): Promise<void>; sweep(): Promise<void> } {
  const { log, sweepEveryMs: everyMs = EVERY_MS } = deps
  let hintedUntil = Date.now() - FIRST_LOOK_MS
  let first = true
  const reconcile = createReconciler(deps.carrier)
  const checkRuns = createRunChecks(deps)

  async function look(): Promise<void> {
    const began = Date.now()
    await attempt(log, 'closed runs', async () => {
      await findClosed(deps, hintedUntil, first ? ALL_ENDS : QUIET_ENDS)
      hintedUntil = began - HINT_OVERLAP_MS
      first = false
    })
    await attempt(log, 'unchecked runs', checkRuns)
    await attempt(log, 'schedules', reconcile)
  }

  const urgent = startLane(deps, 'urgent', deps.bus.onErrands)
  const deletes = startLane(deps, 'deletes')
  const looks = startLoop({
    what: 'the runs that are to be swept',
    everyMs,
    log,
    restsFirst: true,
    run: look,
  })
  return {
    async sweep() {
      await urgent.wake()
      await looks.wake()
      await deletes.wake()
    },
    async stop() {
      await Promise.all([looks, urgent, deletes].map((loop) => loop.stop()))
    },
  }
}

async function attempt(log: Logger, what: string, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    log.warn({ err: error }, `the sweeper failed at ${what}`)
  }
}

/** Carries out the errands of one lane. The lanes do not wait for each other: nothing waits for thousands of deletions. */
function startLane(deps: SweeperDeps, lane: ErrandLane, wokenBy?: Bus['onErrands']) {
  const { store, carrier, log, sweepEveryMs: everyMs = EVERY_MS } = deps
  const limit = ERRANDS_AT_ONCE[lane]
  return startLoop({
    what: 'the errands that are due',
    everyMs,
    log,
    restsFirst: true,
    ...(wokenBy ? { wokenBy } : {}),
    async run() {
      const errands = await claimErrands(store, lane, limit, LEASE_MS)
      const done = await Promise.all(errands.map((e) => carryOutErrand(carrier, e, { attempts: e.attempts })))
      return errands.length === limit && !done.includes(false)
    },
  })
}

/** Projects the runs that visibility lists as closed (which is only a hint) and whose rows are still open. */
async function findClosed(deps: SweeperDeps, since: number, ends: string): Promise<void> {
  const { store, client, projector } = deps
  const query = `CloseTime > "${new Date(since).toISOString()}" AND WorkflowType = "runGraph" ${ends}`
  const ids: string[] = []
  for await (const run of client.workflow.list({ query, pageSize: 200 })) {
    ids.push(run.workflowId)
    if (ids.length >= HINT_LIMIT) break
  }
  for (const id of await filterRunning(store, ids)) projector.close(id)
}
