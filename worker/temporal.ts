import {
  Connection,
  type ConnectionOptions,
  defaultGrpcRetryOptions,
  makeGrpcRetryInterceptor,
} from '@temporalio/client'
import { msToTs } from '@temporalio/common/lib/time.js'
import { NativeConnection } from '@temporalio/worker'
import type { Config } from './config.ts'

const RETENTION = '30 days'

// The dev server has one shard and by default loads its queues 20 times a second, so each step of a run waits
// up to 50 ms. Measured for five activities in a row: 290 ms with the defaults, 100 ms with these settings.
// The rate limits are high because Perdure is the server's only tenant.
const DYNAMIC = {
  'history.transferProcessorMaxPollRPS': 2000,
  'history.timerProcessorMaxPollRPS': 2000,
  // The list of runs is only a hint: no caller waits for it, and writing it seldom saves a tenth of the server's work.
  'history.visibilityProcessorMaxPollRPS': 2,
  'history.transferProcessorMaxPollHostRPS': 5000,
  'matching.numTaskqueueReadPartitions': 1,
  'matching.numTaskqueueWritePartitions': 1,
  // Timers and retries may fire this late; the default is one second.
  'history.timerProcessorMaxTimeShift': '"10ms"',
  'system.enableActivityEagerExecution': true,
  'frontend.namespaceRPS': 100_000,
  'frontend.rps': 100_000,
  'frontend.namespaceCount': 10_000,
  'matching.rps': 100_000,
  // Teams get their tasks in turn. Each run carries its team as the fairness key.
  'matching.enableFairness': true,
  // Its HTTP API demands no credential. No request has this Host, so all are answered with 403.
  'frontend.httpAllowedHosts': '["none.invalid"]',
}

/**
 * The arguments of the embedded server. It listens on loopback, and keeps its state in `file`. It has a web UI at
 * `uiPort`: without one, none.
 */
export function listServerArguments(options: {
  port: number
  httpPort: number
  metricsPort: number
  uiPort: number | undefined
  file: string
  namespace: string
  durable: boolean
}): string[] {
  return [
    'server',
    'start-dev',
    ...(options.uiPort === undefined ? ['--headless'] : ['--ui-ip=127.0.0.1', `--ui-port=${options.uiPort}`]),
    // With another loopback address its parts do not find each other: they dial 127.0.0.1.
    '--ip=127.0.0.1',
    `--port=${options.port}`,
    `--http-port=${options.httpPort}`,
    `--metrics-port=${options.metricsPort}`,
    `--db-filename=${options.file}`,
    `--namespace=${options.namespace}`,
    '--log-level=error',
    '--sqlite-pragma=journal_mode=wal',
    `--sqlite-pragma=synchronous=${options.durable ? 'full' : 'off'}`,
    // In pages of 4 KB. By default the log is written back after each 1,000 of them, while all requests wait.
    '--sqlite-pragma=wal_autocheckpoint=20000',
    ...Object.entries(DYNAMIC).flatMap(([key, value]) => ['--dynamic-config-value', `${key}=${value}`]),
  ]
}

/** A page of a history may be as large as Temporal lets a whole one become: 50 MB. gRPC would take 4 MB. */
const MAX_RECEIVED_BYTES = 64 * 1024 * 1024

type Interceptor = NonNullable<ConnectionOptions['interceptors']>[number]

/** gRPC's code for a call that was given up; the client does not try such a call again. */
const CANCELLED = 1

/**
 * Ends a call that the client tries again after its connection was closed. gRPC throws then; as the client tries
 * again in a timer, that error would end this process.
 */
const endLateTry: Interceptor = (options, nextCall) => {
  try {
    return nextCall(options) as ReturnType<Interceptor>
  } catch (error) {
    return makeEndedCall(error instanceof Error ? error.message : String(error))
  }
}

function makeEndedCall(details: string): ReturnType<Interceptor> {
  const nothing = () => {}
  const call: Pick<ReturnType<Interceptor>, keyof ReturnType<Interceptor>> = {
    start(metadata, listener) {
      listener?.onReceiveMessage?.(null)
      listener?.onReceiveStatus?.({ code: CANCELLED, details, metadata })
    },
    sendMessage: nothing,
    sendMessageWithContext: nothing,
    halfClose: nothing,
    startRead: nothing,
    cancelWithStatus: nothing,
    getPeer: () => '',
    getAuthContext: () => null,
  }
  return call as ReturnType<Interceptor>
}

export const CLIENT_OPTIONS = {
  channelArgs: { 'grpc.max_receive_message_length': MAX_RECEIVED_BYTES },
  interceptors: [makeGrpcRetryInterceptor(defaultGrpcRetryOptions()), endLateTry],
} satisfies ConnectionOptions

/**
 * Rejects while the embedded server is not up. Sets its
 * namespace to keep histories for 30 days instead of one.
 */
export async function checkServer(address: string, namespace: string): Promise<void> {
  const connection = await Connection.connect({ ...CLIENT_OPTIONS, address, connectTimeout: '2 s' })
  try {
    await connection.withDeadline(Date.now() + 5_000, async () => {
      await connection.workflowService.describeNamespace({ namespace })
      await connection.workflowService.updateNamespace({
        namespace,
        config: { workflowExecutionRetentionTtl: msToTs(RETENTION) },
      })
    })
  } finally {
    await connection.close()
  }
}

/** The options that client and worker connections share. */
function describeConnection(config: Config) {
  const { address, tls, apiKey } = config.temporal
  if (!address) throw new Error('no Temporal address')
  return { address, tls, ...(apiKey ? { apiKey } : {}) }
}

/**
 * The connection that worker and client share, as eager
 * starts need. Rejects while Temporal cannot be reached.
 */
export function connectWorker(config: Config): Promise<NativeConnection> {
  // On loopback, gRPC compression only costs time.
  const loopback = /^(127\.|localhost:|\[::1\])/.test(config.temporal.address ?? '')
  return NativeConnection.connect({
    ...describeConnection(config),
    grpcCompression: { codec: loopback ? 'none' : 'gzip' },
  })
}

/** A connection that is opened by its first call, so that the API can start and serve without Temporal. */
export function connectClient(config: Config): Connection {
  return Connection.lazy({ ...describeConnection(config), ...CLIENT_OPTIONS })
}
