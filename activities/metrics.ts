import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { FINAL_STATUSES } from '../db/executions/status.ts'
import { EXECUTION_TRIGGERS } from '../db/executions/triggers.ts'
import { FAILURE_TYPES } from '../workflows/nodes/failures.ts'

const SECOND_PARTS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10]
const TO_DAYS = [0.05, 0.1, 0.25, 0.5, 1, 5, 15, 60, 300, 1_800, 7_200, 43_200, 604_800]

export type Metrics = ReturnType<typeof createMetrics>

/**
 * The metrics of one process, in a registry of their own: made once when it starts and passed on, never
 * imported. Labels are route patterns, statuses and types from our own tables, never names that users choose.
 * `ofProcess` adds memory, CPU, garbage collection and event-loop lag (process_*, nodejs_*).
 */
export function createMetrics(options: { ofProcess?: boolean } = {}) {
  const registry = new Registry()
  const registers = [registry]
  // The event-loop timer costs an idle process 0.2 % of a core at 25 ms (0.4 % at the default of 10 ms).
  if (options.ofProcess) {
    collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 25 })
    // Gauges with the ending of a counter, which Prometheus takes for mistakes. The same numbers are there by type.
    for (const what of ['resources', 'handles', 'requests'])
      registry.removeSingleMetric(`nodejs_active_${what}_total`)
  }
  const metrics = {
    registry,
    requests: new Histogram({
      name: 'perdure_http_request_duration_seconds',
      registers,
      help: 'Duration of HTTP requests by method, route pattern and status.',
      labelNames: ['method', 'route', 'status'] as const,
      buckets: SECOND_PARTS,
    }),
    runsStarted: new Counter({
      name: 'perdure_runs_started_total',
      registers,
      help: 'Runs that Temporal accepted or finally refused. Executions cancelled while PENDING are not counted.',
      labelNames: ['trigger'] as const,
    }),
    runsEnded: new Counter({
      name: 'perdure_runs_ended_total',
      registers,
      help: 'Runs that ended. Each is counted by one process only.',
      labelNames: ['status', 'trigger'] as const,
    }),
    runDuration: new Histogram({
      name: 'perdure_run_duration_seconds',
      registers,
      help: 'Time from the start of a run in Temporal to its end.',
      labelNames: ['status'] as const,
      buckets: TO_DAYS,
    }),
    projectionLag: new Histogram({
      name: 'perdure_projection_lag_seconds',
      registers,
      help: 'Time from the end of a run in Temporal until its rows show it.',
      buckets: SECOND_PARTS,
    }),
    closesFailed: new Counter({
      name: 'perdure_close_projection_failures_total',
      registers,
      help: 'Failed tries to write the end of a run into its rows. Each is tried again until it succeeds.',
    }),
    ...createNodeMetrics(registers),
    ...createModelMetrics(registers),
  }
  // A rate over a counter misses the first increment unless the counter has been exposed as zero before.
  for (const kind of ['node', 'model', 'segment']) metrics.turnedAway.inc({ kind }, 0)
  for (const trigger of EXECUTION_TRIGGERS) {
    metrics.runsStarted.inc({ trigger }, 0)
    for (const status of FINAL_STATUSES) metrics.runsEnded.inc({ status, trigger }, 0)
  }
  return metrics
}

function createModelMetrics(registers: Registry[]) {
  return {
    modelCalls: new Counter({
      name: 'perdure_model_calls_total',
      registers,
      help: 'Calls to vendors of models by provider and how they ended: SUCCESS, REFUSED (nothing charged) or LOST (nobody knows what was charged).',
      labelNames: ['provider', 'status'] as const,
    }),
    modelTokens: new Counter({
      name: 'perdure_model_tokens_total',
      registers,
      help: 'Tokens that vendors of models have reported, by provider and kind: input has cached in it, output has reasoning in it.',
      labelNames: ['provider', 'kind'] as const,
    }),
    modelFirst: new Histogram({
      name: 'perdure_model_first_seconds',
      registers,
      help: 'Time from sending a request to a model to the first piece of its answer.',
      labelNames: ['provider'] as const,
      buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
    }),
  }
}

function createNodeMetrics(registers: Registry[]) {
  return {
    nodeDuration: new Histogram({
      name: 'perdure_node_duration_seconds',
      registers,
      help: 'Attempts of nodes by type and outcome (SUCCESS, FAILED, CANCELLED); the time a WAIT waits does not count.',
      labelNames: ['node_type', 'outcome'] as const,
      buckets: [0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 10, 60, 600],
    }),
    nodeErrors: new Counter({
      name: 'perdure_node_errors_total',
      registers,
      help: 'Failed attempts of nodes by failure type, including those that are retried or handled by onError.',
      labelNames: ['node_type', 'error_type'] as const,
    }),
    internalErrors: new Counter({
      name: 'perdure_internal_errors_total',
      registers,
      help: 'Nodes that failed with InternalError, which is a fault of the service: its log has the cause.',
    }),
    turnedAway: new Counter({
      name: 'perdure_turned_away_total',
      registers,
      help: 'Attempts (node; model: in the queue of calls to models) and segments that gave their slot back because their team had its half of this worker, or this worker had no room for their values.',
      labelNames: ['kind'] as const,
    }),
    scheduleToStart: new Histogram({
      name: 'perdure_activity_schedule_to_start_seconds',
      registers,
      help: 'How long an attempt of a node waited for a worker.',
      buckets: SECOND_PARTS,
    }),
  }
}

/**
 * Adds a gauge whose value is read at each scrape. `read` returns a number, or numbers by the value of
 * `label`; undefined leaves the gauge out of this scrape.
 */
export function addGauge(
  metrics: Metrics,
  gauge: { name: string; help: string; label?: string },
  read: () => Promise<GaugeReading> | GaugeReading,
): void {
  const { name, help, label } = gauge
  new Gauge({
    name,
    help,
    registers: [metrics.registry],
    labelNames: label ? [label] : [],
    async collect() {
      const reading = await read()
      // A value that is unknown now must not keep its value from the last scrape.
      if (label) this.reset()
      else this.remove()
      if (reading === undefined) return
      if (typeof reading === 'number') this.set(reading)
      else for (const [value, n] of Object.entries(reading)) this.set({ [label!]: value }, n)
    },
  })
}

export type GaugeReading = number | Record<string, number> | undefined

const HTTP_STATUSES = new Set([
  400, 401, 403, 404, 405, 408, 409, 410, 413, 422, 425, 429, 500, 502, 503, 504,
])
const FAILURES = new Set<string>(FAILURE_TYPES)

/**
 * The label for a failure type. Servers may respond with any status, so uncommon ones become `Http4xx` and
 * the like; a type that we do not know becomes `Other`.
 */
export function labelFailure(type: string): string {
  if (FAILURES.has(type)) return type
  const status = /^Http(\d{3})$/.exec(type)?.[1]
  if (!status) return 'Other'
  return HTTP_STATUSES.has(Number(status)) ? type : `Http${status[0]}xx`
}
