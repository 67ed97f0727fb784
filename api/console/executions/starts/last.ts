import { useQuery } from '@tanstack/react-query'
import { isOpen } from '../../kit/status.tsx'
import { type Execution, listExecutions, readExecution } from '../data.ts'

export type StartNode = {
  id: string
  name?: string | undefined
  type: string
  disabled?: boolean | undefined
  parentId?: string | undefined
  config?: unknown
}

export function isStart({ type, disabled }: StartNode): boolean {
  return !disabled && type.endsWith('_TRIGGER')
}

/** The newest execution of a workflow with its records; null without one. */
export function useLastRun(teamId: string, workflowId: string | undefined, enabled = true) {
  return useQuery({
    queryKey: ['executions', 'last run', workflowId],
    queryFn: async () => {
      const { content } = await listExecutions(teamId, { workflowId: workflowId!, size: 1 })
      return content[0] ? readExecution(content[0].id) : null
    },
    enabled: enabled && workflowId !== undefined,
    gcTime: 0,
  })
}

/** The trigger of an execution whose outputs another one may use again; undefined if it may not. */
export function findReuse(
  run: Execution | null | undefined,
  nodes: readonly StartNode[],
): string | undefined {
  if (!run || isOpen(run.status) || run.onlyNode !== null || run.trigger === 'CHAT' || run.hidden)
    return undefined
  const known = new Set(run.nodeExecutions.map(({ nodeId }) => nodeId))
  return nodes.find((node) => isStart(node) && known.has(node.id))?.id
}

/** How many of the newest calls are searched for one of the webhook that is wanted. */
const LOOKED = 5

type Called = { teamId: string; workflowId: string; nodeId: string }

/** What `pick` makes of the newest call of a webhook that it takes; null if it takes none of the newest. */
export async function findCall<T>(
  { teamId, workflowId, nodeId }: Called,
  pick: (run: Execution) => T | undefined,
): Promise<T | null> {
  const { content } = await listExecutions(teamId, { workflowId, trigger: 'WEBHOOK', size: LOOKED })
  for (const { id } of content) {
    const run = await readExecution(id)
    const picked = run.nodeExecutions.some((one) => one.nodeId === nodeId) ? pick(run) : undefined
    if (picked !== undefined) return picked
  }
  return null
}

type RealCall = { at: string; request: Record<string, unknown> }

/** The last real call of a webhook, as the request that it was; null without one. */
export function useRealCall(teamId: string, workflowId: string | undefined, nodeId: string | undefined) {
  return useQuery({
    queryKey: ['executions', 'real call', workflowId, nodeId],
    queryFn: () =>
      findCall<RealCall>({ teamId, workflowId: workflowId!, nodeId: nodeId! }, (run) => {
        const { method, headers, query, body } = run.inputData
        // Nothing of it was kept.
        if (run.hidden || headers === undefined) return undefined
        // The body is shown as it was decompressed.
        const { 'content-encoding': _, ...sent } = headers as Record<string, unknown>
        return { at: run.createdAt, request: { ...(method ? { method } : {}), headers: sent, query, body } }
      }),
    enabled: workflowId !== undefined && nodeId !== undefined,
    gcTime: 0,
  })
}
