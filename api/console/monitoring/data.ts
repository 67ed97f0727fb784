import { api, FRESH_MS, keepRows, read } from '../data/client.ts'
import { resource } from '../data/resource.ts'

const { refresh, useRead, write } = resource('monitoring')

const team = api.api.monitoring.teams[':teamId']

/** Two instants, the second one exclusive. */
export type Period = { from: string; to: string }

/** The token usage of a span: its total, its days in the given time zone, its models and workflows. */
export function useUsage(teamId: string, span: Period, timezone: string) {
  const param = { teamId }
  return useRead(
    [teamId, 'usage', span, timezone],
    async () => {
      const usage = team['token-usage']
      const [total, daily, models, workflows] = await Promise.all([
        read(usage.$get({ param, query: span })),
        read(usage.daily.$get({ param, query: { ...span, timezone } })),
        read(usage['by-model'].$get({ param, query: span })),
        read(usage['by-workflow'].$get({ param, query: span })),
      ])
      return { total, days: daily.days, models: models.models, workflows: workflows.workflows }
    },
    keepRows,
  )
}

async function readStatistics(teamId: string, query: Period & { workflowId?: string }) {
  return read(team.executions.$get({ param: { teamId }, query }))
}

export function useStatistics(teamId: string, span: Period) {
  return useRead([teamId, 'statistics', span], () => readStatistics(teamId, span), keepRows)
}

export const ALERT_STATUSES = ['OPEN', 'ACKNOWLEDGED', 'RESOLVED'] as const
export const ALERT_TYPES = ['ANOMALY', 'DRIFT', 'SENTIMENT'] as const
type AlertFilters = { status?: string; type?: string; page: number }

async function listAlerts(teamId: string, { status, type, page }: AlertFilters) {
  const query = {
    page: String(page),
    ...(status ? { status: status as (typeof ALERT_STATUSES)[number] } : {}),
    ...(type ? { type: type as (typeof ALERT_TYPES)[number] } : {}),
  }
  return read(team.alerts.$get({ param: { teamId }, query }))
}

export type Alert = Awaited<ReturnType<typeof listAlerts>>['content'][number]

export function useAlerts(teamId: string, filters: AlertFilters) {
  return useRead([teamId, 'alerts', filters], () => listAlerts(teamId, filters), {
    refetchInterval: FRESH_MS * 3,
    ...keepRows,
  })
}

/** The watched metrics, and those with too little data. */
export function useWatched(teamId: string) {
  return useRead([teamId, 'watched'], () =>
    read(team.alerts.states.$get({ param: { teamId }, query: { size: '100' } })),
  )
}

export async function settleAlert({ teamId, id }: Alert, how: 'acknowledge' | 'resolve') {
  const one = team.alerts[':alertId']
  const param = { teamId, alertId: id }
  try {
    return await read(how === 'resolve' ? one.resolve.$post({ param }) : one.acknowledge.$post({ param }))
  } finally {
    await refresh()
  }
}

/** Acknowledges those of one type; returns how many were open. */
export async function acknowledgeAlerts(teamId: string, type: Alert['type'], alertIds: string[]) {
  const json = { type, alertIds }
  const done = await read(team.alerts['bulk-acknowledge'].$post({ param: { teamId }, json }))
  await refresh()
  return done.acknowledged
}

export function useMonitoringConfig(teamId: string) {
  return useRead([teamId, 'config'], () => read(team.config.$get({ param: { teamId } })))
}

export type MonitoringConfig = NonNullable<ReturnType<typeof useMonitoringConfig>['data']>

type ConfigPatch = Parameters<typeof team.config.$put>[0]['json']

export async function updateMonitoringConfig(teamId: string, json: ConfigPatch) {
  return write(read(team.config.$put({ param: { teamId }, json })))
}
