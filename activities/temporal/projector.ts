import { setTimeout as pause } from 'node:timers/promises'
import { validate as isUuid } from 'uuid'
import type { ExecutionStatus } from '../../db/executions/status.ts'
import { createFairQueue } from '../fairqueue.ts'
import { createGroupWriter } from './groupwriter.ts'
import { type CloseRests, createRefresher, type ProjectorDeps, type Refresh } from './refresher.ts'

export type Projector = {
  /** Reports that a run has progressed. Its rows are updated after a second, together with later news. */
  touch(executionId: string): void
  /** Reports that a run is about to close: it is projected after its close event. The `key`s take turns. */
  close(executionId: string, key?: string): void
  /** Projects a run now. Returns its status, or null if Temporal does not know the run. */
  refresh(executionId: string): Promise<ExecutionStatus | null>
  stop(): Promise<void>
}

const LIVE_MS = 1_000

/** After this time, the history holds what an activity has reported. */
const FRESH_MS = 500
const MAX_AT_ONCE = 16

/**
 * The worker reports a run that is about to close. Just after that the history has its end: asked for at once, it
 * had to be asked for twice (1.65 times a run that is alone; so 1.0 times, and the rows are 1 ms later).
 */
const CLOSING_MS = 3
const CLOSE_RESTS: CloseRests = { soonMs: 1_000, slowlyMs: 60_000 }

/** After so many failures a close is tried again more slowly: something is wrong that an operator must mend. */
const CLOSE_TRIES = 30

/**
 * Keeps the rows in line with Temporal's histories. A lost call costs only time, because the sweeper finds
 * every run that was not reported.
 */
export function createProjector(deps: ProjectorDeps): Projector {
  const { log } = deps
  const { refresh, isBusy } = createRefresher(deps, createGroupWriter(deps.store))
  const closer = createCloser(deps, (executionId) => refresh(executionId, true), close)
  const dirty = new Map<string, { timer: NodeJS.Timeout; at: number }>()
  let stopped = false

  function close(executionId: string, key = ''): void {
    clearTimeout(dirty.get(executionId)?.timer)
    dirty.delete(executionId)
    // Others may start runs with any id.
    if (!stopped && isUuid(executionId)) closer.add(executionId, key)
  }

  function touch(executionId: string): void {
    if (stopped || closer.isClosing(executionId)) return
    const known = dirty.get(executionId)
    if (known) {
      known.at = Date.now()
      return
    }
    dirty.set(executionId, { timer: setTimeout(() => refreshLive(executionId), LIVE_MS), at: 0 })
  }

  function refreshLive(executionId: string): void {
    const { at } = dirty.get(executionId)!
    dirty.delete(executionId)
    if (closer.isClosing(executionId)) return
    if (isBusy(executionId)) {
      touch(executionId)
      return
    }
    refresh(executionId).catch((error) =>
      log.debug({ err: error, executionId }, 'the rows of an open run could not be refreshed'),
    )
    // The latest news may not be in the history yet, and it may be the last: refresh once more.
    if (Date.now() - at < FRESH_MS) touch(executionId)
  }

  return {
    refresh: (executionId) => refresh(executionId),
    close,
    touch,
    async stop() {
      stopped = true
      for (const { timer } of dirty.values()) clearTimeout(timer)
      dirty.clear()
      await closer.stop()
    },
  }
}

/** Projects the ends of runs, a few at once. If that fails, `again` is called after a while. */
function createCloser(
  { log, metrics, rests = CLOSE_RESTS }: Pick<ProjectorDeps, 'log' | 'metrics' | 'rests'>,
  refresh: Refresh,
  again: (executionId: string) => void,
) {
  const queue = createFairQueue<string>()
  const closing = new Map<string, Promise<void>>()
  const tries = new Map<string, number>()

  function closeNext(): void {
    while (closing.size < MAX_AT_ONCE) {
      const id = queue.take()
      if (id === undefined) return
      if (!closing.has(id)) closing.set(id, closeOne(id))
    }
  }

  async function closeOne(id: string): Promise<void> {
    try {
      await pause(CLOSING_MS)
      await refresh(id)
      tries.delete(id)
    } catch (error) {
      retryLater(id, error)
    }
    closing.delete(id)
    closeNext()
  }

  // After an outage many runs are left to project, which the sweeper alone would do slowly.
  function retryLater(id: string, error: unknown): void {
    const tried = (tries.get(id) ?? 0) + 1
    const slowly = tried >= CLOSE_TRIES
    const about = { err: error, executionId: id, tries: tried }
    if (slowly) log.error(about, 'the end of a run still cannot be projected: its row says that it is open')
    else log.warn(about, 'the end of a run could not be projected')
    metrics?.closesFailed.inc()
    tries.set(id, tried)
    setTimeout(() => again(id), slowly ? rests.slowlyMs : rests.soonMs).unref()
  }

  return {
    isClosing: (executionId: string) => closing.has(executionId),
    add(executionId: string, key: string): void {
      if (closing.has(executionId)) return
      queue.add(key, executionId)
      closeNext()
    },
    async stop(): Promise<void> {
      queue.clear()
      const grace = new Promise((resolve) => setTimeout(resolve, 2_000).unref())
      await Promise.race([Promise.allSettled(closing.values()), grace])
    },
  }
}
