import { type Asker, createTeamQueue } from '../fairness/teamqueue.ts'
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

type Slot = { process: EvaluatorProcess; ready: boolean; queued?: QueuedJob | undefined }

const MAX_BOOTS = 3

/** How many processes may starve under a job before whoever asked has to ask again later. */
const MAX_STARVED = 2

/**
 * A pool of processes for expressions. Threads will not do: V8 ends the whole process, not only the thread,
 * if one big allocation exceeds a thread's heap limit (measured with `$pad("x", 500000000)` and
 * `[1..10000000]`). Teams take turns, and a team never has more than half of the processes.
 */
export function createEvaluatorPool({
  processes,
  ...limits
}: ProcessLimits & { processes: number }): EvaluatorPool {
  const slots = new Set<Slot>()
  const waiting = createTeamQueue<QueuedJob>(processes)
  let failedBoots = 0
  let draining = false
  let closed = false
  const refuses = ({ answered }: PoolAsker) => closed || (draining && !answered)

  function giveWork(): void {
    for (const slot of slots) {
      if (!slot.ready || slot.queued) continue
      const queued = waiting.take()
      if (!queued) return
      begin(slot, queued)
    }
    const booting = [...slots].filter((slot) => !slot.ready).length
    if (waiting.wanted() > booting && slots.size < processes) addSlot()
  }

  function begin(slot: Slot, queued: QueuedJob): void {
    let job: EvaluatorJob
    try {
      job = queued.prepare()
    } catch (error) {
      waiting.done(queued.asker)
      queued.reject(error)
      giveWork()
      return
    }
    slot.queued = queued
    slot.process.send(job)
  }

  function addSlot(): void {
    const on = { reply: receive, end: remove }
    const slot: Slot = { process: startEvaluatorProcess(limits, on), ready: false }
    slots.add(slot)

    function receive(reply: EvaluatorReply): void {
      if (reply.kind === 'ready') {
        slot.ready = true
        failedBoots = 0
      } else {
        const { queued } = slot
        slot.queued = undefined
        if (queued) waiting.done(queued.asker)
        queued?.resolve(reply)
      }
      giveWork()
    }

    function remove(end: ProcessEnd): void {
      slots.delete(slot)
      const { queued, ready } = slot
      if (queued) waiting.done(queued.asker)
      if (closed) {
        queued?.resolve(STOPPING)
        return
      }
      if (queued && refuses(queued.asker)) queued.resolve(STOPPING)
      else if (queued) settleLost(queued, end)
      else if (!ready && ++failedBoots >= MAX_BOOTS) {
        failedBoots = 0
        resolveAll(createFault('DOWN', end.log.trim()))
      }
      // Start a process now, even if no job waits: the next job need not wait until it has booted.
      if (slots.size === 0 && (queued || waiting.wanted() > 0)) addSlot()
      giveWork()
    }
  }

  /** Ends or repeats the job whose process ended while it was running. */
  function settleLost(queued: QueuedJob, { late, starved, huge, signal }: ProcessEnd): void {
    if (late) queued.resolve(createFault('TIMEOUT'))
    else if (huge) queued.resolve(createFault('MEMORY'))
    // That a process got no time says nothing about the expression, so a fresh one does the job again.
    else if (starved && ++queued.starved < MAX_STARVED) waiting.add(queued.asker, queued)
    else if (starved) queued.resolve(createFault('DOWN', 'this machine has no processor time for them'))
    // Neither does a kill from outside, but it may be for the memory that the job takes.
    else if (signal === 'SIGKILL' && queued.kills++ === 0) waiting.add(queued.asker, queued)
    else queued.resolve(createFault('MEMORY'))
  }

  function resolveAll(reply: EvaluatorReply): void {
    for (const queued of waiting.clear()) queued.resolve(reply)
  }

  addSlot()
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
            // A job whose process was killed waits a second time, and nobody may want it any more.
            asker.signal?.throwIfAborted()
            return prepare()
          }
          const queued: QueuedJob = { asker, prepare: begin, kills: 0, starved: 0, resolve, reject }
          wait = startWait(asker, () => {
            waiting.remove(asker, queued)
            if (asker.signal?.aborted) reject(asker.signal.reason)
            else resolve(createFault('BUSY', 'all processes that the team may have are taken'))
          })
          waiting.add(asker, queued)
          giveWork()
        })
      } finally {
        wait?.end()
        clearInterval(alive)
      }
    },
    drain() {
      draining = true
      for (const queued of waiting.clear()) {
        if (refuses(queued.asker)) queued.resolve(STOPPING)
        else waiting.add(queued.asker, queued)
      }
      for (const { queued, process } of slots) if (queued && refuses(queued.asker)) void process.end()
      giveWork()
    },
    async close() {
      closed = true
      resolveAll(STOPPING)
      await Promise.all([...slots].map(({ process }) => process.end()))
    },
  }
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
