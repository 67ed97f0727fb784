import { sql } from 'kysely'
import { DateTime } from 'luxon'
import { missing } from '../../fault.ts'
import { type Scope, type Store, serviceScope } from '../../scope.ts'
import type { AlertSeverity, AlertType } from '../notices/notices.ts'
import { readDrift, readSentiment, type SentimentDay } from '../shifts/overview.ts'
import {
  type CountedUsage,
  type DailyUsage,
  type ModelUse,
  readDailyUsage,
  readModelUsage,
  readTokenUsage,
} from '../usage/totals.ts'
import type { ClaimedReportRun } from './claims.ts'

/** Days that a chart shows; those before the period are there to compare. */
type Shown = { inPeriod: boolean }

export type UsageFigures = {
  total: CountedUsage
  /** The usage of a time of the same length right before the period. */
  before: CountedUsage
  days: (DailyUsage & Shown)[]
  /** Those that cost most first. */
  models: ModelUse[]
}

type AlertDay = Shown & { date: string; counts: Record<AlertSeverity, number> }

type ReportedAlert = {
  severity: AlertSeverity
  status: string
  metric: string
  message: string
  workflowId: string | null
  /** Null if it is about the whole team, or the workflow is deleted. */
  workflowName: string | null
  createdAt: Date
}

/** The alerts of a type that came in the period. */
export type AlertFigures = {
  type: AlertType
  bySeverity: Record<AlertSeverity, number>
  byStatus: Record<string, number>
  total: number
  days: AlertDay[]
  /** The latest first, at most ten. */
  latest: ReportedAlert[]
  /** How the workflows were when they were last compared; null for anomalies. */
  checks: Record<ShiftState, number> | null
  /** How users' messages sounded on the days of the chart (UTC); null for other types. */
  moods: (SentimentDay & Shown)[] | null
}

/** What a comparison with the days before has found. */
type ShiftState = 'FIRING' | 'QUIET' | 'INSUFFICIENT_DATA'

/** What a mail tells; a metric that it does not have is undefined. */
export type ReportFigures = {
  teamName: string
  usage: UsageFigures | undefined
  alerts: AlertFigures[]
}

const DAY_MS = 86_400_000

/** A chart has as many days at least. */
const LEAST_DAYS = 7

const LATEST = 10

/** The offsets of all time zones are multiples of this. */
const BIN = '15 minutes'

const TYPES = { anomalies: 'ANOMALY', drift: 'DRIFT', sentiment: 'SENTIMENT' } as const

type ReportedRun = Pick<ClaimedReportRun, 'teamId' | 'slot' | 'periodFrom' | 'timezone' | 'metrics'>

/** Reads the figures of a run. Throws NOT_FOUND if the team is deleted. */
export async function readReportFigures(store: Store, run: ReportedRun): Promise<ReportFigures> {
  const { teamId, metrics } = run
  const team = await store.db.selectFrom('teams').select('name').where('id', '=', teamId).executeTakeFirst()
  if (!team) throw missing('team')
  const alerts: AlertFigures[] = []
  for (const metric of metrics)
    if (metric !== 'token_usage') alerts.push(await readAlerts(store, run, TYPES[metric]))
  const usage = metrics.includes('token_usage') ? await readUsage(store, run) : undefined
  return { teamName: team.name, usage, alerts }
}

async function readUsage(
  store: Store,
  { teamId, slot: to, periodFrom: from, timezone }: ReportedRun,
): Promise<UsageFigures> {
  const scope = readerOf(store, teamId)
  const earlier = { from: new Date(2 * from.getTime() - to.getTime()), to: from }
  const total = await readTokenUsage(scope, teamId, { from, to })
  const before = await readTokenUsage(scope, teamId, earlier)
  const chart = { from: findChartStart(from, to, timezone), to }
  const days = await readDailyUsage(scope, teamId, chart, timezone)
  const models = await readModelUsage(scope, teamId, { from, to })
  const first = nameDay(from, timezone)
  return { total, before, models, days: days.map((day) => ({ ...day, inPeriod: day.date >= first })) }
}

async function readAlerts(store: Store, run: ReportedRun, type: AlertType): Promise<AlertFigures> {
  const { teamId, slot: to, periodFrom: from, timezone } = run
  const { db } = store
  const start = findChartStart(from, to, timezone)
  const first = nameDay(from, timezone)
  const { rows } = await sql<{
    at: Date
    severity: AlertSeverity
    status: string
    inside: boolean
    count: number
  }>`
    select date_bin(${BIN}::interval, created_at, '2000-01-01'::timestamptz) as at, severity, status,
      created_at >= ${from} as inside, count(*)::int as count
    from alerts where team_id = ${teamId} and type = ${type} and created_at >= ${start} and created_at < ${to}
    group by 1, 2, 3, 4`.execute(db)
  const none = () => ({ LOW: 0, MEDIUM: 0, HIGH: 0, CRITICAL: 0 })
  const days: AlertDay[] = []
  for (
    let day = DateTime.fromJSDate(start, { zone: timezone });
    day.toMillis() < to.getTime();
    day = day.plus({ days: 1 }).startOf('day')
  )
    days.push({ date: day.toISODate()!, inPeriod: day.toISODate()! >= first, counts: none() })
  const byDate = new Map(days.map((day) => [day.date, day]))
  const found = {
    bySeverity: none(),
    byStatus: { OPEN: 0, ACKNOWLEDGED: 0, RESOLVED: 0 } as Record<string, number>,
  }
  let total = 0
  for (const { at, severity, status, inside, count } of rows) {
    const day = byDate.get(nameDay(at, timezone))
    if (day) day.counts[severity] += count
    if (!inside) continue
    total += count
    found.bySeverity[severity] += count
    found.byStatus[status] = (found.byStatus[status] ?? 0) + count
  }
  const latest = await db
    .selectFrom('alerts as a')
    .leftJoin('workflows as w', (join) =>
      join.onRef('w.id', '=', 'a.workflowId').onRef('w.teamId', '=', 'a.teamId'),
    )
    .select([
      'a.status',
      'a.metric',
      'a.message',
      'w.id as workflowId',
      'w.name as workflowName',
      'a.createdAt',
    ])
    .select(sql<AlertSeverity>`a.severity`.as('severity'))
    .where('a.teamId', '=', teamId)
    .where('a.type', '=', type)
    .where('a.createdAt', '>=', from)
    .where('a.createdAt', '<', to)
    .orderBy('a.createdAt', 'desc')
    .orderBy('a.id', 'desc')
    .limit(LATEST)
    .execute()
  return { type, ...found, total, days, latest, ...(await readShifts(store, run, type)) }
}

async function readShifts(
  store: Store,
  { teamId, slot: to, periodFrom: from, timezone }: ReportedRun,
  type: AlertType,
): Promise<Pick<AlertFigures, 'checks' | 'moods'>> {
  if (type === 'ANOMALY') return { checks: null, moods: null }
  const scope = readerOf(store, teamId)
  const span = { from: findChartStart(from, to, timezone), to }
  const sentiment = type === 'SENTIMENT' ? await readSentiment(scope, teamId, span) : null
  const checks = { FIRING: 0, QUIET: 0, INSUFFICIENT_DATA: 0 }
  for (const { state } of sentiment?.checks ?? (await readDrift(scope, teamId))) checks[state]++
  const first = nameDay(from, 'UTC')
  const moods = sentiment?.days.map((day) => ({ ...day, inPeriod: day.date >= first })) ?? null
  return { checks, moods }
}

/** The service itself, which may read what every member of the team may. */
function readerOf(store: Store, teamId: string): Scope {
  return serviceScope(store, { kind: 'SYSTEM', id: null, name: 'Perdure' }, [[teamId, 'VIEWER']])
}

/** When the days of a chart begin: with the period, or earlier if that is short. */
function findChartStart(from: Date, to: Date, zone: string): Date {
  const least = to.getTime() - (LEAST_DAYS - 1) * DAY_MS
  return DateTime.fromMillis(Math.min(from.getTime(), least), { zone }).startOf('day').toJSDate()
}

function nameDay(at: Date, zone: string): string {
  return DateTime.fromJSDate(at, { zone }).toISODate()!
}
