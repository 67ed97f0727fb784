import type { Graph, GraphNode } from '../../workflows/graph/graph.ts'

/** More nodes than these are not named. */
const MAX_NAMED = 100

/** What an audit entry says of a change of a graph: the versions have the rest. */
export type Redrawing = {
  nodes: { added: NamedNode[]; removed: NamedNode[]; changed: (NamedNode & { fields: string[] })[] }
  edges: { added: number; removed: number }
}
type NamedNode = Pick<GraphNode, 'id' | 'type'>

/** Names the nodes that differ between two graphs, and what of them does: at most 100 of each kind. */
export function describeRedrawing(before: Graph, after: Graph): Redrawing {
  const old = new Map(before.nodes.map((node) => [node.id, node]))
  const young = new Map(after.nodes.map((node) => [node.id, node]))
  const name = ({ id, type }: GraphNode): NamedNode => ({ id, type })
  const changed = after.nodes.flatMap((node) => {
    const known = old.get(node.id)
    const fields = known && known !== node ? listFields(known, node) : []
    return fields.length > 0 ? [{ ...name(node), fields }] : []
  })
  const edges = [before, after].map((graph) => new Set(graph.edges.map((edge) => JSON.stringify(edge)))) as [
    Set<string>,
    Set<string>,
  ]
  return {
    nodes: {
      added: after.nodes
        .filter(({ id }) => !old.has(id))
        .slice(0, MAX_NAMED)
        .map(name),
      removed: before.nodes
        .filter(({ id }) => !young.has(id))
        .slice(0, MAX_NAMED)
        .map(name),
      changed: changed.slice(0, MAX_NAMED),
    },
    edges: {
      added: [...edges[1]].filter((edge) => !edges[0].has(edge)).length,
      removed: [...edges[0]].filter((edge) => !edges[1].has(edge)).length,
    },
  }
}

/** Names the fields of a node that differ, and those of its config: `name`, `config.url`. */
function listFields(before: GraphNode, after: GraphNode): string[] {
  const { config: oldConfig, ...old } = before
  const { config, ...young } = after
  const inConfig = listDiffering(oldConfig, config).map((key) => `config.${key}`)
  return [...listDiffering(old, young), ...inConfig].slice(0, MAX_NAMED)
}

function listDiffering(before: object, after: object): string[] {
  const values = [before, after] as Record<string, unknown>[]
  const keys = [...new Set(values.flatMap((one) => Object.keys(one)))]
  return keys.filter((key) => JSON.stringify(values[0]![key]) !== JSON.stringify(values[1]![key]))
}
