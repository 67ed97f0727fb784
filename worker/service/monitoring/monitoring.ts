import type { Logger } from 'pino'
import type { Outsides } from '../../../activities/egress/outside.ts'
import type { SemanticPool } from '../../../activities/guardrails/semantic/similar.ts'
import type { Mailer } from '../../../activities/mail/smtp.ts'
import type { Bus } from '../../../db/bus.ts'
import type { Store } from '../../../db/scope.ts'
import { startJudgedBatches } from '../evaluation/batches.ts'
import { startJudging } from '../evaluation/judging.ts'
import { startNotices } from './notices.ts'
import { startScheduledReports } from './reports.ts'
import { startSampling } from './sampling.ts'
import { startWatching } from './watching.ts'

/** The dependencies of the jobs of monitoring and evaluation. */
export type MonitoringDeps = {
  store: Store
  bus: Bus
  /** The one way out for all that users aim. */
  outside: Outsides
  /** Undefined: the operator has set up no SMTP server. */
  mailer: Mailer | undefined
  publicUrl: string
  log: Logger
  /** The threads that make embeddings of texts, which the nodes of this process use too. */
  semantic: SemanticPool
}

/** The jobs that every worker runs: each claims what it works on, so that any number of processes may run them. */
const JOBS: ((deps: MonitoringDeps) => () => Promise<void>)[] = [
  startSampling,
  startWatching,
  startScheduledReports,
  (deps) => startNotices(deps),
  (deps) => startJudging(deps),
  (deps) => startJudgedBatches(deps),
]

/** Starts all jobs. Returns the function that ends them; what they are at is claimed by others later. */
export function startMonitoring(deps: MonitoringDeps): () => Promise<void> {
  const ends = JOBS.map((start) => start(deps))
  return async () => {
    await Promise.all(ends.map((end) => end()))
  }
}
