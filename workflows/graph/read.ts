import type { Rules } from '../expressions/rules.ts'
import { nameType, type Problem } from '../problem.ts'
import type { Work } from '../turns.ts'
import { checkStructure } from './check.ts'
import { type PlacedElement, readEdge, readNode } from './elements.ts'
import { type Graph, type GraphEdge, type GraphNode, MAX_EDGES, MAX_GRAPH_BYTES, MAX_NODES } from './graph.ts'

/** What checking a node or edge takes, and each character of its config, in units of work. */
const NODE_WORK = 50
const CHARACTER_WORK = 0.01

/**
 * Reads a graph from outside into its stored form and names everything that is wrong with it. The graph is
 * valid only if there are no problems. A node's `data` is used if it has no `config`; `makeId` makes ids for
 * nodes without one. Its texts are read under the rules `expressions`, which are 1 if missing.
 */
export function* readGraph(
  input: { nodes?: unknown; edges?: unknown; expressions?: Rules | undefined; strict?: boolean | undefined },
  makeId: () => string,
): Work<{ graph: Graph; problems: Problem[] }> {
  const problems: Problem[] = []
  const rawNodes = readList(input.nodes, 'nodes', MAX_NODES, problems)
  const rawEdges = readList(input.edges, 'edges', MAX_EDGES, problems)
  // If one list is not an array or too long, checking the other against it would only give false problems.
  const whole = problems.length === 0
  const nodes: PlacedElement<GraphNode>[] = []
  let characters = 0
  for (const [at, raw] of rawNodes.entries()) {
    const { length } = JSON.stringify(raw ?? null)
    characters += length
    yield NODE_WORK + CHARACTER_WORK * length
    nodes.push(...readNode(raw, `nodes[${at}]`, makeId, problems))
  }
  const edges: PlacedElement<GraphEdge>[] = []
  for (const [at, raw] of rawEdges.entries()) {
    yield NODE_WORK
    edges.push(...readEdge(raw, `edges[${at}]`, problems))
  }
  if (whole) problems.push(...(yield* checkStructure(nodes, edges)))
  yield CHARACTER_WORK * characters

  const { expressions, strict } = input
  const graph: Graph = {
    nodes: nodes.map(({ value }) => value),
    edges: edges.map(({ value }) => value),
    ...(expressions === undefined ? {} : { expressions }),
    ...(strict === undefined ? {} : { strict }),
  }
  const bytes = new TextEncoder().encode(JSON.stringify(graph)).length
  if (bytes > MAX_GRAPH_BYTES) {
    problems.push({
      path: 'nodes',
      message: `has ${bytes} bytes with the edges; at most ${MAX_GRAPH_BYTES} are allowed`,
    })
  }
  return { graph, problems }
}

function readList(input: unknown, path: string, max: number, problems: Problem[]): unknown[] {
  if (input === undefined || input === null) return []
  if (!Array.isArray(input)) problems.push({ path, message: `must be an array, not ${nameType(input)}` })
  else if (input.length <= max) return input
  else problems.push({ path, message: `has ${input.length} entries; at most ${max} are allowed` })
  return []
}
