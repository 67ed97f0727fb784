import { v7 as uuid } from 'uuid'
import type { Graph } from '../../workflows/graph/graph.ts'
import { readGraph } from '../../workflows/graph/read.ts'
import { workInTurns } from '../../workflows/turns.ts'
import { invalid, missing } from '../fault.ts'
import type { Store } from '../scope.ts'
import { readVersion } from './versions.ts'

/** A graph from outside, in whole or in part; `graph` is it once it has been read, and is not read again. */
export type Drawing = { nodes?: unknown; edges?: unknown; graph?: Graph | undefined }

/** The part of the stored graph that a patch keeps has changed since the patch was read together with it. */
export class StaleDrawing extends Error {}

/**
 * The graph that a patch makes of the workflow's; undefined if it keeps it. It is read before the workflow is
 * locked, since that may take a while; `isStale` then says whether it must be read again. Throws INVALID.
 */
export async function drawGraph(
  store: Store,
  { id, teamId }: { id: string; teamId: string },
  { graph, nodes, edges, restore }: Drawing & { restore?: number | undefined },
): Promise<{ graph: Graph; isStale: (stored: Graph) => boolean } | undefined> {
  const whole = async (drawing: Drawing) => ({
    graph: await checkGraph(drawing, teamId),
    isStale: () => false,
  })
  // An old version is checked again, since the rules for graphs may have changed.
  if (restore !== undefined) return whole(await readVersion(store, id, restore))
  if (graph || (!isNone(nodes) && !isNone(edges))) return whole({ graph, nodes, edges })
  if (isNone(nodes) && isNone(edges)) return undefined
  const row = await store.db.selectFrom('workflows').select('version').where('id', '=', id).executeTakeFirst()
  if (!row) throw missing('workflow')
  const base = await readVersion(store, id, row.version)
  const kept = isNone(nodes) ? 'nodes' : 'edges'
  return {
    graph: await checkGraph({ nodes: nodes ?? base.nodes, edges: edges ?? base.edges }, teamId),
    isStale: (stored) => stored !== base && JSON.stringify(stored[kept]) !== JSON.stringify(base[kept]),
  }
}

/** Reads a graph in turns with what other teams do. Throws INVALID. */
export async function checkGraph(drawing: Drawing, teamId: string): Promise<Graph> {
  if (drawing.graph) return drawing.graph
  const { graph, problems } = await workInTurns(readGraph(drawing, uuid), teamId)
  if (problems.length > 0) throw invalid(problems)
  return graph
}

function isNone(value: unknown): boolean {
  return value === undefined || value === null
}
