import type { Client } from '@temporalio/client'
import type { Logger } from 'pino'
import type { Metrics } from '../../activities/metrics.ts'
import { carryOutErrand, type ErrandCarrier } from '../../activities/temporal/outbox.ts'
import type { Projector } from '../../activities/temporal/projector.ts'
import type { Bus } from '../../db/bus.ts'
import { claimErrands } from '../../db/outbox.ts'
import {
  claimUnchecked,
  failLostExecution,
  filterRunning,
  noteStuck,
  type Unchecked,
} from '../../db/records/lost.ts'
import type { Store } from '../../db/scope.ts'
import { STUCK_REASON } from '../../workflows/run/records.ts'
import { createReconciler } from './reconciler.ts'

const EVERY_MS = 2_000
const LEASE_MS = 15_000
const ERRANDS_AT_ONCE = 50
const RUNS_AT_ONCE = 50
const UNCHECKED_SECONDS = 20
const STUCK_ATTEMPTS = 5

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
  stuckRunMinutes: number
  metrics?: Metrics | undefined
  log: Logger
}

/**
 * Starts the sweeper, which finds what nobody reported: errands whose process
 * died, runs that closed while no worker was there, runs that are stuck in
 * their workflow code. Any number of processes may sweep at the same time.
 */
export function startSweeper(deps: SweeperDeps): { stop(): Promise<void>; sweep(): Promise<void> } {
  let stopped = false
  let timer: NodeJS.Timeout | undefined
  let hintedUntil = Date.now() - FIRST_LOOK_MS
  let first = true
  const reconcile = createReconciler(deps.carrier)

  async function sweep(): Promise<void> {
    const began = Date.now()
    await carry()
    await attempt(deps.log, 'closed runs', async () => {
      await findClosed(deps, hintedUntil, first ? ALL_ENDS : QUIET_ENDS)
      hintedUntil = began - HINT_OVERLAP_MS
      first = false
    })
    await attempt(deps.log, 'unchecked runs', () => checkRuns(deps))
    await attempt(deps.log, 'schedules', reconcile)
  }

  // Errands are carried out as soon as the bus reports them.
  // If it reports more during a round, another one follows.
  let carrying: Promise<void> | undefined
  let more = false
  function carry(): Promise<void> {
    more = true
    carrying ??= carryAll().finally(() => {
      carrying = undefined
    })
    return carrying
  }
  async function carryAll(): Promise<void> {
    while (more) {
      more = false
      await attempt(deps.log, 'errands', () => carryErrands(deps))
    }
  }
  const leave = deps.bus.onErrands(() => {
    if (!stopped) carry()
  })

  let current = Promise.resolve()
  function schedule(): void {
    if (stopped) return
    timer = setTimeout(() => {
      current = sweep().then(schedule)
    }, EVERY_MS)
  }
  schedule()

  return {
    sweep,
    async stop() {
      stopped = true
      clearTimeout(timer)
      leave()
      await Promise.all([current, carrying])
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

async function carryErrands({ store, carrier }: SweeperDeps): Promise<void> {
  for (;;) {
    const errands = await claimErrands(store, ERRANDS_AT_ONCE, LEASE_MS)
    const done = await Promise.all(errands.map((e) => carryOutErrand(carrier, e, e.attempts)))
    if (errands.length < ERRANDS_AT_ONCE || done.includes(false)) return
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

async function checkRuns(deps: SweeperDeps): Promise<void> {
  for (const run of await claimUnchecked(deps.store, RUNS_AT_ONCE, UNCHECKED_SECONDS)) {
    await checkRun(deps, run)
  }
}

async function checkRun(deps: SweeperDeps, row: Unchecked): Promise<void> {
  const { store, client, projector, log } = deps
  const executionId = row.id
  const handle = client.workflow.getHandle(executionId)
  const run = await handle.describe().catch((error) => {
    if ((error as Error).name === 'WorkflowNotFoundError') return null
    throw error
  })
  if (!run) {
    log.error({ executionId }, 'Temporal does not know the run of this execution')
    const ended = await failLostExecution(store, executionId, 'Temporal no longer knows this execution')
    if (ended) deps.metrics?.runsEnded.inc(ended)
    return
  }
  if (run.status.name !== 'RUNNING') return projector.close(executionId)
  if (run.runId !== row.runId || run.historyLength > row.lastEventId) projector.touch(executionId)

  const task = run.raw.pendingWorkflowTask
  if (!task || (task.attempt ?? 0) <= STUCK_ATTEMPTS) return
  const since = Number(task.originalScheduledTime?.seconds ?? 0) * 1_000
  const minutes = (Date.now() - since) / 60_000
  log.error({ executionId, attempts: task.attempt, minutes }, 'a run is stuck in its workflow code')
  await noteStuck(store, executionId, `${STUCK_REASON}: its workflow task failed ${task.attempt} times`)
  if (minutes >= deps.stuckRunMinutes)
    await handle.terminate(`${STUCK_REASON} for ${Math.round(minutes)} minutes`)
}
