import { Client } from '@temporalio/client'
import type { Logger } from 'pino'
import type { Replies } from '../../activities/chat/replies.ts'
import type { Outsides } from '../../activities/egress/outside.ts'
import { createEvaluator } from '../../activities/expressions/evaluator.ts'
import { createAskModel } from '../../activities/guardrails/model/ask.ts'
import { createDetectorPool } from '../../activities/guardrails/pool.ts'
import { createSemanticPool } from '../../activities/guardrails/semantic/similar.ts'
import { createMailer } from '../../activities/mail/smtp.ts'
import type { Metrics } from '../../activities/metrics.ts'
import { describeSchedules } from '../../activities/schedules/schedules.ts'
import { createDataConverter } from '../../activities/temporal/codec.ts'
import { carryOutErrand, markAwaited } from '../../activities/temporal/outbox.ts'
import type { Sealer } from '../../activities/temporal/sealer.ts'
import type { Tracing } from '../../activities/tracing.ts'
import { createApp, createProbes } from '../../api/app.ts'
import type { ApiDeps } from '../../api/env.ts'
import { createPrefixChecker } from '../../db/audit/verify/prefixes.ts'
import { createChainVerifier } from '../../db/audit/verify/verifier.ts'
import type { Bus } from '../../db/bus.ts'
import type { Exposure } from '../../db/operation/exposure.ts'
import type { Store } from '../../db/scope.ts'
import type { Config } from '../config.ts'
import type { Engine } from '../engine/engine.ts'
import { connectClient } from '../temporal.ts'
import { startListener } from './listener.ts'
import { createReadiness } from './readiness.ts'

/**
 * How long requests in progress may take once the process stops taking new ones. It is less than the 6.5 s after which `npm
 * start` kills the service, before it stops the database.
 */
const REQUEST_LIMIT_MS = 4_000
const PROBE_LIMIT_MS = 500

export type Instruments = { log: Logger; metrics: Metrics; tracing: Tracing | undefined; exposure: Exposure }

/** How many processes evaluate what people try out: a team never has more than half of them. */
const TRIED_AT_ONCE = 2

/**
 * Serves the API; resolves with the function that stops it. `readEngine` is given if this process has a
 * worker, and returns its engine once it has started.
 */
export async function startApi(
  config: Config,
  store: Store,
  sealer: Sealer,
  bus: Bus,
  { outside, replies, ...instruments }: Instruments & { outside: Outsides; replies: Replies },
  readEngine: (() => Engine | undefined) | undefined,
): Promise<() => Promise<void>> {
  const { log } = instruments
  const { namespace } = config.temporal
  const { taskQueue, continueAfterEvents } = config
  let carry: ApiDeps['carryOut']
  let mark: ApiDeps['markAwaited']
  let describe: ApiDeps['describeSchedules']
  let end = async () => {}
  let readService: Parameters<typeof createReadiness>[0]['workflowService']
  if (readEngine) {
    // Until the engine has started, errands stay in the outbox; its sweeper carries them out later.
    carry = async (errand, options) => (await readEngine()?.carryOut(errand, options)) ?? false
    mark = async (executionId, agoMs) => (await readEngine()?.markAwaited(executionId, agoMs)) ?? false
    describe = async (workflowId, nodeIds) => {
      const engine = readEngine()
      if (!engine) throw new Error('the worker has not connected to Temporal yet')
      return engine.describeSchedules(workflowId, nodeIds)
    }
    readService = () => readEngine()?.client.workflowService
  } else {
    const connection = connectClient(config)
    const client = new Client({ connection, namespace, dataConverter: createDataConverter(sealer) })
    const eager = () => false
    const carrier = { store, client, sealer, taskQueue, eager, continueAfterEvents, ...instruments }
    carry = (errand, options) => carryOutErrand(carrier, errand, options)
    mark = (executionId, agoMs) => markAwaited(carrier, executionId, agoMs)
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
    servesApi: true,
  })
  // Beside that of the runs: what people try out holds up none of them. Its processes are started when they are needed.
  const evaluator = createEvaluator({ processes: TRIED_AT_ONCE })
  const pool = createDetectorPool()
  const semantic = createSemanticPool()
  const askModel = createAskModel({ store, outside, ...instruments })
  const { publicUrl, allowedHosts, proxyHops, corsOrigins, rateLimits } = config
  const { signUp, openByDefault, defaultPlan, metricsToken } = config
  const front = {
    publicUrl,
    allowedHosts,
    proxyHops,
    corsOrigins,
    rateLimits,
    signUp,
    openByDefault,
    defaultPlan,
    metricsToken,
  }
  const app = createApp({
    store,
    bus,
    ...instruments,
    ...front,
    isReady,
    evaluator,
    guardrails: { pool, semantic, evaluator, askModel, onError: config.guardrailOnError },
    verify: createChainVerifier({ url: config.databaseUrl! }),
    checkPrefix: createPrefixChecker({ url: config.databaseUrl! }),
    outside,
    mailer: config.smtp && createMailer(config.smtp),
    replies,
    replyStreams: config.replyStreams,
    carryOut: carry,
    markAwaited: mark,
    describeSchedules: describe,
    temporalUi: config.temporal.uiUrl === undefined ? undefined : { url: config.temporal.uiUrl, namespace },
  })
  const listener = await startListener(app.fetch, config.port.number, config.host)
  log.info({ host: config.host, port: listener.port }, 'the API is listening')
  return async () => {
    await listener.stop(REQUEST_LIMIT_MS)
    await Promise.all([evaluator.close(), pool.close(), semantic.close(), end()])
  }
}

/** Serves /metrics, /healthz and /readyz of a process that is only a worker; resolves with what stops it. */
export async function startProbes(
  config: Config,
  store: Store,
  bus: Bus,
  instruments: Instruments,
  readEngine: () => Engine | undefined,
): Promise<() => Promise<void>> {
  const { publicUrl, proxyHops, metricsToken, taskQueue } = config
  const isReady = createReadiness({
    store,
    workflowService: () => readEngine()?.client.workflowService,
    namespace: config.temporal.namespace,
    taskQueue,
    isPolling: () => readEngine()?.isPolling() ?? false,
    servesApi: false,
  })
  const app = createProbes({
    store,
    bus,
    ...instruments,
    publicUrl,
    proxyHops,
    metricsToken,
    isReady,
    carryOut: async () => false,
  })
  const listener = await startListener(app.fetch, config.workerMetricsPort!, config.host)
  instruments.log.info({ host: config.host, port: listener.port }, 'the worker serves its metrics')
  return () => listener.stop(PROBE_LIMIT_MS)
}
