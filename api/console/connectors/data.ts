import { api, read } from '../data/client.ts'
import { type Data, resource } from '../data/resource.ts'

const { useRead, write } = resource('connectors')

/** More than a team can have together with those that every team has. */
const ALL = 2

async function listAll(teamId: string) {
  const pages = await Promise.all(
    Array.from({ length: ALL }, (_, page) =>
      read(api.api.connectors.$get({ query: { teamId, page: String(page), size: '100' } })),
    ),
  )
  return pages.flatMap(({ content }) => content)
}

/** The connectors that a team can use: those that every team has come first. */
export function useConnectors(teamId: string) {
  return useRead([teamId], () => listAll(teamId))
}

export type Connector = Data<typeof useConnectors>[number]

/** A connector with the first actions that have the text. */
export function useConnector(id: string, search = '') {
  const query = search === '' ? {} : { search }
  return useRead(['one', id, search], () => read(api.api.connectors[':id'].$get({ param: { id }, query })), {
    enabled: id !== '',
  })
}

export type Action = Data<typeof useConnector>['actions'][number]

type Call = {
  teamId: string
  action: string
  input: Record<string, unknown>
  credentialId?: string
  server?: string
}

/** The values that a property of an action's input can have. */
export async function listOptions(id: string, property: string, call: Call) {
  const json = { ...call, property }
  const { options } = await read(api.api.connectors[':id'].options.$post({ param: { id }, json }))
  return options
}

export async function createConnector(teamId: string, fields: { name: string; openapi: string }) {
  return write(read(api.api.connectors.$post({ json: { teamId, ...fields } })))
}

export async function deleteConnector(id: string, force: boolean): Promise<void> {
  const query = force ? { force: 'true' as const } : {}
  await write(read(api.api.connectors[':id'].$delete({ param: { id }, query })))
}
