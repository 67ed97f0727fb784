import type { Client } from '@temporalio/client'
import type { Logger } from 'pino'
import type { Metrics } from '../../activities/metrics.ts'
import { carryOutErrand, type ErrandCarrier } from '../../activities/temporal/outbox.ts'
import type { Projector } from '../../activities/temporal/projector.ts'
import type { Bus } from '../../db/bus.ts'
import { claimErrands, type ErrandLane } from '../../db/outbox.ts'
import { filterRunning } from '../../db/records/lost.ts'
import type { Store } from '../../db/scope.ts'
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
 * Starts the sweeper, which finds unreported work: errands whose process died, runs that closed while no worker was
 * there, runs that are stuck in their workflow code or that Temporal has lost. Any number of processes may sweep at the
 * same time.
 */
export function startSweeper(deps: SweeperDeps): { stop(): Promise<void>; sweep(): Promise<void> } {
  let stopped = false
  let timer: NodeJS.Timeout | undefined
  let hintedUntil = Date.now() - FIRST_LOOK_MS
  let first = true
  const reconcile = createReconciler(deps.carrier)
  const checkRuns = createRunChecks(deps)
  const urgent = createLane(deps, 'urgent', () => stopped)
  const deletes = createLane(deps, 'deletes', () => stopped)

  async function sweep(): Promise<void> {
    const began = Date.now()
    // Nothing waits for thousands of deletions.
    void deletes.carry()
    await urgent.carry()
    await attempt(deps.log, 'closed runs', async () => {
      await findClosed(deps, hintedUntil, first ? ALL_ENDS : QUIET_ENDS)
      hintedUntil = began - HINT_OVERLAP_MS
      first = false
    })
    await attempt(deps.log, 'unchecked runs', checkRuns)
    await attempt(deps.log, 'schedules', reconcile)
  }

  const leave = deps.bus.onErrands(() => {
    if (!stopped) urgent.carry()
  })

  let current = Promise.resolve()
  function schedule(): void {
    if (stopped) return
    timer = setTimeout(() => {
      current = sweep().then(schedule)
    }, deps.sweepEveryMs ?? EVERY_MS)
  }
  schedule()

  return {
    async sweep() {
      await sweep()
      await deletes.idle()
    },
    async stop() {
      stopped = true
      clearTimeout(timer)
      leave()
      await Promise.all([current, urgent.idle(), deletes.idle()])
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

/**
 * Carries out the errands of one lane as soon as the bus reports them. If it reports more during a round, another
 * one follows. The lanes do not wait for each other.
 */
function createLane(deps: SweeperDeps, lane: ErrandLane, isStopped: () => boolean) {
  let carrying: Promise<void> | undefined
  let more = false
  async function carryAll(): Promise<void> {
    while (more) {
      more = false
      await attempt(deps.log, 'errands', () => carryErrands(deps, lane, isStopped))
    }
  }
  return {
    idle: async () => carrying,
    carry(): Promise<void> {
      more = true
      carrying ??= carryAll().finally(() => {
        carrying = undefined
      })
      return carrying
    },
  }
}

async function carryErrands(
  { store, carrier }: SweeperDeps,
  lane: ErrandLane,
  isStopped: () => boolean,
): Promise<void> {
  const limit = ERRANDS_AT_ONCE[lane]
  while (!isStopped()) {
    const errands = await claimErrands(store, lane, limit, LEASE_MS)
    const done = await Promise.all(errands.map((e) => carryOutErrand(carrier, e, e.attempts)))
    if (errands.length < limit || done.includes(false)) return
  }
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
