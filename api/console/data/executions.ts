import { useQuery } from '@tanstack/react-query'
import { api, FRESH_MS, keepRows, queries, read } from './client.ts'

type Filters = {
  status?: string
  workflowId?: string
  from?: string
  to?: string
  page?: number
  size?: number
}

/** The team's executions; the first page keeps itself fresh. */
export function useExecutions(teamId: string, filters: Filters) {
  return useQuery({
    queryKey: ['executions', teamId, filters],
    queryFn: ({ signal }) => listExecutions(teamId, filters, signal),
    enabled: teamId !== '',
    ...((filters.page ?? 0) === 0 ? { refetchInterval: FRESH_MS } : {}),
    ...keepRows,
  })
}

export async function listExecutions(
  teamId: string,
  { page = 0, ...filters }: Filters,
  signal?: AbortSignal,
) {
  const given = Object.entries({ ...filters, page }).filter(
    ([, value]) => value !== undefined && value !== '',
  )
  const query = Object.fromEntries(given.map(([key, value]) => [key, String(value)]))
  const { executions } = api.api
  return read(
    executions.team[':teamId'].$get({ param: { teamId }, query }, signal ? { init: { signal } } : {}),
  )
}

export type ExecutionItem = Awaited<ReturnType<typeof listExecutions>>['content'][number]

export async function readExecution(id: string) {
  return read(api.api.executions[':id'].$get({ param: { id }, query: {} }))
}

export type Execution = Awaited<ReturnType<typeof readExecution>>

/** One execution with its first records; `useStream` tells when to read it again. */
export function useExecution(id: string) {
  return useQuery({
    queryKey: ['executions', 'one', id],
    queryFn: () => readExecution(id),
    enabled: id !== '',
  })
}

export async function cancelExecution(id: string) {
  // The answer has no body.
  await api.api.executions[':id'].cancel.$post({ param: { id } })
  await queries.invalidateQueries({ queryKey: ['executions'] })
}
