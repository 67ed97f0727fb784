import { api, keepRows, read } from '../data/client.ts'
import { resource } from '../data/resource.ts'

const { useRead, write } = resource('variables')

async function listVariables(teamId: string, page: number) {
  return read(api.api.variables.$get({ query: { teamId, page: String(page), size: '50' } }))
}

export type Variable = Awaited<ReturnType<typeof listVariables>>['content'][number]

/** A team's variables by key, which expressions read as $vars. */
export function useVariables(teamId: string, page: number) {
  return useRead([teamId, page], () => listVariables(teamId, page), keepRows)
}

export type VariableFields = { key: string; value: unknown; description: string | null }

export async function createVariable(teamId: string, fields: VariableFields): Promise<void> {
  await write(read(api.api.variables.$post({ json: { teamId, ...fields } })))
}

export async function updateVariable(id: string, json: VariableFields): Promise<void> {
  await write(read(api.api.variables[':id'].$put({ param: { id }, json })))
}

export async function deleteVariable(id: string): Promise<void> {
  await write(read(api.api.variables[':id'].$delete({ param: { id } })))
}
