import type { Problem } from '../../data/refusal.ts'
import type { GraphEdge, GraphNode } from '../../nodeform/contract.ts'
import type { Fault } from './store.ts'

type Sent = { nodes: readonly Pick<GraphNode, 'id'>[]; edges: readonly GraphEdge[] }

/** What the API said of a graph, with the node or edge that each path means in what was sent. */
export function readFaults(problems: readonly Problem[], sent: Sent, warning = false): Fault[] {
  return problems.map(({ path, message }) => {
    const told: Fault = { path, message, ...(warning ? { warning: true } : {}) }
    const [, list, at, within] = /^(nodes|edges)\[(\d+)\]\.?(.*)$/.exec(path) ?? []
    if (list === 'nodes') {
      const node = sent.nodes[Number(at)]
      return node ? { ...told, nodeId: node.id, within: within ?? '' } : told
    }
    if (list !== 'edges') return told
    const edge = sent.edges[Number(at)]
    if (!edge) return told
    const { source, target, sourceHandle } = edge
    return { ...told, edge: { source, target, sourceHandle: sourceHandle ?? null }, nodeId: source }
  })
}

/** The faults of one node, for its panel. */
export function faultsOf(faults: readonly Fault[], id: string) {
  return faults.flatMap(({ nodeId, edge, within, message, warning }) =>
    nodeId === id && !edge ? [{ path: within ?? '', message, ...(warning ? { warning } : {}) } as const] : [],
  )
}
