import type { SourceLink, SourceNode } from './document.ts'

/**
 * The nodes in the order in which n8n executes them if all connections carry items: along a connection to its
 * end before the next one is taken, those further up first. A node with several inputs waits for all of them.
 */
export function orderNodes(nodes: SourceNode[], links: SourceLink[], starts: SourceNode[]): string[] {
  const byName = new Map(nodes.map((node) => [node.name, node]))
  const outward = Map.groupBy(links, ({ from }) => from)
  const inward = Map.groupBy(links, ({ to }) => to)
  const arrived = new Map<string, Set<SourceLink>>()
  const done = new Set<string>()
  const stack = starts.map(({ name }) => name).reverse()
  const waiting: string[] = []
  const height = (name: string) => byName.get(name)?.position ?? { x: 0, y: 0 }
  for (;;) {
    const name = stack.pop() ?? waiting.shift()
    if (name === undefined) break
    if (done.has(name)) continue
    done.add(name)
    const links = (outward.get(name) ?? []).toSorted((a, b) => {
      const [left, right] = [height(a.to), height(b.to)]
      return a.output - b.output || left.y - right.y || left.x - right.x
    })
    const ready: string[] = []
    for (const link of links) {
      const got = arrived.get(link.to) ?? new Set()
      arrived.set(link.to, got.add(link))
      const inputs = new Set((inward.get(link.to) ?? []).map(({ input }) => input))
      const full = new Set([...got].map(({ input }) => input))
      if (full.size === inputs.size) ready.push(link.to)
      else waiting.push(link.to)
    }
    stack.push(...ready.reverse())
  }
  return [...done]
}
