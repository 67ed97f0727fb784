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
import { createActivities } from '../activities/activities.ts'
import { createAttemptLog } from '../activities/attempts.ts'
import { createDataConverter, FAILURE_CONVERTER } from '../activities/codec.ts'
import { createEvaluator } from '../activities/expressions.ts'
import { createFireActivities } from '../activities/fire.ts'
import { createHttpClient } from '../activities/http.ts'
import type { Metrics } from '../activities/metrics.ts'
import { carryOut } from '../activities/outbox.ts'
import { createProjector, type Projector } from '../activities/projector.ts'
import { describeSchedules, type Registered } from '../activities/schedules.ts'
import type { Tracing } from '../activities/tracing.ts'
import type { Bus } from '../db/bus.ts'
import type { Errand } from '../db/outbox.ts'
import type { Store } from '../db/scope.ts'
import { reconcileSchedules } from './reconcile.ts'
import { startSweeper } from './sweeper.ts'

export type EngineOptions = {
  store: Store
  bus: Bus
  connection: NativeConnection
  namespace: string
  taskQueue: string
  egress: { allowLoopback: boolean; allow: string[] }
  /** The address users see. */
  publicUrl: string
  stuckRunMinutes: number
  /** How many nodes the worker runs at once; fewer in tests than by default. */
  nodesAtOnce?: number | undefined
  continueAfterEvents?: number | undefined
  /** How many records a segment makes at most; fewer in tests than by default. */
  segmentRecords?: number | undefined
  /** A bundle made before; without it one is made, which takes about a second. */
  bundle?: WorkflowBundleWithSourceMap | { codePath: string }
  metrics?: Metrics | undefined
  tracing?: Tracing | undefined
  log: Logger
}

export type Engine = {
  client: Client
  projector: Projector
  isPolling(): boolean
  /** How many tasks of each kind the worker has in hand, and how many it could have. */
  readSlots(): Record<'node' | 'segment' | 'workflow', [used: number, most: number]>
  /** Resolves when the worker has stopped of itself, which it does only on a fatal error. */
  stopped: Promise<void>
  stop(): Promise<void>
  carryOut(errand: Errand): Promise<boolean>
  /** One round of the sweeper, now. */
  sweep(): Promise<void>
  describeSchedules(workflowId: string, nodeIds: string[]): Promise<Registered[]>
  /** Holds Temporal's schedules against the rows, now. */
  reconcile(): Promise<void>
}

/** How every worker polls, heartbeats and stops; the bench's hand-written workflows run under the same. */
export const WORKER_OPTIONS = {
  maxConcurrentWorkflowTaskPolls: 4,
  maxConcurrentActivityTaskPolls: 4,
  maxConcurrentActivityTaskExecutions: 200,
  maxConcurrentLocalActivityExecutions: 100,
  maxConcurrentWorkflowTaskExecutions: 40,
  maxHeartbeatThrottleInterval: '1500 ms',
  stickyQueueScheduleToStartTimeout: '2 s',
  shutdownGraceTime: '5 s',
  shutdownForceTime: '8 s',
} as const

/** Runs a Temporal worker in this process, with the projector and the sweeper beside it. */
export async function startEngine(options: EngineOptions): Promise<Engine> {
  const { store, connection, namespace, taskQueue, metrics, tracing, log } = options
  const dataConverter = createDataConverter(store.keys)
  const client = new Client({ connection, namespace, dataConverter })
  const projector = createProjector({ store, client, metrics, tracing, log })
  const evaluator = createEvaluator()
  const http = createHttpClient(options.egress)
  const attempts = createAttemptLog(store, log)
  const { publicUrl, continueAfterEvents, segmentRecords } = options
  const { touch } = projector
  const deps = { store, evaluator, http, attempts, publicUrl, metrics, tracing, log, segmentRecords, touch }
  const { nodesAtOnce = WORKER_OPTIONS.maxConcurrentActivityTaskExecutions } = options
  const carrier = { store, client, taskQueue, eager: true, metrics, tracing, log, continueAfterEvents }
  const worker = await Worker.create({
    ...WORKER_OPTIONS,
    maxConcurrentActivityTaskExecutions: nodesAtOnce,
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
    projector,
    stopped,
    isPolling: () => worker.getState() === 'RUNNING',
    readSlots() {
      const status = worker.getStatus()
      const { numInFlightNonLocalActivities, numInFlightLocalActivities, numInFlightWorkflowActivations } =
        status
      const most = WORKER_OPTIONS
      return {
        node: [numInFlightNonLocalActivities, nodesAtOnce],
        segment: [numInFlightLocalActivities, most.maxConcurrentLocalActivityExecutions],
        workflow: [numInFlightWorkflowActivations, most.maxConcurrentWorkflowTaskExecutions],
      }
    },
    carryOut: (errand) => carryOut(carrier, errand),
    sweep: sweeper.sweep,
    describeSchedules: (workflowId, nodeIds) => describeSchedules(carrier, workflowId, nodeIds),
    reconcile: () => reconcileSchedules(carrier),
    async stop() {
      await sweeper.stop()
      if (worker.getState() === 'RUNNING') worker.shutdown()
      await stopped.catch((error) => log.error({ err: error }, 'the worker stopped with an error'))
      await projector.stop()
      await attempts.flush()
      await Promise.all([evaluator.close(), http.close()])
    },
  }
}

/** The workflow code as one script: the walk, and what schedules start. */
export function bundleWorkflows(): Promise<WorkflowBundleWithSourceMap> {
  const workflowsPath = fileURLToPath(new URL('../workflows/entry.ts', import.meta.url))
  return bundleWorkflowCode({
    workflowsPath,
    // Evaluated once, not for every run, which keeps it compiled: no module of ours holds a run's state.
    preloadModules: ['@temporalio/workflow', workflowsPath],
    failureConverterPath: FAILURE_CONVERTER,
    logger: new DefaultLogger('WARN'),
  })
}
