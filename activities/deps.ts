import type { Logger } from 'pino'
import type { Store } from '../db/scope.ts'
import type { Replies } from './chat/replies.ts'
import type { Outsides } from './egress/outside.ts'
import type { Evaluator } from './expressions/evaluator.ts'
import type { FirstTasks } from './fairness/firsttasks.ts'
import type { WorkerPlaces } from './fairness/worker.ts'
import type { Guardrails } from './guardrails/request.ts'
import type { Metrics } from './metrics.ts'
import type { AttemptLog } from './run/attemptlog.ts'
import type { Calls } from './run/calls/calls.ts'
import type { Shares } from './run/share.ts'
import type { Tracing } from './tracing.ts'

/** The dependencies of the activities, made once per process. */
export type ActivityDeps = {
  store: Store
  evaluator: Evaluator
  /** The checks of texts, in threads of this process. */
  guardrails: Guardrails
  /** The one guarded door to the world, by the rules of each team. */
  outside: Outsides
  attempts: AttemptLog
  calls: Calls
  shares: Shares
  /** Where the nodes that reply in chats write their text. */
  replies: Pick<Replies, 'open'>
  /** A UUID of this process, under which it holds its lease, and its end is noted if it runs out of memory. */
  processId: string
  /** Whether this process can tell by the leases of others who is lost: not right after an outage of PostgreSQL. */
  knowsLost: () => boolean
  /** Aborted when the process puts down all calls under way, before its workers do by themselves. */
  putDown?: AbortSignal | undefined
  places: WorkerPlaces
  firstTasks: FirstTasks
  log: Logger
  /** The address under which users reach the service; resume URLs begin with it. */
  publicUrl: string
  metrics?: Metrics | undefined
  tracing?: Tracing | undefined
  /** The most records that one segment makes; tests set fewer than the default. */
  segmentRecords?: number | undefined
  /** How long an unknown error may last in a segment; tests set less than the default. */
  patienceMs?: number | undefined
  /** How long a model's vendor may send nothing, in milliseconds. Undefined: 30,000. */
  modelSilenceMs?: number | undefined
  /** Reports that a run has progressed, so that its rows are updated soon. */
  touch: (executionId: string) => void
}
