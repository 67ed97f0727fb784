import type { NativeConnection, WorkflowBundleWithSourceMap } from '@temporalio/worker'
import type { Logger } from 'pino'
import type { Replies } from '../../activities/chat/replies.ts'
import type { Outsides } from '../../activities/egress/outside.ts'
import type { createEvaluator, Evaluator } from '../../activities/expressions/evaluator.ts'
import type { Metrics } from '../../activities/metrics.ts'
import type { Sealer } from '../../activities/temporal/sealer.ts'
import type { Tracing } from '../../activities/tracing.ts'
import type { Bus } from '../../db/bus.ts'
import type { Store } from '../../db/scope.ts'
import type { CheckingOptions } from './checking.ts'
import type { DeploymentVersion } from './routing.ts'
import type { LOST } from './runchecks.ts'

export type EngineOptions = {
  store: Store
  bus: Bus
  sealer: Sealer
  /** The ways out for what users' calls reach. The caller closes it after the engine has stopped. */
  outside: Outsides
  /** The replies of chats that are read in this process too. Without them, others read what is written here. */
  replies?: Replies | undefined
  /** The base of the URLs that are shown to users. */
  publicUrl: string
  /** How texts are checked. */
  guardrails?: CheckingOptions
  metrics?: Metrics | undefined
  tracing?: Tracing | undefined
  log: Logger
  temporal: EngineTemporal
  process: EngineProcess
  limits: EngineLimits
  times: EngineTimes
}

/** Where the engine finds its work in Temporal. */
export type EngineTemporal = {
  connection: NativeConnection
  namespace: string
  taskQueue: string
  /** The version that this worker belongs to. Without it, workers are not versioned. */
  version?: DeploymentVersion | undefined
  /** A bundle made earlier. Without it, one is made at the start, which takes about a second. */
  bundle?: WorkflowBundleWithSourceMap | { codePath: string }
  /** Makes runs continue as new after this many events; for tests. */
  continueAfterEvents?: number | undefined
}

/** The process that the engine runs in, and how it stops. */
export type EngineProcess = {
  /** A UUID of this process, if another process watches how it ends (worker/guard.ts). */
  processId?: string | undefined
  /** A data folder, with its machine, on which no other process runs at the same time. */
  place?: string | undefined
  /** A connection of its own for the lease of this process. Without it, the lease is renewed over `store`. */
  leaseStore?: Store | undefined
  /** How long the calls under way may go on when the worker stops. */
  stopGraceMs?: number | undefined
  /** How long calls to models may, if that is longer: a call that is made again is paid for again. */
  modelStopGraceMs?: number | undefined
  /** How long before the end of that the evaluations under way are ended; tests set another time. */
  evaluationEndMs?: number | undefined
  /** An evaluator that all engines of this process use, and that the caller closes. Without it, the engine has its own. */
  evaluator?: Evaluator | undefined
}

/** How much the engine does at once; tests set smaller numbers than the defaults. */
export type EngineLimits = {
  /** How many attempts of nodes it carries out at once, half of them for one team at most. */
  nodesAtOnce?: number | undefined
  /** How many calls to models and tools of agents it makes at once, half of them for one team at most. */
  modelCallsAtOnce?: number | undefined
  /** How many segments it walks at once. */
  segmentsAtOnce?: number | undefined
  /** How many runs it works on at once. */
  runsAtOnce?: number | undefined
  /** The bytes that answers and large inputs of nodes may take in this process, all together. */
  budgetBytes: number
  /** The most records that one segment makes. */
  segmentRecords?: number | undefined
  /** The evaluator's processes and limits. */
  expressions?: Parameters<typeof createEvaluator>[0]
}

/** How long the engine waits for what; tests set other times than the defaults. */
export type EngineTimes = {
  /** When a stuck execution that is to end is ended. */
  stuckAfterMs?: number | undefined
  /** When an execution counts as lost. */
  lost?: typeof LOST | undefined
  /** How often the sweeper looks. */
  sweepEveryMs?: number | undefined
  /** How long an unknown error may last in a segment. */
  patienceMs?: number | undefined
  /** How long a model's vendor may send nothing. */
  modelSilenceMs?: number | undefined
}
