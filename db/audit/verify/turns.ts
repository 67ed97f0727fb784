import { Worker } from 'node:worker_threads'
import { Fault } from '../../fault.ts'
import type { ThreadAnswer, ThreadJob } from './thread.ts'

/** How many works on long chains may wait for their turn in a process, and of one team. */
const MAX_WAITING = 20
const MAX_OF_TEAM = 2
const RETRY_S = 10

export type InTurn = <T>(teamId: string, work: () => Promise<T>, signal?: AbortSignal) => Promise<T>

/**
 * Lets one work on a long chain run at a time; others wait. Throws THROTTLED if too many do, and what `signal` was
 * aborted with, if it was while the work waited.
 */
export function createTurns(): InTurn {
  const waiting = new Map<string, number>()
  let count = 0
  let line: Promise<unknown> = Promise.resolve()

  return async (teamId, work, signal) => {
    const ofTeam = waiting.get(teamId) ?? 0
    if (ofTeam >= MAX_OF_TEAM || count >= MAX_WAITING) {
      const message = 'Long audit chains are being verified already; try again later'
      throw new Fault('THROTTLED', message, { retryAfter: RETRY_S })
    }
    waiting.set(teamId, ofTeam + 1)
    count++
    const turn = line.then(() => {
      signal?.throwIfAborted()
      return work()
    })
    line = turn.catch(() => {})
    try {
      return await turn
    } finally {
      count--
      const left = waiting.get(teamId)! - 1
      if (left > 0) waiting.set(teamId, left)
      else waiting.delete(teamId)
    }
  }
}

/**
 * What a thread may take. It reads page by page, so that nearly all of its memory is waste: on a busy machine, where
 * what collects it comes late, a thread without limits takes 100 MB and more.
 */
const LIMITS = { maxYoungGenerationSizeMb: 8, maxOldGenerationSizeMb: 256 }

/** Runs a job in a thread of its own, which ends with it, or when `signal` is aborted. */
export function runThread(job: ThreadJob, signal?: AbortSignal): Promise<ThreadAnswer> {
  return new Promise((resolve, reject) => {
    const url = new URL('./thread.ts', import.meta.url)
    const thread = new Worker(url, { workerData: job, resourceLimits: LIMITS })
    const stop = () => {
      void thread.terminate()
      reject(signal!.reason)
    }
    signal?.addEventListener('abort', stop, { once: true })
    thread.once('message', resolve)
    thread.once('error', reject)
    thread.once('exit', (code) => {
      signal?.removeEventListener('abort', stop)
      reject(new Error(`the thread that verifies ended with ${code}`))
    })
  })
}
