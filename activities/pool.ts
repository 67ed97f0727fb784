import { type Asker, createTeamQueue } from './fairness/teamqueue.ts'

/** A job of a pool, and whose it is. `reject` is called with what `begin` has thrown. */
type Job = { asker: Asker; reject: (error: unknown) => void }

/** The workers of a pool: threads (threads.ts) or child processes (expressions/pool.ts). `End` says why one has ended. */
type Workers<Work extends Job, Worker, End> = {
  /** Starts a worker, which tells `on` about itself. */
  start(on: WorkerEvents<Work, End>): Worker
  /** Gives a worker its next job. */
  begin(worker: Worker, job: Work): void
  /** Is told of a job whose worker has ended; `add` queues it again. */
  lose(job: Work, end: End): void
  /** Is told of each job that waits when workers have failed to start several times in a row. */
  giveUp(job: Work, end: End): void
  stop(worker: Worker): Promise<unknown>
  /** Whether one worker is kept ready while there is no work. By default they start when there is some. */
  keepsOne?: boolean
}

export type WorkerEvents<Work extends Job, End> = {
  /** The job that the worker has. */
  job(): Work | undefined
  ready(): void
  /** The worker has done its job, and can take another. */
  done(settle: (job: Work) => void): void
  /** The worker is over. Only the first call counts. */
  end(end: End): void
}

type Pool<Work extends Job> = {
  add(job: Work): void
  /** Removes a job that waits. */
  remove(job: Work): void
  /** Removes the jobs that are refused, from the queue by `refuse`, from workers by ending them: then they are lost. */
  drop(isRefused: (job: Work) => boolean, refuse: (job: Work) => void): void
  /** Refuses the jobs that wait, and ends all workers: their jobs are lost. */
  close(refuse: (job: Work) => void): Promise<void>
}

type Slot<Work, Worker> = { worker: Worker; ready: boolean; job?: Work | undefined }

const MAX_BOOTS = 3

/**
 * A pool of at most `size` workers, each of which does one job at a time and is replaced when it ends. Teams take turns,
 * and a team never has more than half of the workers.
 */
export function createPool<Work extends Job, Worker, End>(
  size: number,
  { start, begin, lose, giveUp, stop, keepsOne = false }: Workers<Work, Worker, End>,
): Pool<Work> {
  const slots = new Set<Slot<Work, Worker>>()
  const waiting = createTeamQueue<Work>(size)
  let failedBoots = 0
  let closed = false

  function giveWork(): void {
    for (const slot of slots) {
      if (!slot.ready || slot.job) continue
      const job = waiting.take()
      if (!job) return
      slot.job = job
      try {
        begin(slot.worker, job)
      } catch (error) {
        takeJob(slot)
        job.reject(error)
        giveWork()
      }
    }
    const booting = [...slots].filter(({ ready }) => !ready).length
    if (waiting.wanted() > booting && slots.size < size) addSlot()
  }

  function addSlot(): void {
    const slot = { ready: false } as Slot<Work, Worker>
    slot.worker = start({
      job: () => slot.job,
      ready() {
        slot.ready = true
        failedBoots = 0
        giveWork()
      },
      done(settle) {
        const job = takeJob(slot)
        if (job) settle(job)
        giveWork()
      },
      end: (end) => remove(slot, end),
    })
    slots.add(slot)
  }

  function takeJob(slot: Slot<Work, Worker>): Work | undefined {
    const { job } = slot
    slot.job = undefined
    if (job) waiting.done(job.asker)
    return job
  }

  function remove(slot: Slot<Work, Worker>, end: End): void {
    if (!slots.delete(slot)) return
    const job = takeJob(slot)
    if (job) lose(job, end)
    else if (!slot.ready && ++failedBoots >= MAX_BOOTS) {
      failedBoots = 0
      for (const queued of waiting.clear()) giveUp(queued, end)
    }
    if (closed) return
    // The next job need not wait until a worker has started.
    if (keepsOne && slots.size === 0 && (job || waiting.wanted() > 0)) addSlot()
    giveWork()
  }

  if (keepsOne) addSlot()
  return {
    add(job) {
      waiting.add(job.asker, job)
      giveWork()
    },
    remove: (job) => waiting.remove(job.asker, job),
    drop(isRefused, refuse) {
      for (const job of waiting.clear()) {
        if (isRefused(job)) refuse(job)
        else waiting.add(job.asker, job)
      }
      for (const { job, worker } of slots) if (job && isRefused(job)) void stop(worker)
      giveWork()
    },
    async close(refuse) {
      closed = true
      for (const job of waiting.clear()) refuse(job)
      await Promise.all([...slots].map(({ worker }) => stop(worker)))
    },
  }
}
