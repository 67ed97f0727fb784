import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { type Asker, createTeamQueue } from '../fairness/teamqueue.ts'
import type { DetectorName } from './detectors.ts'
import type { ThreadMessage } from './messages.ts'
import type { RuleResult } from './rules/compiled.ts'
import type { DetectionJob, DetectionResult, RuleJob } from './thread.ts'

/**
 * Threads of one program that work on texts of teams, so that a long one holds up nothing else. Teams take turns, and a
 * team never has more than half of the threads.
 */
export type ThreadPool<Job, Message extends object> = {
  /**
   * What came of each part of a job, in the order of their names. A job that takes too long is ended. Rejects with
   * DetectorsBusy if no thread was free in time, or the pool is closed.
   */
  work<Name extends string, Result>(
    asker: Asker,
    job: Job,
    parts: Parts<Name, Message, Result>,
  ): Promise<Result[]>
} & Pick<DetectorPool, 'hold' | 'close'>

/** The parts of a job. `fail` makes what stands for a part of which nothing has come, with a sentence that says why. */
type Parts<Name extends string, Message, Result> = {
  /** Processor time for all of them. */
  limitMs: number
  /** How long the job may wait for a thread, if not as long as any. */
  patienceMs?: number | undefined
  names: Name[]
  nameOf(message: Message): string
  fail(name: Name, missing: string): Result
}

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
  /**
   * Does work for a team that holds a text of so many UTF-16 units in memory until it is done. Rejects with DetectorsBusy
   * if the team holds too much already.
   */
  hold<T>(team: string, length: number, work: () => Promise<T>): Promise<T>
  close(): Promise<void>
}

/** No thread was free: nothing has been looked for. */
export const DETECTORS_BUSY = 'DetectorsBusy'
const STOPPING = 'The service is stopping'

/** So much processor time a text may take, and so much time by the clock: what else the machine does must not count. */
const DEADLINE_MS = 5_000
const FAR_MS = 30_000
const PATIENCE_MS = 60_000
/** So many UTF-16 units of a team's texts may be in the pool: those that wait are held in memory. */
const MAX_HELD = 50_000_000
const BOOT_MS = 60_000
const MAX_BOOTS = 3
/** So much a thread may have in its heap. Texts are bounded, and so is what detectors make of them. */
const HEAP_MB = 512

type Queued<Job, Message> = {
  asker: Asker
  job: Job
  limitMs: number
  take: (message: Message) => void
  /** Ends it, with this sentence for what nothing has come of. */
  settle: (missing: string) => void
  refuse: (error: Error) => void
  /** Runs out when it has had to wait too long for a thread. */
  patience?: NodeJS.Timeout
}
type Slot<Job, Message> = {
  thread: Worker
  ready: boolean
  queued?: Queued<Job, Message> | undefined
  timer?: NodeJS.Timeout
}

type PoolSettings = {
  threads?: number
  deadlineMs?: number
  patienceMs?: number
  maxHeld?: number
  program?: URL
}

/** The threads of the detectors. `program` is that of a thread; tests give others. */
export function createDetectorPool({
  threads = 2 * Math.min(2, availableParallelism()),
  deadlineMs = DEADLINE_MS,
  program = new URL('./thread.ts', import.meta.url),
  ...settings
}: PoolSettings = {}): DetectorPool {
  const pool = createThreadPool<DetectionJob | RuleJob, DetectionResult | RuleResult>({
    threads,
    program,
    ...settings,
  })
  const nameOf = (message: DetectionResult | RuleResult) => ('rule' in message ? message.rule : message.type)
  return {
    run(asker, job, patienceMs) {
      const names = Object.keys(job.detection) as DetectorName[]
      const fail = (type: DetectorName, error: string) => ({ type, ms: 0, error })
      return pool.work<DetectorName, DetectionResult>(asker, job, {
        limitMs: deadlineMs,
        patienceMs,
        names,
        nameOf,
        fail,
      })
    },
    apply(asker, job, limitMs, patienceMs) {
      const names = job.rules.map(({ id }) => id)
      const fail = (rule: string, error: string) => ({ rule, ms: 0, error })
      return pool.work<string, RuleResult>(asker, job, { limitMs, patienceMs, names, nameOf, fail })
    },
    hold: pool.hold,
    close: pool.close,
  }
}

/** Threads are started when there is work for them, and stay. */
export function createThreadPool<Job, Message extends object>({
  threads,
  patienceMs = PATIENCE_MS,
  maxHeld = MAX_HELD,
  program,
}: Omit<PoolSettings, 'deadlineMs'> & { threads: number; program: URL }): ThreadPool<Job, Message> {
  type Work = Queued<Job, Message>
  type Place = Slot<Job, Message>
  const slots = new Set<Place>()
  const waiting = createTeamQueue<Work>(threads)
  const held = new Map<string, number>()
  let failedBoots = 0
  let closed = false

  function giveWork(): void {
    for (const slot of slots) {
      if (!slot.ready || slot.queued) continue
      const queued = waiting.take()
      if (!queued) return
      clearTimeout(queued.patience)
      slot.queued = queued
      watch(slot, queued.limitMs)
      slot.thread.ref()
      slot.thread.postMessage(queued.job)
    }
    const booting = [...slots].filter(({ ready }) => !ready).length
    if (waiting.wanted() > booting && slots.size < threads) addSlot()
  }

  /** Ends the thread when its text has had its processor time. */
  function watch(slot: Place, limitMs: number): void {
    const { thread, queued } = slot
    const began = performance.now()
    const before = thread.cpuUsage()
    const look = async () => {
      const [from, now] = await Promise.all([before, thread.cpuUsage()]).catch(() => [])
      if (slot.queued !== queued || !slots.has(slot)) return
      const used = from && now ? (now.user - from.user + now.system - from.system) / 1_000 : limitMs
      if (used >= limitMs || performance.now() - began >= FAR_MS) end(slot, 'It took too long')
      else slot.timer = setTimeout(look, Math.max(20, limitMs - used))
    }
    slot.timer = setTimeout(look, limitMs)
  }

  function addSlot(): void {
    const thread = new Worker(program, { resourceLimits: { maxOldGenerationSizeMb: HEAP_MB } })
    const slot: Place = { thread, ready: false }
    slot.timer = setTimeout(() => end(slot, 'The detectors did not start'), BOOT_MS)
    slots.add(slot)
    thread.on('message', (message: ThreadMessage<Message>) => {
      if (message === 'ready') {
        slot.ready = true
        failedBoots = 0
        clearTimeout(slot.timer)
        rest(slot)
      } else if (message === 'done') settle(slot, 'It has said nothing')
      else slot.queued?.take(message)
      if (typeof message === 'string') giveWork()
    })
    thread.on('error', () => end(slot, 'The detectors failed'))
    thread.on('exit', () => end(slot, 'The detectors ended'))
  }

  /** A thread without work does not keep the process alive. */
  function rest({ thread, queued }: Place): void {
    if (!queued) thread.unref()
  }

  function settle(slot: Place, missing: string): void {
    const { queued } = slot
    clearTimeout(slot.timer)
    slot.queued = undefined
    rest(slot)
    if (!queued) return
    waiting.done(queued.asker)
    // What the end of the process has cut off says nothing about the text.
    if (closed) refuse(queued, STOPPING)
    else queued.settle(missing)
  }

  /** A thread that is over is replaced when there is work. */
  function end(slot: Place, why: string): void {
    if (!slots.delete(slot)) return
    void slot.thread.terminate()
    settle(slot, why)
    if (!slot.ready && ++failedBoots >= MAX_BOOTS) {
      failedBoots = 0
      for (const queued of waiting.clear()) refuse(queued, 'The detectors do not start')
    }
    if (!closed) giveWork()
  }

  return {
    async work<Name extends string, Result>(
      asker: Asker,
      job: Job,
      { limitMs, patienceMs: waitMs = patienceMs, names, nameOf, fail }: Parts<Name, Message, Result>,
    ): Promise<Result[]> {
      if (closed) throw createBusy(STOPPING)
      return new Promise((resolve, reject) => {
        const results = new Map<string, Result>()
        const take = (message: Message) => results.set(nameOf(message), message as unknown as Result)
        const settle = (missing: string) =>
          resolve(names.map((name) => results.get(name) ?? fail(name, missing)))
        const queued: Work = { asker, job, limitMs, take, settle, refuse: reject }
        queued.patience = setTimeout(() => {
          waiting.remove(asker, queued)
          reject(createBusy('All threads that the team may have are taken'))
        }, waitMs)
        waiting.add(asker, queued)
        giveWork()
      })
    },
    async hold(team, length, work) {
      const before = held.get(team) ?? 0
      if (before + length > maxHeld) throw createBusy('Too many texts of the team wait already')
      held.set(team, before + length)
      try {
        return await work()
      } finally {
        // An empty text may be the last of a team that is not counted any more.
        const left = (held.get(team) ?? 0) - length
        if (left === 0) held.delete(team)
        else held.set(team, left)
      }
    },
    async close() {
      closed = true
      for (const queued of waiting.clear()) refuse(queued, STOPPING)
      await Promise.all([...slots].map(({ thread }) => thread.terminate()))
    },
  }
}

function refuse(queued: Pick<Queued<never, never>, 'patience' | 'refuse'>, why: string): void {
  clearTimeout(queued.patience)
  queued.refuse(createBusy(why))
}

const createBusy = (message: string) => Object.assign(new Error(message), { name: DETECTORS_BUSY })
