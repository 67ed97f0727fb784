import { api, queries, read, readTagged } from '../data/client.ts'
import { resource } from '../data/resource.ts'

const { useRead } = resource('workflows')

/** The parts of a workflow that are sent; the API checks the graph and names all its faults. */
export type SentWorkflow = {
  name: string
  description: string | null
  nodes: unknown
  edges: unknown
  settings: Record<string, unknown>
}

/** A workflow as it is now, to be edited: with the tag of that state. It is not read again by itself. */
export function useEditedWorkflow(id: string) {
  return useRead(['edited', id], () => readTagged(api.api.workflows[':id'].$get({ param: { id } })), {
    enabled: id !== '',
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
  })
}

export type EditedWorkflow = NonNullable<ReturnType<typeof useEditedWorkflow>['data']>

/** Makes a workflow of a draft; `warnings` are what may be a mistake in it. */
export async function saveNewWorkflow(teamId: string, json: SentWorkflow) {
  const made = await read(api.api.workflows.$post({ query: {}, json: { teamId, ...json } }))
  await queries.invalidateQueries({ queryKey: ['workflows'], refetchType: 'none' })
  return made
}

/** Saves a draft over the state with this tag: 412 if another user has saved one since. Without a tag it wins. */
export async function saveWorkflow(
  id: string,
  json: Partial<SentWorkflow> & { active?: boolean },
  tag?: string | null,
) {
  const asked = api.api.workflows[':id'].$put(
    { param: { id }, query: {}, json },
    tag ? { headers: { 'If-Match': tag } } : {},
  )
  const saved = await readTagged(asked)
  await queries.invalidateQueries({
    queryKey: ['workflows'],
    predicate: ({ queryKey }) => queryKey[1] !== 'edited',
  })
  return saved
}
