import type { InferRequestType } from 'hono/client'
import { api, askRaw, keepRows, queries, read } from '../data/client.ts'
import { resource } from '../data/resource.ts'

const { refresh, useRead, write } = resource('workflows')

const WATCH_MS = 10_000

type NewWorkflow = InferRequestType<typeof api.api.workflows.$post>['json']
type WorkflowPatch = NonNullable<InferRequestType<(typeof api.api.workflows)[':id']['$put']>['json']>

export async function createWorkflow(json: NewWorkflow) {
  return write(read(api.api.workflows.$post({ query: {}, json })))
}

/** Changes what is given; the last one who writes wins. */
export async function changeWorkflow(id: string, json: WorkflowPatch) {
  return write(read(api.api.workflows[':id'].$put({ param: { id }, query: {}, json })))
}

/** Waits for a change. What the pages show is read again after it, but what is edited is not. */
export async function changeTagged<T>(asked: Promise<T>): Promise<T> {
  const done = await asked
  void queries.invalidateQueries({
    queryKey: ['workflows'],
    predicate: ({ queryKey }) => queryKey[1] !== 'edited',
  })
  return done
}

/** With all of its executions. */
export async function deleteWorkflow(id: string) {
  await askRaw('DELETE', `/api/workflows/${id}`)
  queries.removeQueries({ queryKey: ['workflows', 'one', id] })
  await Promise.all([refresh(), queries.invalidateQueries({ queryKey: ['executions'] })])
}

type Filters = {
  search?: string
  active?: 'true' | 'false'
  /** Those that one can chat with. */
  agent?: 'true'
  page?: number
  size?: number
}

export function useWorkflows(teamId: string, query: Filters = {}) {
  return useRead([teamId, query], ({ signal }) => listWorkflows(teamId, query, signal), keepRows)
}

export async function listWorkflows(
  teamId: string,
  { search = '', page = 0, size = 20, ...rest }: Filters,
  signal?: AbortSignal,
) {
  const query = { teamId, page: String(page), size: String(size), ...(search ? { search } : {}), ...rest }
  return read(api.api.workflows.$get({ query }, signal ? { init: { signal } } : {}))
}

/** `watched`: it is read again from time to time, and whenever one comes back to the page. */
export function useWorkflow(id: string, { watched = false } = {}) {
  return useRead(['one', id], () => read(api.api.workflows[':id'].$get({ param: { id } })), {
    enabled: id !== '',
    ...(watched ? { refetchInterval: WATCH_MS, refetchOnWindowFocus: 'always' as const } : {}),
  })
}

export type Workflow = NonNullable<ReturnType<typeof useWorkflow>['data']>

export type WorkflowItem = Awaited<ReturnType<typeof listWorkflows>>['content'][number]
