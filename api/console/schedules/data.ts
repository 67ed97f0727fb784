import { api, keepRows, read } from '../data/client.ts'
import { resource } from '../data/resource.ts'

const schedules = resource('schedules')
const workflows = resource('workflows')

async function listSchedules(teamId: string, page: number) {
  return read(api.api.schedules.$get({ query: { teamId, page: String(page) } }))
}

export type ScheduledWorkflow = Awaited<ReturnType<typeof listSchedules>>['content'][number]
export type Schedule = ScheduledWorkflow['schedules'][number]

/** A team's schedules by workflow, with their next times. */
export function useSchedules(teamId: string, page: number) {
  return schedules.useRead([teamId, page], () => listSchedules(teamId, page), {
    refetchInterval: 30_000,
    ...keepRows,
  })
}

async function listOwn(id: string) {
  return read(api.api.workflows[':id'].schedules.$get({ param: { id } }))
}

/** Those of one workflow; Temporal keeps them, and may be slow to answer. */
export function useWorkflowSchedules(id: string, enabled: boolean) {
  return workflows.useRead(['one', id, 'schedules'], () => listOwn(id), { enabled, staleTime: 30_000 })
}
