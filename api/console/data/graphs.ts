import { useQuery } from '@tanstack/react-query'
import { api, read } from './client.ts'

/** The graph of one version of a workflow: a version never changes. */
export function useGraph(workflowId: string | undefined, version: number | undefined) {
  return useQuery({
    queryKey: ['workflows', 'version', workflowId, version],
    queryFn: () =>
      read(
        api.api.workflows[':id'].versions[':version'].$get({
          param: { id: workflowId!, version: String(version) },
        }),
      ),
    enabled: workflowId !== undefined && version !== undefined,
    staleTime: Number.POSITIVE_INFINITY,
  })
}

export type Graph = Pick<NonNullable<ReturnType<typeof useGraph>['data']>, 'nodes' | 'edges'>
