import { api, FRESH_MS, keepRows, queries, read } from '../data/client.ts'
import { resource } from '../data/resource.ts'

const { refresh, useRead, write } = resource('executions')

type Filters = {
  status?: string
  workflowId?: string
  search?: string
  trigger?: string
  from?: string
  to?: string
  page?: number
  size?: number
}

/** The team's executions; the first page keeps itself fresh, unless each time would be a search. */
export function useExecutions(teamId: string, filters: Filters) {
  return useRead([teamId, filters], ({ signal }) => listExecutions(teamId, filters, signal), {
    ...((filters.page ?? 0) === 0 && !filters.search && !filters.trigger
      ? { refetchInterval: FRESH_MS }
      : {}),
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
  return useRead(['one', id], () => readExecution(id), { enabled: id !== '' })
}

export async function cancelExecution(id: string) {
  // The answer has no body.
  await api.api.executions[':id'].cancel.$post({ param: { id } })
  await refresh()
}

/** The page that shows it is left by the caller: it is not read again. */
export async function deleteExecution(id: string) {
  await read(api.api.executions[':id'].$delete({ param: { id } }))
  const others = ({ queryKey }: { queryKey: readonly unknown[] }) => !queryKey.includes(id)
  void queries.invalidateQueries({ queryKey: ['executions'], predicate: others })
}

const many = () => api.api.executions.team[':teamId']

/** Those of the executions that have ended. */
export async function deleteExecutions(teamId: string, ids: string[]) {
  return write(read(many().delete.$post({ param: { teamId }, json: { filter: { ids } } })))
}

export async function cancelExecutions(teamId: string, ids: string[]) {
  return write(read(many().cancel.$post({ param: { teamId }, json: { filter: { ids } } })))
}

export async function retryExecutions(teamId: string, ids: string[], version: 'same' | 'current') {
  return write(read(many().retry.$post({ param: { teamId }, json: { filter: { ids }, version } })))
}
