import { v7 as uuid } from 'uuid'
import type { Graph } from '../../workflows/graph/graph.ts'
import { readGraph } from '../../workflows/graph/read.ts'
import { invalid } from '../fault.ts'
import type { Store } from '../scope.ts'
import { bindApprovers, presentApprovers } from './approvers.ts'
import type { StoredVersion } from './versions.ts'

/** Reads a graph as users send it. Throws INVALID with all problems. */
export function checkGraph(input: { nodes?: unknown; edges?: unknown }): Graph {
  const { graph, problems } = readGraph(input, uuid)
  if (problems.length > 0) throw invalid(problems)
  return graph
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
  const graph = checkGraph({ nodes: patch.nodes ?? old.nodes.map(present), edges: patch.edges ?? old.edges })
  return { graph, approverIds: await bindApprovers(store, teamId, graph) }
}
