import type { SourceLink, SourceNode } from '../document.ts'

/**
 * The nodes in an order in which they can run, and the connections that lead back to an earlier node. This is
 * a depth-first search: a connection to a node that it has entered but not left leads back.
 */
export function orderNodes(
  nodes: SourceNode[],
  links: SourceLink[],
): { order: SourceNode[]; circles: SourceLink[] } {
  const outward = Map.groupBy(links, (link) => link.from)
  const byName = new Map(nodes.map((node) => [node.name, node]))
  const states = new Map<string, 'entered' | 'left'>()
  const circles: SourceLink[] = []
  const reversed: SourceNode[] = []
  const targets = new Set(links.map((link) => link.to))
  const enter = (name: string) => {
    states.set(name, 'entered')
    return { name, rest: [...(outward.get(name) ?? [])].reverse() }
  }
  // Without recursion: a workflow may be a chain of hundreds of nodes.
  for (const { name } of [...nodes.filter(({ name }) => !targets.has(name)), ...nodes]) {
    if (states.has(name)) continue
    const trail = [enter(name)]
    for (let here = trail.at(-1); here; here = trail.at(-1)) {
      const link = here.rest.pop()
      if (!link) {
        states.set(here.name, 'left')
        reversed.push(byName.get(here.name)!)
        trail.pop()
      } else if (states.get(link.to) === 'entered') circles.push(link)
      else if (!states.has(link.to)) trail.push(enter(link.to))
    }
  }
  return { order: reversed.reverse(), circles }
}
