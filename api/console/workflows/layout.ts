import type { GraphEdge, GraphNode } from '../nodeform/contract.ts'

export type Point = { x: number; y: number }
export type Size = { width: number; height: number }
/** Where a node stands, measured from the corner of the loop that it is in. */
export type Place = Point & Size
type Placed = GraphNode & { position?: Point | undefined }
type Sizes = (node: GraphNode) => Size
type Edge = Pick<GraphEdge, 'source' | 'target' | 'sourceHandle'>

/** In a loop's box, above and around what it holds. */
export const LOOP_HEAD = 56
export const LOOP_PAD = 28
export const EMPTY_LOOP: Size = { width: 260, height: 132 }
const GAP_X = 84
const GAP_Y = 36
const LETTER = 6
const LABEL_LENGTH = 16
const SWEEPS = 4
/** Beyond this nobody would see where an edge passes. */
const MAX_BENDS = 10_000
/** So much may cards overlap before their places count as wrong. */
const TOLERANCE = 14
/** Others draw smaller nodes: their arrangement is stretched rather than given up. */
const STRETCHES = [1, 1.25, 1.5, 2]

/**
 * Where each node stands, and how large each loop is. In each body nodes stay where their author put them, if every one
 * has a place and none covers another; else, or with `anew`, they stand in columns by their depth, in an order that
 * keeps neighbours together.
 */
export function placeNodes(
  nodes: readonly Placed[],
  edges: readonly Edge[],
  sizeOf: Sizes,
  anew = false,
): Map<string, Place> {
  const bodies = groupNodes(nodes)
  const scopes = new Map([...bodies].flatMap(([id, body]) => body.map((node) => [node.id, id] as const)))
  const places = new Map<string, Place>()
  placeBody(null)
  return places

  function placeBody(id: string | null): Size {
    const body = bodies.get(id) ?? []
    const own = edges.filter(({ source, target }) => scopes.get(source) === id && scopes.get(target) === id)
    const sizes = new Map(body.map((node) => [node.id, measure(node)]))
    const kept = anew ? undefined : keepPlaces(body, sizes)
    const found = kept ?? placeColumns(body, own, sizes)
    for (const [node, place] of found) places.set(node, place)
    return id === null ? { width: 0, height: 0 } : hugBody([...found.values()]).size
  }

  function measure(node: Placed): Size {
    if (!bodies.has(node.id)) return sizeOf(node)
    return placeBody(node.id)
  }
}

/** The nodes by the loop that they stand in. One whose loop is missing, or in itself, stands in none. */
export function groupNodes<N extends Pick<GraphNode, 'id' | 'parentId'>>(
  nodes: readonly N[],
): Map<string | null, N[]> {
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

/** Moves what a loop holds so that its box fits around it; `by` is how far it was moved. */
export function hugBody(body: Place[]): { size: Size; by: Point } {
  if (body.length === 0) return { size: EMPTY_LOOP, by: { x: 0, y: 0 } }
  const by = {
    x: LOOP_PAD - Math.min(...body.map(({ x }) => x)),
    y: LOOP_HEAD - Math.min(...body.map(({ y }) => y)),
  }
  for (const place of body) {
    place.x += by.x
    place.y += by.y
  }
  // To the right there is room for what a node leads to.
  const width = Math.max(...body.map((place) => place.x + place.width)) + 2 * LOOP_PAD
  const height = Math.max(...body.map((place) => place.y + place.height)) + LOOP_PAD
  return { size: { width: Math.max(EMPTY_LOOP.width, width), height }, by }
}

function keepPlaces(body: Placed[], sizes: Map<string, Size>): Map<string, Place> | undefined {
  if (!body.every(({ position }) => isPoint(position))) return undefined
  for (const factor of STRETCHES) {
    const places = new Map(
      body.map(({ id, position }) => {
        const { x, y } = position!
        return [id, { x: Math.round(x * factor), y: Math.round(y * factor), ...sizes.get(id)! }]
      }),
    )
    if (!overlaps([...places.values()])) return places
  }
  return undefined
}

function isPoint(point: Point | undefined): boolean {
  const fits = (value: unknown) => Number.isFinite(value) && Math.abs(Number(value)) < 1e5
  return point !== undefined && fits(point.x) && fits(point.y)
}

function overlaps(places: Place[]): boolean {
  const sorted = places.toSorted((a, b) => a.x - b.x)
  return sorted.some((a, at) => {
    for (let i = at + 1; i < sorted.length; i += 1) {
      const b = sorted[i]!
      if (b.x - a.x >= a.width - TOLERANCE) return false
      if (a.y < b.y + b.height - TOLERANCE && b.y < a.y + a.height - TOLERANCE) return true
    }
    return false
  })
}

function placeColumns(body: Placed[], edges: Edge[], sizes: Map<string, Size>): Map<string, Place> {
  const depths = measureDepths(body, edges)
  const columns = orderColumns(depths, splitEdges(edges, depths))
  const sizeOf = (id: string) => sizes.get(id) ?? { width: 0, height: GAP_Y }
  const heights = columns.map((column) => column.reduce((sum, id) => sum + sizeOf(id).height + GAP_Y, -GAP_Y))
  const tallest = Math.max(0, ...heights)
  const lengths = new Map<string, number>()
  for (const { source, sourceHandle } of edges) {
    lengths.set(source, Math.max(lengths.get(source) ?? 0, sourceHandle?.length ?? 0))
  }
  const places = new Map<string, Place>()
  let x = 0
  for (const [at, column] of columns.entries()) {
    let y = Math.round((tallest - heights[at]!) / 2)
    for (const id of column) {
      const size = sizeOf(id)
      if (sizes.has(id)) places.set(id, { x, y, ...size })
      y += size.height + GAP_Y
    }
    const longest = Math.max(0, ...column.map((id) => lengths.get(id) ?? 0))
    x += Math.max(...column.map((id) => sizeOf(id).width))
    x += Math.max(GAP_X, Math.min(longest, LABEL_LENGTH) * LETTER + 48)
  }
  return places
}

/** An edge over several columns becomes steps over places held free in each, so that no node hides it. */
function splitEdges(edges: Edge[], depths: Map<string, number>): { source: string; target: string }[] {
  const spans = edges.map(({ source, target }) => (depths.get(target) ?? 0) - (depths.get(source) ?? 0) - 1)
  const many = spans.reduce((sum, span) => sum + Math.max(0, span), 0) > MAX_BENDS
  return edges.flatMap(({ source, target }, at) => {
    const from = depths.get(source)
    const to = depths.get(target)
    if (from === undefined || to === undefined) return []
    const between = Array.from({ length: many ? 0 : Math.max(0, to - from - 1) }, (_, step) => {
      // No node's id holds a space.
      const id = `edge ${at} ${step}`
      depths.set(id, from + 1 + step)
      return id
    })
    const stops = [source, ...between, target]
    return stops.slice(1).map((stop, step) => ({ source: stops[step]!, target: stop }))
  })
}

function orderColumns(depths: Map<string, number>, steps: { source: string; target: string }[]): string[][] {
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
function measureDepths(nodes: Placed[], edges: Edge[]): Map<string, number> {
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
