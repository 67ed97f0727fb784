import type { Link, SourceNode } from './document.ts'
import type { Layout } from './layout.ts'
import type { Mapper } from './mapper.ts'
import type { Complain } from './report.ts'

/**
 * Reports nodes where branches meet that both run: n8n runs such a node once for each of them, we run it once. Where
 * only one of the branches can run, it is the same.
 */
export function checkJoins(
  layout: Layout,
  mapperOf: (node: SourceNode) => Mapper,
  complainOf: (name: string) => Complain,
): void {
  const inward = Map.groupBy(layout.links, (link) => link.to)
  const outputs = new Map<string, Set<number>>()
  for (const { from, output } of layout.links)
    outputs.set(from, new Set([...(outputs.get(from) ?? []), output]))
  /** By node, which output each branch before it must have left by. */
  const facts = new Map<string, Map<string, number>>()
  const along = ({ from, output }: Link) => {
    const known = new Map(facts.get(from))
    if ((outputs.get(from)?.size ?? 0) > 1) known.set(from, output)
    return known
  }
  for (const [at, node] of layout.order.entries()) {
    const arrivals = (inward.get(node.name) ?? []).filter(({ from }) => facts.has(from)).map(along)
    const [first = new Map<string, number>(), ...rest] = arrivals
    const shared = [...first].filter(([name, output]) => rest.every((other) => other.get(name) === output))
    // A run starts at one trigger: what leads on from another one does not run.
    if (mapperOf(node).takes === 'trigger') shared.push(['', at])
    facts.set(node.name, new Map(shared))
    if (mapperOf(node).takes === 'merge' || mapperOf(node).takes === 'loop') continue
    const together = arrivals.some((one, i) =>
      arrivals.slice(i + 1).some((other) => !areExclusive(one, other)),
    )
    if (!together) continue
    const message = 'n8n runs it once for each connection; here it runs once, with what they bring together'
    complainOf(node.name)('connection', 'connections', message, node.name)
  }
}

function areExclusive(one: Map<string, number>, other: Map<string, number>): boolean {
  return [...one].some(([name, output]) => other.has(name) && other.get(name) !== output)
}
