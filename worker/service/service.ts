import { setTimeout as sleep } from 'node:timers/promises'
import { createReplies, type Replies } from '../../activities/chat/replies.ts'
import { createOutsides } from '../../activities/egress/outside.ts'
import { createSemanticPool } from '../../activities/guardrails/semantic/similar.ts'
import { createMetrics } from '../../activities/metrics.ts'
import { startTracing } from '../../activities/tracing.ts'
import { isAnyReplyEnding } from '../../db/chat/settle.ts'
import { makeCallMark } from '../../db/operation/callmark.ts'
import { findTeamEgress } from '../../db/operation/egress.ts'
import type { Store } from '../../db/scope.ts'
import type { Engine } from '../engine/engine.ts'
import { ENDS_MS, limitStop, REPLIES_MS } from '../local/programs.ts'
import { createLog } from '../log.ts'
import { watchProcess } from './gauges.ts'
import { startJobs } from './jobs.ts'
import { type Base, openBase, type ProcessKind, readForProcess } from './opening.ts'
import { listOwnPlaces } from './ownplaces.ts'
import { type Part, startParts } from './parts.ts'
import { startApi, startProbes } from './serving.ts'
import { listenToSignals, onAbort, type Stopping, tellIfSlow } from './stopping.ts'
import { startWorking, type Working } from './working.ts'

/** How often it is looked whether the replies of chats are saved. */
const SAVED_LOOK_MS = 50

/** How long a process that has stopped everything else waits for its housekeeping, its mails and its audit forwarders. */
const JOBS_MS = 500

/**
 * Runs one process of the service until SIGTERM or SIGINT, or until its worker fails. Exits with 0 after a
 * graceful stop (calls to models ended, requests finished, the worker drained), with 1 if the worker failed, with 2 if
 * the configuration is wrong.
 */
export async function runService(kind: ProcessKind): Promise<never> {
  const config = readForProcess(kind)
  const log = createLog(kind, config.logLevel)
  process.on('uncaughtExceptionMonitor', (error) => log.fatal({ err: error }, 'uncaught exception'))
  const stopping = listenToSignals(config.stopGraceMs)
  const base = await openBase(kind, config, log, stopping.asked)
  if (!base) process.exit(0)

  const { parts, replies, readWorking } = await listParts(base, stopping)
  const stop = await startParts(parts, log)
  const engine = (await readWorking())?.engine
  const failed = await Promise.race([
    onAbort(stopping.asked).then(() => false),
    ...(engine ? [engine.stopped.then(() => true)] : []),
  ]).catch((error) => {
    log.fatal({ err: error }, 'the worker failed')
    return true
  })
  log.info('stopping')
  if (kind === 'service' && engine && !failed)
    await tellIfSlow(log, 'calls to models', finishReplies(base.store, engine, replies, stopping))
  if (kind === 'service') setTimeout(() => process.exit(1), limitStop(config.stopGraceMs)).unref()
  await stop(failed ? AbortSignal.timeout(config.stopGraceMs) : stopping.hurry)
  log.info('stopped')
  process.exit(failed ? 1 : 0)
}

/** What a process runs, in the order in which it starts. `readWorking` resolves to its engine, once it has one. */
async function listParts(base: Base, stopping: Stopping) {
  const { kind, config, store, sealer, bus, log, exposure, database, poolSize } = base
  let engine: Engine | undefined
  let working: Promise<Working | undefined> = Promise.resolve(undefined)
  const readEngine = () => engine
  const worker = kind === 'api' ? {} : { readEngine }
  const metrics = createMetrics({ ofProcess: true })
  watchProcess(metrics, { store, pool: database.pool, poolSize, ...worker })
  const tracing = config.tracing && (await startTracing(config.tracing, log))
  const instruments = { log, metrics, tracing, exposure }
  const allowLoopback = config.openByDefault.loopback ? exposure.why : config.egress.allowLoopback
  const own = () => listOwnPlaces(config, kind !== 'worker')
  const egress = { ...config.egress, allowLoopback, own, mark: makeCallMark(store.keys) }
  const outside = createOutsides(egress, (teamId) => findTeamEgress(store, teamId))
  const replies = createReplies({ store, bus, log })
  const semantic = createSemanticPool()

  // Temporal may not be there yet: an API that starts after it does not wait for it.
  const startEngine = () => {
    const deps = { ...instruments, outside, replies, semantic }
    working = startWorking(base, deps, stopping.asked)
    working.then(
      (found) => {
        engine = found?.engine
      },
      () => {},
    )
    return async (hurry: AbortSignal) => (await working)?.stop(hurry)
  }
  const startFront = async () => {
    const deps = { ...instruments, outside, replies }
    let close = async () => {}
    if (kind !== 'worker') close = await startApi(config, store, sealer, bus, deps, worker.readEngine)
    else if (config.workerMetricsPort) close = await startProbes(config, store, bus, instruments, readEngine)
    return async () => {
      // This ends event streams and answers the requests that wait for an execution, so that they are not cut.
      await bus.stop()
      await close()
    }
  }
  const front: Part = { name: 'the API', start: startFront }
  const work: Part = { name: 'the engine', start: startEngine }
  const parts: Part[] = [
    { name: 'the database', start: () => database.close },
    { name: 'the sealer', start: () => sealer.stop },
    { name: 'the tracing', start: () => () => tracing?.stop() },
    { name: 'the way out', start: () => outside.close },
    { name: 'the jobs', start: () => startJobs(base, outside, semantic), patienceMs: JOBS_MS },
  ]
  // A worker is told by the bus of what is due for as long as its calls to models go on.
  if (kind === 'api') parts.push(front)
  else parts.push(...(kind === 'worker' ? [front, work] : [work, front]))
  return { parts, replies, readWorking: () => working }
}

/**
 * Waits for the calls to models under way, and until the replies that they give have been read. That may take minutes,
 * unless a person waits for the stop; meanwhile an API goes on answering.
 */
async function finishReplies(
  store: Store,
  engine: Engine,
  replies: Replies,
  { quick, hurry }: Stopping,
): Promise<void> {
  const replied = engine.stopModels(hurry).then(async () => {
    await replies.flush()
    await untilSaved(store, quick)
    await replies.tellEnds(ENDS_MS)
  })
  await Promise.race([replied, onAbort(quick)])
}

/** Waits until the replies of chats whose text has come are saved, so that those who read them get their end. */
async function untilSaved(store: Store, quick: AbortSignal): Promise<void> {
  const giveUp = performance.now() + REPLIES_MS
  while (!quick.aborted && performance.now() < giveUp) {
    if (!(await isAnyReplyEnding(store).catch(() => false))) return
    await sleep(SAVED_LOOK_MS)
  }
}
