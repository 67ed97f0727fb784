import { randomUUID } from 'node:crypto'
import { Client } from '@temporalio/client'
import { createActivities } from '../../activities/activities.ts'
import { type BudgetReading, createBudget } from '../../activities/budget.ts'
import { createReplies } from '../../activities/chat/replies.ts'
import { createEvaluator } from '../../activities/expressions/evaluator.ts'
import { createFirstTasks } from '../../activities/fairness/firsttasks.ts'
import { createWorkerPlaces } from '../../activities/fairness/worker.ts'
import { createAttemptLog } from '../../activities/run/attemptlog.ts'
import { createCalls } from '../../activities/run/calls/calls.ts'
import { createShares } from '../../activities/run/share.ts'
import { describeSchedules, type RegisteredSchedule } from '../../activities/schedules/schedules.ts'
import { wantsResult } from '../../activities/temporal/attempts.ts'
import { createDataConverter } from '../../activities/temporal/codec.ts'
import { createFireActivities } from '../../activities/temporal/fire.ts'
import { type CarryOptions, carryOutErrand, markAwaited } from '../../activities/temporal/outbox.ts'
import { createProjector, type Projector } from '../../activities/temporal/projector.ts'
import type { Sealer } from '../../activities/temporal/sealer.ts'
import type { Errand } from '../../db/outbox.ts'
import { tellIfSlow } from '../service/stopping.ts'
import { readWaiting } from './backlog.ts'
import { startCalling } from './calling.ts'
import { startChecking } from './checking.ts'
import { startLeases } from './leases.ts'
import type { EngineOptions } from './options.ts'
import { reconcileSchedules } from './reconciler.ts'
import { startReplying } from './replying.ts'
import { watchRouting } from './routing.ts'
import { startSweeper } from './sweeper.ts'
import { chooseGrace, chooseSlots, type Slots, startWorkers, type Workers } from './workers.ts'

export type Engine = Pick<Workers, 'isPolling' | 'readSlots'> & {
  client: Client
  sealer: Sealer
  projector: Projector
  readBudget(): BudgetReading
  /** The tasks that wait in Temporal for any worker of this task queue. */
  readWaiting(): ReturnType<typeof readWaiting>
  /**
   * Resolves when the worker has stopped. Unless `stop` was called, that happens only after a fatal error.
   */
  stopped: Promise<void>
  /** Takes no more calls to models. Resolves when those under way have ended, or have been put down, see `stop`. */
  stopModels(hurry?: AbortSignal): Promise<void>
  /** Once `hurry` is aborted, all calls under way are put down at once, for another worker to make them again. */
  stop(hurry?: AbortSignal): Promise<void>
  carryOut(errand: Errand, options?: CarryOptions): Promise<boolean>
  /** See markAwaited of the errands. */
  markAwaited(executionId: string, agoMs: number): Promise<boolean>
  /** Runs one round of the sweeper now. */
  sweep(): Promise<void>
  describeSchedules(workflowId: string, nodeIds: string[]): Promise<RegisteredSchedule[]>
  /** Compares Temporal's schedules with the rows, and repairs them, now. */
  reconcile(): Promise<void>
}

/**
 * How long before the end of the grace a worker that stops ends the evaluations under way: on a busy machine
 * they may take longer than it has. Another worker does them again. The answers to calls go on being read, as
 * the calls would have to be made again.
 */
const EVALUATION_END_MS = 1_000

/** Runs Temporal's workers in this process, with the projector and the sweeper beside them. */
export async function startEngine(options: EngineOptions): Promise<Engine> {
  const { store, bus, sealer, outside, metrics, tracing, log, temporal, times } = options
  const { connection, namespace, taskQueue, version } = temporal
  const { processId = randomUUID(), place = null, leaseStore = store } = options.process
  const dataConverter = createDataConverter(sealer)
  const client = new Client({ connection, namespace, dataConverter })
  const projector = createProjector({ store, client, sealer, metrics, tracing, log, onEnd: bus.tellEnd })
  const slots = chooseSlots(options.limits)
  const tools = createTools(options, client, slots)
  const putDown = new AbortController()
  const firstTasks = createFirstTasks(slots.runs, () => workers.countRuns())
  const routing = watchRouting({ client, taskQueue, version, log })
  const { stuckAfterMs, sweepEveryMs, lost } = times
  const carrier = {
    ...{ store, client, sealer, taskQueue, firstTasks, metrics, tracing, log, stuckAfterMs },
    continueAfterEvents: temporal.continueAfterEvents,
    eager: () => routing.isOurs() && firstTasks.hasRoom(),
  }
  const workers: Workers = await startWorkers({
    ...temporal,
    ...{ processId, slots, dataConverter, log },
    grace: chooseGrace(options.process),
    activities: createActivities({
      ...tools.deps,
      ...{ processId, firstTasks, touch: projector.touch, putDown: putDown.signal },
      knowsLost: () => leases.knowsLost(),
    }),
    fireActivities: createFireActivities(carrier),
    onClosing: projector.close,
  })
  const stopCalling = startCalling({ store, outside, log }, bus)
  const stopReplying = startReplying({ store, log }, bus)
  const leases = startLeases({ store, leaseStore, client, processId, place, log })
  const sweeper = startSweeper({
    ...{ store, bus, client, carrier, projector, stuckAfterMs, sweepEveryMs, lost, metrics, log },
  })

  function stopModels(hurry?: AbortSignal): Promise<void> {
    const end = () => putDown.abort()
    if (hurry?.aborted) end()
    hurry?.addEventListener('abort', end)
    return workers.stopModels()
  }

  async function stop(hurry?: AbortSignal): Promise<void> {
    const wait = <T>(what: string, work: Promise<T>) => tellIfSlow(log, what, work)
    routing.stop()
    const ended = stopModels(hurry)
    await wait('the sweeper', sweeper.stop())
    workers.stopNodes()
    tools.deps.calls.stop()
    const stopDraining = tools.drainLate()
    const called = stopCalling()
    await wait('calls to models', ended)
    const hasPutDown = await wait('attempts of nodes', workers.wait())
    stopDraining()
    await wait('callbacks', called)
    await wait('replies of chats', stopReplying())
    await wait('the leases', leases.stop(hasPutDown))
    await wait('the projector', projector.stop())
    await wait('evaluations', tools.stop())
  }

  return {
    ...{ client, sealer, projector, stopModels, stop },
    stopped: workers.stopped,
    isPolling: workers.isPolling,
    readSlots: workers.readSlots,
    readBudget: tools.readBudget,
    readWaiting: () => readWaiting(client, taskQueue),
    carryOut: (errand, options) => carryOutErrand(carrier, errand, options),
    markAwaited: (executionId, agoMs) => markAwaited(carrier, executionId, agoMs),
    sweep: sweeper.sweep,
    describeSchedules: (workflowId, nodeIds) => describeSchedules(carrier, workflowId, nodeIds),
    reconcile: () => reconcileSchedules(carrier),
  }
}

/** What the attempts and segments of this process work with. */
function createTools(options: EngineOptions, client: Client, slots: Slots) {
  const { store, bus, outside, publicUrl, metrics, tracing, log, limits, times } = options
  const { evaluator: shared, evaluationEndMs = EVALUATION_END_MS } = options.process
  const evaluator = shared ?? createEvaluator(limits.expressions)
  const checking = startChecking(options, evaluator, options.guardrails)
  const attempts = createAttemptLog(store, log)
  const budget = createBudget(limits.budgetBytes)
  const { replies = createReplies({ store, bus, log }) } = options
  return {
    deps: {
      ...{ store, metrics, tracing, log, evaluator, outside, attempts, replies, publicUrl },
      guardrails: checking.guardrails,
      calls: createCalls({ isWanted: (call) => wantsResult(client, call) }),
      places: createWorkerPlaces({
        attempts: slots.nodes,
        models: slots.models,
        // While a segment walks for a run, the run holds a slot for workflow tasks too.
        segments: Math.min(slots.segments, slots.runs),
      }),
      shares: createShares(store, budget),
      segmentRecords: limits.segmentRecords,
      patienceMs: times.patienceMs,
      modelSilenceMs: times.modelSilenceMs,
    },
    readBudget: budget.read,
    /** Ends the evaluations under way towards the end of the grace. Returns the function that calls this off. */
    drainLate(): () => void {
      if (shared) return () => {}
      const timer = setTimeout(evaluator.drain, chooseGrace(options.process).nodes - evaluationEndMs)
      return () => clearTimeout(timer)
    },
    async stop(): Promise<void> {
      await attempts.flush()
      await replies.stop()
      await Promise.all([shared ? undefined : evaluator.close(), checking.stop()])
    },
  }
}
