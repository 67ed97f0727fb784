import type { Client } from '@temporalio/client'
import type { Logger } from 'pino'
import type { Store } from '../../db/scope.ts'
import type { FirstTasks } from '../fairness/firsttasks.ts'
import type { Metrics } from '../metrics.ts'
import type { Tracing } from '../tracing.ts'
import type { Sealer } from './sealer.ts'

/**
 * The tools for carrying out errands. `eager` says whether to ask for an eager start now: then the worker in this
 * process gets the run's first task with the response, past Temporal's queue and what routes it, and is told of it
 * (`firstTasks`).
 */
export type ErrandCarrier = {
  store: Store
  client: Client
  sealer: Sealer
  taskQueue: string
  eager: () => boolean
  firstTasks?: FirstTasks | undefined
  log: Logger
  metrics?: Metrics | undefined
  tracing?: Tracing | undefined
  /** After how long a cancelled execution whose workflow code does not answer is ended; tests set a shorter time. */
  stuckAfterMs?: number | undefined
  /** Makes runs continue as new after this many events; for tests. */
  continueAfterEvents?: number | undefined
}
