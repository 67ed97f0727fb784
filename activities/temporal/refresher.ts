import type { Client } from '@temporalio/client'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import { isDatabaseAway } from '../../db/connection.ts'
import { createFold, type ProjectionFold } from '../../db/executions/projection/fold.ts'
import type { RunHistory } from '../../db/executions/projection/history.ts'
import { readProgress } from '../../db/executions/projection/progress.ts'
import type { Projection } from '../../db/executions/records/projection.ts'
import {
  countProjectionFailure,
  type EntryWriter,
  readPosition,
  type SavedExecution,
  saveProjection,
  saveSettled,
} from '../../db/executions/records/save.ts'
import type { ExecutionStatus } from '../../db/executions/status.ts'
import type { Store } from '../../db/scope.ts'
import { takeTurn } from '../../workflows/turns.ts'
import type { Metrics } from '../metrics.ts'
import { runSpanId, type Tracing } from '../tracing.ts'
import { openHistories, openNews } from './histories.ts'
import type { Sealer } from './sealer.ts'

export type ProjectorDeps = {
  store: Store
  client: Client
  sealer: Sealer
  log: Logger
  metrics?: Metrics | undefined
  tracing?: Tracing | undefined
  /** Told of each execution that has ended: whether this process has stored that, or another one before it. */
  onEnd?: ((executionId: string, hasStored: boolean) => void) | undefined
  /** Tests set other rests than the default between the tries to project the end of a run. */
  rests?: CloseRests
}

/** How long to rest after a failure, and after many. */
export type CloseRests = { soonMs: number; slowlyMs: number }

export type Refresh = (executionId: string, untilClosed?: boolean) => Promise<ExecutionStatus | null>

const GIVE_UP_VALUES_AFTER = 3

/** The memory that the folds of open runs may take all together. One that is dropped is made again. */
const KEPT_BYTES = 64_000_000

/** How long events are read before others get their turn. */
const TURN_MS = 10

/**
 * Projects each execution by one call after the other: a concurrent second call would have no fold and read
 * the history anew.
 */
export function createRefresher(
  deps: ProjectorDeps,
  write: EntryWriter,
): { refresh: Refresh; isBusy(executionId: string): boolean } {
  // The projections of open runs, with the position they have read to, so that only new events are read.
  const folds = new LRUCache<string, ProjectionFold>({
    maxSize: KEPT_BYTES,
    sizeCalculation: (fold) => fold.bytes() + 1,
  })
  const current = new Map<string, Promise<ExecutionStatus | null>>()

  async function project(executionId: string, untilClosed: boolean): Promise<ExecutionStatus | null> {
    const kept = folds.get(executionId)
    // The fold is kept only once its rows are written: after a failure it starts again from what is stored.
    folds.delete(executionId)
    const found = await readFrom(deps, executionId, kept, untilClosed)
    if (!found) return null
    const { fold, parts } = found
    const save = createSave(deps, executionId, write)
    const since = fold.position()
    if (!(await readInto(fold, parts, (part) => storePart(deps, executionId, part, save)))) return null
    if (fold === kept && isSame(fold.position(), since)) {
      folds.set(executionId, fold)
      return 'RUNNING'
    }
    const projection = fold.project()
    const saved = await save(projection)
    const { completedAt, status } = projection
    if (completedAt !== null) deps.onEnd?.(executionId, saved !== null)
    if (!saved) {
      // Another process has stored that much, or more: the next news are read from here on.
      const row = completedAt === null && (await readPosition(deps.store, executionId))
      if (!row || isBehind(row, projection)) return status
    }
    fold.confirm()
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

/**
 * The parts of the histories to be read, and the fold that takes them: the news for the fold that was kept, else the
 * parts that the rows lack.
 */
async function readFrom(
  { client, sealer, store }: ProjectorDeps,
  executionId: string,
  kept: ProjectionFold | undefined,
  untilClosed: boolean,
): Promise<{ fold: ProjectionFold; parts: AsyncGenerator<RunHistory> } | null> {
  const source = { client, sealer, executionId }
  const since = kept?.position()
  const news = kept && since ? await openNews(source, since, untilClosed) : null
  if (kept && news) return { fold: kept, parts: news }
  const found = await openHistories(source, untilClosed, () => readProgress(store, executionId))
  return found && { fold: createFold(executionId, found.known), parts: found.parts }
}

/**
 * Reads events into a fold. Whenever it is full, `store` stores what it has: false if that need not go on.
 * Returns false then too.
 */
export async function readInto(
  fold: ProjectionFold,
  parts: AsyncGenerator<RunHistory>,
  store: (fold: ProjectionFold) => Promise<boolean>,
): Promise<boolean> {
  let began = performance.now()
  for await (const { runId, events } of parts) {
    for (const event of events) {
      fold.read({ runId, events: [event] })
      if (fold.isFull() && !(await store(fold))) return false
      if (performance.now() - began < TURN_MS) continue
      await takeTurn()
      began = performance.now()
    }
  }
  return true
}

type EventPlace = ReturnType<ProjectionFold['position']>

/** The runs of a chain count their events anew, so that the same number may stand for another event. */
function isSame(a: EventPlace, b: EventPlace): boolean {
  return a?.runId === b?.runId && a?.lastEventId === b?.lastEventId
}

type Save = (projection: Projection) => Promise<SavedExecution | null>

/** Stores what was read so far, as of its last event. False if the execution is deleted. */
async function storePart(
  { store }: Pick<ProjectorDeps, 'store'>,
  executionId: string,
  fold: ProjectionFold,
  save: Save,
): Promise<boolean> {
  const projection = fold.project()
  if (await save(projection)) {
    fold.confirm()
    return true
  }
  const row = await readPosition(store, executionId)
  if (!row) return false
  const behind = isBehind(row, projection)
  // Another process has stored as much already. Else the row says that it has ended while its run goes on: the
  // settled nodes can be stored, and the end of the run will bring the rest.
  if (behind) await saveSettled(store, executionId, projection, { values: true })
  fold.confirm(behind ? 'settled' : 'all')
  return true
}

/** Whether a row knows less of its run than a projection does. */
function isBehind(
  row: { runPosition: number; lastEventId: number },
  { position, lastEventId }: Projection,
): boolean {
  return (row.runPosition - position || row.lastEventId - lastEventId) < 0
}

/** Stores projections. After three failures, stores them without values and with an error message. */
function createSave(
  { store, log }: Pick<ProjectorDeps, 'store' | 'log'>,
  executionId: string,
  write: EntryWriter,
): Save {
  let values = true
  return async (projection) => {
    if (!values) return saveWithout(projection)
    try {
      return await saveProjection(store, executionId, projection, { values }, write)
    } catch (error) {
      if (isDatabaseAway(error)) throw error
      const failures = await countProjectionFailure(store, executionId)
      log.error({ err: error, executionId, failures }, 'a projection could not be stored')
      if (failures < GIVE_UP_VALUES_AFTER) throw error
      values = false
      return saveWithout(projection)
    }
  }

  function saveWithout(projection: Projection): Promise<SavedExecution | null> {
    projection.errorMessage ??= 'The values of this execution could not be stored'
    return saveProjection(store, executionId, projection, { values: false }, write)
  }
}

/** Counts and traces the end of a run; called only by the process that wrote the end. */
function noteEnd(
  { metrics, tracing }: ProjectorDeps,
  executionId: string,
  { status, trigger, traceparent, begun }: SavedExecution,
  { startedAt, completedAt }: Pick<Projection, 'startedAt'> & { completedAt: number },
): void {
  if (begun) metrics?.runsStarted.inc({ trigger })
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
