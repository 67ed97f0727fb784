import type { Client } from '@temporalio/client'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import { validate as isUuid } from 'uuid'
import { isDatabaseAway } from '../../db/connection.ts'
import type { ExecutionStatus } from '../../db/executions/status.ts'
import { createFold, type Projection, type ProjectionFold } from '../../db/records/projection.ts'
import { countProjectionFailure, type SavedExecution, saveProjection } from '../../db/records/save.ts'
import type { Store } from '../../db/scope.ts'
import { createFairQueue } from '../fairqueue.ts'
import type { Metrics } from '../metrics.ts'
import { runSpanId, type Tracing } from '../tracing.ts'
import { readHistories } from './histories.ts'
import type { Sealer } from './sealer.ts'

export type Projector = {
  /** Reports that a run has progressed. Its rows are updated after a second, together with later news. */
  touch(executionId: string): void
  /** Reports that a run is about to close: it is projected after its close event. The `key`s take turns. */
  close(executionId: string, key?: string): void
  /** Projects a run now. Returns its status, or null if Temporal does not know the run. */
  refresh(executionId: string): Promise<ExecutionStatus | null>
  stop(): Promise<void>
}

export type ProjectorDeps = {
  store: Store
  client: Client
  sealer: Sealer
  log: Logger
  metrics?: Metrics | undefined
  tracing?: Tracing | undefined
}

const LIVE_MS = 1_000

/** After this time, the history holds what an activity has reported. */
const FRESH_MS = 500
const MAX_AT_ONCE = 16
const GIVE_UP_VALUES_AFTER = 3
const CLOSE_AGAIN_MS = 1_000
const CLOSE_TRIES = 30
const MAX_FOLDS = 200

/**
 * Keeps the rows in line with Temporal's histories. A lost call costs only time, because the sweeper finds
 * every run that was not reported.
 */
export function createProjector(deps: ProjectorDeps): Projector {
  const { log } = deps
  const { refresh, isBusy } = createRefresher(deps)
  const closer = createCloser(log, (executionId) => refresh(executionId, true), close)
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

type Refresh = (executionId: string, untilClosed?: boolean) => Promise<ExecutionStatus | null>

/**
 * Projects each execution by one call after the other: a concurrent second call would have no fold and read
 * the whole chain anew.
 */
function createRefresher(deps: ProjectorDeps): { refresh: Refresh; isBusy(executionId: string): boolean } {
  // The projections of open runs, with the position they have read to, so that only new events are read.
  const folds = new LRUCache<string, ProjectionFold>({ max: MAX_FOLDS })
  const current = new Map<string, Promise<ExecutionStatus | null>>()

  async function project(executionId: string, untilClosed: boolean): Promise<ExecutionStatus | null> {
    const fold = folds.get(executionId) ?? createFold(executionId)
    // The fold is kept only once its rows are written: after a failure the whole history is read anew.
    folds.delete(executionId)
    if (!(await readInto(fold, deps, executionId, untilClosed))) return null
    const projection = fold.project()
    const saved = await saveOrGiveUp(deps, executionId, projection)
    fold.confirm()
    const { completedAt, status } = projection
    if (completedAt === null) folds.set(executionId, fold)
    else if (saved) noteEnd(deps, executionId, saved, { ...projection, completedAt })
    return status
  }

  return {
    isBusy: (executionId) => current.has(executionId),
    refresh(executionId, untilClosed = false) {
      const before = current.get(executionId) ?? Promise.resolve(null)
      const done = before
        .catch(() => null)
        .then(() => project(executionId, untilClosed))
        .finally(() => {
          if (current.get(executionId) === done) current.delete(executionId)
        })
      current.set(executionId, done)
      return done
    },
  }
}

/** Stores a projection. After three failures, stores it without values and with an error message. */
async function saveOrGiveUp(
  { store, log }: ProjectorDeps,
  executionId: string,
  projection: Projection,
): Promise<SavedExecution | null> {
  try {
    return await saveProjection(store, executionId, projection, { values: true })
  } catch (error) {
    if (isDatabaseAway(error)) throw error
    const failures = await countProjectionFailure(store, executionId)
    log.error({ err: error, executionId, failures }, 'a projection could not be stored')
    if (failures < GIVE_UP_VALUES_AFTER) throw error
    projection.errorMessage ??= 'The values of this execution could not be stored'
    return saveProjection(store, executionId, projection, { values: false })
  }
}

/** Projects the ends of runs, a few at once. If that fails, `again` is called after a while. */
function createCloser(log: Logger, refresh: Refresh, again: (executionId: string) => void) {
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
    log.warn({ err: error, executionId: id, tries: tried }, 'the end of a run could not be projected')
    if (tried >= CLOSE_TRIES) {
      tries.delete(id)
      return
    }
    tries.set(id, tried)
    setTimeout(() => again(id), CLOSE_AGAIN_MS).unref()
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

/** Reads the new events of a run into its fold; false if Temporal does not know the run. */
async function readInto(
  fold: ProjectionFold,
  { client, sealer }: Pick<ProjectorDeps, 'client' | 'sealer'>,
  executionId: string,
  untilClosed: boolean,
): Promise<boolean> {
  let found = false
  const since = fold.position()
  for await (const history of readHistories(client, sealer, executionId, { untilClosed, since })) {
    fold.read(history)
    found = true
  }
  return found
}

/** Counts and traces the end of a run; called only by the process that wrote the end. */
function noteEnd(
  { metrics, tracing }: ProjectorDeps,
  executionId: string,
  { status, trigger, traceparent }: SavedExecution,
  { startedAt, completedAt }: Pick<Projection, 'startedAt'> & { completedAt: number },
): void {
  metrics?.runsEnded.inc({ status, trigger })
  metrics?.runDuration.observe({ status }, (completedAt - startedAt) / 1_000)
  metrics?.projectionLag.observe(Math.max(0, Date.now() - completedAt) / 1_000)
  if (!tracing || !traceparent) return
  const attributes = {
    'perdure.execution.id': executionId,
    'perdure.run.trigger': trigger,
    'perdure.run.status': status,
  }
  const name = { kind: 'internal', parent: traceparent, id: runSpanId(executionId) } as const
  tracing
    .begin('run', { ...name, at: startedAt, attributes })
    .end({ failure: status === 'FAILED' ? status : undefined, at: completedAt })
}

/**
 * Rebuilds an execution's rows from its history. Null if the history is gone: the rows stay as they are. They do
 * so too if the history is somebody else's, or sealed with a key that is lost: that is thrown.
 */
export async function rebuildExecution(
  deps: Pick<ProjectorDeps, 'store' | 'client' | 'sealer'>,
  executionId: string,
): Promise<ExecutionStatus | null> {
  const fold = createFold(executionId)
  if (!(await readInto(fold, deps, executionId, false))) return null
  if (fold.isForeign()) throw new Error('its run was not started by this service, or its key is lost')
  const projection = fold.project()
  const options = { values: true, again: true }
  await saveProjection(deps.store, executionId, projection, options)
  return projection.status
}
