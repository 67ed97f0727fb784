import { isOpen } from '../../kit/status.tsx'
import { useRole } from '../../shell/role.tsx'
import type { Run } from '../live.ts'
import type { RecordState } from '../records.ts'
import { useApprovals } from '../waits/data.ts'
import { useWaits } from '../waits/waits.ts'

const APPROVALS = 20

/** What an execution waits for: people's approvals (the first of them, and how many more), and events. */
export function useAsks(run: Run, teamId: string | undefined) {
  const may = useRole(teamId)
  const asks = isOpen(run.status) && run.records.some(isAsking)
  const approvals = useApprovals(asks ? (teamId ?? '') : '', {
    executionId: run.id,
    status: 'OPEN',
    size: APPROVALS,
  })
  const waits = useWaits(run.id, asks && may('OPERATOR'))
  return {
    approvals: asks ? (approvals.data?.content ?? []) : [],
    more: Math.max(0, (approvals.data?.totalElements ?? 0) - APPROVALS),
    waits: asks ? (waits.data?.content ?? []) : [],
  }
}

const ASKING = new Set(['APPROVAL', 'FORM', 'WAIT_FOR_EVENT'])

/** Whether a record may wait for people, or for an event: a step of an agent asks before it calls a tool. */
function isAsking({ nodeType, tool, status }: RecordState): boolean {
  return status === 'RUNNING' && (ASKING.has(nodeType) || tool !== null)
}
