import type { Asker } from '../fairness/teamqueue.ts'
import { createPool } from '../pool.ts'
import type { EvaluatorFault, EvaluatorJob, EvaluatorReply } from './job.ts'
import {
  type EvaluatorProcess,
  type ProcessEnd,
  type ProcessLimits,
  startEvaluatorProcess,
} from './process.ts'

/**
 * `run` calls `prepare` only when a process is free, so that waiting jobs hold no copies of their data, and
 * rejects with what it throws. All other failures are replies of kind `error`: `at` is the index of the
 * expression that failed, or -1 if that is unknown.
 */
export type EvaluatorPool = {
  run(asker: PoolAsker, prepare: () => EvaluatorJob): Promise<EvaluatorReply>
  /** Ends all jobs but those of an `answered` asker, as `close` does, and from now on takes only such ones. */
  drain(): void
  close(): Promise<void>
}

/**
 * Whose job it is. After `patienceMs` without a process the job is given up, with the fault BUSY. When `signal`
 * is aborted, a job that has no process yet is given up too, and `run` rejects with the signal's reason. `waits`
 * is called when the job begins to wait, and what it returns when the job has a process or is given up.
 * `answered`: the job belongs to a call that must not be made again, such as the reading of an answer that has come.
 */
export type PoolAsker = Asker & {
  patienceMs?: number | undefined
  signal?: AbortSignal | undefined
  waits?: (() => () => void) | undefined
  answered?: boolean | undefined
}

type QueuedJob = {
  asker: PoolAsker
  prepare: () => EvaluatorJob
  kills: number
  starved: number
  resolve: (reply: EvaluatorReply) => void
  reject: (error: unknown) => void
}

/** How many processes may starve under a job before its asker has to ask again later. */
const MAX_STARVED = 2

/**
 * A pool of processes for expressions. Threads will not do: V8 ends the whole process, not only the thread,
 * if one big allocation exceeds a thread's heap limit (measured with `$pad("x", 500000000)` and
 * `[1..10000000]`).
 */
export function createEvaluatorPool({
  processes,
  ...limits
}: ProcessLimits & { processes: number }): EvaluatorPool {
  let draining = false
  let closed = false
  const refuses = ({ answered }: PoolAsker) => closed || (draining && !answered)
  const refuse = ({ resolve }: QueuedJob) => resolve(STOPPING)

  const pool = createPool<QueuedJob, EvaluatorProcess, ProcessEnd>(processes, {
    keepsOne: true,
    start: (on) =>
      startEvaluatorProcess(limits, {
        reply(reply) {
          if (reply.kind === 'ready') on.ready()
          else on.done(({ resolve }) => resolve(reply))
        },
        end: on.end,
      }),
    begin: (process, { prepare }) => process.send(prepare()),
    lose(job, end) {
      if (refuses(job.asker)) refuse(job)
      else if (mayRepeat(job, end)) pool.add(job)
      else job.resolve(describeEnd(end))
    },
    giveUp: ({ resolve }, end) => resolve(createFault('DOWN', end.log.trim())),
    stop: (process) => process.end(),
  })

  return {
    async run(asker, prepare) {
      if (refuses(asker)) return STOPPING
      asker.signal?.throwIfAborted()
      // The child processes are unreferenced and do not keep this process alive; a job under way must.
      const alive = setInterval(() => {}, 60_000)
      let wait: { end(): void } | undefined
      try {
        return await new Promise<EvaluatorReply>((resolve, reject) => {
          const begin = () => {
            wait?.end()
            // A job whose process was killed waits a second time, and may be unwanted by then.
            asker.signal?.throwIfAborted()
            return prepare()
          }
          const queued: QueuedJob = { asker, prepare: begin, kills: 0, starved: 0, resolve, reject }
          wait = startWait(asker, () => {
            pool.remove(queued)
            if (asker.signal?.aborted) reject(asker.signal.reason)
            else resolve(createFault('BUSY', 'all processes that the team may have are taken'))
          })
          pool.add(queued)
        })
      } finally {
        wait?.end()
        clearInterval(alive)
      }
    },
    drain() {
      draining = true
      pool.drop(({ asker }) => refuses(asker), refuse)
    },
    close() {
      closed = true
      return pool.close(refuse)
    },
  }
}

/** Whether a job whose process ended is done again by another, as it may not be what has ended it. */
function mayRepeat(job: QueuedJob, { late, starved, huge, signal }: ProcessEnd): boolean {
  if (late || huge) return false
  // That a process got no time says nothing about the expression.
  if (starved) return ++job.starved < MAX_STARVED
  // Neither does a kill from outside, but it may be for the memory that the job takes.
  return signal === 'SIGKILL' && job.kills++ === 0
}

function describeEnd({ late, starved, huge }: ProcessEnd): EvaluatorReply {
  if (late) return createFault('TIMEOUT')
  if (starved && !huge) return createFault('DOWN', 'this machine has no processor time for them')
  return createFault('MEMORY')
}

/**
 * Begins a job's wait for a process; `giveUp` is called if it lasts longer than the asker's patience, or the
 * asker's signal is aborted.
 */
function startWait({ patienceMs, signal, waits }: PoolAsker, giveUp: () => void): { end(): void } {
  let ended = waits?.()
  const timer = patienceMs === undefined ? undefined : setTimeout(giveUp, patienceMs)
  signal?.addEventListener('abort', giveUp)
  return {
    end() {
      clearTimeout(timer)
      signal?.removeEventListener('abort', giveUp)
      ended?.()
      ended = undefined
    },
  }
}

function createFault(cause: EvaluatorFault, message = ''): EvaluatorReply {
  return { kind: 'error', at: -1, cause, message }
}

const STOPPING = createFault('DOWN', 'the service is stopping')
