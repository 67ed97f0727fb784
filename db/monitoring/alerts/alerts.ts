import { type ExpressionBuilder, sql } from 'kysely'
import type { Act } from '../../acts.ts'
import { change } from '../../change.ts'
import type { Db, Tx } from '../../connection.ts'
import { Fault, missing } from '../../fault.ts'
import { countRows, makePage, type Page, type PageRequest } from '../../page.ts'
import type { DB } from '../../schema.ts'
import { demandTeam, type Scope } from '../../scope.ts'
import type { AlertSeverity, AlertType } from '../notices/notices.ts'
import { NO_WORKFLOW } from '../usage/calls.ts'

export const ALERT_TYPES = ['ANOMALY', 'DRIFT', 'SENTIMENT'] as const satisfies AlertType[]
export const ALERT_SEVERITIES = ['LOW', 'MEDIUM', 'HIGH', 'CRITICAL'] as const satisfies AlertSeverity[]
export const ALERT_STATUSES = ['OPEN', 'ACKNOWLEDGED', 'RESOLVED'] as const
type AlertStatus = (typeof ALERT_STATUSES)[number]

/** What the watch over a team has found. The window is from the first hour to the newest one that it is so. */
export type AlertView = {
  id: string
  teamId: string
  type: AlertType
  severity: AlertSeverity
  /** Null: it is about the team as a whole. */
  workflowId: string | null
  metric: string
  observed: number
  expected: number | null
  threshold: number | null
  window: { from: Date; to: Date }
  message: string
  sampleExecutionIds: string[]
  status: AlertStatus
  acknowledgedBy: { id: string | null; name: string } | null
  acknowledgedAt: Date | null
  /** Null: it was resolved by the watch, because it was over. */
  resolvedBy: { id: string | null; name: string } | null
  resolvedAt: Date | null
  createdAt: Date
  updatedAt: Date
}

/** Which alerts: `from` and `to` are of the time when they opened. */
export type AlertFilter = {
  type?: AlertType | undefined
  status?: AlertStatus | undefined
  severity?: AlertSeverity | undefined
  workflowId?: string | undefined
  from?: Date | undefined
  to?: Date | undefined
}

/** How a metric of a workflow, or with null of the team, was in the hour that ended at `windowTo`, and since when. */
export type WatchedMetric = {
  type: AlertType
  metric: string
  workflowId: string | null
  state: 'FIRING' | 'QUIET' | 'INSUFFICIENT_DATA' | 'FAILED'
  reason: string | null
  since: Date
  windowTo: Date
}

/** Up to when a team is watched: null if it is not, or has only begun. */
export type WatchProgress = {
  evaluatedTo: Date | null
  /** The hours that were left out last. */
  skipped: { from: Date; to: Date } | null
}

/** A team's alerts, newest first (VIEWER). */
export async function listAlerts(
  scope: Scope,
  teamId: string,
  query: AlertFilter & PageRequest,
): Promise<Page<AlertView>> {
  await demandTeam(scope, teamId, 'VIEWER')
  const found = (where: ExpressionBuilder<DB, 'alerts'>) => matchAlerts(where, teamId, query)
  const { db } = scope.store
  const total = await countRows(db.selectFrom('alerts').where(found))
  const rows = await db
    .selectFrom('alerts')
    .selectAll()
    .where(found)
    .orderBy('createdAt', 'desc')
    .orderBy('id', 'desc')
    .limit(query.size)
    .offset(query.page * query.size)
    .execute()
  return makePage(rows.map(showAlert), total, query)
}

/** Reads an alert of a team (VIEWER). Throws NOT_FOUND. */
export async function readAlert(scope: Scope, teamId: string, id: string): Promise<AlertView> {
  await demandTeam(scope, teamId, 'VIEWER')
  return findAlert(scope.store.db, teamId, id)
}

/** Notes that a user has seen an alert (OPERATOR). Throws NOT_FOUND, and CONFLICT if it is resolved. */
export async function acknowledgeAlert(scope: Scope, teamId: string, id: string): Promise<AlertView> {
  return changeAlert(scope, 'ALERT_ACKNOWLEDGED', teamId, id, async (tx, { status }) => {
    if (status === 'RESOLVED') throw new Fault('CONFLICT', 'The alert is resolved')
    if (status === 'ACKNOWLEDGED') return false
    await tx
      .updateTable('alerts')
      .set({ status: 'ACKNOWLEDGED', ...acknowledgedBy(scope) })
      .where('id', '=', id)
      .execute()
    return true
  })
}

/** Resolves an alert (OPERATOR). For some hours the same one is not opened again, unless it is worse. Throws NOT_FOUND. */
export async function resolveAlert(scope: Scope, teamId: string, id: string): Promise<AlertView> {
  return changeAlert(scope, 'ALERT_RESOLVED', teamId, id, async (tx, { status }) => {
    if (status === 'RESOLVED') return false
    const { id: by, name } = scope.actor
    const now = sql<Date>`now()`
    await tx
      .updateTable('alerts')
      .set({ status: 'RESOLVED', resolvedAt: now, resolvedBy: by, resolvedByName: name, updatedAt: now })
      .where('id', '=', id)
      .execute()
    return true
  })
}

/**
 * Notes that a user has seen alerts of a type (OPERATOR): those of the team among them that were open. Resolves to
 * their number.
 */
export async function acknowledgeAlerts(
  scope: Scope,
  teamId: string,
  { alertIds, type }: { alertIds: string[]; type: AlertType },
): Promise<number> {
  return change(scope, 'ALERTS_ACKNOWLEDGED', teamId, async (tx) => {
    // In one order, so that two that overlap do not wait for each other.
    const open = await tx
      .selectFrom('alerts')
      .select('id')
      .where('teamId', '=', teamId)
      .where('type', '=', type)
      .where('status', '=', 'OPEN')
      .where('id', 'in', alertIds)
      .orderBy('id')
      .forUpdate()
      .execute()
    const ids = open.map(({ id }) => id)
    if (ids.length === 0) return { result: 0, unchanged: true }
    await tx
      .updateTable('alerts')
      .set({ status: 'ACKNOWLEDGED', ...acknowledgedBy(scope) })
      .where('id', 'in', ids)
      .execute()
    return { result: ids.length, resourceId: teamId, details: { type, alertIds: ids } }
  })
}

/** The watched metrics of a team with their last state, in the order of metrics and workflows (VIEWER). */
export async function listWatched(
  scope: Scope,
  teamId: string,
  query: PageRequest & { state?: WatchedMetric['state'] | undefined },
): Promise<Page<WatchedMetric> & WatchProgress> {
  await demandTeam(scope, teamId, 'VIEWER')
  const { db } = scope.store
  const states = db
    .selectFrom('alertStates')
    .where('teamId', '=', teamId)
    .$if(query.state !== undefined, (some) => some.where('state', '=', query.state!))
  const total = await countRows(states)
  const rows = await states
    .select(['type', 'metric', 'workflowId', 'state', 'reason', 'since', 'windowTo'])
    .orderBy('metric')
    .orderBy('workflowId')
    .limit(query.size)
    .offset(query.page * query.size)
    .execute()
  const watch = await db
    .selectFrom('alertWatches')
    .select(['nextFrom', 'skippedFrom', 'skippedTo'])
    .where('teamId', '=', teamId)
    .executeTakeFirst()
  const content = rows.map(
    (row) =>
      ({ ...row, workflowId: row.workflowId === NO_WORKFLOW ? null : row.workflowId }) as WatchedMetric,
  )
  const { skippedFrom: from, skippedTo: to } = watch ?? {}
  return {
    ...makePage(content, total, query),
    evaluatedTo: watch?.nextFrom ?? null,
    skipped: from && to ? { from, to } : null,
  }
}

function matchAlerts(
  where: ExpressionBuilder<DB, 'alerts'>,
  teamId: string,
  { type, status, severity, workflowId, from, to }: AlertFilter,
) {
  return where.and([
    where('teamId', '=', teamId),
    ...(type ? [where('type', '=', type)] : []),
    ...(status ? [where('status', '=', status)] : []),
    ...(severity ? [where('severity', '=', severity)] : []),
    ...(workflowId ? [where('workflowId', '=', workflowId)] : []),
    ...(from ? [where('createdAt', '>=', from)] : []),
    ...(to ? [where('createdAt', '<', to)] : []),
  ])
}

async function changeAlert(
  scope: Scope,
  act: Act,
  teamId: string,
  id: string,
  work: (tx: Tx, alert: AlertView) => Promise<boolean>,
): Promise<AlertView> {
  return change(scope, act, teamId, async (tx) => {
    await tx.selectFrom('alerts').select('id').where('id', '=', id).forUpdate().execute()
    const alert = await findAlert(tx, teamId, id)
    const isChanged = await work(tx, alert)
    const result = isChanged ? await findAlert(tx, teamId, id) : alert
    if (!isChanged) return { result, unchanged: true }
    const { type, metric, severity, workflowId } = alert
    return { result, resourceId: id, details: { type, metric, severity, workflowId } }
  })
}

function acknowledgedBy({ actor }: Scope) {
  const now = sql<Date>`now()`
  return {
    ...{ acknowledgedBy: actor.id, acknowledgedByName: actor.name },
    ...{ acknowledgedAt: now, updatedAt: now },
  }
}

async function findAlert(db: Db, teamId: string, id: string): Promise<AlertView> {
  const row = await db
    .selectFrom('alerts')
    .selectAll()
    .where('teamId', '=', teamId)
    .where('id', '=', id)
    .executeTakeFirst()
  if (!row) throw missing('alert')
  return showAlert(row)
}

type AlertRow = Awaited<ReturnType<typeof selectOne>>
const selectOne = (db: Db) => db.selectFrom('alerts').selectAll().executeTakeFirstOrThrow()

function showAlert({
  windowFrom,
  windowTo,
  acknowledgedBy,
  acknowledgedByName,
  resolvedBy,
  resolvedByName,
  ...row
}: AlertRow): AlertView {
  const person = (id: string | null, name: string | null) => (name === null ? null : { id, name })
  return {
    ...(row as AlertView),
    window: { from: windowFrom, to: windowTo },
    acknowledgedBy: person(acknowledgedBy, acknowledgedByName),
    resolvedBy: person(resolvedBy, resolvedByName),
  }
}
