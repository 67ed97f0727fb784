import { useQuery } from '@tanstack/react-query'
import { api, FRESH_MS, keepRows, queries, read } from '../data/client.ts'

const team = api.api.monitoring.teams[':teamId']

/** Two instants, the second one exclusive. */
export type Span = { from: string; to: string }

/** The token usage of a span: its total, its days in the given time zone, its models and workflows. */
export function useUsage(teamId: string, span: Span, timezone: string) {
  const param = { teamId }
  return useQuery({
    queryKey: ['monitoring', teamId, 'usage', span, timezone],
    queryFn: async () => {
      const usage = team['token-usage']
      const [total, daily, models, workflows] = await Promise.all([
        read(usage.$get({ param, query: span })),
        read(usage.daily.$get({ param, query: { ...span, timezone } })),
        read(usage['by-model'].$get({ param, query: span })),
        read(usage['by-workflow'].$get({ param, query: span })),
      ])
      return { total, days: daily.days, models: models.models, workflows: workflows.workflows }
    },
    enabled: teamId !== '',
    ...keepRows,
  })
}

export async function readStatistics(teamId: string, query: Span & { workflowId?: string }) {
  return read(team.executions.$get({ param: { teamId }, query }))
}

export function useStatistics(teamId: string, span: Span) {
  return useQuery({
    queryKey: ['monitoring', teamId, 'statistics', span],
    queryFn: () => readStatistics(teamId, span),
    enabled: teamId !== '',
    ...keepRows,
  })
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
  return useQuery({
    queryKey: ['monitoring', teamId, 'alerts', filters],
    queryFn: () => listAlerts(teamId, filters),
    enabled: teamId !== '',
    refetchInterval: FRESH_MS * 3,
    ...keepRows,
  })
}

/** What is watched, and what there is too little data for. */
export function useWatched(teamId: string) {
  return useQuery({
    queryKey: ['monitoring', teamId, 'watched'],
    queryFn: () => read(team.alerts.states.$get({ param: { teamId }, query: { size: '100' } })),
    enabled: teamId !== '',
  })
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
  return useQuery({
    queryKey: ['monitoring', teamId, 'config'],
    queryFn: () => read(team.config.$get({ param: { teamId } })),
    enabled: teamId !== '',
  })
}

export type MonitoringConfig = NonNullable<ReturnType<typeof useMonitoringConfig>['data']>

type ConfigPatch = Parameters<typeof team.config.$put>[0]['json']

export async function updateMonitoringConfig(teamId: string, json: ConfigPatch) {
  const changed = await read(team.config.$put({ param: { teamId }, json }))
  await refresh()
  return changed
}

async function refresh() {
  await queries.invalidateQueries({ queryKey: ['monitoring'] })
}
