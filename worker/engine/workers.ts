import { hostname } from 'node:os'
import { getHeapStatistics } from 'node:v8'
import { Worker, type WorkerDeploymentOptions, type WorkerOptions } from '@temporalio/worker'
import type { Logger } from 'pino'
import { nameWorker } from '../../activities/temporal/attempts.ts'
import { nameQueue } from '../../workflows/run/plan.ts'
import { bundleWorkflows, VERSIONED_ENTRY } from './bundle.ts'
import type { EngineLimits, EngineProcess, EngineTemporal } from './options.ts'
import type { DeploymentVersion } from './routing.ts'

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

/** How many tasks of each kind a worker takes at once. */
export type Slots = Record<'nodes' | 'models' | 'segments' | 'runs', number>

export function chooseSlots({
  nodesAtOnce = WORKER_OPTIONS.maxConcurrentActivityTaskExecutions,
  segmentsAtOnce = WORKER_OPTIONS.maxConcurrentLocalActivityExecutions,
  runsAtOnce = WORKER_OPTIONS.maxConcurrentWorkflowTaskExecutions,
  modelCallsAtOnce = MODEL_CALLS_AT_ONCE,
}: EngineLimits): Slots {
  return { nodes: nodesAtOnce, models: modelCallsAtOnce, segments: segmentsAtOnce, runs: runsAtOnce }
}

/** How long the calls under way may go on when the workers stop, in ms: those of nodes, and those to models. */
export function chooseGrace({ stopGraceMs = STOP_GRACE_MS, modelStopGraceMs = 0 }: EngineProcess) {
  return { nodes: stopGraceMs, models: Math.max(stopGraceMs, modelStopGraceMs) }
}

type WorkersOptions = Pick<
  EngineTemporal,
  'connection' | 'namespace' | 'taskQueue' | 'version' | 'bundle'
> & {
  processId: string
  slots: Slots
  grace: ReturnType<typeof chooseGrace>
  dataConverter: WorkerOptions['dataConverter']
  /** The activities of runs, which both workers carry out. */
  activities: object
  /** The activities of schedules. */
  fireActivities: object
  /** Is told of each run that is about to close, and of its team's key. */
  onClosing: (executionId: string, fairnessKey: string | undefined) => void
  log: Logger
}

/** The worker that carries runs and their nodes, and the one that makes calls to models. */
export type Workers = {
  /** Resolves when both have stopped, and rejects after a fatal error. */
  stopped: Promise<void>
  isPolling(): boolean
  /** For each kind of task: how many are worked on, and the most that are taken. */
  readSlots(): Record<'node' | 'model' | 'segment' | 'workflow', [used: number, most: number]>
  /** How many slots for runs are taken: by polls, by runs that think, and by runs for which a segment walks. */
  countRuns(): number
  /** Takes no more calls to models. Resolves when those under way have ended. */
  stopModels(): Promise<void>
  /** Takes nothing more. `wait` then waits for what is under way, and says whether all of it was put down. */
  stopNodes(): void
  wait(): Promise<boolean>
}

export async function startWorkers(options: WorkersOptions): Promise<Workers> {
  const { slots } = options
  const nodes = await createNodeWorker(options)
  const models = await createModelWorker(options)
  const runs = [nodes.run(), models.run()]
  const stopped = Promise.all(runs).then(() => {})
  // Who waits for the end of one of them only learns of it there.
  stopped.catch(() => {})
  const shutDown = (worker: Worker) => {
    if (worker.getState() === 'RUNNING') worker.shutdown()
  }
  return {
    stopped,
    isPolling: () => [nodes, models].every((one) => one.getState() === 'RUNNING'),
    readSlots() {
      const { numInFlightNonLocalActivities, numInFlightLocalActivities, numInFlightWorkflowActivations } =
        nodes.getStatus()
      return {
        node: [numInFlightNonLocalActivities, slots.nodes],
        model: [models.getStatus().numInFlightNonLocalActivities, slots.models],
        segment: [numInFlightLocalActivities, slots.segments],
        workflow: [numInFlightWorkflowActivations, slots.runs],
      }
    },
    countRuns() {
      const { numInFlightWorkflowActivations, numInFlightLocalActivities } = nodes.getStatus()
      const polls = WORKER_OPTIONS.maxConcurrentWorkflowTaskPolls
      return polls + numInFlightWorkflowActivations + numInFlightLocalActivities
    },
    async stopModels() {
      shutDown(models)
      await runs[1]!.catch(() => {})
    },
    stopNodes: () => shutDown(nodes),
    async wait() {
      const failed = (await Promise.allSettled(runs)).filter((end) => end.status === 'rejected')
      for (const { reason } of failed) options.log.error({ err: reason }, 'the worker stopped with an error')
      return failed.length === 0
    },
  }
}

/** What both workers have in common. */
function listCommon(options: WorkersOptions) {
  const { connection, namespace, dataConverter, version, processId } = options
  return {
    identity: nameWorker(processId, hostname()),
    connection,
    namespace,
    ...(dataConverter ? { dataConverter } : {}),
    ...(version ? { workerDeploymentOptions: pinTo(version) } : {}),
  }
}

async function createNodeWorker(options: WorkersOptions): Promise<Worker> {
  const { taskQueue, version, bundle, slots, grace, activities, fireActivities, onClosing } = options
  return Worker.create({
    ...WORKER_OPTIONS,
    ...listCommon(options),
    shutdownGraceTime: grace.nodes,
    shutdownForceTime: grace.nodes + STOP_FORCE_MS,
    maxConcurrentActivityTaskExecutions: slots.nodes,
    maxConcurrentLocalActivityExecutions: slots.segments,
    maxConcurrentWorkflowTaskExecutions: slots.runs,
    taskQueue,
    workflowBundle: bundle ?? (await bundleWorkflows(version ? VERSIONED_ENTRY : undefined)),
    activities: { ...activities, ...fireActivities },
    sinks: {
      run: {
        closing: {
          fn: (info) => onClosing(info.workflowId, info.priority?.fairnessKey),
          callDuringReplay: false,
        },
      },
    },
  })
}

function createModelWorker(options: WorkersOptions): Promise<Worker> {
  const { taskQueue, slots, grace, activities } = options
  return Worker.create({
    ...listCommon(options),
    shutdownGraceTime: grace.models,
    shutdownForceTime: grace.models + STOP_FORCE_MS,
    maxConcurrentActivityTaskExecutions: slots.models,
    maxConcurrentActivityTaskPolls: MODEL_POLLS,
    maxHeartbeatThrottleInterval: WORKER_OPTIONS.maxHeartbeatThrottleInterval,
    taskQueue: nameQueue(taskQueue, 'models'),
    activities,
  })
}

/** Runs stay on the version that they began on, until they continue as new. Firings do not (workflows/run/versioned.ts). */
function pinTo(version: DeploymentVersion): WorkerDeploymentOptions {
  return { useWorkerVersioning: true, version, defaultVersioningBehavior: 'PINNED' }
}

function readHeapMegabytes(): number {
  return getHeapStatistics().heap_size_limit / 1_048_576
}
