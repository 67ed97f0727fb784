import { v7 as uuid } from 'uuid'
import type { Rules } from '../../workflows/expressions/rules.ts'
import type { Graph } from '../../workflows/graph/graph.ts'
import { readGraph } from '../../workflows/graph/read.ts'
import type { Problem } from '../../workflows/problem.ts'
import { workInTurns } from '../../workflows/turns.ts'
import { invalid, missing } from '../fault.ts'
import type { Store } from '../scope.ts'
import { suspectSecrets } from '../secrets/suspicions.ts'
import { bindApprovers, presentApprovers } from './approvers.ts'
import { restoreSecrets } from './secrets.ts'
import { readStoredVersion, type StoredVersion } from './versions.ts'

/**
 * A graph from outside, in whole or in part; `graph` is it once it has been read, and is not read again: then
 * `warnings` are what reading it gave. `expressions` are the rules that it is read under.
 */
export type Drawing = {
  nodes?: unknown
  edges?: unknown
  expressions?: Rules | undefined
  graph?: Graph | undefined
  warnings?: Problem[] | undefined
}

/** A graph that has been read, and what in it may be a mistake. */
type CheckedGraph = { graph: Graph; warnings: Problem[] }

/** The part of the stored graph that a patch keeps has changed since the patch was read together with it. */
export class StaleDrawing extends Error {}

/** Reads a graph in turns with what other teams do. Throws INVALID with all problems. */
export async function checkGraph(
  drawing: Drawing & { known?: Graph | undefined },
  teamId: string,
): Promise<CheckedGraph> {
  const { graph: read, warnings: told = [] } = drawing
  if (read) return suspect(read, told, teamId)
  const { graph, problems, warnings } = await workInTurns(readGraph(drawing, uuid), teamId)
  if (problems.length > 0) throw invalid(problems)
  return suspect(graph, warnings, teamId)
}

/** Adds warnings about what looks like a secret. */
async function suspect(graph: Graph, told: Problem[], teamId: string): Promise<CheckedGraph> {
  const named = new Set(told.map(({ path }) => path))
  const more = await workInTurns(suspectSecrets(graph.nodes, named), teamId)
  return { graph, warnings: [...told, ...more] }
}

/**
 * The graph that an update of a workflow begins with, as its authors see it, secrets included: that of its draft if the
 * draft is updated and there is one, else the published one. Throws NOT_FOUND.
 */
export async function readDrawn(store: Store, id: string, draft = false): Promise<Graph> {
  const { teamId, version } = await readBase(store, id, draft)
  return presentVersion(store, teamId, id, version)
}

async function readBase(
  { db }: Store,
  id: string,
  draft: boolean,
): Promise<{ teamId: string; version: number }> {
  const row = await db
    .selectFrom('workflows')
    .select(['version', 'draftVersion', 'teamId'])
    .where('id', '=', id)
    .executeTakeFirst()
  if (!row) throw missing('workflow')
  return { teamId: row.teamId, version: (draft ? row.draftVersion : null) ?? row.version }
}

/**
 * The graph that a patch makes of the workflow's, or of its draft; undefined if it keeps it. It is read before the workflow is
 * locked, since that may take a while; `isStale` then says whether it must be read again. Throws INVALID.
 */
export async function drawGraph(
  store: Store,
  { id, teamId }: { id: string; teamId: string },
  {
    graph,
    warnings = [],
    nodes,
    edges,
    expressions,
    restore,
    draft = false,
  }: Drawing & { restore?: number | undefined; draft?: boolean | undefined },
): Promise<(CheckedGraph & { isStale: (stored: Graph) => boolean }) | undefined> {
  // An old version is checked again, since the rules for graphs may have changed.
  if (restore !== undefined) {
    const { strict, ...version } = await presentVersion(store, teamId, id, restore)
    const checked = await checkGraph({ ...version, known: version }, teamId)
    return { ...checked, graph: { ...checked.graph, strict }, isStale: () => false }
  }
  const kept = (['nodes', 'edges'] as const).filter((part) => isNone({ nodes, edges }[part]))
  if (kept.length === 2 && expressions === undefined) return undefined
  const { version } = await readBase(store, id, draft)
  const { graph: base } = await readStoredVersion(store, id, version)
  const rules = expressions ?? base.expressions
  if (kept.length === 2 && rules === base.expressions) return undefined
  const isStale = (stored: Graph) => {
    if (stored === base) return false
    if (expressions === undefined && stored.expressions !== base.expressions) return true
    return kept.some((part) => JSON.stringify(stored[part]) !== JSON.stringify(base[part]))
  }
  if (graph && graph.expressions === rules) return { ...(await suspect(graph, warnings, teamId)), isStale }
  const known = await presentVersion(store, teamId, id, version)
  const whole = { nodes: nodes ?? known.nodes, edges: edges ?? known.edges, expressions: rules, known }
  return { ...(await checkGraph(whole, teamId)), isStale }
}

/**
 * The version that a graph from outside becomes. A `[hidden]` that was read from a node of `known` keeps its
 * secret, and approvers are bound to the users whom their addresses mean now. Throws INVALID for any other
 * `[hidden]` in the place of a secret.
 */
export async function settleGraph(
  store: Store,
  teamId: string,
  drawn: Graph,
  known: Graph['nodes'],
): Promise<Omit<StoredVersion, 'notes'>> {
  const { nodes, problems } = restoreSecrets(drawn.nodes, known)
  if (problems.length > 0) throw invalid(problems)
  const graph = { ...drawn, nodes }
  return { graph, approverIds: await bindApprovers(store, teamId, graph) }
}

/** A stored graph as users see it, in which approvers have their present addresses. */
async function presentVersion(store: Store, teamId: string, id: string, version: number): Promise<Graph> {
  const { graph, approverIds } = await readStoredVersion(store, id, version)
  return { ...graph, nodes: graph.nodes.map(await presentApprovers(store, teamId, approverIds)) }
}

function isNone(value: unknown): boolean {
  return value === undefined || value === null
}
