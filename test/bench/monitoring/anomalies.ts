import { judgeHour } from '../../../activities/monitoring/alerts/anomaly/judge.ts'
import {
  HOUR_MS,
  type HourSeries,
  LEAST_REQUESTS,
} from '../../../activities/monitoring/alerts/anomaly/series.ts'
import { type KnownAlert, stepAlert, type WatchState } from '../../../db/monitoring/alerts/lifecycle.ts'
import { type Chance, createChance, type MeasuredSignals, type SignalFigures } from './figures.ts'
import {
  BASELINES,
  type Baseline,
  BEGIN,
  HOURS,
  KINDS,
  type Kind,
  nameSeries,
  type Plant,
  simulateWorkflow,
} from './traffic.ts'

const TEAMS = 30
const THRESHOLDS = { tokenUsageSpike: 3, errorRateThreshold: 0.1, latencyThreshold: 30_000 }
const FIRST_HOUR = 8 * 24
const LASTS = 6
/** Between two plants, and after one until an alert is a false one. */
const APART = 30
const AFTERMATH = 4

const METRICS: Record<Kind, [executions: string[], calls: string[]]> = {
  'spike x3': [
    ['token_usage', 'model_calls'],
    ['token_usage', 'model_calls'],
  ],
  'errors 2% to 15%': [['error_rate'], ['model_error_rate']],
  'p95 x2': [['latency'], ['model_latency']],
}

type Opened = { metric: string; workflowId: string | null; hour: number; requests: number }

/** Simulates 30 teams over 30 days, judges each hour as the watch does, and holds the alerts against what was planted. */
export function measureAnomalies(seed: number): MeasuredSignals {
  const chance = createChance(seed)
  const figures = new Map<string, SignalFigures>()
  const measured: MeasuredSignals = {
    ...{ signals: [], falseAlarms: [], falseBy: new Map(), onTooFew: 0 },
    weeks: (HOURS - FIRST_HOUR) / 168,
  }
  for (let team = 0; team < TEAMS; team++) {
    const baseline = BASELINES[team % BASELINES.length]!
    const { executions, calls, plants } = simulateTeam(baseline, chance)
    const opened = watch(executions, calls)
    measured.onTooFew += opened.filter(({ requests }) => requests < LEAST_REQUESTS).length
    const belongs = (alert: Opened, plant: Plant) =>
      METRICS[plant.kind][plant.inCalls ? 1 : 0].includes(alert.metric) &&
      (alert.workflowId === null || alert.workflowId === String(plant.workflow)) &&
      alert.hour >= plant.from &&
      alert.hour < plant.to + AFTERMATH
    const wrong = opened.filter((alert) => !plants.some((plant) => belongs(alert, plant)))
    measured.falseAlarms.push(wrong.length)
    for (const { metric } of wrong) {
      const key = `${metric} (${baseline})`
      measured.falseBy.set(key, (measured.falseBy.get(key) ?? 0) + 1)
    }
    for (const plant of plants) {
      const key = `${plant.kind} ${baseline}`
      const kept = figures.get(key) ?? { kind: plant.kind, baseline, planted: 0, delays: [] }
      figures.set(key, kept)
      kept.planted++
      const hours = opened.filter((alert) => belongs(alert, plant)).map(({ hour }) => hour - plant.from + 1)
      if (hours.length > 0) kept.delays.push(Math.min(...hours))
    }
  }
  measured.signals = [...figures.values()].sort((a, b) => a.kind.localeCompare(b.kind))
  return measured
}

function simulateTeam(baseline: Baseline, chance: Chance) {
  const workflows = 1 + Math.floor(chance.next() * 5)
  const plants: Plant[] = []
  let at = FIRST_HOUR + 24
  for (let n = 0; at + LASTS < HOURS; n++) {
    at += Math.floor(chance.between(0, 24))
    // Nights of a daily rhythm have too few requests to tell.
    while (baseline === 'daily' && (at % 24 < 9 || at % 24 > 18 || Math.floor(at / 24) % 7 >= 5)) at++
    const kind = KINDS[n % KINDS.length]!
    const workflow = Math.floor(chance.next() * workflows)
    if (at + LASTS < HOURS)
      plants.push({ kind, from: at, to: at + LASTS, workflow, inCalls: chance.next() < 0.5 })
    at += LASTS + APART
  }
  const made = Array.from({ length: workflows }, (_, place) =>
    simulateWorkflow(baseline, {
      size: Math.exp(chance.between(Math.log(60), Math.log(300))),
      plants: plants.filter(({ workflow }) => workflow === place),
      chance,
    }),
  )
  return {
    plants,
    executions: nameSeries(made.map(({ executions }) => executions)),
    calls: nameSeries(made.map(({ calls }) => calls)),
  }
}

/** The alerts that open, with their whole course: quiet windows, cool-down. */
function watch(executions: HourSeries[], calls: HourSeries[]): Opened[] {
  const opened: Opened[] = []
  const states = new Map<string, WatchState>()
  const alerts = new Map<string, KnownAlert>()
  for (let hour = FIRST_HOUR; hour < HOURS; hour++) {
    const at = BEGIN + hour * HOUR_MS
    const to = new Date(at + HOUR_MS)
    for (const verdict of judgeHour({ executions, calls }, at, THRESHOLDS)) {
      const key = `${verdict.metric} ${verdict.workflowId}`
      const { next, step } = stepAlert(states.get(key), verdict, to, alerts.get(key))
      states.set(key, next)
      if (step === 'RESOLVE') alerts.set(key, { ...alerts.get(key)!, resolvedAt: to })
      if (step === 'OPEN') {
        alerts.set(key, { ...verdict.finding!, resolvedAt: null })
        const from = /^(error_rate|latency)$/.test(verdict.metric) ? executions : calls
        const series = from.find(({ workflowId }) => workflowId === verdict.workflowId)!
        const requests = series.hours.find((sum) => sum.hour === at)?.requests ?? 0
        opened.push({ metric: verdict.metric, workflowId: verdict.workflowId, hour, requests })
      }
    }
  }
  return opened
}
