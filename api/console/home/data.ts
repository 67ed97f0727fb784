import { api, keepRows, read } from '../data/client.ts'
import { serverNow } from '../data/clock.ts'
import { resource } from '../data/resource.ts'

const { useRead } = resource('overview')

const FRESH_MS = 15_000

type Span = { from: string; to?: string }

async function readRecentStatistics(teamId: string, query: Span) {
  return read(api.api.monitoring.teams[':teamId'].executions.$get({ param: { teamId }, query }))
}

export type Statistics = Awaited<ReturnType<typeof readRecentStatistics>>

/** How the team's executions ended in the last hours: in all, and hour by hour. */
export function useRecentStatistics(teamId: string, hours: number) {
  return useRead(
    [teamId, 'executions', hours],
    () => readRecentStatistics(teamId, { from: new Date(serverNow() - hours * 3_600_000).toISOString() }),
    { refetchInterval: FRESH_MS, ...keepRows },
  )
}

type Order = 'failed' | 'durationP95Ms'

async function readWorkflows(teamId: string, query: Span & { sort: Order; size: string }) {
  const { executions } = api.api.monitoring.teams[':teamId']
  return read(executions.workflows.$get({ param: { teamId }, query }))
}

export type WorkflowStatistics = Awaited<ReturnType<typeof readWorkflows>>['workflows'][number]

/** The same of each workflow: the first five of all, by their failures or by their durations. */
export function useWorkflowStatistics(teamId: string, hours: number, sort: Order) {
  return useRead(
    [teamId, 'workflows', hours, sort],
    () => {
      const from = new Date(serverNow() - hours * 3_600_000).toISOString()
      return readWorkflows(teamId, { from, sort, size: '5' })
    },
    { refetchInterval: 4 * FRESH_MS, ...keepRows },
  )
}

async function listOpenAlerts(teamId: string) {
  const query = { status: 'OPEN' as const, size: '5' }
  return read(api.api.monitoring.teams[':teamId'].alerts.$get({ param: { teamId }, query }))
}

export type OpenAlert = Awaited<ReturnType<typeof listOpenAlerts>>['content'][number]

export function useOpenAlerts(teamId: string) {
  return useRead([teamId, 'alerts'], () => listOpenAlerts(teamId), { refetchInterval: FRESH_MS })
}
