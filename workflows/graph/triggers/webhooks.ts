import type { Problem } from '../../problem.ts'
import type { Graph } from '../graph.ts'

/** The webhooks that wait for a response although they lead to no RESPOND_TO_WEBHOOK node. */
export function checkWebhooks(graph: Graph): Problem[] {
  const targets = new Map<string, string[]>()
  const add = (from: string, to: string) => targets.set(from, [...(targets.get(from) ?? []), to])
  for (const { source, target } of graph.edges) add(source, target)
  for (const { id, parentId } of graph.nodes) if (parentId !== undefined) add(parentId, id)
  const responders = new Set(
    graph.nodes.filter((node) => node.type === 'RESPOND_TO_WEBHOOK' && !node.disabled).map(({ id }) => id),
  )
  return graph.nodes.flatMap((node, at) => {
    if (node.type !== 'WEBHOOK_TRIGGER' || node.disabled || node.config.responseMode !== 'responseNode')
      return []
    const reached = new Set([node.id])
    for (const id of reached) for (const target of targets.get(id) ?? []) reached.add(target)
    if ([...reached].some((id) => responders.has(id))) return []
    const message = `the webhook "${node.id}" must lead to a RESPOND_TO_WEBHOOK node that is not disabled`
    return [{ path: `nodes[${at}].config.responseMode`, message }]
  })
}
