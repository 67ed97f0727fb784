export type GraphNode = {
  id: string
  type: string
  name?: string | null | undefined
  parentId?: string | null | undefined
  position?: unknown
  disabled?: boolean | undefined
  config?: unknown
}
export type GraphEdge = { source: string; target: string; sourceHandle?: string | null | undefined }
type Size = { width: number; height: number }
/** `exit`: where its column ends, and its edges may turn. */
export type Place = { x: number; y: number; width: number; height: number; exit: number }
type Places = Map<string, Place>
export type Bends = Map<GraphEdge, Place[]>

const WIDTH = 164
export const HEIGHT = 46
export const LABEL_LENGTH = 16
const GAP_X = 56
const GAP_Y = 26
const HEADER = HEIGHT + 8
const PAD = 16
const LETTER = 6
const SWEEPS = 4
/** Beyond this nobody would see where an edge passes. */
const MAX_BENDS = 10_000

/**
 * Where each node stands, a loop as a box around its body: within each body where its author put the nodes, if every
 * one has a place and none covers another; else in columns by their depth, in an order that keeps neighbours together.
 * `bends` says for an edge over several columns where it passes between, so that no node hides it; `bodies` names the
 * nodes that are drawn as boxes, and what stands in each (null: the graph itself).
 */
export function placeNodes(nodes: readonly GraphNode[], edges: readonly GraphEdge[]) {
  const bodies = groupNodes(nodes)
  const scopes = new Map([...bodies].flatMap(([id, body]) => body.map((node) => [node.id, id])))
  const bends: Bends = new Map()
  return { places: placeBody(null).places, bends, bodies }

  function placeBody(id: string | null): { places: Places; size: Size } {
    const body = bodies.get(id) ?? []
    const own = edges.filter(({ source, target }) => scopes.get(source) === id && scopes.get(target) === id)
    const inner = new Map(
      body.flatMap((node) => (bodies.has(node.id) ? [[node.id, placeBody(node.id)] as const] : [])),
    )
    const sizes = new Map(body.map((node) => [node.id, measureBox(inner.get(node.id)?.size)]))
    const found = keepPlaces(body, sizes) ?? placeColumns(body, own, sizes)
    for (const [edge, stops] of found.bends) bends.set(edge, stops)
    const all = [...found.places.values(), ...[...found.bends.values()].flat()]
    const left = Math.min(...all.map(({ x }) => x))
    const top = Math.min(...all.map(({ y }) => y))
    for (const place of all) move(place, -left, -top)
    const places = new Map(found.places)
    for (const [node, { places: within }] of inner) {
      const box = places.get(node)
      for (const [one, place] of within) {
        if (box) places.set(one, move(place, box.x + PAD, box.y + HEADER))
      }
      for (const [edge, stops] of bends) {
        if (!box || !within.has(edge.source)) continue
        for (const stop of stops) move(stop, box.x + PAD, box.y + HEADER)
      }
    }
    const width = Math.max(0, ...all.map((place) => place.x + place.width))
    const height = Math.max(0, ...all.map((place) => place.y + place.height))
    return { places, size: { width, height } }
  }
}

/** The nodes by the loop that they stand in. One whose loop is missing, or in itself, stands in none. */
function groupNodes(nodes: readonly GraphNode[]): Map<string | null, GraphNode[]> {
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
  const bodies = new Map<string | null, GraphNode[]>([[null, []]])
  for (const node of nodes) {
    const parent = isRooted(node.id) ? (parents.get(node.id) ?? null) : null
    const body = bodies.get(parent)
    if (body) body.push(node)
    else bodies.set(parent, [node])
  }
  return bodies
}

function measureBox(inner?: Size): Size {
  if (!inner) return { width: WIDTH, height: HEIGHT }
  return { width: Math.max(WIDTH, inner.width + 2 * PAD), height: HEADER + inner.height + PAD }
}

function move(place: Place, x: number, y: number): Place {
  place.x += x
  place.y += y
  place.exit += x
  return place
}

type Found = { places: Places; bends: Bends }

function keepPlaces(body: readonly GraphNode[], sizes: ReadonlyMap<string, Size>): Found | undefined {
  const places: Places = new Map()
  for (const { id, position } of body) {
    const { width, height } = sizes.get(id) ?? measureBox()
    if (!isPlace(position)) return undefined
    places.set(id, { x: position.x, y: position.y, width, height, exit: position.x + width })
  }
  return overlaps([...places.values()]) ? undefined : { places, bends: new Map() }
}

function placeColumns(
  body: readonly GraphNode[],
  edges: readonly GraphEdge[],
  sizes: ReadonlyMap<string, Size>,
): Found {
  const depths = measureDepths(body, edges)
  const links = splitEdges(edges, depths)
  const columns = orderColumns(
    depths,
    links.flatMap(({ steps }) => steps),
  )
  const sizeOf = (id: string) => sizes.get(id) ?? { width: 0, height: HEIGHT }
  const heights = columns.map((column) => column.reduce((sum, id) => sum + sizeOf(id).height + GAP_Y, -GAP_Y))
  const tallest = Math.max(0, ...heights)
  const lengths = new Map<string, number>()
  for (const { source, sourceHandle } of edges)
    lengths.set(source, Math.max(lengths.get(source) ?? 0, sourceHandle?.length ?? 0))
  const places: Places = new Map()
  let x = 0
  for (const [at, column] of columns.entries()) {
    const exit = x + Math.max(...column.map((id) => sizeOf(id).width))
    let y = (tallest - (heights[at] ?? 0)) / 2
    for (const id of column) {
      const { width, height } = sizeOf(id)
      places.set(id, { x, y, width, height, exit })
      y += height + GAP_Y
    }
    const longest = Math.max(0, ...column.map((id) => lengths.get(id) ?? 0))
    x = exit + Math.max(GAP_X, Math.min(longest, LABEL_LENGTH) * LETTER + 30)
  }
  const bends: Bends = new Map(
    links.map(({ edge, steps }) => [edge, steps.slice(1).flatMap(({ source }) => places.get(source) ?? [])]),
  )
  for (const id of [...places.keys()]) if (!sizes.has(id)) places.delete(id)
  return { places, bends }
}

/** An edge over several columns becomes steps over places held free in each. */
function splitEdges(edges: readonly GraphEdge[], depths: Map<string, number>) {
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
    return [{ edge, steps: stops.slice(1).map((target, step) => ({ source: stops[step] ?? '', target })) }]
  })
}

function isPlace(position: unknown): position is { x: number; y: number } {
  const { x, y } = (position ?? {}) as { x?: unknown; y?: unknown }
  return Number.isFinite(x) && Number.isFinite(y) && Math.abs(Number(x)) < 1e5 && Math.abs(Number(y)) < 1e5
}

function overlaps(places: readonly Place[]): boolean {
  const sorted = places.toSorted((a, b) => a.x - b.x)
  return sorted.some((a, at) => {
    for (let i = at + 1; i < sorted.length; i += 1) {
      const b = sorted[i]
      if (!b || b.x - a.x >= a.width + 8) return false
      if (a.y < b.y + b.height + 8 && b.y < a.y + a.height + 8) return true
    }
    return false
  })
}

type Step = { source: string; target: string }

/** `edges` go each from one column to the next. */
function orderColumns(depths: ReadonlyMap<string, number>, edges: readonly Step[]): string[][] {
  const columns: string[][] = []
  for (const [id, depth] of depths) {
    const column = columns[depth]
    if (column) column.push(id)
    else columns[depth] = [id]
  }
  const before = Map.groupBy(edges, ({ target }) => target)
  const after = Map.groupBy(edges, ({ source }) => source)
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const forward = sweep % 2 === 0
    const rows = new Map(columns.flatMap((column) => column.map((id, row) => [id, row - column.length / 2])))
    const order = forward ? columns.keys() : [...columns.keys()].reverse()
    for (const at of order) {
      const column = columns[at] ?? []
      const weights = new Map(
        column.map((id) => {
          const beside = forward
            ? before.get(id)?.map(({ source }) => source)
            : after.get(id)?.map(({ target }) => target)
          return [id, centre(id, beside ?? [], rows)]
        }),
      )
      column.sort((a, b) => (weights.get(a) ?? 0) - (weights.get(b) ?? 0))
      for (const [row, id] of column.entries()) rows.set(id, row - column.length / 2)
    }
  }
  return columns.filter(Boolean)
}

/** The middle of a node's neighbours on one side. */
function centre(id: string, beside: readonly string[], rows: ReadonlyMap<string, number>): number {
  if (beside.length === 0) return rows.get(id) ?? 0
  return beside.reduce((sum, one) => sum + (rows.get(one) ?? 0), 0) / beside.length
}

/** The longest way to each node; a cycle, which no saved graph has, ends the walk. */
function measureDepths(nodes: readonly GraphNode[], edges: readonly GraphEdge[]): Map<string, number> {
  const depths = new Map(nodes.map(({ id }) => [id, 0]))
  const waiting = new Map(nodes.map(({ id }) => [id, 0]))
  const after = new Map<string, string[]>()
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
