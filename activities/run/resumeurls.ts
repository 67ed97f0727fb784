import { makeResumeToken } from '../../db/executions/waits/events.ts'
import { makePlaceToken } from '../../db/executions/waits/places.ts'
import { readVersion } from '../../db/workflows/versions.ts'
import type { GraphNode } from '../../workflows/graph/graph.ts'
import type { ExecutionContext } from '../../workflows/run/plan.ts'
import type { ActivityDeps } from '../deps.ts'

// By config. Configs belong to a version of their workflow and never change.
const mentions = new WeakMap<object, boolean>()

/**
 * `$execution.resumeUrls` for a node whose config mentions it: by node id, the one-time URLs of the
 * WAIT_FOR_EVENT and FORM nodes in the same loop body and around it. In a loop's body they differ for each iteration.
 */
export async function readResumeUrls(
  { store, publicUrl }: Pick<ActivityDeps, 'store' | 'publicUrl'>,
  { node, context, iteration }: { node: GraphNode; context: ExecutionContext; iteration: string },
): Promise<{ resumeUrls?: Record<string, string> }> {
  const { config } = node
  if (!mentions.has(config)) mentions.set(config, JSON.stringify(config).includes('resumeUrl'))
  if (!mentions.get(config)) return {}
  const graph = await readVersion(store, context.workflowId, context.version)
  const bodies = ['', ...listLoopsAround(graph.nodes, node)]
  const path = iteration === '' ? [] : iteration.split('.')
  const resumeUrls: Record<string, string> = {}
  for (const { id: nodeId, type, parentId, disabled, config: own } of graph.nodes) {
    const depth = bodies.indexOf(parentId ?? '')
    if ((type !== 'WAIT_FOR_EVENT' && type !== 'FORM') || disabled || depth < 0) continue
    const place = { executionId: context.id, nodeId, iteration: path.slice(0, depth).join('.') }
    const isForm = type === 'FORM'
    if (isForm && own.completion) continue
    resumeUrls[nodeId] = isForm
      ? `${publicUrl}/form/${makePlaceToken(store.keys, 'form', place)}`
      : `${publicUrl}/resume/${makeResumeToken(store.keys, place)}`
  }
  return { resumeUrls }
}

/** The ids of the loops around a node, the outermost first. */
function listLoopsAround(nodes: GraphNode[], { parentId }: GraphNode): string[] {
  const ids: string[] = []
  for (let id = parentId; id !== undefined; id = nodes.find((node) => node.id === id)?.parentId)
    ids.unshift(id)
  return ids
}
