import type { Link, SourceNode } from './document.ts'
import type { Mapper } from './mapper.ts'

/** By which outputs a splitInBatches leaves, by its version: 3 changed them. */
export function batchOutputs(node: SourceNode): { loop: number; done: number } {
  return node.version >= 3 ? { loop: 1, done: 0 } : { loop: 0, done: 1 }
}

/** What runs once for each batch: reached by its loop output, and not by the other. */
export function findBody(node: SourceNode, outward: ReadonlyMap<string, Link[]>): Set<string> {
  const { loop, done } = batchOutputs(node)
  const reach = (output: number) => {
    const first = (outward.get(node.name) ?? []).filter((link) => link.output === output)
    const found = new Set(first.map(({ to }) => to))
    for (const name of found) {
      if (name === node.name) continue
      for (const link of outward.get(name) ?? []) found.add(link.to)
    }
    found.delete(node.name)
    return found
  }
  const after = reach(done)
  return new Set([...reach(loop)].filter((name) => !after.has(name)))
}

/** Depth first; a connection back to a node that is under way closes a circle. */
export function sort(nodes: SourceNode[], links: Link[]): { order: SourceNode[]; circles: Link[] } {
  const outward = Map.groupBy(links, (link) => link.from)
  const byName = new Map(nodes.map((node) => [node.name, node]))
  const state = new Map<string, 'open' | 'done'>()
  const circles: Link[] = []
  const last: SourceNode[] = []
  const targeted = new Set(links.map((link) => link.to))
  for (const begin of [...nodes.filter(({ name }) => !targeted.has(name)), ...nodes]) {
    if (state.has(begin.name)) continue
    state.set(begin.name, 'open')
    const trail: { name: string; rest: Link[] }[] = [
      { name: begin.name, rest: [...(outward.get(begin.name) ?? [])].reverse() },
    ]
    while (trail.length > 0) {
      const here = trail.at(-1)!
      const link = here.rest.pop()
      if (!link) {
        state.set(here.name, 'done')
        last.push(byName.get(here.name)!)
        trail.pop()
      } else if (state.get(link.to) === 'open') circles.push(link)
      else if (!state.has(link.to)) {
        state.set(link.to, 'open')
        trail.push({ name: link.to, rest: [...(outward.get(link.to) ?? [])].reverse() })
      }
    }
  }
  return { order: last.reverse(), circles }
}

/** Nodes whose output meets another one's further on, so that both must have one shape. */
export function findMixed(
  nodes: SourceNode[],
  inward: Map<string, Link[]>,
  outward: Map<string, Link[]>,
  mapperOf: (node: SourceNode) => Mapper,
): Set<string> {
  const byName = new Map(nodes.map((node) => [node.name, node]))
  const mixed = new Set<string>()
  for (const { name } of nodes) {
    const incoming = inward.get(name) ?? []
    if (new Set(incoming.map(({ from }) => from)).size < 2) continue
    const open = incoming.map(({ from }) => from)
    for (const source of open) {
      if (mixed.has(source)) continue
      mixed.add(source)
      if (mapperOf(byName.get(source)!).same) open.push(...(inward.get(source) ?? []).map(({ from }) => from))
    }
  }
  const answers = nodes.some(
    (node) => node.type === 'executeWorkflowTrigger' || node.parameters.responseMode === 'lastNode',
  )
  if (answers) for (const { name } of nodes) if (!outward.has(name)) mixed.add(name)
  return mixed
}
