import type { InferRequestType } from 'hono/client'
import { api, askRaw, queries, read } from './client.ts'

type NewWorkflow = InferRequestType<typeof api.api.workflows.$post>['json']
type WorkflowPatch = NonNullable<InferRequestType<(typeof api.api.workflows)[':id']['$put']>['json']>

const reread = () => queries.invalidateQueries({ queryKey: ['workflows'] })

export async function createWorkflow(json: NewWorkflow) {
  const made = await read(api.api.workflows.$post({ query: {}, json }))
  await reread()
  return made
}

/** Changes what is given; the last one who writes wins. */
export async function changeWorkflow(id: string, json: WorkflowPatch) {
  const changed = await read(api.api.workflows[':id'].$put({ param: { id }, query: {}, json }))
  await reread()
  return changed
}

/** With all of its executions. */
export async function deleteWorkflow(id: string) {
  await askRaw('DELETE', `/api/workflows/${id}`)
  queries.removeQueries({ queryKey: ['workflows', 'one', id] })
  await Promise.all([reread(), queries.invalidateQueries({ queryKey: ['executions'] })])
}
