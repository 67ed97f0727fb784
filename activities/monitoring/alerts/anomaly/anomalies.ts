import { findSamples, listAlerted, type SampleKind } from '../../../../db/monitoring/alerts/samples.ts'
import {
  type ExecutionHour,
  readExecutionHours,
  readOneByHours,
} from '../../../../db/monitoring/executionhours.ts'
import {
  type CallHour,
  readCallHours,
  readCallsOfHour,
  sumCallHours,
} from '../../../../db/monitoring/usage/callhours.ts'
import { NO_WORKFLOW } from '../../../../db/monitoring/usage/calls.ts'
import type { DetectorInput, DetectorVerdict } from '../detector.ts'
import { judgeHour } from './judge.ts'
import { HISTORY_MS, type HourSeries, type HourSum, LEAST_REQUESTS } from './series.ts'

/** The workflows with the most requests in the hour are judged one by one, so many; all of them count for the team. */
const MOST_WORKFLOWS = 100
/** For this many further workflows the verdict is that they have too little data. */
const MOST_OTHERS = 400

const SAMPLES: Record<string, SampleKind> = {
  error_rate: 'FAILED',
  latency: 'LONGEST',
  token_usage: 'MOST_TOKENS',
  model_calls: 'MOST_TOKENS',
  model_error_rate: 'FAILED_CALLS',
  model_latency: 'LONGEST_CALLS',
}
const OF_EXECUTIONS = ['error_rate', 'latency']
const OF_CALLS = ['model_error_rate', 'model_latency']
const SPIKES = ['token_usage', 'model_calls']

/**
 * Judges what the executions and the calls to models of a team and of its workflows were in an hour, by the same hours of
 * four weeks before.
 */
export async function detectAnomalies(input: DetectorInput): Promise<DetectorVerdict[]> {
  const { db, teamId, config, window, signal } = input
  const executions = await readExecutions(input)
  await sumCallHours(db, teamId, window.to, signal)
  const calls = await readCalls(input)
  const thresholds = config.alertThresholds
  const read = { executions: executions.series, calls: calls.series }
  const verdicts = judgeHour(read, window.from.getTime(), thresholds)
  for (const { metric, workflowId, finding } of verdicts) {
    if (!finding) continue
    signal.throwIfAborted()
    const where = { teamId, workflowId, ...window }
    finding.sampleExecutionIds = await findSamples(db, SAMPLES[metric]!, where)
  }
  const alerted = await listAlerted(db, teamId, SPIKES)
  const judged = new Set(calls.series.map(({ workflowId }) => workflowId))
  const silent = new Set([...calls.others, ...alerted].filter((workflowId) => !judged.has(workflowId)))
  return [
    ...verdicts,
    ...tellAll(OF_EXECUTIONS, executions.others, 'executions'),
    ...tellAll(OF_CALLS, calls.others, 'calls to models'),
    // Where there is little there is no spike.
    ...[...silent].flatMap((workflowId) =>
      SPIKES.map((metric): DetectorVerdict => ({ metric, workflowId, state: 'QUIET' })),
    ),
  ]
}

/** The series that are judged, and the other workflows that did something in the hour. */
type Watched = { series: HourSeries[]; others: string[] }

async function readExecutions({ db, teamId, window, signal }: DetectorInput): Promise<Watched> {
  const toSum = ({ hour, ended, failed, cancelled, durations }: ExecutionHour): HourSum => ({
    ...{ hour: hour.getTime(), requests: ended - cancelled, failed, tokens: 0, durations },
  })
  const inHour = await readExecutionHours(db, teamId, window)
  const own = inHour.map((sum) => ({ workflowId: sum.workflowId, requests: sum.ended - sum.cancelled }))
  const from = new Date(window.from.getTime() - HISTORY_MS)
  return readSeries(own, signal, async (workflowId) => {
    const before = await readOneByHours(db, teamId, { from, to: window.from, workflowId })
    const now = inHour.filter((sum) => workflowId === undefined || sum.workflowId === workflowId).map(toSum)
    return [...before.map(toSum), ...(now.length > 0 ? [now.reduce(addSums)] : [])]
  })
}

/** Both of the same hour. */
function addSums(a: HourSum, b: HourSum): HourSum {
  return {
    hour: a.hour,
    requests: a.requests + b.requests,
    failed: a.failed + b.failed,
    tokens: a.tokens + b.tokens,
    durations: a.durations.map((n, place) => n + b.durations[place]!),
  }
}

async function readCalls({ db, teamId, window, signal }: DetectorInput): Promise<Watched> {
  const toSum = ({ hour, calls, failed, tokens, durations }: CallHour): HourSum => ({
    ...{ hour: hour.getTime(), requests: calls, failed, tokens, durations },
  })
  const inHour = await readCallsOfHour(db, teamId, window.from)
  const own = inHour
    .filter(({ workflowId }) => workflowId !== NO_WORKFLOW)
    .map(({ workflowId, calls }) => ({ workflowId, requests: calls }))
  const from = new Date(window.from.getTime() - HISTORY_MS)
  return readSeries(own, signal, async (workflowId = NO_WORKFLOW) => {
    const rows = await readCallHours(db, teamId, { workflowId, from, to: window.to })
    return rows.map(toSum)
  })
}

/** Reads the team's series, and those of the workflows with enough in the hour. One that is all of the team's is enough. */
async function readSeries(
  own: { workflowId: string; requests: number }[],
  signal: AbortSignal,
  read: (workflowId: string | undefined) => Promise<HourSum[]>,
): Promise<Watched> {
  const busiest = own.toSorted((a, b) => b.requests - a.requests)
  const judged = busiest.filter(({ requests }) => requests >= LEAST_REQUESTS).slice(0, MOST_WORKFLOWS)
  const series: HourSeries[] = []
  for (const { workflowId } of judged) {
    signal.throwIfAborted()
    series.push({ workflowId, hours: await read(workflowId) })
  }
  const team = await read(undefined)
  const count = (hours: HourSum[]) => hours.reduce((sum, { requests }) => sum + requests, 0)
  const isOne = series.length === 1 && count(series[0]!.hours) === count(team)
  if (!isOne && team.length > 0) series.unshift({ workflowId: null, hours: team })
  const others = busiest.filter(({ requests }) => requests < LEAST_REQUESTS).slice(0, MOST_OTHERS)
  return { series, others: others.map(({ workflowId }) => workflowId) }
}

function tellAll(metrics: string[], workflowIds: string[], noun: string): DetectorVerdict[] {
  const reason = `Fewer than ${LEAST_REQUESTS} ${noun} ended in the hour`
  return workflowIds.flatMap((workflowId) =>
    metrics.map((metric): DetectorVerdict => ({ metric, workflowId, state: 'INSUFFICIENT_DATA', reason })),
  )
}
