import type { Graph, Problem } from './graph.ts'

/** Webhooks that would wait for an answer which no node that they lead to gives. */
export function checkHooks(graph: Graph): Problem[] {
  const targets = new Map<string, string[]>()
  const add = (from: string, to: string) => targets.set(from, [...(targets.get(from) ?? []), to])
  for (const { source, target } of graph.edges) add(source, target)
  for (const { id, parentId } of graph.nodes) if (parentId !== undefined) add(parentId, id)
  const answering = new Set(
    graph.nodes.filter((node) => node.type === 'RESPOND_TO_WEBHOOK' && !node.disabled).map(({ id }) => id),
  )
  return graph.nodes.flatMap((node, at) => {
    if (node.type !== 'WEBHOOK_TRIGGER' || node.disabled || node.config.responseMode !== 'responseNode')
      return []
    const reached = new Set([node.id])
    for (const id of reached) for (const target of targets.get(id) ?? []) reached.add(target)
    if ([...reached].some((id) => answering.has(id))) return []
    const message = `the webhook "${node.id}" leads to no RESPOND_TO_WEBHOOK node that could answer it`
    return [{ path: `nodes[${at}].config.responseMode`, message }]
  })
}
