import { useQuery } from '@tanstack/react-query'
import { api, keepRows, read } from './client.ts'
import { serverNow } from './clock.ts'

const FRESH_MS = 15_000

type Span = { from: string; to?: string; workflowId?: string }

async function readStatistics(teamId: string, query: Span) {
  return read(api.api.monitoring.teams[':teamId'].executions.$get({ param: { teamId }, query }))
}

export type Statistics = Awaited<ReturnType<typeof readStatistics>>

/** How the team's executions ended in the last hours: in all, and hour by hour. */
export function useStatistics(teamId: string, hours: number) {
  return useQuery({
    queryKey: ['overview', teamId, 'executions', hours],
    queryFn: () => readStatistics(teamId, { from: new Date(serverNow() - hours * 3_600_000).toISOString() }),
    enabled: teamId !== '',
    refetchInterval: FRESH_MS,
    ...keepRows,
  })
}

/** The same of each of these workflows. */
export function useStatisticsOf(teamId: string, hours: number, workflowIds: readonly string[]) {
  return useQuery({
    queryKey: ['overview', teamId, 'workflows', hours, workflowIds],
    queryFn: async () => {
      const from = new Date(serverNow() - hours * 3_600_000).toISOString()
      const found = workflowIds.map(async (workflowId) => {
        const { totals } = await readStatistics(teamId, { from, workflowId })
        return { workflowId, ...totals }
      })
      return Promise.all(found)
    },
    enabled: workflowIds.length > 0,
    ...keepRows,
  })
}

async function listOpenAlerts(teamId: string) {
  const query = { status: 'OPEN' as const, size: '5' }
  return read(api.api.monitoring.teams[':teamId'].alerts.$get({ param: { teamId }, query }))
}

export type OpenAlert = Awaited<ReturnType<typeof listOpenAlerts>>['content'][number]

export function useOpenAlerts(teamId: string) {
  return useQuery({
    queryKey: ['overview', teamId, 'alerts'],
    queryFn: () => listOpenAlerts(teamId),
    enabled: teamId !== '',
    refetchInterval: FRESH_MS,
  })
}
