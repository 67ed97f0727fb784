import { availableParallelism, hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { NativeConnection } from '@temporalio/worker'
import type { Logger } from 'pino'
import { createReplies } from '../../activities/agentchat/replies.ts'
import { createOutsides } from '../../activities/egress/outside.ts'
import { createSemanticPool } from '../../activities/guardrails/semantic/similar.ts'
import { createMailer } from '../../activities/mail/smtp.ts'
import { createMetrics } from '../../activities/metrics.ts'
import { nameSender } from '../../activities/siem/describe.ts'
import { openSealer } from '../../activities/temporal/sealer.ts'
import { startTracing } from '../../activities/tracing.ts'
import { isAnyReplyEnding } from '../../db/agentchat/settle.ts'
import { createPrefixChecker } from '../../db/audit/parallel/prefixes.ts'
import { createChainVerifier } from '../../db/audit/parallel/verifier.ts'
import { type Bus, openBus } from '../../db/bus.ts'
import { openDatabase } from '../../db/connection.ts'
import { migrate } from '../../db/migrate.ts'
import { makeCallMark } from '../../db/operation/callmark.ts'
import { findTeamEgress } from '../../db/operation/egress.ts'
import { createExposure, type Exposure, isExposureDecided } from '../../db/operation/exposure.ts'
import { findKeyFaults } from '../../db/operation/sealkeys.ts'
import type { EmailProof, Store } from '../../db/scope.ts'
import { type Config, ConfigError, readConfig } from '../config.ts'
import { type Engine, startEngine } from '../engine/engine.ts'
import { readKeys } from '../keys.ts'
import { ENDS_MS, limitStop, REPLIES_MS } from '../local/programs.ts'
import { createLog } from '../log.ts'
import { PROCESS_ID } from '../memoryend.ts'
import { listOpenings } from '../openings.ts'
import { connectWorker } from '../temporal.ts'
import { startForwarding } from './forwarding.ts'
import { watchProcess } from './gauges.ts'
import { startHousekeeping } from './housekeeping.ts'
import { startMailing } from './mailing.ts'
import { startMonitoring } from './monitoring/monitoring.ts'
import { listOwnPlaces } from './ownplaces.ts'
import { startReporting } from './reporting.ts'
import { installRuntime } from './runtime.ts'
import { startApi, startProbes } from './serving.ts'
import { listenToSignals } from './stopping.ts'

/**
 * The parts that a process runs: the API, the worker, or (`service`, under the supervisor) both, so that starts can be
 * eager.
 */
export type ProcessKind = 'api' | 'worker' | 'service'

/** How long a renewal of the lease may take. The lease lasts for 5 s, so that another one has time to succeed. */
const RENEWAL_MS = 2_000

/** How often it is looked whether the replies of chats are saved. */
const SAVED_LOOK_MS = 50

/** How long a process that has stopped everything else waits for its housekeeping, its mails and its audit forwarders. */
const OTHERS_MS = 500

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

  const keys = readKeys(config, false)
  const poolSize = config.poolSize ?? choosePoolSize(kind)
  const database = openDatabase(config.databaseUrl!, { max: poolSize, name: `perdure ${kind}` })
  const { mailDomains, mailsPerHour } = config
  const store: Store = {
    ...{ db: database.db, keys, mailDomains, mailsPerHour },
    emailProof: () => readEmailProof(kind, config, exposure),
  }
  // The supervisor has run the migrations already.
  if (kind !== 'service') await untilDone('the database', () => migrate(store.db), log, stopping.asked)
  const faults = await untilDone('the database', () => findKeyFaults(store), log, stopping.asked)
  if (faults && faults.length > 0) refuseToStart(kind, faults.join('\n'))
  const seals = { store, binds: config.sealBound, log }
  const sealer = await untilDone('the database', () => openSealer(seals), log, stopping.asked)
  if (!sealer) process.exit(0)

  const bus = openBus(config.databaseUrl!, {
    name: `perdure ${kind}`,
    onLost: (error) =>
      log.warn({ err: error }, 'lost the connection that listens for database notifications'),
  })
  const replies = createReplies({ store, bus, log })
  const exposure = watchExposure(kind, config, bus, { store, log })
  const checkPrefix = createPrefixChecker({ url: config.databaseUrl! })
  const endHousekeeping = startHousekeeping(store, log, { checkPrefix })
  const { publicUrl } = config
  const mailer = config.smtp && createMailer(config.smtp)
  const endMailing = mailer && startMailing({ store, mailer, publicUrl, log }, bus)
  const endReporting = kind === 'api' ? undefined : reportOn(config, store, log)
  let engine: Engine | undefined
  let connection: NativeConnection | undefined
  let leases: ReturnType<typeof openDatabase> | undefined
  const readEngine = kind === 'api' ? undefined : () => engine
  const metrics = createMetrics({ ofProcess: true })
  const { pool } = database
  watchProcess(metrics, { store, pool, poolSize, ...(readEngine ? { readEngine } : {}) })
  const tracing = config.tracing && (await startTracing(config.tracing, log))
  const instruments = { log, metrics, tracing, exposure }
  const allowLoopback = config.openByDefault.loopback ? exposure.why : config.egress.allowLoopback
  const own = () => listOwnPlaces(config, kind !== 'worker')
  const egress = { ...config.egress, allowLoopback, own, mark: makeCallMark(keys) }
  const outside = createOutsides(egress, (teamId) => findTeamEgress(store, teamId))
  const endForwarding = startForwarding({ store, outside, host: nameSender(publicUrl), log })
  const semantic = createSemanticPool()
  const endMonitoring =
    kind === 'api' ? undefined : startMonitoring({ store, bus, outside, mailer, publicUrl, log, semantic })
  let close = async () => {}
  if (kind !== 'worker')
    close = await startApi(config, store, sealer, bus, { ...instruments, outside, replies }, readEngine)
  else if (config.workerMetricsPort) close = await startProbes(config, store, bus, instruments, () => engine)
  if (kind !== 'api') {
    installRuntime(log)
    connection = await untilDone('Temporal', () => connectWorker(config), log, stopping.asked)
    if (connection) {
      const { namespace } = config.temporal
      const { taskQueue, stopGraceMs, budgetBytes, continueAfterEvents } = config
      const { modelStopGraceMs, modelCallsAtOnce, modelSilenceMs } = config
      const { deploymentName, buildId } = config
      // A pool in which others wait must not make a process that is alive seem lost.
      const lease = { max: 1, name: `perdure ${kind} lease`, timeoutMs: RENEWAL_MS }
      leases = openDatabase(config.databaseUrl!, lease)
      const options = {
        store,
        leaseStore: { ...store, db: leases.db },
        bus,
        sealer,
        connection,
        namespace,
        taskQueue,
        ...(buildId ? { version: { deploymentName, buildId } } : {}),
        outside,
        replies,
        publicUrl,
        budgetBytes,
        stopGraceMs,
        modelSilenceMs,
        processId: process.env[PROCESS_ID],
        // The supervisor has locked the data folder, and ended what ran there before.
        place: kind === 'service' && process.env[PROCESS_ID] ? `${hostname()}:${config.dataDir}` : undefined,
        modelStopGraceMs,
        modelCallsAtOnce,
        continueAfterEvents,
        guardrails: { onError: config.guardrailOnError, semantic },
        ...instruments,
      }
      engine = await startEngine(options)
      log.info({ taskQueue, namespace, buildId }, 'the worker polls Temporal')
    }
  }

  const failed = await Promise.race([
    onAbort(stopping.asked).then(() => false),
    ...(engine ? [engine.stopped.then(() => true)] : []),
  ]).catch((error) => {
    log.fatal({ err: error }, 'the worker failed')
    return true
  })
  log.info('stopping')
  // Unless a user waits for the end, calls to models may take minutes. Meanwhile an API goes on answering.
  if (kind === 'service' && engine && !failed) {
    const replied = engine.stopModels(stopping.hurry).then(async () => {
      await replies.flush()
      await untilSaved(store, stopping.quick)
      await replies.tellEnds(ENDS_MS)
    })
    await Promise.race([replied, onAbort(stopping.quick)])
  }
  if (kind === 'service') setTimeout(() => process.exit(1), limitStop(config.stopGraceMs)).unref()
  const others = Promise.all([
    endHousekeeping(),
    endMailing?.(),
    endReporting?.(),
    endForwarding(),
    endMonitoring?.(),
  ])
  // This ends event streams and answers the requests that wait for an execution, so that close() need not cut them. A
  // worker has none, but is told of what is due for as long as its calls to models go on.
  const leave = async () => {
    await bus.stop()
    await close()
  }
  if (kind !== 'worker') await leave()
  await engine?.stop(failed ? AbortSignal.timeout(config.stopGraceMs) : stopping.hurry)
  if (kind === 'worker') await leave()
  await outside.close()
  // Their work may take long, and is done again later.
  await Promise.race([others, sleep(OTHERS_MS)])
  await tracing?.stop()
  sealer.stop()
  await connection?.close().catch(() => {})
  await Promise.all([database.close(), leases?.close()])
  log.info('stopped')
  process.exit(failed ? 1 : 0)
}

/**
 * How many connections a process has, besides the one that listens and a worker's for its lease. Operators who run APIs
 * and workers apart run many of them: 14 leave room in the 100 connections that PostgreSQL takes by default.
 */
function choosePoolSize(kind: ProcessKind): number {
  return kind === 'service' ? Math.min(40, 10 + 5 * availableParallelism()) : 5
}

/** Makes audit reports, on a connection of its own: their statements take long, and must not delay others. */
function reportOn(config: Config, store: Store, log: Logger): () => Promise<void> {
  const { db: reader, close } = openDatabase(config.databaseUrl!, { max: 1, name: 'perdure reports' })
  const verify = createChainVerifier({ url: config.databaseUrl!, threads: 1 })
  const end = startReporting({ store, log, reader, verify })
  return async () => {
    await end()
    await close()
  }
}

/** Says what is open, and closes what is open by default once others are known to reach the service. */
function watchExposure(
  kind: ProcessKind,
  config: Config,
  bus: Bus,
  { store, log }: { store: Pick<Store, 'db'>; log: Logger },
): Exposure {
  const { isLocal, openByDefault } = config
  const open = listOpenings(config)
  log.info({ open }, open.length > 0 ? 'open on this service' : 'nothing is open by default')
  const onChange = (why: string | null) => {
    if (!openByDefault.signUp && !openByDefault.loopback) return
    if (why === null) log.warn({ open: openByDefault }, 'opened by the operator: `npx perdure exposure open`')
    else log.warn({ closed: openByDefault }, `closed until the next start what was open by default: ${why}`)
  }
  const exposure = createExposure({ bus, isDecided: () => isExposureDecided(store), onChange })
  // A worker cannot know by its own settings where the API listens.
  if (kind !== 'worker' && !isLocal) exposure.note('the API is set up for others than this machine')
  return exposure
}

// Unproven addresses count only where no one but this machine's users can come in. A worker that runs alone does not
// know how the APIs can be reached, so it trusts none by itself.
function readEmailProof(kind: ProcessKind, { emailProof }: Config, exposure: Exposure): EmailProof {
  if (emailProof !== 'none') return emailProof
  return kind === 'worker' || exposure.why() !== null ? 'operator' : 'none'
}

function readForProcess(kind: ProcessKind): Config {
  try {
    const config = readConfig(process.env)
    const missing = [
      ...(config.databaseUrl ? [] : ['DATABASE_URL']),
      ...(config.temporal.address ? [] : ['TEMPORAL_ADDRESS']),
    ]
    if (missing.length === 0) {
      readKeys(config, false)
      return config
    }
    throw new ConfigError(
      `${missing.join(' and ')} must be set: only \`npm start\` starts PostgreSQL and Temporal by itself`,
    )
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return refuseToStart(kind, error.message)
  }
}

function refuseToStart(kind: ProcessKind, why: string): never {
  console.error(`perdure ${kind} cannot start:\n${why}`)
  process.exit(2)
}

/** Calls `work` until it succeeds, and logs each error. Undefined if `signal` is aborted first. */
async function untilDone<T>(
  what: string,
  work: () => Promise<T>,
  log: Logger,
  signal: AbortSignal,
): Promise<T | undefined> {
  for (let pause = 100; !signal.aborted; pause = Math.min(pause * 2, 2_000)) {
    try {
      return await work()
    } catch (error) {
      log.warn({ err: error }, `${what} is not ready yet`)
    }
    await sleep(pause, undefined, { signal }).catch(() => {})
  }
  return undefined
}

/** Waits until the replies of chats whose text has come are saved, so that those who read them get their end. */
async function untilSaved(store: Store, quick: AbortSignal): Promise<void> {
  const giveUp = performance.now() + REPLIES_MS
  while (!quick.aborted && performance.now() < giveUp) {
    if (!(await isAnyReplyEnding(store).catch(() => false))) return
    await sleep(SAVED_LOOK_MS)
  }
}

function onAbort(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
