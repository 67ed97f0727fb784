import { readVersion } from '../db/versions.ts'
import { makeResumeToken } from '../db/waits.ts'
import type { GraphNode } from '../workflows/graph.ts'
import type { ActivityDeps, Step } from './step.ts'

// Configs are kept with their versions and never change.
const mentions = new WeakMap<object, boolean>()

/**
 * `$execution.resumeUrls` for a node that asks for it: by node id the one-time URLs of the WAIT_FOR_EVENT nodes beside
 * it and around it. Those of a loop's body are other ones in each iteration.
 */
export async function readResumeUrls(
  { store, publicUrl }: Pick<ActivityDeps, 'store' | 'publicUrl'>,
  { node, context, iteration }: Pick<Step, 'node' | 'context' | 'iteration'>,
): Promise<{ resumeUrls?: Record<string, string> }> {
  const { config } = node
  if (!mentions.has(config)) mentions.set(config, JSON.stringify(config).includes('resumeUrls'))
  if (!mentions.get(config)) return {}
  const graph = await readVersion(store, context.workflowId, context.version)
  const bodies = ['', ...loopsAround(graph.nodes, node)]
  const path = iteration === '' ? [] : iteration.split('.')
  const resumeUrls: Record<string, string> = {}
  for (const { id: nodeId, type, parentId, disabled } of graph.nodes) {
    const depth = bodies.indexOf(parentId ?? '')
    if (type !== 'WAIT_FOR_EVENT' || disabled || depth < 0) continue
    const place = { executionId: context.id, nodeId, iteration: path.slice(0, depth).join('.') }
    resumeUrls[nodeId] = `${publicUrl}/resume/${makeResumeToken(store.keys, place)}`
  }
  return { resumeUrls }
}

/** The ids of the loops around a node, the outermost first. */
function loopsAround(nodes: GraphNode[], { parentId }: GraphNode): string[] {
  const ids: string[] = []
  for (let id = parentId; id !== undefined; id = nodes.find((node) => node.id === id)?.parentId)
    ids.unshift(id)
  return ids
}
