import type { Client } from '@temporalio/client'
import type { Logger } from 'pino'
import { isDatabaseAway } from '../db/connection.ts'
import { countProjectionFailure, type Saved, saveProjection } from '../db/nodes.ts'
import { createFold, type ExecutionStatus, type Fold, type Projection } from '../db/projection.ts'
import type { Store } from '../db/scope.ts'
import { readHistories } from './histories.ts'
import { createLanes } from './lanes.ts'
import type { Metrics } from './metrics.ts'
import { runSpanId, type Tracing } from './tracing.ts'

export type Projector = {
  /** A run has news: its rows are brought up to date within about a second, not before it is a second old. */
  touch(executionId: string): void
  /** A run is about to close: waits for its close event, then projects. The runs of each `key` wait in turn. */
  close(executionId: string, key?: string): void
  /** Projects now. Answers the status, or null where Temporal does not know the run. */
  refresh(executionId: string): Promise<ExecutionStatus | null>
  stop(): Promise<void>
}

export type ProjectorDeps = {
  store: Store
  client: Client
  log: Logger
  metrics?: Metrics | undefined
  tracing?: Tracing | undefined
}

const LIVE_MS = 1_000
/** Within this time what an activity told us of stands in the history too. */
const FRESH_MS = 500
const MAX_AT_ONCE = 16
const GIVE_UP_VALUES_AFTER = 3
const CLOSE_AGAIN_MS = 1_000
const CLOSE_TRIES = 30
const MAX_FOLDS = 200

/**
 * Keeps the rows true to Temporal's histories. Losing a call loses only time: the sweeper finds every run that
 * nobody told of.
 */
export function createProjector(deps: ProjectorDeps): Projector {
  const { store, log } = deps
  const closing = new Map<string, Promise<void>>()
  const folds = createFolds()
  const queue = createLanes<string>()
  const failed = new Map<string, number>()
  const dirty = new Map<string, { timer: NodeJS.Timeout; at: number }>()
  const current = new Map<string, Promise<ExecutionStatus | null>>()
  let stopped = false

  // One after the other: who came while another has the fold would read the whole chain anew.
  function refresh(executionId: string, untilClosed = false): Promise<ExecutionStatus | null> {
    const before = current.get(executionId) ?? Promise.resolve(null)
    const done = before
      .catch(() => null)
      .then(() => readOn(executionId, untilClosed))
      .finally(() => {
        if (current.get(executionId) === done) current.delete(executionId)
      })
    current.set(executionId, done)
    return done
  }

  async function readOn(executionId: string, untilClosed: boolean): Promise<ExecutionStatus | null> {
    const fold = folds.take(executionId) ?? createFold(executionId)
    if (!(await readInto(fold, deps, executionId, untilClosed))) return null
    const projection = fold.tell()
    let saved: Saved | null
    try {
      saved = await saveProjection(store, executionId, projection, { values: true })
    } catch (error) {
      if (isDatabaseAway(error)) throw error
      const failures = await countProjectionFailure(store, executionId)
      log.error({ err: error, executionId, failures }, 'a projection could not be stored')
      if (failures < GIVE_UP_VALUES_AFTER) throw error
      projection.errorMessage ??= 'The values of this run could not be stored'
      saved = await saveProjection(store, executionId, projection, { values: false })
    }
    fold.confirm()
    if (projection.completedAt === null) folds.keep(executionId, fold)
    if (saved && projection.completedAt !== null) {
      noteEnd(deps, executionId, saved, { ...projection, completedAt: projection.completedAt })
    }
    return projection.status
  }

  function closeNext(): void {
    while (closing.size < MAX_AT_ONCE) {
      const id = queue.take()
      if (id === undefined) return
      if (closing.has(id)) continue
      const done = refresh(id, true)
        .then(
          () => void failed.delete(id),
          (error) => closeAgain(id, error),
        )
        .then(() => {
          closing.delete(id)
          closeNext()
        })
      closing.set(id, done)
    }
  }

  // While PostgreSQL or Temporal is away many runs end at once, and the sweeper comes by each only slowly.
  function closeAgain(id: string, error: unknown): void {
    const tries = (failed.get(id) ?? 0) + 1
    log.warn({ err: error, executionId: id, tries }, 'the end of a run could not be projected')
    if (tries >= CLOSE_TRIES) return void failed.delete(id)
    failed.set(id, tries)
    setTimeout(() => close(id), CLOSE_AGAIN_MS).unref()
  }

  function close(executionId: string, key = ''): void {
    clearTimeout(dirty.get(executionId)?.timer)
    dirty.delete(executionId)
    if (stopped || closing.has(executionId)) return
    queue.add(key, executionId)
    closeNext()
  }

  function touch(executionId: string): void {
    if (stopped || closing.has(executionId)) return
    const known = dirty.get(executionId)
    if (known) {
      known.at = Date.now()
      return
    }
    const timer = setTimeout(() => {
      const { at } = dirty.get(executionId)!
      dirty.delete(executionId)
      if (closing.has(executionId)) return
      if (current.has(executionId)) return touch(executionId)
      refresh(executionId).catch((error) => log.debug({ err: error, executionId }, 'a live refresh failed'))
      // News that came just now may not be in the history yet, and nothing more may come.
      if (Date.now() - at < FRESH_MS) touch(executionId)
    }, LIVE_MS)
    dirty.set(executionId, { timer, at: 0 })
  }

  return {
    refresh: (executionId) => refresh(executionId),
    close,
    touch,
    async stop() {
      stopped = true
      for (const { timer } of dirty.values()) clearTimeout(timer)
      dirty.clear()
      queue.clear()
      const grace = new Promise((resolve) => setTimeout(resolve, 2_000).unref())
      await Promise.race([Promise.allSettled(closing.values()), grace])
    },
  }
}

/** Reads on in a run's histories; false where Temporal does not know the run. */
async function readInto(
  fold: Fold,
  { client, store }: Pick<ProjectorDeps, 'client' | 'store'>,
  executionId: string,
  untilClosed: boolean,
): Promise<boolean> {
  let found = false
  const since = fold.position()
  for await (const history of readHistories(client, store.keys, executionId, { untilClosed, since })) {
    fold.read(history)
    found = true
  }
  return found
}

/**
 * Where the projections of open runs were, so that of a long history only the news is read. Whoever takes one has it
 * alone; the others begin anew, which comes to the same.
 */
function createFolds() {
  const kept = new Map<string, Fold>()
  return {
    take(executionId: string): Fold | undefined {
      const fold = kept.get(executionId)
      kept.delete(executionId)
      return fold
    },
    keep(executionId: string, fold: Fold): void {
      kept.set(executionId, fold)
      if (kept.size > MAX_FOLDS) kept.delete(kept.keys().next().value!)
    },
  }
}

/** Counts and traces the end of a run; only who wrote it gets here. */
function noteEnd(
  { metrics, tracing }: ProjectorDeps,
  executionId: string,
  { status, trigger, traceparent }: Saved,
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

/** Makes an execution's rows anew from its history. Null where the history is gone: its rows stay as they are. */
export async function rebuild(
  deps: { store: Store; client: Client; log: Logger },
  executionId: string,
): Promise<ExecutionStatus | null> {
  const fold = createFold(executionId)
  if (!(await readInto(fold, deps, executionId, false))) return null
  const projection = fold.tell()
  const options = { values: true, again: true }
  await saveProjection(deps.store, executionId, projection, options)
  return projection.status
}
