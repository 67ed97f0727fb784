import { groupNodes, measureDepths, orderColumns, splitEdges } from './columns.ts'

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
export type Places = Map<string, Place>
export type Bends = Map<GraphEdge, Place[]>

const WIDTH = 164
export const HEIGHT = 46
export const LABEL_LENGTH = 16
const GAP_X = 56
const GAP_Y = 26
const HEADER = HEIGHT + 8
const PAD = 16
const LETTER = 6

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
