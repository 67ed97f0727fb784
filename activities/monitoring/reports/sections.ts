import { DateTime } from 'luxon'
import type { ClaimedReportRun } from '../../../db/monitoring/reports/claims.ts'
import type { AlertFigures, ReportFigures, UsageFigures } from '../../../db/monitoring/reports/content.ts'
import { showChange, showCompact, showCost, showNumber, sumTokens } from './amounts.ts'
import { drawBars, drawLine, drawNames } from './charts.ts'
import { ALERT_COLORS, COLORS } from './colors.ts'

/** A figure with what it is compared with. */
export type Figure = { label: string; value: string; note?: string }

/** A picture of a section: `alt` says the same as it. */
export type Chart = { cid: string; title: string; alt: string; svg: string }

/** A line of a list: a tag with its color, a text and what is behind it. */
export type ReportItem = { tag: string; color: string; text: string; details: string; link: string | null }

/** One line of the CSV. */
type CsvRow = { section: string; date: string; name: string; measure: string; value: string | number }

/** What a mail says of one metric: HTML, text and CSV are all made of it. */
export type MailSection = {
  title: string
  figures: Figure[]
  charts: Chart[]
  items: ReportItem[]
  /** Said below the rest. */
  notes: string[]
  rows: CsvRow[]
}

type ReportSettings = { publicUrl: string; timezone: string }

const MOST_MODELS = 6

/** The sections of a mail, in the order of the report's metrics. */
export function writeSections(
  { usage, alerts }: ReportFigures,
  { timezone, metrics }: Pick<ClaimedReportRun, 'timezone' | 'metrics'>,
  publicUrl: string,
): MailSection[] {
  const place = { publicUrl, timezone }
  const byType = new Map(alerts.map((found) => [TYPES[found.type].metric, found]))
  return metrics.flatMap((metric) => {
    if (metric === 'token_usage') return usage ? [writeUsage(usage)] : []
    const found = byType.get(metric)
    return found ? [writeAlerts(found, place)] : []
  })
}

function writeUsage({ total, before, days, models }: UsageFigures): MailSection {
  const tokens = sumTokens(total)
  const figures = [
    { label: 'Tokens', value: showCompact(tokens), note: showChange(tokens, sumTokens(before)) },
    { label: 'Cost', value: showCost(total.cost), note: showChange(total.cost, before.cost) },
    { label: 'Calls to models', value: showNumber(total.calls), note: showChange(total.calls, before.calls) },
    {
      label: 'Executions',
      value: showNumber(total.executions),
      note: showChange(total.executions, before.executions),
    },
  ]
  const bars = days.map(({ date, inputTokens, outputTokens, inPeriod }) => ({
    label: showDay(date),
    values: [inputTokens, outputTokens],
    faint: !inPeriod,
  }))
  const said = days.map((day) => `${showDay(day.date)}: ${showNumber(sumTokens(day))}`)
  const charts: Chart[] = [
    {
      cid: 'usage-days',
      title: 'Tokens by day',
      alt: `Tokens by day. ${said.join('; ')}`,
      svg: drawBars(
        [
          { name: 'Input', color: COLORS.first },
          { name: 'Output', color: COLORS.second },
        ],
        bars,
        showCompact,
      ),
    },
  ]
  const top = models.slice(0, MOST_MODELS)
  const isPriced = top.some(({ cost }) => (cost ?? 0) > 0)
  if (top.length > 0) {
    const named = top.map((one) => ({
      name: one.model,
      value: isPriced ? (one.cost ?? 0) : sumTokens(one),
      shown: isPriced ? showCost(one.cost) : showCompact(sumTokens(one)),
    }))
    const title = isPriced ? 'Cost by model' : 'Tokens by model'
    const alt = `${title}. ${named.map(({ name, shown }) => `${name}: ${shown}`).join('; ')}`
    charts.push({ cid: 'usage-models', title, alt, svg: drawNames(named, COLORS.first) })
  }
  const items = top.map((one) => ({
    tag: '',
    color: COLORS.first,
    text: one.model,
    details: `${showCost(one.cost)}, ${showNumber(sumTokens(one))} tokens, ${countCalls(one.calls)}, ${one.provider}`,
    link: null,
  }))
  const notes: string[] = []
  if (total.calls === 0) notes.push('No model was called in this time.')
  if (models.length > top.length)
    notes.push(`More models in the attached CSV: ${models.length - top.length}.`)
  if (total.unpricedCalls > 0)
    notes.push(`The cost is without ${countCalls(total.unpricedCalls)} whose price is not known.`)
  const section = 'token_usage'
  const listSums = (date: string, name: string, one: UsageFigures['total']): CsvRow[] => [
    { section, date, name, measure: 'inputTokens', value: one.inputTokens },
    { section, date, name, measure: 'outputTokens', value: one.outputTokens },
    { section, date, name, measure: 'calls', value: one.calls },
    { section, date, name, measure: 'executions', value: one.executions },
    { section, date, name, measure: 'cost', value: one.cost ?? '' },
  ]
  const rows = [
    ...listSums('', 'total', total),
    ...listSums('', 'period before', before),
    ...days.flatMap((day) => listSums(day.date, 'day', day)),
    ...models.flatMap((one) => listSums('', `model ${one.model}`, one)),
  ]
  return { title: 'Token usage', figures, charts, items, notes, rows }
}

const countCalls = (calls: number) => `${showNumber(calls)} ${calls === 1 ? 'call' : 'calls'}`

const TYPES = {
  ANOMALY: { metric: 'anomalies', title: 'Anomalies', none: 'Nothing unusual was found in this time.' },
  DRIFT: { metric: 'drift', title: 'Drift', none: 'No drift was found in this time.' },
  SENTIMENT: {
    metric: 'sentiment',
    title: 'Sentiment',
    none: 'No shift of sentiment was found in this time.',
  },
} as const

const SEVERITIES = ['LOW', 'MEDIUM', 'HIGH', 'CRITICAL'] as const

function writeAlerts(
  { type, total, bySeverity, byStatus, days, latest, checks, moods }: AlertFigures,
  { publicUrl, timezone }: ReportSettings,
): MailSection {
  const { metric, title, none } = TYPES[type]
  const severe = bySeverity.HIGH + bySeverity.CRITICAL
  const figures = [
    { label: 'Alerts', value: showNumber(total) },
    { label: 'High or critical', value: showNumber(severe) },
    { label: 'Open', value: showNumber(byStatus.OPEN ?? 0) },
    { label: 'Resolved', value: showNumber(byStatus.RESOLVED ?? 0) },
  ]
  const charts: Chart[] = moods ? listMoods(moods) : []
  const sums = days.map(({ counts }) => SEVERITIES.reduce((sum, severity) => sum + counts[severity], 0))
  if (sums.some((sum) => sum > 0)) {
    const bars = days.map(({ date, counts, inPeriod }) => ({
      label: showDay(date),
      values: SEVERITIES.map((severity) => counts[severity]),
      faint: !inPeriod,
    }))
    const said = days.map(({ date }, at) => `${showDay(date)}: ${sums[at]}`)
    charts.push({
      cid: `${metric}-days`,
      title: 'Alerts by day',
      alt: `Alerts by day. ${said.join('; ')}`,
      svg: drawBars(
        SEVERITIES.map((severity) => ({ name: nameSeverity(severity), color: ALERT_COLORS[severity] })),
        bars,
        showNumber,
      ),
    })
  }
  const items = latest.map((one) => {
    const at = DateTime.fromJSDate(one.createdAt, { zone: timezone }).setLocale('en').toFormat('d LLL, HH:mm')
    const where = one.workflowName === null ? '' : ` · ${one.workflowName}`
    return {
      tag: nameSeverity(one.severity),
      color: ALERT_COLORS[one.severity],
      text: one.message,
      details: `${at} · ${one.status.toLowerCase()}${where}`,
      link: one.workflowId === null ? null : `${publicUrl}/#/workflows/${one.workflowId}`,
    }
  })
  const notes: string[] = []
  if (total === 0) notes.push(none)
  else notes.push(`${sayCounts(bySeverity)}; ${sayCounts(byStatus)}.`)
  if (checks) notes.push(sayChecks(checks))
  if (total > latest.length) notes.push(`These are the latest ${latest.length} of ${showNumber(total)}.`)
  const rows: CsvRow[] = [
    { section: metric, date: '', name: 'total', measure: 'alerts', value: total },
    ...SEVERITIES.map((severity) => ({
      ...{ section: metric, date: '', name: severity, measure: 'alerts', value: bySeverity[severity] },
    })),
    ...Object.entries(byStatus).map(([status, value]) => ({
      ...{ section: metric, date: '', name: status, measure: 'alerts', value },
    })),
    ...days.map(({ date }, at) => ({
      ...{ section: metric, date, name: 'day', measure: 'alerts', value: sums[at]! },
    })),
    ...latest.map((one) => ({
      ...{ section: metric, date: one.createdAt.toISOString(), name: one.workflowName ?? '' },
      ...{ measure: `${one.severity} ${one.status}`, value: one.message },
    })),
  ]
  for (const { date, mean, count } of moods ?? []) {
    rows.push({ section: metric, date, name: 'day', measure: 'messages', value: count })
    rows.push({ section: metric, date, name: 'day', measure: 'mean', value: mean ?? '' })
  }
  for (const [state, value] of Object.entries(checks ?? {}))
    rows.push({ section: metric, date: '', name: state, measure: 'comparisons', value })
  return { title, figures, charts, items, notes, rows }
}

/** The chart of how users' messages sounded; none if there were too few on all days. */
function listMoods(moods: NonNullable<AlertFigures['moods']>): Chart[] {
  const told = moods.filter(({ mean }) => mean !== null)
  if (told.length === 0) return []
  const said = told.map(({ date, mean }) => `${showDay(date)}: ${mean!.toFixed(2)}`)
  const title = "How users' messages sounded, from -1 to +1"
  const points = moods.map(({ date, mean, inPeriod }) => ({
    ...{ label: showDay(date), value: mean, faint: !inPeriod },
  }))
  return [
    {
      cid: 'sentiment-means',
      title,
      alt: `${title}. ${said.join('; ')}`,
      svg: drawLine(points, COLORS.first),
    },
  ]
}

/** `2 low, 1 medium, 0 high, 0 critical`. */
function sayCounts(counts: Record<string, number>): string {
  return Object.entries(counts)
    .map(([name, count]) => `${showNumber(count)} ${name.toLowerCase()}`)
    .join(', ')
}

function sayChecks({ FIRING, QUIET, INSUFFICIENT_DATA }: NonNullable<AlertFigures['checks']>): string {
  if (FIRING + QUIET + INSUFFICIENT_DATA === 0) return 'No workflow is compared with how it was before.'
  const none = `${showNumber(QUIET)} found none, and ${showNumber(INSUFFICIENT_DATA)} had too little to compare`
  return `Of the last comparisons of workflows with how they were before, ${showNumber(FIRING)} found a shift, ${none}.`
}

function nameSeverity(severity: string): string {
  return severity[0] + severity.slice(1).toLowerCase()
}

function showDay(date: string): string {
  return DateTime.fromISO(date, { zone: 'UTC' }).setLocale('en').toFormat('d LLL')
}
