/** How a graph is put into columns: what the drawings of graphs and the editor's canvas share. */

type Inside = { id: string; parentId?: string | null | undefined }
export type Step = { source: string; target: string }

const SWEEPS = 4
/** With more bends than this, the way of an edge could not be seen anyway. */
const MAX_BENDS = 10_000

/** The nodes by the loop that they are in. One whose loop is missing, or is inside itself, is in none. */
export function groupNodes<N extends Inside>(nodes: readonly N[]): Map<string | null, N[]> {
  const parents = new Map(nodes.map(({ id, parentId }) => [id, parentId ?? null]))
  const isRooted = (id: string) => {
    const seen = new Set([id])
    let at = parents.get(id)
    while (at && parents.has(at) && !seen.has(at)) {
      seen.add(at)
      at = parents.get(at)
    }
    return !at
  }
  const bodies = new Map<string | null, N[]>([[null, []]])
  for (const node of nodes) {
    const parent = isRooted(node.id) ? (parents.get(node.id) ?? null) : null
    const body = bodies.get(parent)
    if (body) body.push(node)
    else bodies.set(parent, [node])
  }
  return bodies
}

/** An edge over several columns becomes steps over places held free in each. */
export function splitEdges<E extends Step>(
  edges: readonly E[],
  depths: Map<string, number>,
): { edge: E; steps: Step[] }[] {
  const spans = edges.map(({ source, target }) => (depths.get(target) ?? 0) - (depths.get(source) ?? 0) - 1)
  const many = spans.reduce((sum, span) => sum + Math.max(0, span), 0) > MAX_BENDS
  return edges.flatMap((edge, at) => {
    const from = depths.get(edge.source)
    const to = depths.get(edge.target)
    if (from === undefined || to === undefined) return []
    const between = Array.from({ length: many ? 0 : Math.max(0, to - from - 1) }, (_, step) => {
      // No node's id holds a space.
      const id = `edge ${at} ${step}`
      depths.set(id, from + 1 + step)
      return id
    })
    const stops = [edge.source, ...between, edge.target]
    return [{ edge, steps: stops.slice(1).map((target, step) => ({ source: stops[step]!, target })) }]
  })
}

/** `steps` go each from one column to the next. */
export function orderColumns(depths: ReadonlyMap<string, number>, steps: readonly Step[]): string[][] {
  const columns: string[][] = []
  for (const [id, depth] of depths) {
    const column = columns[depth]
    if (column) column.push(id)
    else columns[depth] = [id]
  }
  const before = Map.groupBy(steps, ({ target }) => target)
  const after = Map.groupBy(steps, ({ source }) => source)
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const forward = sweep % 2 === 0
    const rows = new Map(
      columns.flatMap((column) => column.map((id, row) => [id, row - column.length / 2] as const)),
    )
    const order = forward ? [...columns.keys()] : [...columns.keys()].reverse()
    for (const at of order) {
      const column = columns[at] ?? []
      const weights = new Map(
        column.map((id) => {
          const beside = forward
            ? before.get(id)?.map(({ source }) => source)
            : after.get(id)?.map(({ target }) => target)
          return [id, findCentre(id, beside ?? [], rows)]
        }),
      )
      column.sort((a, b) => (weights.get(a) ?? 0) - (weights.get(b) ?? 0))
      for (const [row, id] of column.entries()) rows.set(id, row - column.length / 2)
    }
  }
  return columns.filter(Boolean)
}

/** The middle of a node's neighbours on one side. */
function findCentre(id: string, beside: string[], rows: Map<string, number>): number {
  if (beside.length === 0) return rows.get(id) ?? 0
  return beside.reduce((sum, one) => sum + (rows.get(one) ?? 0), 0) / beside.length
}

/** The longest way to each node; a cycle, which no saved graph has, ends the walk. */
export function measureDepths(nodes: readonly Inside[], edges: readonly Step[]): Map<string, number> {
  const depths = new Map(nodes.map(({ id }) => [id, 0]))
  const waiting = new Map(nodes.map(({ id }) => [id, 0]))
  const after = new Map<string, string[]>()
  for (const { source, target } of edges) {
    if (!depths.has(source) || !depths.has(target)) continue
    waiting.set(target, waiting.get(target)! + 1)
    after.set(source, [...(after.get(source) ?? []), target])
  }
  const ready = [...waiting].flatMap(([id, count]) => (count === 0 ? [id] : []))
  for (const id of ready) {
    for (const target of after.get(id) ?? []) {
      depths.set(target, Math.max(depths.get(target)!, depths.get(id)! + 1))
      const left = waiting.get(target)! - 1
      waiting.set(target, left)
      if (left === 0) ready.push(target)
    }
  }
  return depths
}
