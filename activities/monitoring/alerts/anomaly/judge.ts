import type { MonitoringConfig } from '../../../../db/monitoring/config.ts'
import type { DetectorVerdict } from '../detector.ts'
import { judgeErrors, judgeLatency } from './rates.ts'
import { type HourQuestion, type HourSeries, LEAST_REQUESTS } from './series.ts'
import { judgeSpike } from './spikes.ts'

/**
 * How many hours of a team in a week may look odd by chance, in spikes and in the rest. Fewer become false alarms: a spike
 * must be of the team's multiple too.
 */
const ODD_SPIKES_A_WEEK = 1
const ODD_RATES_A_WEEK = 0.25
const SPIKES = new Set(['token_usage', 'model_calls'])
const HOURS_A_WEEK = 168

/** As many workflows at once get an alert each; of more the team is told as one. */
const MOST_OWN_ALERTS = 3

export type Thresholds = MonitoringConfig['alertThresholds']

/** All that is watched of a team at once: its executions, and its calls to models. */
export type TeamSeries = { executions: HourSeries[]; calls: HourSeries[] }

/** Judges an hour of a team and its workflows. A function of its arguments alone. */
export function judgeHour(
  { executions, calls }: TeamSeries,
  hour: number,
  thresholds: Thresholds,
): DetectorVerdict[] {
  const { tokenUsageSpike, errorRateThreshold, latencyThreshold } = thresholds
  const ask = (series: HourSeries[], metric: string, noun: string, odd: number): HourQuestion => ({
    ...{ hour, metric, noun },
    alpha: odd / HOURS_A_WEEK / Math.max(1, 2 * countJudged(series, hour)),
  })
  const judge = (
    series: HourSeries[],
    metric: string,
    noun: string,
    decide: (one: HourSeries, question: HourQuestion) => DetectorVerdict,
  ) => {
    const question = ask(series, metric, noun, SPIKES.has(metric) ? ODD_SPIKES_A_WEEK : ODD_RATES_A_WEEK)
    return gather(
      series.map((one) => decide(one, question)),
      noun,
    )
  }
  const tokens = judge(calls, 'token_usage', 'tokens', (one, question) =>
    judgeSpike(one, question, ({ tokens }) => tokens, tokenUsageSpike),
  )
  return [
    ...judge(executions, 'error_rate', 'executions', (one, question) =>
      judgeErrors(one, question, errorRateThreshold),
    ),
    ...judge(executions, 'latency', 'executions', (one, question) =>
      judgeLatency(one, question, latencyThreshold),
    ),
    ...tokens,
    ...judge(calls, 'model_calls', 'calls to models', (one, question) => {
      const verdict = judgeSpike(one, question, ({ requests }) => requests, tokenUsageSpike)
      return isFiring(tokens, one) ? keepOnly(verdict, 'The alert of its tokens explains it') : verdict
    }),
    ...judge(calls, 'model_error_rate', 'calls to models', (one, question) =>
      judgeErrors(one, question, errorRateThreshold),
    ),
    ...judge(calls, 'model_latency', 'calls to models', (one, question) =>
      judgeLatency(one, question, latencyThreshold),
    ),
  ]
}

function countJudged(series: HourSeries[], hour: number): number {
  return series.filter(
    ({ hours }) => (hours.find((sum) => sum.hour === hour)?.requests ?? 0) >= LEAST_REQUESTS,
  ).length
}

/** One cause has one alert, or few: the workflows' own if they are few, else the team's. The others are kept, not opened. */
function gather(verdicts: DetectorVerdict[], noun: string): DetectorVerdict[] {
  const firing = verdicts.filter(({ state }) => state === 'FIRING')
  const team = firing.find(({ workflowId }) => workflowId === null)
  const own = firing.filter(({ workflowId }) => workflowId !== null)
  if (!team || own.length === 0) return verdicts
  const asOne = own.length > MOST_OWN_ALERTS
  return verdicts.map((verdict) => {
    if (verdict.state !== 'FIRING' || (verdict.workflowId === null) === asOne) return verdict
    const byTeam = `The team's alert is about ${own.length} workflows and their ${noun}`
    return keepOnly(verdict, asOne ? byTeam : 'The alerts of its workflows explain it')
  })
}

/** An alert that is there goes on, but none is opened. */
function keepOnly({ finding, ...told }: DetectorVerdict, reason: string): DetectorVerdict {
  return finding ? { ...told, reason } : told
}

function isFiring(verdicts: DetectorVerdict[], { workflowId }: HourSeries): boolean {
  return verdicts.some((verdict) => verdict.workflowId === workflowId && verdict.state === 'FIRING')
}
