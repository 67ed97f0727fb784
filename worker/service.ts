import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from '@temporalio/client'
import type { NativeConnection } from '@temporalio/worker'
import type { Logger } from 'pino'
import { createDataConverter } from '../activities/codec.ts'
import { createMetrics, type Metrics } from '../activities/metrics.ts'
import { carryOut } from '../activities/outbox.ts'
import { describeSchedules } from '../activities/schedules.ts'
import { startTracing, type Tracing } from '../activities/tracing.ts'
import { type ApiDeps, createApp, createProbes } from '../api/app.ts'
import { type Bus, openBus } from '../db/bus.ts'
import { openDatabase } from '../db/connection.ts'
import { migrate } from '../db/migrate.ts'
import type { Store } from '../db/scope.ts'
import { type Config, ConfigError, readConfig } from './config.ts'
import { type Engine, startEngine } from './engine.ts'
import { watchProcess } from './gauges.ts'
import { startHousekeeping } from './housekeeping.ts'
import { readKeys } from './keys.ts'
import { startListener } from './listener.ts'
import { createLog } from './log.ts'
import { createReadiness } from './readiness.ts'
import { installRuntime } from './runtime.ts'
import { connectClient, connectWorker } from './temporal.ts'

/** What a process is for; under the supervisor it is both, so that starts can be eager. */
export type Part = 'api' | 'worker' | 'service'

/** `npm start` gives requests and activities less time than this before it stops the database under them. */
const REQUEST_LIMIT_MS = 4_000
const PROBE_LIMIT_MS = 500

type Watch = { log: Logger; metrics: Metrics; tracing: Tracing | undefined }

/**
 * Runs one process of the service until SIGTERM or SIGINT, or until its worker fails. Exits with 0 after a
 * graceful stop (no request cut, then the worker drained), with 1 otherwise.
 */
export async function runService(part: Part): Promise<never> {
  const config = readForProcess(part)
  const log = createLog(part, config.logLevel)
  process.on('uncaughtExceptionMonitor', (error) => log.fatal({ err: error }, 'uncaught'))
  const asked = new AbortController()
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => asked.abort())

  const keys = readKeys(config, false)
  const database = openDatabase(config.databaseUrl!, { max: config.poolSize, name: `perdure ${part}` })
  const store: Store = { db: database.db, keys }
  // Under the supervisor the migrations have run.
  if (part !== 'service') await untilDone('the database', () => migrate(store.db), log, asked.signal)

  const bus = openBus(config.databaseUrl!, {
    name: `perdure ${part}`,
    onLost: (error) => log.warn({ err: error }, 'the database tells nothing at the moment'),
  })
  const endHousekeeping = startHousekeeping(store, log)
  let engine: Engine | undefined
  let connection: NativeConnection | undefined
  const readEngine = part === 'api' ? undefined : () => engine
  const metrics = createMetrics({ ofProcess: true })
  const { pool } = database
  watchProcess(metrics, { store, pool, poolSize: config.poolSize, ...(readEngine ? { readEngine } : {}) })
  const tracing = config.tracing && (await startTracing(config.tracing, log))
  const watch = { log, metrics, tracing }
  let close = async () => {}
  if (part !== 'worker') close = await startApi(config, store, bus, watch, readEngine)
  else if (config.workerMetricsPort) close = await startProbes(config, store, bus, watch, () => engine)
  if (part !== 'api') {
    installRuntime(log)
    connection = await untilDone('Temporal', () => connectWorker(config), log, asked.signal)
    if (connection) {
      const { namespace } = config.temporal
      const { taskQueue, egress, publicUrl, stuckRunMinutes, continueAfterEvents } = config
      const options = {
        store,
        bus,
        connection,
        namespace,
        taskQueue,
        egress,
        publicUrl,
        stuckRunMinutes,
        continueAfterEvents,
        ...watch,
      }
      engine = await startEngine(options)
      log.info({ taskQueue, namespace }, 'the worker polls')
    }
  }

  const failed = await Promise.race([
    onAbort(asked.signal).then(() => false),
    ...(engine ? [engine.stopped.then(() => true)] : []),
  ]).catch((error) => {
    log.fatal({ err: error }, 'the worker failed')
    return true
  })
  log.info('stopping')
  await endHousekeeping()
  // Streams end with it, and those who wait for a run are answered.
  await bus.stop()
  await close()
  await engine?.stop()
  await tracing?.stop()
  await connection?.close().catch(() => {})
  await database.close()
  log.info('stopped')
  process.exit(failed ? 1 : 0)
}

/** Serves the API; resolves with what stops it. `readEngine` gives the worker of this process once it runs. */
async function startApi(
  config: Config,
  store: Store,
  bus: Bus,
  watch: Watch,
  readEngine: (() => Engine | undefined) | undefined,
): Promise<() => Promise<void>> {
  const { log } = watch
  const { namespace } = config.temporal
  const { taskQueue, continueAfterEvents } = config
  let carry: ApiDeps['carryOut']
  let describe: ApiDeps['describeSchedules']
  let end = async () => {}
  let readService: Parameters<typeof createReadiness>[0]['workflowService']
  if (readEngine) {
    // Before there is an engine the errand waits in the outbox for its sweeper.
    carry = async (errand) => (await readEngine()?.carryOut(errand)) ?? false
    describe = async (workflowId, nodeIds) => {
      const engine = readEngine()
      if (!engine) throw new Error('Temporal is not reached yet')
      return engine.describeSchedules(workflowId, nodeIds)
    }
    readService = () => readEngine()?.client.workflowService
  } else {
    const connection = connectClient(config)
    const client = new Client({ connection, namespace, dataConverter: createDataConverter(store.keys) })
    const carrier = { store, client, taskQueue, eager: false, continueAfterEvents, ...watch }
    carry = (errand) => carryOut(carrier, errand)
    describe = (workflowId, nodeIds) => describeSchedules(carrier, workflowId, nodeIds)
    readService = () => client.workflowService
    end = () => connection.close()
  }
  const isReady = createReadiness({
    store,
    workflowService: readService,
    namespace,
    taskQueue,
    ...(readEngine ? { isPolling: () => readEngine()?.isPolling() ?? false } : {}),
  })
  const { publicUrl, proxyHops, corsOrigins, rateLimits, signUp, defaultPlan, metricsToken } = config
  const front = { publicUrl, proxyHops, corsOrigins, rateLimits, signUp, defaultPlan, metricsToken }
  const app = createApp({
    store,
    bus,
    ...watch,
    ...front,
    isReady,
    carryOut: carry,
    describeSchedules: describe,
  })
  const listener = await startListener(app.fetch, config.port.number, config.host)
  log.info({ host: config.host, port: listener.port }, 'the API listens')
  return async () => {
    await listener.stop(REQUEST_LIMIT_MS)
    await end()
  }
}

/** What a worker alone answers to those who watch it; resolves with what stops it. */
async function startProbes(
  config: Config,
  store: Store,
  bus: Bus,
  watch: Watch,
  readEngine: () => Engine | undefined,
): Promise<() => Promise<void>> {
  const { publicUrl, metricsToken, taskQueue } = config
  const isReady = createReadiness({
    store,
    workflowService: () => readEngine()?.client.workflowService,
    namespace: config.temporal.namespace,
    taskQueue,
    isPolling: () => readEngine()?.isPolling() ?? false,
  })
  const app = createProbes({
    store,
    bus,
    ...watch,
    publicUrl,
    metricsToken,
    isReady,
    carryOut: async () => false,
  })
  const listener = await startListener(app.fetch, config.workerMetricsPort!, config.host)
  watch.log.info({ host: config.host, port: listener.port }, 'the worker tells its metrics')
  return () => listener.stop(PROBE_LIMIT_MS)
}

function readForProcess(part: Part): Config {
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
      `${missing.join(' and ')} must be set: a process alone has no database and no Temporal of its own (\`npm start\` starts them all)`,
    )
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    console.error(`perdure ${part} cannot start:\n${error.message}`)
    process.exit(2)
  }
}

/** Tries until it works, saying why not; undefined where the process is asked to stop first. */
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
      log.warn({ err: error }, `${what} is not there yet`)
    }
    await sleep(pause, undefined, { signal }).catch(() => {})
  }
  return undefined
}

function onAbort(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
