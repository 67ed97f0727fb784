import { Connection } from '@temporalio/client'
import { msToTs } from '@temporalio/common/lib/time.js'
import { NativeConnection } from '@temporalio/worker'
import type { Config } from './config.ts'

const RETENTION = '30 days'

// The dev server has one shard and loads its queues 20 times a second: untuned, each step of a run waits up to
// 50 ms (measured: five activities in a row 290 ms, tuned 100 ms). The limits are for one tenant only, us.
const DYNAMIC = {
  'history.transferProcessorMaxPollRPS': 2000,
  'history.timerProcessorMaxPollRPS': 2000,
  'history.visibilityProcessorMaxPollRPS': 2000,
  'history.transferProcessorMaxPollHostRPS': 5000,
  'matching.numTaskqueueReadPartitions': 1,
  'matching.numTaskqueueWritePartitions': 1,
  // Timers and retries fire up to this much late; a second by default.
  'history.timerProcessorMaxTimeShift': '"10ms"',
  'system.enableActivityEagerExecution': true,
  'frontend.namespaceRPS': 100_000,
  'frontend.rps': 100_000,
  'frontend.namespaceCount': 10_000,
  'matching.rps': 100_000,
  // Teams get their tasks in turn: their runs say whose they are.
  'matching.enableFairness': true,
}

/** The command line of the embedded server: on loopback, without a UI, its state in `file`. */
export function listServerArguments(options: {
  port: number
  file: string
  namespace: string
  durable: boolean
}): string[] {
  return [
    ...['server', 'start-dev', '--headless', '--ip', '127.0.0.1', '--port', String(options.port)],
    ...['--db-filename', options.file, '--namespace', options.namespace, '--log-level', 'error'],
    ...['--sqlite-pragma', 'journal_mode=wal'],
    ...['--sqlite-pragma', `synchronous=${options.durable ? 'full' : 'off'}`],
    ...Object.entries(DYNAMIC).flatMap(([key, value]) => ['--dynamic-config-value', `${key}=${value}`]),
  ]
}

/** Rejects while the embedded server is not up; sets its namespace to keep histories 30 days instead of one. */
export async function checkServer(address: string, namespace: string): Promise<void> {
  const connection = await Connection.connect({ address, connectTimeout: '2 s' })
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

/** How this process reaches Temporal; gRPC compression only costs time on loopback. */
function describeConnection(config: Config) {
  const { address, tls, apiKey } = config.temporal
  if (!address) throw new Error('no Temporal address')
  return { address, tls, ...(apiKey ? { apiKey } : {}) }
}

/** The one connection that worker and client share (eager starts need that). Rejects while Temporal is away. */
export function connectWorker(config: Config): Promise<NativeConnection> {
  const loopback = /^(127\.|localhost:|\[::1\])/.test(config.temporal.address ?? '')
  return NativeConnection.connect({
    ...describeConnection(config),
    grpcCompression: { codec: loopback ? 'none' : 'gzip' },
  })
}

/** A client's connection, made at the first call: an API serves while Temporal is away. */
export function connectClient(config: Config): Connection {
  return Connection.lazy(describeConnection(config))
}
