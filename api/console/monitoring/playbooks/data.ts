import { api, FRESH_MS, keepRows, read } from '../../data/client.ts'
import { resource } from '../../data/resource.ts'

const { useRead, write } = resource('playbooks')

const playbooks = api.api.monitoring.teams[':teamId'].playbooks
const one = playbooks[':id']

export const SEVERITIES = ['LOW', 'MEDIUM', 'HIGH', 'CRITICAL'] as const
export const STEP_TYPES = ['NOTIFY', 'START_WORKFLOW', 'DEACTIVATE_WORKFLOW'] as const

async function listPlaybooks(teamId: string) {
  return read(playbooks.$get({ param: { teamId } }))
}

export type Playbook = Awaited<ReturnType<typeof listPlaybooks>>[number]
/** A step while it is written: what its type needs may not be chosen yet. */
export type PlaybookStep = {
  type: (typeof STEP_TYPES)[number]
  channelId?: string
  workflowId?: string
  input?: unknown
}

export function usePlaybooks(teamId: string) {
  return useRead([teamId], () => listPlaybooks(teamId))
}

export type NewPlaybook = Parameters<typeof playbooks.$post>[0]['json']

export async function createPlaybook(teamId: string, json: NewPlaybook) {
  return write(read(playbooks.$post({ param: { teamId }, json })))
}

type PlaybookPatch = Parameters<typeof one.$put>[0]['json']

export async function updatePlaybook({ teamId, id }: Playbook, json: PlaybookPatch) {
  return write(read(one.$put({ param: { teamId, id }, json })))
}

export async function deletePlaybook({ teamId, id }: Playbook) {
  return write(read(one.$delete({ param: { teamId, id } })))
}

/** Its newest runs, with what came of each step. */
export function usePlaybookRuns({ teamId, id }: Playbook) {
  return useRead(
    [teamId, 'runs', id],
    () => read(one.runs.$get({ param: { teamId, id }, query: { size: '20' } })),
    { refetchInterval: FRESH_MS, ...keepRows },
  )
}
