import { api, queries, read, readTagged } from '../data/client.ts'
import { isRefused } from '../data/refusal.ts'
import { resource } from '../data/resource.ts'
import { changeTagged } from '../workflows/data.ts'

const { useRead } = resource('workflows')

/** The parts of a workflow that are sent; the API checks the graph and names all its faults. */
export type SentWorkflow = {
  name: string
  description: string | null
  nodes: unknown
  edges: unknown
  settings: Record<string, unknown>
}

/** A workflow as it is published and, if it has one, as its draft is; each with the tag of that state. */
async function readEdited(id: string) {
  const workflow = api.api.workflows[':id']
  const published = await readTagged(workflow.$get({ param: { id }, query: {} }))
  if (published.body.draftVersion === null) return { published, draft: null }
  const asked = workflow.$get({ param: { id }, query: { version: 'draft' } })
  // It may have been published or discarded in between.
  const draft = await readTagged(asked).catch((error) => {
    if (isRefused(error, 404)) return null
    throw error
  })
  return { published, draft }
}

/** A workflow as it is now, to be edited. It is not read again by itself. */
export function useEditedWorkflow(id: string) {
  return useRead(['edited', id], () => readEdited(id), {
    enabled: id !== '',
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
  })
}

export type EditedWorkflow = NonNullable<ReturnType<typeof useEditedWorkflow>['data']>['published']

/** What a BUILDER edits: the draft, if there is one. Others see what is published. */
export async function readShown(id: string, builder = true): Promise<EditedWorkflow> {
  const { published, draft } = await readEdited(id)
  return (builder && draft) || published
}

/** Makes a workflow of a draft; `warnings` are what may be a mistake in it. */
export async function saveNewWorkflow(teamId: string, json: SentWorkflow) {
  const made = await read(api.api.workflows.$post({ query: {}, json: { teamId, ...json } }))
  await queries.invalidateQueries({ queryKey: ['workflows'], refetchType: 'none' })
  return made
}

/**
 * Saves the graph as the workflow's draft over the state with this tag: 412 if another user has changed it since. Without
 * a tag it wins. What has no versions counts at once.
 */
export async function saveWorkflow(
  id: string,
  json: Partial<SentWorkflow> & { active?: boolean },
  tag?: string | null,
): Promise<EditedWorkflow> {
  const asked = api.api.workflows[':id'].$put(
    { param: { id }, query: {}, json: { ...json, draft: true } },
    tag ? { headers: { 'If-Match': tag } } : {},
  )
  return changeTagged(readTagged(asked))
}

/** Gives up the draft with this tag: 412 if another user has changed it since. */
export async function discardDraft(id: string, tag: string | null): Promise<void> {
  const asked = api.api.workflows[':id'].draft.$delete(
    { param: { id } },
    tag ? { headers: { 'If-Match': tag } } : {},
  )
  await changeTagged(read(asked))
}
