import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

const SECOND_PARTS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10]
const TO_DAYS = [0.05, 0.1, 0.25, 0.5, 1, 5, 15, 60, 300, 1_800, 7_200, 43_200, 604_800]

export type Metrics = ReturnType<typeof createMetrics>

/**
 * What a process counts, in a registry of its own: made once at its start and passed on, never found by import.
 * Labels are route patterns, statuses and types from our own tables: nothing that a user names. `ofProcess` adds
 * memory, CPU, garbage collection and event-loop lag (process_*, nodejs_*).
 */
export function createMetrics(options: { ofProcess?: boolean } = {}) {
  const registry = new Registry()
  const registers = [registry]
  // Its timer is what an idle process pays: 0.2 % of a core (0.4 % at the usual 10 ms).
  if (options.ofProcess) collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 25 })
  const metrics = {
    registry,
    requests: new Histogram({
      ...{ name: 'perdure_http_request_duration_seconds', registers },
      help: 'Requests by route pattern; _count is how many.',
      labelNames: ['method', 'route', 'status'] as const,
      buckets: SECOND_PARTS,
    }),
    runsStarted: new Counter({
      ...{ name: 'perdure_runs_started_total', registers },
      help: 'Runs that Temporal took, or refused for good. What is cancelled while PENDING is in neither total.',
      labelNames: ['trigger'] as const,
    }),
    runsEnded: new Counter({
      ...{ name: 'perdure_runs_ended_total', registers },
      help: 'Runs that ended, each counted by one process only.',
      labelNames: ['status', 'trigger'] as const,
    }),
    runDuration: new Histogram({
      ...{ name: 'perdure_run_duration_seconds', registers },
      help: 'From the start in Temporal to the end.',
      labelNames: ['status'] as const,
      buckets: TO_DAYS,
    }),
    projectionLag: new Histogram({
      ...{ name: 'perdure_projection_lag_seconds', registers },
      help: "From a run's end in Temporal to its rows.",
      buckets: SECOND_PARTS,
    }),
    nodeDuration: new Histogram({
      ...{ name: 'perdure_node_duration_seconds', registers },
      help: 'Attempts of nodes by type and outcome (SUCCESS, FAILED, CANCELLED); the time a WAIT waits is in none.',
      labelNames: ['node_type', 'outcome'] as const,
      buckets: [0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 10, 60, 600],
    }),
    nodeErrors: new Counter({
      ...{ name: 'perdure_node_errors_total', registers },
      help: 'Failed attempts of nodes by failure type, retried ones and those that onError handles included.',
      labelNames: ['node_type', 'error_type'] as const,
    }),
    scheduleToStart: new Histogram({
      ...{ name: 'perdure_activity_schedule_to_start_seconds', registers },
      help: 'How long an attempt of a node waited for a worker.',
      buckets: SECOND_PARTS,
    }),
  }
  // A rate needs the zero that came before the first one.
  for (const trigger of ['MANUAL', 'API', 'WEBHOOK', 'SCHEDULE']) {
    metrics.runsStarted.inc({ trigger }, 0)
    for (const status of ['SUCCESS', 'FAILED', 'CANCELLED']) metrics.runsEnded.inc({ status, trigger }, 0)
  }
  return metrics
}

/** A value that is asked for at each scrape. `read` answers the value by label; undefined leaves it out. */
export function addGauge(
  metrics: Metrics,
  gauge: { name: string; help: string; label?: string },
  read: () => Promise<Reading> | Reading,
): void {
  const { name, help, label } = gauge
  new Gauge({
    ...{ name, help, registers: [metrics.registry] },
    labelNames: label ? [label] : [],
    async collect() {
      const reading = await read()
      // What is not known now must not stand as it was.
      if (label) this.reset()
      else this.remove()
      if (reading === undefined) return
      if (typeof reading === 'number') this.set(reading)
      else for (const [value, n] of Object.entries(reading)) this.set({ [label!]: value }, n)
    },
  })
}

export type Reading = number | Record<string, number> | undefined

const HTTP_STATUSES = new Set([
  400, 401, 403, 404, 405, 408, 409, 410, 413, 422, 425, 429, 500, 502, 503, 504,
])
const FAILURES = new Set(
  [
    'ExpressionFailed ExpressionLimit ExpressionsUnavailable InvalidConfig InvalidResponse NodeTimedOut OutputTooLarge',
    'StopAndError UnknownNodeType HttpRefusedAddress HttpTimeout HttpNetwork HttpTooLarge HttpAborted HttpRedirect',
    'WorkerShutdown Infrastructure ExecutionDeleted ExecutionEnded WorkerLost Error',
  ]
    .join(' ')
    .split(' '),
)

/** A failure type as a label: any server may answer any status, and a type that we do not know is `Other`. */
export function boundFailure(type: string): string {
  if (FAILURES.has(type)) return type
  const status = /^Http(\d{3})$/.exec(type)?.[1]
  if (!status) return 'Other'
  return HTTP_STATUSES.has(Number(status)) ? type : `Http${status[0]}xx`
}
