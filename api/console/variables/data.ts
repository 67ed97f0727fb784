import { useQuery } from '@tanstack/react-query'
import { api, keepRows, queries, read } from '../data/client.ts'

async function listVariables(teamId: string, page: number) {
  return read(api.api.variables.$get({ query: { teamId, page: String(page), size: '50' } }))
}

export type Variable = Awaited<ReturnType<typeof listVariables>>['content'][number]

/** A team's variables by key, which expressions read as $vars. */
export function useVariables(teamId: string, page: number) {
  return useQuery({
    queryKey: ['variables', teamId, page],
    queryFn: () => listVariables(teamId, page),
    enabled: teamId !== '',
    ...keepRows,
  })
}

export type VariableFields = { key: string; value: unknown; description: string | null }

export async function createVariable(teamId: string, fields: VariableFields): Promise<void> {
  await read(api.api.variables.$post({ json: { teamId, ...fields } }))
  await queries.invalidateQueries({ queryKey: ['variables'] })
}

export async function updateVariable(id: string, json: VariableFields): Promise<void> {
  await read(api.api.variables[':id'].$put({ param: { id }, json }))
  await queries.invalidateQueries({ queryKey: ['variables'] })
}

export async function deleteVariable(id: string): Promise<void> {
  await read(api.api.variables[':id'].$delete({ param: { id } }))
  await queries.invalidateQueries({ queryKey: ['variables'] })
}
