import { useQuery } from '@tanstack/react-query'
import { api, queries, read } from './client.ts'

type Start = { id: string; teamId: string; data: Record<string, unknown>; key: string }

/** Starts an execution; the same `key` starts only one, however often it is sent. */
export async function executeWorkflow({ id, teamId, data, key }: Start) {
  const started = await read(
    api.api.workflows[':id'].execute.$post(
      { param: { id }, query: {}, json: { teamId, data } },
      { headers: { 'Idempotency-Key': key } },
    ),
  )
  await queries.invalidateQueries({ queryKey: ['executions'] })
  return started
}

/** A key of its own. crypto.randomUUID is for secure origins; an installation in a private network may have none. */
export function makeKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('')
}

async function listSchedules(id: string) {
  return read(api.api.workflows[':id'].schedules.$get({ param: { id } }))
}

export type Schedule = Awaited<ReturnType<typeof listSchedules>>[number]

/** A workflow's schedules; Temporal keeps them, and may be slow to answer. */
export function useSchedules(id: string, enabled: boolean) {
  return useQuery({
    queryKey: ['workflows', 'one', id, 'schedules'],
    queryFn: () => listSchedules(id),
    enabled,
    staleTime: 30_000,
  })
}
