import { setPriority } from 'node:os'
import { Worker } from 'node:worker_threads'
import type { Asker } from './fairness/teamqueue.ts'
import { createPool, type WorkerEvents } from './pool.ts'

/**
 * Threads of one program that work on texts of teams, so that a long one holds up nothing else. Teams take turns, and a
 * team never has more than half of the threads.
 */
export type ThreadPool<Job, Message extends object> = {
  /**
   * The result of each part of a job, in the order of their names. A job that takes too long is ended. Rejects with
   * DetectorsBusy if no thread was free in time, or the pool is closed.
   */
  work<Name extends string, Result>(
    asker: Asker,
    job: Job,
    parts: Parts<Name, Message, Result>,
  ): Promise<Result[]>
  /**
   * Does work for a team that holds a text of so many UTF-16 units in memory until it is done. Rejects with DetectorsBusy
   * if the team holds too much already.
   */
  hold<T>(team: string, length: number, work: () => Promise<T>): Promise<T>
  close(): Promise<void>
}

/** The parts of a job. `fail` makes the result of a part that has told nothing, with a sentence that says why. */
type Parts<Name extends string, Message, Result> = {
  /** Processor time for all of them. */
  limitMs: number
  /** How long the job may wait for a thread, if not as long as any. */
  patienceMs?: number | undefined
  names: Name[]
  nameOf(message: Message): string
  fail(name: Name, missing: string): Result
}

/** A thread says when it is ready for the first job, then for each job the result of each of its parts, and `done`. */
export type ThreadMessage<Result extends object> = 'ready' | 'done' | Result

/** The name of the error if no thread was free: no work has been done. */
export const THREADS_BUSY = 'DetectorsBusy'
const STOPPING = 'The service is stopping'

/** How long a job may take by the clock, which counts what else the machine does: its own limit is processor time. */
const FAR_MS = 30_000
const PATIENCE_MS = 60_000
/** How many UTF-16 units of a team's texts may be in a pool: those that wait are held in memory. */
const MAX_HELD = 50_000_000
const BOOT_MS = 60_000
/** The most memory of a thread's heap. Texts are bounded, and so is what detectors make of them. */
const HEAP_MB = 512
const NICE = 5

/** A job, whatever its pool makes of the messages about it. */
type Work = {
  asker: Asker
  job: unknown
  limitMs: number
  take: (message: object) => void
  /** Ends it, with this sentence for the parts that have told nothing. */
  settle: (missing: string) => void
  reject: (error: unknown) => void
  /** Runs out when it has had to wait too long for a thread. */
  patience?: NodeJS.Timeout
}

type Thread = {
  worker: Worker
  on: WorkerEvents<Work, string>
  /** The timer of its start, then that of its job. */
  timer?: NodeJS.Timeout
  fail(why: string): void
}

export type ThreadSettings = { patienceMs?: number; maxHeld?: number }

/** Threads are started when there is work for them, and stay. */
export function createThreadPool<Job, Message extends object>({
  threads,
  program,
  patienceMs = PATIENCE_MS,
  maxHeld = MAX_HELD,
}: ThreadSettings & { threads: number; program: URL }): ThreadPool<Job, Message> {
  let closed = false
  // The end of the process says nothing about the text of a job that it has cut off.
  const settle = (work: Work, missing: string) => (closed ? refuse(work, STOPPING) : work.settle(missing))
  const pool = createPool<Work, Thread, string>(threads, {
    start: (on) => startThread(program, on, settle),
    begin(thread, work) {
      clearTimeout(work.patience)
      watch(thread, work)
      thread.worker.ref()
      thread.worker.postMessage(work.job)
    },
    lose: settle,
    giveUp: (work) => refuse(work, 'The detectors do not start'),
    stop: ({ worker }) => worker.terminate(),
  })
  return {
    async work<Name extends string, Result>(
      asker: Asker,
      job: Job,
      { limitMs, patienceMs: waitMs = patienceMs, names, nameOf, fail }: Parts<Name, Message, Result>,
    ) {
      if (closed) throw createBusy(STOPPING)
      return new Promise<Result[]>((resolve, reject) => {
        const results = new Map<string, object>()
        const take = (message: object) => results.set(nameOf(message as Message), message)
        const end = (missing: string) =>
          resolve(names.map((name) => (results.get(name) as Result | undefined) ?? fail(name, missing)))
        const work: Work = { asker, job, limitMs, take, settle: end, reject }
        work.patience = setTimeout(() => {
          pool.remove(work)
          reject(createBusy('All threads that the team may have are taken'))
        }, waitMs)
        pool.add(work)
      })
    },
    hold: createHolder(maxHeld),
    close() {
      closed = true
      return pool.close((work) => refuse(work, STOPPING))
    },
  }
}

function startThread(program: URL, on: Thread['on'], settle: (work: Work, missing: string) => void): Thread {
  const worker = new Worker(program, { resourceLimits: { maxOldGenerationSizeMb: HEAP_MB } })
  const fail = (why: string) => {
    clearTimeout(thread.timer)
    worker.unref()
    void worker.terminate()
    on.end(why)
  }
  const thread: Thread = { worker, on, fail }
  thread.timer = setTimeout(() => fail('The detectors did not start'), BOOT_MS)
  worker.on('message', (message: ThreadMessage<object>) => {
    if (typeof message !== 'string') return on.job()?.take(message)
    clearTimeout(thread.timer)
    // A thread without work does not keep the process alive.
    worker.unref()
    if (message === 'ready') on.ready()
    else on.done((work) => settle(work, 'It has said nothing'))
  })
  worker.on('error', () => fail('The detectors failed'))
  worker.on('exit', () => fail('The detectors ended'))
  return thread
}

/** Ends the thread when its job has had its processor time. */
function watch(thread: Thread, work: Work): void {
  const { worker, on } = thread
  const { limitMs } = work
  const began = performance.now()
  const before = worker.cpuUsage()
  const look = async () => {
    const [from, now] = await Promise.all([before, worker.cpuUsage()]).catch(() => [])
    if (on.job() !== work) return
    const used = from && now ? (now.user - from.user + now.system - from.system) / 1_000 : limitMs
    if (used >= limitMs || performance.now() - began >= FAR_MS) thread.fail('It took too long')
    else thread.timer = setTimeout(look, Math.max(20, limitMs - used))
  }
  thread.timer = setTimeout(look, limitMs)
}

/** Bounds what each team holds. */
function createHolder(maxHeld: number): ThreadPool<never, never>['hold'] {
  const held = new Map<string, number>()
  return async (team, length, work) => {
    const before = held.get(team) ?? 0
    if (before + length > maxHeld) throw createBusy('Too many texts of the team wait already')
    held.set(team, before + length)
    try {
      return await work()
    } finally {
      // The team may already have been removed from the map: an empty text adds nothing to it.
      const left = (held.get(team) ?? 0) - length
      if (left === 0) held.delete(team)
      else held.set(team, left)
    }
  }
}

function refuse({ patience, reject }: Work, why: string): void {
  clearTimeout(patience)
  reject(createBusy(why))
}

const createBusy = (message: string) => Object.assign(new Error(message), { name: THREADS_BUSY })

/** Puts the calling thread behind the one that serves requests, where the system can tell threads apart. */
export function standBehind(): void {
  if (process.platform !== 'linux') return
  try {
    setPriority(0, NICE)
  } catch {
    // Some containers forbid it: the thread works as well without.
  }
}
