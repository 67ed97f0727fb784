import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { fileURLToPath } from 'node:url'
import { getHeapStatistics } from 'node:v8'
import { Client } from '@temporalio/client'
import {
  bundleWorkflowCode,
  DefaultLogger,
  type NativeConnection,
  Worker,
  type WorkerDeploymentOptions,
  type WorkflowBundleWithSourceMap,
} from '@temporalio/worker'
import type { Logger } from 'pino'
import { createActivities } from '../../activities/activities.ts'
import { createReplies, type Replies } from '../../activities/agentchat/replies.ts'
import { type BudgetReading, createBudget } from '../../activities/budget.ts'
import { createCalls } from '../../activities/calls/calls.ts'
import type { Outsides } from '../../activities/egress/outside.ts'
import { createEvaluator } from '../../activities/expressions/evaluator.ts'
import { createFirstTasks } from '../../activities/fairness/firsttasks.ts'
import { createWorkerPlaces } from '../../activities/fairness/worker.ts'
import type { Metrics } from '../../activities/metrics.ts'
import { createAttemptLog } from '../../activities/run/attemptlog.ts'
import { createShares } from '../../activities/run/share.ts'
import { describeSchedules, type RegisteredSchedule } from '../../activities/schedules/schedules.ts'
import { nameWorker, wantsResult } from '../../activities/temporal/attempts.ts'
import { createDataConverter, FAILURE_CONVERTER } from '../../activities/temporal/codec.ts'
import { createFireActivities } from '../../activities/temporal/fire.ts'
import { carryOutErrand } from '../../activities/temporal/outbox.ts'
import { createProjector, type Projector } from '../../activities/temporal/projector.ts'
import type { Sealer } from '../../activities/temporal/sealer.ts'
import type { Tracing } from '../../activities/tracing.ts'
import type { Bus } from '../../db/bus.ts'
import type { Errand } from '../../db/outbox.ts'
import type { Store } from '../../db/scope.ts'
import { nameQueue } from '../../workflows/run/plan.ts'
import { readWaiting } from './backlog.ts'
import { startCalling } from './calling.ts'
import { type CheckingOptions, startChecking } from './checking.ts'
import { startLeases } from './leases.ts'
import { reconcileSchedules } from './reconciler.ts'
import { startReplying } from './replying.ts'
import { type DeploymentVersion, watchRouting } from './routing.ts'
import type { LOST } from './runchecks.ts'
import { startSweeper } from './sweeper.ts'

export type EngineOptions = {
  store: Store
  /** A connection of its own for the lease of this process. Without it, the lease is renewed over `store`. */
  leaseStore?: Store | undefined
  bus: Bus
  sealer: Sealer
  connection: NativeConnection
  namespace: string
  taskQueue: string
  /** The version that this worker belongs to. Without it, workers are not versioned. */
  version?: DeploymentVersion | undefined
  /** The ways out for what users' calls reach. The caller closes it after the engine has stopped. */
  outside: Outsides
  /** The replies of chats that are read in this process too. Without them, others read what is written here. */
  replies?: Replies | undefined
  /** The base of the URLs that are shown to users. */
  publicUrl: string
  /** When a stuck execution that is to end is ended, and when one counts as lost; tests set other times. */
  stuckAfterMs?: number | undefined
  /** How often the sweeper looks; tests set another time than the default. */
  sweepEveryMs?: number | undefined
  lost?: typeof LOST | undefined
  /**
   * How many attempts of nodes the worker carries out at once, half of them for one team at most; tests set a
   * smaller number than the default.
   */
  nodesAtOnce?: number | undefined
  /** How many calls to models and tools of agents the worker makes at once, half of them for one team at most. */
  modelCallsAtOnce?: number | undefined
  /** The bytes that answers and large inputs of nodes may take in this process, all together. */
  budgetBytes: number
  /** A UUID of this process, if another process watches how it ends (worker/guard.ts). */
  processId?: string | undefined
  /** A data folder, with its machine, on which no other process runs at the same time. */
  place?: string | undefined
  /** How long the calls under way may go on when the worker stops. */
  stopGraceMs?: number | undefined
  /** The same for calls to models, if it is longer: a call that is made again is paid for again. */
  modelStopGraceMs?: number | undefined
  /** How long before the end of that the evaluations under way are ended; tests set another time. */
  evaluationEndMs?: number | undefined
  /** How many segments the worker walks at once; tests set a smaller number than the default. */
  segmentsAtOnce?: number | undefined
  /** How many runs the worker works on at once; tests set a smaller number than the default. */
  runsAtOnce?: number | undefined
  /** The evaluator's processes and limits; tests set others than the defaults. */
  expressions?: Parameters<typeof createEvaluator>[0]
  continueAfterEvents?: number | undefined
  /** The most records that one segment makes; tests set a smaller number than the default. */
  segmentRecords?: number | undefined
  /** How long an unknown error may last in a segment; for tests. */
  patienceMs?: number | undefined
  /** How long a model's vendor may send nothing. */
  modelSilenceMs?: number | undefined
  /** How texts are checked. */
  guardrails?: CheckingOptions
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
  readSlots(): Record<'node' | 'model' | 'segment' | 'workflow', [used: number, most: number]>
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
  carryOut(errand: Errand): Promise<boolean>
  /** Runs one round of the sweeper now. */
  sweep(): Promise<void>
  describeSchedules(workflowId: string, nodeIds: string[]): Promise<RegisteredSchedule[]>
  /** Compares Temporal's schedules with the rows, and repairs them, now. */
  reconcile(): Promise<void>
}

/**
 * How many runs a worker works on at once. While a segment walks for a run, the run holds its slot, however short the
 * segment is: of 200 runs in flight up to 110 did at the same time. The SDK allows no more than the runs that it keeps
 * in memory, whose number it chooses by the heap's limit: about one for each 1.7 MB beyond the first 200 MB.
 */
const RUNS_AT_ONCE = Math.min(400, Math.max(10, Math.floor((readHeapMegabytes() - 200) * (600 / 1024))))

/**
 * How every worker polls, heartbeats and stops. The slots are twice as many as a worker has use for, because a
 * team never has more than half of them. The benchmark's hand-written workflows use the same options.
 */
export const WORKER_OPTIONS = {
  maxConcurrentWorkflowTaskPolls: 4,
  maxConcurrentActivityTaskPolls: 4,
  maxConcurrentActivityTaskExecutions: 400,
  maxConcurrentLocalActivityExecutions: 400,
  maxConcurrentWorkflowTaskExecutions: RUNS_AT_ONCE,
  maxHeartbeatThrottleInterval: '1500 ms',
  stickyQueueScheduleToStartTimeout: '2 s',
} as const

/** As many as a worker makes unless the operator says otherwise: they take long, but are mostly waited for. */
const MODEL_CALLS_AT_ONCE = 200
const MODEL_POLLS = 2

const STOP_GRACE_MS = 5_000

/** After the grace, a worker has this time to tell Temporal what it has put down. */
const STOP_FORCE_MS = 3_000

/**
 * How long before the end of the grace a worker that stops ends the evaluations under way: on a busy machine
 * they may take longer than it has. Another worker does them again. The answers to calls go on being read, as
 * the calls would have to be made again.
 */
const EVALUATION_END_MS = 1_000

/** Runs a Temporal worker in this process, with the projector and the sweeper beside it. */
export async function startEngine(options: EngineOptions): Promise<Engine> {
  const { store, sealer, connection, namespace, taskQueue, metrics, tracing, log } = options
  const dataConverter = createDataConverter(sealer)
  const client = new Client({ connection, namespace, dataConverter })
  const projector = createProjector({
    store,
    client,
    sealer,
    metrics,
    tracing,
    log,
    onEnd: options.bus.tellEnd,
  })
  const evaluator = createEvaluator(options.expressions)
  const checking = startChecking(options, evaluator, options.guardrails)
  const attempts = createAttemptLog(store, log)
  const budget = createBudget(options.budgetBytes)
  const { publicUrl, continueAfterEvents, segmentRecords, patienceMs, stuckAfterMs } = options
  const { touch } = projector
  const most = WORKER_OPTIONS
  const {
    nodesAtOnce = most.maxConcurrentActivityTaskExecutions,
    segmentsAtOnce = most.maxConcurrentLocalActivityExecutions,
    runsAtOnce = most.maxConcurrentWorkflowTaskExecutions,
    modelCallsAtOnce = MODEL_CALLS_AT_ONCE,
  } = options
  // While a segment walks for a run, the run holds a slot for workflow tasks too.
  const segments = Math.min(segmentsAtOnce, runsAtOnce)
  const places = createWorkerPlaces({ attempts: nodesAtOnce, models: modelCallsAtOnce, segments })
  const firstTasks = createFirstTasks(runsAtOnce, () => countRuns(worker))
  const shares = createShares(store, budget)
  const {
    processId = randomUUID(),
    stopGraceMs = STOP_GRACE_MS,
    evaluationEndMs = EVALUATION_END_MS,
  } = options
  const modelStopGraceMs = Math.max(stopGraceMs, options.modelStopGraceMs ?? 0)
  const putDown = new AbortController()
  const { replies = createReplies({ store, bus: options.bus, log }) } = options
  const calls = createCalls({ isWanted: (call) => wantsResult(client, call) })
  const shared = { store, metrics, tracing, log }
  const deps = {
    ...shared,
    evaluator,
    guardrails: checking.guardrails,
    outside: options.outside,
    attempts,
    calls,
    places,
    firstTasks,
    shares,
    replies,
    processId,
    putDown: putDown.signal,
    knowsLost: () => leases.knowsLost(),
    publicUrl,
    segmentRecords,
    patienceMs,
    modelSilenceMs: options.modelSilenceMs,
    touch,
  }
  const routing = watchRouting({ client, taskQueue, version: options.version, log })
  const mayStartEagerly = () => routing.isOurs() && firstTasks.hasRoom()
  const carrier = {
    ...shared,
    client,
    sealer,
    taskQueue,
    eager: mayStartEagerly,
    firstTasks,
    continueAfterEvents,
    stuckAfterMs,
  }
  const activities = createActivities(deps)
  const common = {
    identity: nameWorker(processId, hostname()),
    connection,
    namespace,
    dataConverter,
    ...(options.version ? { workerDeploymentOptions: pinTo(options.version) } : {}),
  }
  const worker: Worker = await Worker.create({
    ...WORKER_OPTIONS,
    ...common,
    shutdownGraceTime: stopGraceMs,
    shutdownForceTime: stopGraceMs + STOP_FORCE_MS,
    maxConcurrentActivityTaskExecutions: nodesAtOnce,
    maxConcurrentLocalActivityExecutions: segmentsAtOnce,
    maxConcurrentWorkflowTaskExecutions: runsAtOnce,
    taskQueue,
    workflowBundle: options.bundle ?? (await bundleWorkflows(options.version ? VERSIONED_ENTRY : ENTRY)),
    activities: { ...activities, ...createFireActivities(carrier) },
    sinks: {
      run: {
        closing: {
          fn: (info) => projector.close(info.workflowId, info.priority?.fairnessKey),
          callDuringReplay: false,
        },
      },
    },
  })
  const models = await Worker.create({
    ...common,
    shutdownGraceTime: modelStopGraceMs,
    shutdownForceTime: modelStopGraceMs + STOP_FORCE_MS,
    maxConcurrentActivityTaskExecutions: modelCallsAtOnce,
    maxConcurrentActivityTaskPolls: MODEL_POLLS,
    maxHeartbeatThrottleInterval: WORKER_OPTIONS.maxHeartbeatThrottleInterval,
    taskQueue: nameQueue(taskQueue, 'models'),
    activities,
  })
  const runs = [worker.run(), models.run()]
  const stopped = Promise.all(runs).then(() => {})
  // A failure must not be an unhandled rejection while nothing waits for the end.
  stopped.catch(() => {})
  const stopCalling = startCalling({ store, outside: options.outside, log }, options.bus)
  const stopReplying = startReplying({ store, log }, options.bus)
  const { place = null, leaseStore = store } = options
  const leases = startLeases({ store, leaseStore, client, processId, place, log })
  const sweeper = startSweeper({
    store,
    bus: options.bus,
    client,
    carrier,
    projector,
    stuckAfterMs,
    sweepEveryMs: options.sweepEveryMs,
    lost: options.lost,
    metrics,
    log,
  })

  async function stopModels(hurry?: AbortSignal): Promise<void> {
    const end = () => putDown.abort()
    if (hurry?.aborted) end()
    hurry?.addEventListener('abort', end)
    if (models.getState() === 'RUNNING') models.shutdown()
    await runs[1]!.catch(() => {})
  }

  return {
    client,
    sealer,
    projector,
    stopped,
    isPolling: () => [worker, models].every((one) => one.getState() === 'RUNNING'),
    readSlots() {
      const status = worker.getStatus()
      const { numInFlightNonLocalActivities, numInFlightLocalActivities, numInFlightWorkflowActivations } =
        status
      return {
        node: [numInFlightNonLocalActivities, nodesAtOnce],
        model: [models.getStatus().numInFlightNonLocalActivities, modelCallsAtOnce],
        segment: [numInFlightLocalActivities, segmentsAtOnce],
        workflow: [numInFlightWorkflowActivations, runsAtOnce],
      }
    },
    readBudget: budget.read,
    readWaiting: () => readWaiting(client, taskQueue),
    carryOut: (errand) => carryOutErrand(carrier, errand),
    sweep: sweeper.sweep,
    describeSchedules: (workflowId, nodeIds) => describeSchedules(carrier, workflowId, nodeIds),
    reconcile: () => reconcileSchedules(carrier),
    stopModels,
    async stop(hurry) {
      routing.stop()
      const ended = stopModels(hurry)
      await sweeper.stop()
      if (worker.getState() === 'RUNNING') worker.shutdown()
      calls.stop()
      const closing = setTimeout(evaluator.drain, stopGraceMs - evaluationEndMs)
      const called = stopCalling()
      await ended
      const ends = await Promise.allSettled(runs)
      const failed = ends.filter((end) => end.status === 'rejected')
      for (const { reason } of failed) log.error({ err: reason }, 'the worker stopped with an error')
      clearTimeout(closing)
      await called
      await stopReplying()
      await leases.stop(failed.length === 0)
      await projector.stop()
      await attempts.flush()
      await replies.stop()
      await Promise.all([evaluator.close(), checking.stop()])
    },
  }
}

/** Runs keep the version that they began on until they continue as new. Firings do not (run/bundle/versioned.ts). */
function pinTo(version: DeploymentVersion): WorkerDeploymentOptions {
  return { useWorkerVersioning: true, version, defaultVersioningBehavior: 'PINNED' }
}

/** How many slots for runs are taken: by polls, by runs that think, and by runs for which a segment walks. */
function countRuns(worker: Worker): number {
  const { numInFlightWorkflowActivations, numInFlightLocalActivities } = worker.getStatus()
  return (
    WORKER_OPTIONS.maxConcurrentWorkflowTaskPolls +
    numInFlightWorkflowActivations +
    numInFlightLocalActivities
  )
}

function readHeapMegabytes(): number {
  return getHeapStatistics().heap_size_limit / 1_048_576
}

const ENTRY = fileURLToPath(new URL('../../workflows/run/bundle/entry.ts', import.meta.url))
export const VERSIONED_ENTRY = fileURLToPath(
  new URL('../../workflows/run/bundle/versioned.ts', import.meta.url),
)

/** Bundles the workflow code into one script: the run, and the workflow that schedules start. */
export function bundleWorkflows(workflowsPath = ENTRY): Promise<WorkflowBundleWithSourceMap> {
  return bundleWorkflowCode({
    workflowsPath,
    // Evaluated once instead of for every run, so that it stays compiled. This is safe because no module of
    // ours keeps a run's state.
    preloadModules: ['@temporalio/workflow', workflowsPath],
    failureConverterPath: FAILURE_CONVERTER,
    logger: new DefaultLogger('WARN'),
  })
}
