import { useQuery } from '@tanstack/react-query'
import { api, read } from '../data/client.ts'
import type { Data } from '../data/resource.ts'

/** The table of node types with the JSON Schemas of their configs; it stays the same while the service runs. */
export function useNodeTypes() {
  return useQuery({
    queryKey: ['node-types'],
    queryFn: () => read(api.api['node-types'].$get()),
    staleTime: Number.POSITIVE_INFINITY,
  })
}

export type NodeType = Data<typeof useNodeTypes>[number]

/** The JSON Schemas of what a workflow is made of besides its nodes' configs. */
export function useWorkflowSchema() {
  return useQuery({
    queryKey: ['workflow-schema'],
    queryFn: () => read(api.api['workflow-schema'].$get()),
    staleTime: Number.POSITIVE_INFINITY,
  })
}
