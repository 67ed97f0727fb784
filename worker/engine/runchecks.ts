import type { Client, WorkflowExecutionDescription } from '@temporalio/client'
import type { Logger } from 'pino'
import type { Metrics } from '../../activities/metrics.ts'
import type { Projector } from '../../activities/temporal/projector.ts'
import { endIfStuck, findPendingTask, STUCK_AFTER_MS } from '../../activities/temporal/stuck.ts'
import {
  type CheckResult,
  claimUnchecked,
  countMissing,
  failLostExecution,
  findWitnesses,
  noteChecks,
  noteMissing,
  noteStuck,
  type Unchecked,
} from '../../db/executions/records/lost.ts'
import type { Store } from '../../db/scope.ts'

const BATCH = 200
const AT_ONCE = 16
const ROUND_MS = 2_000

/** After this many failed checks the rest of a batch waits too: Temporal or PostgreSQL is away. */
const MAX_FAILED = 5

/** An execution is stuck if its workflow task has failed this often, or twice within STUCK_AFTER_MS or longer. */
const STUCK_ATTEMPTS = 5

/**
 * When a run that Temporal does not know counts as lost: after `checks` sightings in a row, `everyMs` apart, over
 * `forMs`. While more than `many` are missing at once, none is ended: then Temporal is rather the wrong one, or
 * has lost its data. Where no older execution can show that it is the right one, it takes NO_WITNESS times as long.
 */
export const LOST = { checks: 4, everyMs: 60_000, forMs: 5 * 60_000, many: 10 }
const NO_WITNESS = 12
const ALARM_MS = 60_000

export type RunCheckDeps = {
  store: Store
  client: Client
  projector: Projector
  /** Tests set other times than the defaults. */
  stuckAfterMs?: number | undefined
  lost?: typeof LOST | undefined
  metrics?: Metrics | undefined
  log: Logger
}

/** Returns the function that checks the running executions that are due, for about two seconds at most. */
export function createRunChecks(deps: RunCheckDeps): () => Promise<void> {
  const { store, log, lost = LOST } = deps
  let alarmedAt = Number.NEGATIVE_INFINITY

  /** Whether an execution that was missing for long enough may be ended as lost. */
  async function isLost(row: Unchecked, forMs: number): Promise<boolean> {
    const missing = await countMissing(store)
    const alarm = (why: string) => {
      if (performance.now() - alarmedAt < ALARM_MS) return
      alarmedAt = performance.now()
      log.error(
        { missing, executionId: row.id },
        `Temporal does not know ${missing} running execution(s), and ${why}: is TEMPORAL_ADDRESS or ` +
          'TEMPORAL_NAMESPACE wrong, or was Temporal emptied? None of them is ended; cancel those that are lost',
      )
    }
    if (missing > lost.many) {
      alarm(`that is more than ${lost.many} at once`)
      return false
    }
    const witnesses = await findWitnesses(store, row)
    for (const id of witnesses) if (await describeRun(deps.client, id)) return true
    if (witnesses.length > 0) alarm('it knows none of the older ones either')
    return witnesses.length === 0 && forMs >= lost.forMs * NO_WITNESS
  }

  async function checkMissing(row: Unchecked): Promise<void> {
    const executionId = row.id
    const { checks, forMs } = await noteMissing(store, executionId, lost.everyMs)
    log.error({ executionId, checks }, 'Temporal does not know the run of this execution')
    if (checks < lost.checks || forMs < lost.forMs) return
    // A caller who cancelled it wants it ended, whatever became of its run.
    if (!row.isCancelled && !(await isLost(row, forMs))) return
    const ended = await failLostExecution(store, executionId)
    if (ended) deps.metrics?.runsEnded.inc(ended)
  }

  async function check(row: Unchecked): Promise<CheckResult | undefined> {
    const run = await describeRun(deps.client, row.id)
    if (run) return checkRun(deps, row, run)
    await checkMissing(row)
    return undefined
  }

  async function checkBatch(rows: Unchecked[]): Promise<number> {
    const results = new Map<string, CheckResult>()
    let failed = 0
    const left = rows.slice()
    const work = async () => {
      for (let row = left.pop(); row; row = left.pop()) {
        try {
          const result = failed < MAX_FAILED ? await check(row) : 'failed'
          if (result) results.set(row.id, result)
        } catch (error) {
          failed++
          results.set(row.id, 'failed')
          log.warn({ err: error, executionId: row.id }, 'a running execution could not be checked')
        }
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work))
    await noteChecks(store, results)
    return failed
  }

  return async () => {
    const until = performance.now() + ROUND_MS
    while (performance.now() < until) {
      const rows = await claimUnchecked(store, BATCH)
      if ((await checkBatch(rows)) >= MAX_FAILED || rows.length < BATCH) return
    }
  }
}

async function describeRun(
  client: Client,
  executionId: string,
): Promise<WorkflowExecutionDescription | null> {
  return client.workflow
    .getHandle(executionId)
    .describe()
    .catch((error) => {
      if ((error as Error).name === 'WorkflowNotFoundError') return null
      throw error
    })
}

async function checkRun(
  deps: RunCheckDeps,
  row: Unchecked,
  run: WorkflowExecutionDescription,
): Promise<CheckResult> {
  const { store, client, projector, log, stuckAfterMs = STUCK_AFTER_MS } = deps
  const executionId = row.id
  if (run.status.name !== 'RUNNING') {
    projector.close(executionId)
    return 'news'
  }
  const isBehind = run.runId !== row.runId || run.historyLength > row.lastEventId
  if (isBehind) projector.touch(executionId)
  const task = findPendingTask(run)
  if (!task) return isBehind ? 'news' : 'quiet'

  if (task.attempts > STUCK_ATTEMPTS || (task.attempts > 2 && task.forMs >= stuckAfterMs)) {
    const message = `The execution cannot go on: its workflow code failed ${task.attempts - 1} times`
    const isNew = await noteStuck(store, executionId, message)
    if (isNew) log.error({ executionId, ...task }, 'an execution is stuck: its workflow code fails')
  }
  if ((row.overdueMs ?? -1) >= stuckAfterMs) {
    const handle = client.workflow.getHandle(executionId)
    await endIfStuck(deps, handle, task, 'has exceeded its time limit', stuckAfterMs)
  }
  return 'news'
}
