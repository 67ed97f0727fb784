import type { Client } from '@temporalio/client'
import type { Logger } from 'pino'
import type { Metrics } from '../activities/metrics.ts'
import { type Carrier, carryOut } from '../activities/outbox.ts'
import type { Projector } from '../activities/projector.ts'
import type { Bus } from '../db/bus.ts'
import { failLostRun, filterOpen, noteStuck, takeUnchecked, type Unchecked } from '../db/open.ts'
import { claimErrands } from '../db/outbox.ts'
import type { Store } from '../db/scope.ts'
import { STUCK_REASON } from '../workflows/walk.ts'
import { createReconciler } from './reconcile.ts'

const EVERY_MS = 2_000
const LEASE_MS = 15_000
const ERRANDS_AT_ONCE = 50
const RUNS_AT_ONCE = 50
const UNCHECKED_SECONDS = 20
const STUCK_ATTEMPTS = 5
/** Visibility lags, so each look reaches back behind the last one. */
const HINT_OVERLAP_MS = 15_000
const HINT_LIMIT = 1_000
const FIRST_LOOK_MS = 10 * 60_000
/** Ends that run no workflow code, so that no worker tells of them. The others are looked for once, at start. */
const QUIET_ENDS = 'AND ExecutionStatus IN ("Terminated", "TimedOut")'
// A run that continued as new goes on: waiting for its end would hold up its live view.
const ALL_ENDS = 'AND ExecutionStatus IN ("Completed", "Failed", "Canceled", "Terminated", "TimedOut")'

export type SweeperDeps = {
  store: Store
  bus: Bus
  client: Client
  carrier: Carrier
  projector: Projector
  stuckRunMinutes: number
  metrics?: Metrics | undefined
  log: Logger
}

/**
 * Repairs what nobody told us of: errands whose process died, runs that ended while no worker listened, runs
 * that are stuck in workflow code. Any number of processes may sweep at once.
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

  // At once where the bus tells of errands; what it tells of during a round makes one more.
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
  const leave = deps.bus.onErrands(() => void (stopped || carry()))

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
    log.warn({ err: error }, `sweeping ${what} failed`)
  }
}

async function carryErrands({ store, carrier }: SweeperDeps): Promise<void> {
  for (;;) {
    const errands = await claimErrands(store, ERRANDS_AT_ONCE, LEASE_MS)
    const done = await Promise.all(errands.map((e) => carryOut(carrier, e, e.attempts)))
    if (errands.length < ERRANDS_AT_ONCE || done.includes(false)) return
  }
}

/** Visibility's list of closed runs is only a hint: what it names and our rows hold for open is projected. */
async function findClosed(deps: SweeperDeps, since: number, ends: string): Promise<void> {
  const { store, client, projector } = deps
  const query = `CloseTime > "${new Date(since).toISOString()}" AND WorkflowType = "runGraph" ${ends}`
  const ids: string[] = []
  for await (const run of client.workflow.list({ query, pageSize: 200 })) {
    ids.push(run.workflowId)
    if (ids.length >= HINT_LIMIT) break
  }
  for (const id of await filterOpen(store, ids)) projector.close(id)
}

async function checkRuns(deps: SweeperDeps): Promise<void> {
  for (const run of await takeUnchecked(deps.store, RUNS_AT_ONCE, UNCHECKED_SECONDS)) {
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
    log.error({ executionId }, 'Temporal does not know this run')
    const ended = await failLostRun(store, executionId, 'Temporal no longer knows this run')
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
