import type { SourceLink, SourceNode } from '../document.ts'
import type { NodeMapper } from '../mapper.ts'
import type { ProblemReporter } from '../report.ts'
import type { ItemAnalysis } from './analysis.ts'

/** By node: the output that it must have taken for the execution to arrive at some point. */
type Choices = Map<string, number>

/**
 * Reports the nodes where branches meet that can both be taken. n8n runs such a node once for each branch, we
 * run it once. If only one of the branches can be taken, there is no difference.
 */
export function reportJoins(
  { links, order }: ItemAnalysis,
  mapperOf: (node: SourceNode) => NodeMapper,
  reporterOf: (name: string) => ProblemReporter,
): void {
  const inward = Map.groupBy(links, (link) => link.to)
  const outputs = listOutputs(links)
  const choices = new Map<string, Choices>()
  for (const [at, node] of order.entries()) {
    const { takes } = mapperOf(node)
    const arrivals = (inward.get(node.name) ?? [])
      .filter(({ from }) => choices.has(from))
      .map((link) => addChoice(choices.get(link.from)!, link, outputs))
    const shared = findShared(arrivals)
    // An execution starts at only one trigger, so branches from different triggers never meet.
    if (takes === 'trigger') shared.set('', at)
    choices.set(node.name, shared)
    if (takes === 'merge' || takes === 'loop' || !canMeet(arrivals)) continue
    const message =
      'n8n runs this node once for each connection. Perdure runs it once, with what all connections bring: ' +
      'if it must run for each, give every branch a node of its own.'
    reporterOf(node.name)('connection', 'connections', message, node.name)
  }
}

/** For each node, the outputs that are connected. */
function listOutputs(links: SourceLink[]): Map<string, Set<number>> {
  const bySource = Map.groupBy(links, (link) => link.from)
  return new Map([...bySource].map(([from, links]) => [from, new Set(links.map(({ output }) => output))]))
}

/** A connection from a node with several connected outputs is a choice between them. */
function addChoice(
  choices: Choices,
  { from, output }: SourceLink,
  outputs: Map<string, Set<number>>,
): Choices {
  return outputs.get(from)!.size > 1 ? new Map(choices).set(from, output) : choices
}

/** The choices that all arrivals have in common. */
function findShared([first = new Map<string, number>(), ...rest]: Choices[]): Choices {
  return new Map([...first].filter(([name, output]) => rest.every((other) => other.get(name) === output)))
}

function canMeet(arrivals: Choices[]): boolean {
  return arrivals.some((one, i) => arrivals.slice(i + 1).some((other) => !areExclusive(one, other)))
}

function areExclusive(one: Choices, other: Choices): boolean {
  return [...one].some(([name, output]) => other.has(name) && other.get(name) !== output)
}
