import { useQuery } from '@tanstack/react-query'
import { api, keepRows, read } from './client.ts'

type Filters = {
  search?: string
  active?: 'true' | 'false'
  /** Those that one can chat with. */
  agent?: 'true'
  page?: number
  size?: number
}

export function useWorkflows(teamId: string, query: Filters = {}) {
  return useQuery({
    queryKey: ['workflows', teamId, query],
    queryFn: ({ signal }) => listWorkflows(teamId, query, signal),
    enabled: teamId !== '',
    ...keepRows,
  })
}

export async function listWorkflows(
  teamId: string,
  { search = '', page = 0, size = 20, ...rest }: Filters,
  signal?: AbortSignal,
) {
  const query = { teamId, page: String(page), size: String(size), ...(search ? { search } : {}), ...rest }
  return read(api.api.workflows.$get({ query }, signal ? { init: { signal } } : {}))
}

export function useWorkflow(id: string) {
  return useQuery({
    queryKey: ['workflows', 'one', id],
    queryFn: () => read(api.api.workflows[':id'].$get({ param: { id } })),
    enabled: id !== '',
  })
}

export type Workflow = NonNullable<ReturnType<typeof useWorkflow>['data']>

export type WorkflowItem = Awaited<ReturnType<typeof listWorkflows>>['content'][number]
