import type { Rules } from '../expressions/rules.ts'
import type { Graph, GraphEdge } from '../graph/graph.ts'
import { readGraph } from '../graph/read.ts'
import type { Problem } from '../problem.ts'
import type { Work } from '../turns.ts'
import type { ImportedNode } from './parts.ts'
import type { ImportProblem } from './report.ts'
import { writeLiteral } from './texts.ts'

type ImportedGraph = { nodes: ImportedNode[]; edges: GraphEdge[] }

/** A repair may reveal other problems: edges are repaired only when all nodes are valid. */
const ROUNDS = 5

/**
 * Makes a converted graph valid, so that it can be saved: replaces nodes and leaves out edges that are not
 * valid, and reports both. The problems that it returns are those of the graph as a whole, such as its size.
 */
export function* repairGraph(
  { nodes, edges, expressions }: ImportedGraph & { expressions: Rules },
  report: (problem: ImportProblem) => void,
  makeId: () => string,
): Work<{ graph: Graph; problems: Problem[] }> {
  let converted: ImportedGraph = { nodes, edges }
  for (let round = 0; ; round++) {
    const read = yield* readGraph({ ...converted, expressions, imported: true }, makeId)
    const byElement = Map.groupBy(read.problems, ({ path }) => /^(nodes|edges)\[\d+\]/.exec(path)?.[0])
    if (byElement.size === 0 || byElement.has(undefined) || round === ROUNDS) return read
    converted = repairElements(converted, (element) => byElement.get(element), report)
  }
}

/**
 * Replaces the nodes that have problems, and takes those out of loops that cannot be in them. If there are none, it
 * leaves out the edges that have problems.
 */
function repairElements(
  { nodes, edges }: ImportedGraph,
  problemsOf: (element: string) => Problem[] | undefined,
  report: (problem: ImportProblem) => void,
): ImportedGraph {
  const replaced = new Set<string>()
  let lifted = false
  const repaired = nodes.map((node, i) => {
    const problems = problemsOf(`nodes[${i}]`)
    if (!problems) return node
    if (problems.every(({ path }) => path === `nodes[${i}].parentId`)) {
      const { parentId: _, ...outside } = node
      report(describeNode(node, problems, 'It is outside of the loop now: put it where it belongs.'))
      lifted = true
      return outside as ImportedNode
    }
    replaced.add(node.id)
    const { replacement, consequence } = replaceNode(node, problems)
    report(describeNode(node, problems, consequence))
    return replacement
  })
  if (replaced.size > 0 || lifted) {
    const reconnect = (edge: GraphEdge) =>
      replaced.has(edge.source) ? { ...edge, sourceHandle: null } : edge
    return { nodes: repaired, edges: edges.map(reconnect) }
  }
  const kept = edges.filter((edge, i) => {
    const problems = problemsOf(`edges[${i}]`)
    if (problems) report(describeEdge(edge, problems))
    return !problems
  })
  return { nodes, edges: kept }
}

/** A valid node for the place of one that is not, and what this means for the workflow. */
function replaceNode(
  node: ImportedNode,
  problems: Problem[],
): { replacement: ImportedNode; consequence: string } {
  const { id, name, position, parentId, disabled } = node
  const kept = {
    id,
    name,
    ...(position ? { position } : {}),
    ...(parentId ? { parentId } : {}),
    ...(disabled ? { disabled } : {}),
  }
  if (/TRIGGER$/.test(node.type)) {
    const consequence = 'A MANUAL_TRIGGER takes its place: set the trigger up again.'
    return { replacement: { ...kept, type: 'MANUAL_TRIGGER', config: {} }, consequence }
  }
  if (node.type === 'FOR_EACH') {
    // It must stay a loop, because other nodes are in it.
    const { concurrency = 1 } = node.config
    const config = { items: '{{ $error("The items of this loop were not imported") }}', concurrency }
    const consequence = 'It has no items now and fails the execution: set its items again.'
    return { replacement: { ...kept, type: 'FOR_EACH', config }, consequence }
  }
  const [fault] = problems
  const reason = fault ? `: ${fault.message}` : ''
  const message = writeLiteral(
    `The ${node.type} node that was imported here is not valid${reason}`.slice(0, 1_000),
  )
  const consequence = 'A STOP_AND_ERROR node in its place fails the execution: set the node up again.'
  return { replacement: { ...kept, type: 'STOP_AND_ERROR', config: { message } }, consequence }
}

function describeNode(node: ImportedNode, problems: Problem[], consequence: string): ImportProblem {
  const faults = problems.map(({ path, message }) => `${path.replace(/^nodes\[\d+\]\.?/, '')} ${message}`)
  const message = `The imported ${node.type} node is not valid: ${faults.join('; ')}. ${consequence}`
  return { node: String(node.name), path: 'node', kind: 'node', message, original: node }
}

function describeEdge(edge: GraphEdge, problems: Problem[]): ImportProblem {
  const faults = problems.map(({ message }) => message).join(' and it ')
  const message =
    `Perdure does not allow this edge, because it ${faults}. It was left out: connect the nodes in another ` +
    'way.'
  return { node: null, path: 'connections', kind: 'connection', message, original: edge }
}
