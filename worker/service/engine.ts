import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { Client } from '@temporalio/client'
import {
  bundleWorkflowCode,
  DefaultLogger,
  type NativeConnection,
  Worker,
  type WorkflowBundleWithSourceMap,
} from '@temporalio/worker'
import type { Logger } from 'pino'
import { createActivities } from '../../activities/activities.ts'
import { type BudgetReading, createBudget } from '../../activities/budget.ts'
import { createEvaluator } from '../../activities/expressions/evaluator.ts'
import { createWorkerPlaces } from '../../activities/fairness/worker.ts'
import type { EgressOptions } from '../../activities/http/egress.ts'
import { createHttpClient } from '../../activities/http/http.ts'
import type { Metrics } from '../../activities/metrics.ts'
import { createAttemptLog } from '../../activities/run/attemptlog.ts'
import { createShares } from '../../activities/run/share.ts'
import { createDataConverter, FAILURE_CONVERTER } from '../../activities/temporal/codec.ts'
import { createFireActivities } from '../../activities/temporal/fire.ts'
import { carryOutErrand } from '../../activities/temporal/outbox.ts'
import { createProjector, type Projector } from '../../activities/temporal/projector.ts'
import { describeSchedules, type RegisteredSchedule } from '../../activities/temporal/schedules.ts'
import type { Sealer } from '../../activities/temporal/sealer.ts'
import type { Tracing } from '../../activities/tracing.ts'
import type { Bus } from '../../db/bus.ts'
import { makeCallMark } from '../../db/operation/callmark.ts'
import type { Errand } from '../../db/outbox.ts'
import type { Store } from '../../db/scope.ts'
import { reconcileSchedules } from './reconciler.ts'
import { startSweeper } from './sweeper.ts'

export type EngineOptions = {
  store: Store
  bus: Bus
  sealer: Sealer
  connection: NativeConnection
  namespace: string
  taskQueue: string
  egress: EgressOptions
  /** The base of the URLs that are shown to users. */
  publicUrl: string
  stuckRunMinutes: number
  /**
   * How many attempts of nodes the worker carries out at once, half of them for one team at most; tests set a
   * smaller number than the default.
   */
  nodesAtOnce?: number | undefined
  /** The bytes that answers and large inputs of nodes may take in this process, all together. */
  budgetBytes: number
  /** A UUID of this process, if another process watches how it ends (worker/service/guard.ts). */
  processId?: string | undefined
  /** How many segments the worker walks at once; tests set a smaller number than the default. */
  segmentsAtOnce?: number | undefined
  /** The evaluator's processes and limits; tests set others than the defaults. */
  expressions?: Parameters<typeof createEvaluator>[0]
  continueAfterEvents?: number | undefined
  /** The most records that one segment makes; tests set a smaller number than the default. */
  segmentRecords?: number | undefined
  /** A bundle made earlier. Without it, one is made here, which takes about a second. */
  bundle?: WorkflowBundleWithSourceMap | { codePath: string }
  metrics?: Metrics | undefined
  tracing?: Tracing | undefined
  log: Logger
}

export type Engine = {
  client: Client
  sealer: Sealer
  projector: Projector
  isPolling(): boolean
  /** For each kind of task: how many the worker is working on, and the most it takes. */
  readSlots(): Record<'node' | 'segment' | 'workflow', [used: number, most: number]>
  readBudget(): BudgetReading
  /**
   * Resolves when the worker has stopped. Unless `stop` was called, that happens only after a fatal error.
   */
  stopped: Promise<void>
  stop(): Promise<void>
  carryOut(errand: Errand): Promise<boolean>
  /** Runs one round of the sweeper now. */
  sweep(): Promise<void>
  describeSchedules(workflowId: string, nodeIds: string[]): Promise<RegisteredSchedule[]>
  /** Compares Temporal's schedules with the rows, and repairs them, now. */
  reconcile(): Promise<void>
}

/**
 * How every worker polls, heartbeats and stops. The slots are twice as many as a worker has use for, because a
 * team never has more than half of them. The benchmark's hand-written workflows use the same options.
 */
export const WORKER_OPTIONS = {
  maxConcurrentWorkflowTaskPolls: 4,
  maxConcurrentActivityTaskPolls: 4,
  maxConcurrentActivityTaskExecutions: 400,
  maxConcurrentLocalActivityExecutions: 200,
  maxConcurrentWorkflowTaskExecutions: 80,
  maxHeartbeatThrottleInterval: '1500 ms',
  stickyQueueScheduleToStartTimeout: '2 s',
  shutdownGraceTime: '5 s',
  shutdownForceTime: '8 s',
} as const

/**
 * When a worker that stops ends the evaluations under way: on a busy machine they may take longer than it has.
 * Another worker does them again.
 */
const EVALUATION_GRACE_MS = 4_000

/** Runs a Temporal worker in this process, with the projector and the sweeper beside it. */
export async function startEngine(options: EngineOptions): Promise<Engine> {
  const { store, sealer, connection, namespace, taskQueue, metrics, tracing, log } = options
  const dataConverter = createDataConverter(sealer)
  const client = new Client({ connection, namespace, dataConverter })
  const projector = createProjector({ store, client, sealer, metrics, tracing, log })
  const evaluator = createEvaluator(options.expressions)
  const http = createHttpClient({ ...options.egress, mark: makeCallMark(store.keys) })
  const attempts = createAttemptLog(store, log)
  const budget = createBudget(options.budgetBytes)
  const { publicUrl, continueAfterEvents, segmentRecords } = options
  const { touch } = projector
  const most = WORKER_OPTIONS
  const {
    nodesAtOnce = most.maxConcurrentActivityTaskExecutions,
    segmentsAtOnce = most.maxConcurrentLocalActivityExecutions,
  } = options
  // While a segment walks for a run, the run holds a slot for workflow tasks too.
  const segments = Math.min(segmentsAtOnce, most.maxConcurrentWorkflowTaskExecutions)
  const places = createWorkerPlaces({ attempts: nodesAtOnce, segments })
  const shares = createShares(store, budget)
  const processId = options.processId ?? randomUUID()
  const shared = { store, metrics, tracing, log }
  const deps = {
    ...shared,
    evaluator,
    http,
    attempts,
    places,
    shares,
    processId,
    publicUrl,
    segmentRecords,
    touch,
  }
  const carrier = { ...shared, client, sealer, taskQueue, eager: true, continueAfterEvents }
  const worker = await Worker.create({
    ...WORKER_OPTIONS,
    maxConcurrentActivityTaskExecutions: nodesAtOnce,
    maxConcurrentLocalActivityExecutions: segmentsAtOnce,
    connection,
    namespace,
    taskQueue,
    dataConverter,
    workflowBundle: options.bundle ?? (await bundleWorkflows()),
    activities: { ...createActivities(deps), ...createFireActivities(carrier) },
    sinks: {
      run: {
        closing: {
          fn: (info) => projector.close(info.workflowId, info.priority?.fairnessKey),
          callDuringReplay: false,
        },
      },
    },
  })
  const stopped = worker.run()
  const sweeper = startSweeper({
    store,
    bus: options.bus,
    client,
    carrier,
    projector,
    stuckRunMinutes: options.stuckRunMinutes,
    metrics,
    log,
  })

  return {
    client,
    sealer,
    projector,
    stopped,
    isPolling: () => worker.getState() === 'RUNNING',
    readSlots() {
      const status = worker.getStatus()
      const { numInFlightNonLocalActivities, numInFlightLocalActivities, numInFlightWorkflowActivations } =
        status
      return {
        node: [numInFlightNonLocalActivities, nodesAtOnce],
        segment: [numInFlightLocalActivities, segmentsAtOnce],
        workflow: [numInFlightWorkflowActivations, most.maxConcurrentWorkflowTaskExecutions],
      }
    },
    readBudget: budget.read,
    carryOut: (errand) => carryOutErrand(carrier, errand),
    sweep: sweeper.sweep,
    describeSchedules: (workflowId, nodeIds) => describeSchedules(carrier, workflowId, nodeIds),
    reconcile: () => reconcileSchedules(carrier),
    async stop() {
      await sweeper.stop()
      if (worker.getState() === 'RUNNING') worker.shutdown()
      const closing = setTimeout(() => void evaluator.close(), EVALUATION_GRACE_MS)
      await stopped.catch((error) => log.error({ err: error }, 'the worker stopped with an error'))
      clearTimeout(closing)
      await projector.stop()
      await attempts.flush()
      await Promise.all([evaluator.close(), http.close()])
    },
  }
}

/** Bundles the workflow code into one script: the run, and the workflow that schedules start. */
export function bundleWorkflows(): Promise<WorkflowBundleWithSourceMap> {
  const workflowsPath = fileURLToPath(new URL('../../workflows/run/entry.ts', import.meta.url))
  return bundleWorkflowCode({
    workflowsPath,
    // Evaluated once instead of for every run, so that it stays compiled. This is safe because no module of
    // ours keeps a run's state.
    preloadModules: ['@temporalio/workflow', workflowsPath],
    failureConverterPath: FAILURE_CONVERTER,
    logger: new DefaultLogger('WARN'),
  })
}
