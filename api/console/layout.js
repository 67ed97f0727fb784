/** @typedef {{ id: string, type: string, name?: string, position?: { x: number, y: number }, disabled?: boolean, config?: any }} GraphNode */
/** @typedef {{ source: string, target: string, sourceHandle?: string | null }} GraphEdge */
/** @typedef {Map<string, { x: number, y: number }>} Places */

export const WIDTH = 164
export const HEIGHT = 46
const GAP_X = 56
const GAP_Y = 26
const SWEEPS = 4

/**
 * Where each node stands: where its author put it, if every node has a place and none covers another; else in
 * columns by its depth, in an order that keeps neighbours together. `bends` says for an edge over several columns
 * where it passes between, so that no node hides it.
 * @param {GraphNode[]} nodes
 * @param {GraphEdge[]} edges
 * @returns {{ places: Places, bends: Map<GraphEdge, { x: number, y: number }[]> }}
 */
export function placeNodes(nodes, edges) {
  const given = new Map(nodes.flatMap(({ id, position }) => (isPlace(position) ? [[id, position]] : [])))
  if (given.size === nodes.length && !overlaps([...given.values()]))
    return { places: given, bends: new Map() }
  const depths = measureDepths(nodes, edges)
  const links = splitEdges(edges, depths)
  const columns = orderColumns(
    depths,
    links.flatMap(({ steps }) => steps),
  )
  const tallest = Math.max(0, ...columns.map((column) => column.length))
  /** @type {Places} */
  const places = new Map()
  for (const [at, column] of columns.entries()) {
    const top = ((tallest - column.length) * (HEIGHT + GAP_Y)) / 2
    for (const [row, id] of column.entries()) {
      places.set(id, { x: at * (WIDTH + GAP_X), y: top + row * (HEIGHT + GAP_Y) })
    }
  }
  const bends = new Map(
    links.map(({ edge, steps }) => [edge, steps.slice(1).flatMap(({ source }) => places.get(source) ?? [])]),
  )
  return { places: new Map(nodes.flatMap(({ id }) => [[id, places.get(id) ?? { x: 0, y: 0 }]])), bends }
}

/** An edge over several columns becomes steps over places held free in each. @param {GraphEdge[]} edges @param {Map<string, number>} depths */
function splitEdges(edges, depths) {
  return edges.flatMap((edge, at) => {
    const from = depths.get(edge.source)
    const to = depths.get(edge.target)
    if (from === undefined || to === undefined) return []
    const between = Array.from({ length: Math.max(0, to - from - 1) }, (_, step) => {
      // No node's id holds a space.
      const id = `edge ${at} ${step}`
      depths.set(id, from + 1 + step)
      return id
    })
    const stops = [edge.source, ...between, edge.target]
    return [{ edge, steps: stops.slice(1).map((target, step) => ({ source: stops[step] ?? '', target })) }]
  })
}

/** @param {unknown} position @returns {position is { x: number, y: number }} */
function isPlace(position) {
  const { x, y } = /** @type {{ x?: unknown, y?: unknown }} */ (position ?? {})
  return Number.isFinite(x) && Number.isFinite(y) && Math.abs(Number(x)) < 1e5 && Math.abs(Number(y)) < 1e5
}

/** @param {{ x: number, y: number }[]} places */
function overlaps(places) {
  const sorted = places.toSorted((a, b) => a.x - b.x)
  return sorted.some((a, at) => {
    for (let i = at + 1; i < sorted.length; i += 1) {
      const b = sorted[i]
      if (!b || b.x - a.x >= WIDTH + 8) return false
      if (Math.abs(a.y - b.y) < HEIGHT + 8) return true
    }
    return false
  })
}

/** @param {Map<string, number>} depths @param {GraphEdge[]} edges each from one column to the next */
function orderColumns(depths, edges) {
  /** @type {string[][]} */
  const columns = []
  for (const [id, depth] of depths) {
    const column = columns[depth]
    if (column) column.push(id)
    else columns[depth] = [id]
  }
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const forward = sweep % 2 === 0
    const rows = new Map(columns.flatMap((column) => column.map((id, row) => [id, row - column.length / 2])))
    const order = forward ? columns.keys() : [...columns.keys()].reverse()
    for (const at of order) {
      const column = columns[at] ?? []
      const weights = new Map(column.map((id) => [id, centre(id, edges, rows, forward)]))
      column.sort((a, b) => (weights.get(a) ?? 0) - (weights.get(b) ?? 0))
      for (const [row, id] of column.entries()) rows.set(id, row - column.length / 2)
    }
  }
  return columns.filter(Boolean)
}

/** The middle of a node's neighbours on one side. @param {string} id @param {GraphEdge[]} edges @param {Map<string, number>} rows @param {boolean} forward */
function centre(id, edges, rows, forward) {
  const beside = edges.flatMap(({ source, target }) => {
    if (forward) return target === id ? [rows.get(source) ?? 0] : []
    return source === id ? [rows.get(target) ?? 0] : []
  })
  if (beside.length === 0) return rows.get(id) ?? 0
  return beside.reduce((sum, row) => sum + row, 0) / beside.length
}

/** The longest way to each node; a cycle, which no saved graph has, ends the walk. @param {GraphNode[]} nodes @param {GraphEdge[]} edges */
function measureDepths(nodes, edges) {
  const depths = new Map(nodes.map(({ id }) => [id, 0]))
  const waiting = new Map(nodes.map(({ id }) => [id, 0]))
  /** @type {Map<string, string[]>} */
  const after = new Map()
  for (const { source, target } of edges) {
    if (!depths.has(source) || !depths.has(target)) continue
    waiting.set(target, (waiting.get(target) ?? 0) + 1)
    after.set(source, [...(after.get(source) ?? []), target])
  }
  const ready = [...waiting].flatMap(([id, count]) => (count === 0 ? [id] : []))
  for (const id of ready) {
    for (const target of after.get(id) ?? []) {
      depths.set(target, Math.max(depths.get(target) ?? 0, (depths.get(id) ?? 0) + 1))
      const left = (waiting.get(target) ?? 0) - 1
      waiting.set(target, left)
      if (left === 0) ready.push(target)
    }
  }
  return depths
}
