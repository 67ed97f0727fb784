import type { GraphEdge, GraphNode } from '../nodeform/contract.ts'
import { groupNodes, measureDepths, orderColumns, splitEdges } from './columns.ts'

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
  const columns = orderColumns(
    depths,
    splitEdges(edges, depths).flatMap(({ steps }) => steps),
  )
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
