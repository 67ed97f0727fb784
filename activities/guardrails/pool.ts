import { availableParallelism } from 'node:os'
import type { Asker } from '../fairness/teamqueue.ts'
import { createThreadPool, type ThreadPool, type ThreadSettings } from '../threads.ts'
import type { DetectorName } from './detectors.ts'
import type { RuleResult } from './rules/compiled.ts'
import type { DetectionJob, DetectionResult, RuleJob } from './thread.ts'

/**
 * Threads that look for things in texts, so that a long text holds up nothing else. Teams take turns, and a team never has
 * more than half of the threads.
 */
export type DetectorPool = {
  /**
   * What each detector of the job found, in their order. A job that takes too long is ended: the detectors that had not
   * come to an end have an `error`. Rejects with DetectorsBusy if no thread was free in time, or the pool is closed.
   */
  run(asker: Asker, job: DetectionJob, patienceMs?: number): Promise<DetectionResult[]>
  /** The same for rules of a team, which have `limitMs` of processor time together. */
  apply(asker: Asker, job: RuleJob, limitMs: number, patienceMs?: number): Promise<RuleResult[]>
} & Pick<ThreadPool<never, never>, 'hold' | 'close'>

/** The processor time of all detectors of a text. */
const DEADLINE_MS = 5_000

type DetectorSettings = ThreadSettings & { threads?: number; deadlineMs?: number; program?: URL }

/** The threads of the detectors. `program` is that of a thread; tests give others. */
export function createDetectorPool({
  threads = 2 * Math.min(2, availableParallelism()),
  deadlineMs = DEADLINE_MS,
  program = new URL('./thread.ts', import.meta.url),
  ...settings
}: DetectorSettings = {}): DetectorPool {
  const pool = createThreadPool<DetectionJob | RuleJob, DetectionResult | RuleResult>({
    threads,
    program,
    ...settings,
  })
  const nameOf = (message: DetectionResult | RuleResult) => ('rule' in message ? message.rule : message.type)
  return {
    run(asker, job, patienceMs) {
      const names = Object.keys(job.detection) as DetectorName[]
      const fail = (type: DetectorName, error: string): DetectionResult => ({ type, ms: 0, error })
      return pool.work(asker, job, { limitMs: deadlineMs, patienceMs, names, nameOf, fail })
    },
    apply(asker, job, limitMs, patienceMs) {
      const names = job.rules.map(({ id }) => id)
      const fail = (rule: string, error: string): RuleResult => ({ rule, ms: 0, error })
      return pool.work(asker, job, { limitMs, patienceMs, names, nameOf, fail })
    },
    hold: pool.hold,
    close: pool.close,
  }
}
