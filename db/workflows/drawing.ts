import { v7 as uuid } from 'uuid'
import type { Graph, GraphNode } from '../../workflows/graph/graph.ts'
import { readGraph } from '../../workflows/graph/read.ts'
import { invalid } from '../fault.ts'
import type { Store } from '../scope.ts'
import { bindApprovers, presentApprovers } from './approvers.ts'
import { restoreSecrets } from './secrets.ts'
import type { StoredVersion } from './versions.ts'

/**
 * Reads a graph as users send it. A `[hidden]` that was read from one of the `stored` nodes keeps its secret.
 * Throws INVALID with all problems.
 */
export function checkGraph(input: { nodes?: unknown; edges?: unknown }, stored: GraphNode[]): Graph {
  const { nodes, problems } = restoreSecrets(input.nodes, stored)
  const read = readGraph({ nodes, edges: input.edges }, uuid)
  if (problems.length + read.problems.length > 0) throw invalid([...problems, ...read.problems])
  return read.graph
}

/**
 * The version that a patch makes of another one, which has what the patch leaves out. That is checked again,
 * since the rules for graphs may have changed. Throws INVALID with all problems.
 */
export async function redrawVersion(
  store: Store,
  teamId: string,
  patch: { nodes?: unknown; edges?: unknown },
  { graph: old, approverIds }: StoredVersion,
): Promise<StoredVersion> {
  const present = await presentApprovers(store, teamId, approverIds)
  const graph = checkGraph(
    { nodes: patch.nodes ?? old.nodes.map(present), edges: patch.edges ?? old.edges },
    old.nodes,
  )
  return { graph, approverIds: await bindApprovers(store, teamId, graph) }
}
