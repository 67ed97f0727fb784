import type { SourceLink, SourceNode, SourceWorkflow } from '../document.ts'
import type { NodeMapper } from '../mapper.ts'
import type { ProblemReporter } from '../report.ts'
import { readLoopOutputs } from './nodekinds.ts'
import { orderNodes } from './order.ts'

type Links = ReadonlyMap<string, SourceLink[]>

/** An n8n workflow with only those connections that the import can follow. */
export type SourceGraph = {
  nodes: ReadonlyMap<string, SourceNode>
  /** In an order in which they can run. */
  order: SourceNode[]
  /** The connections that lead forward in this order; the same by target; and by source. */
  forward: SourceLink[]
  inward: Links
  outward: Links
  /** Connections back to the Loop Over Items node around their source: they end an iteration. */
  iterationEnds: SourceLink[]
  /** Other connections that lead back. */
  circles: SourceLink[]
  /** The name of the innermost Loop Over Items node whose body a node is in. */
  findLoopNode(name: string): string | undefined
  mapperOf(node: SourceNode): NodeMapper
}

const TO_TRIGGER =
  'In Perdure no connection can lead to a trigger, so this one was left out: connect the node to what comes ' +
  'after the trigger.'
const THROUGH_LOOP =
  'This connection leads into or out of the body of a Loop Over Items node. In Perdure only the loop itself ' +
  'can be connected to nodes outside, so it was left out: connect the loop.'

export function readSourceGraph(
  source: SourceWorkflow,
  mapperOf: (node: SourceNode) => NodeMapper,
  reporterOf: (name: string) => ProblemReporter,
): SourceGraph {
  const nodes = new Map(source.nodes.map((node) => [node.name, node]))
  const takesOf = (name: string) => mapperOf(nodes.get(name)!).takes
  const links = source.links.filter((link) => {
    if (takesOf(link.to) !== 'trigger') return true
    reporterOf(link.from)('connection', link.to, TO_TRIGGER, link)
    return false
  })
  const loopNodes = source.nodes.filter((node) => mapperOf(node).takes === 'loop')
  const bodies = findBodies(loopNodes, links)
  const innermost = findInnermost(bodies)
  const endsIteration = (link: SourceLink) => bodies.get(link.to)?.has(link.from) === true

  const followed = links.filter((link) => {
    if (endsIteration(link)) return false
    const [from, to] = [innermost.get(link.from), innermost.get(link.to)]
    if (from === to || (takesOf(link.from) === 'loop' && to === link.from)) return true
    reporterOf(link.from)('connection', link.to, THROUGH_LOOP, link)
    return false
  })
  const { order, circles } = orderNodes(source.nodes, followed)
  const forward = followed.filter((link) => !circles.includes(link))
  return {
    nodes,
    order,
    forward,
    inward: Map.groupBy(forward, (link) => link.to),
    outward: Map.groupBy(forward, (link) => link.from),
    iterationEnds: links.filter(endsIteration),
    circles,
    findLoopNode: (name) => innermost.get(name),
    mapperOf,
  }
}

/** The bodies of the Loop Over Items nodes: what the loop output leads to, but the done output does not. */
function findBodies(loopNodes: SourceNode[], links: SourceLink[]): Map<string, Set<string>> {
  const outward = Map.groupBy(links, (link) => link.from)
  return new Map(
    loopNodes.map((node) => {
      const { loop, done } = readLoopOutputs(node)
      const after = findReached(node, done, outward)
      const inside = [...findReached(node, loop, outward)].filter((name) => !after.has(name))
      return [node.name, new Set(inside)]
    }),
  )
}

/** All nodes that an output leads to, until the way comes back to the node itself. */
function findReached(node: SourceNode, output: number, outward: Links): Set<string> {
  const first = (outward.get(node.name) ?? []).filter((link) => link.output === output)
  const reached = new Set(first.map(({ to }) => to))
  for (const name of reached) {
    if (name === node.name) continue
    for (const link of outward.get(name) ?? []) reached.add(link.to)
  }
  reached.delete(node.name)
  return reached
}

/** For each node in a body, the loop node with the smallest body around it. */
function findInnermost(bodies: Map<string, Set<string>>): Map<string, string> {
  const innermost = new Map<string, string>()
  for (const [loopNode, body] of [...bodies].sort(([, a], [, b]) => b.size - a.size)) {
    for (const name of body) innermost.set(name, loopNode)
  }
  return innermost
}
