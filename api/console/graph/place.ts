import { type EdgeEnds, groupNodes, measureDepths, orderColumns, splitEdges } from './columns.ts'

export type Point = { x: number; y: number }
export type Size = { width: number; height: number }
export type Box = Point & Size
/** Where a node lies, measured from the corner of its loop. `exit`: where its column ends, and its edges may turn. */
export type Place = Box & { exit: number }
/** The places that an edge over several columns passes through, so that no node hides it. */
export type Bends<E> = Map<E, Place[]>

type Placed = { id: string; parentId?: string | null | undefined; position?: unknown }
type Edge = EdgeEnds & { sourceHandle?: string | null | undefined }

/** How large everything is, in pixels. */
export type Measures<N> = {
  sizeOf: (node: N) => Size
  /** Between two columns, and between two nodes of a column. */
  gap: Size
  /** The height that is kept free in a column for an edge that passes through it. */
  lane: number
  /** Room for the label of a handle, beside its letters. */
  label: number
  /** Two nodes that are nearer to each other count as misplaced; below zero they may overlap. */
  apart: number
  /** Authors who draw smaller nodes: their arrangement is stretched by the first factor that parts the nodes. */
  stretches: readonly number[]
  /**
   * A loop's box: its room above, around and to the right of its body. With `bends` it holds the bends of its edges,
   * too.
   */
  loop: { head: number; pad: number; right: number; least: Size; bends: boolean }
}

export const LABEL_LENGTH = 16
export const LETTER = 6

/**
 * Places each node, and sizes each loop. In each body the nodes stay where their author put them, if every one has a
 * place and none covers another; else, or with `anew`, they are put into columns by their depth, in an order that keeps
 * neighbours together. `bodies` has the nodes of each loop (null: of the graph itself).
 */
export function placeNodes<N extends Placed, E extends Edge>(
  nodes: readonly N[],
  edges: readonly E[],
  measures: Measures<N>,
  anew = false,
): { places: Map<string, Place>; bends: Bends<E>; bodies: Map<string | null, N[]> } {
  const bodies = groupNodes(nodes)
  const scopes = new Map([...bodies].flatMap(([id, body]) => body.map((node) => [node.id, id] as const)))
  const places = new Map<string, Place>()
  const bends: Bends<E> = new Map()
  placeBody(null)
  return { places, bends, bodies }

  function placeBody(id: string | null): Size {
    const body = bodies.get(id) ?? []
    const own = edges.filter(({ source, target }) => scopes.get(source) === id && scopes.get(target) === id)
    const sizes = new Map(body.map((node) => [node.id, measure(node)]))
    const kept = anew ? undefined : keepPlaces(body, sizes, measures)
    const found = kept
      ? { places: kept, bends: new Map<E, Place[]>() }
      : placeColumns(body, own, sizes, measures)
    for (const [node, place] of found.places) places.set(node, place)
    for (const [edge, stops] of found.bends) bends.set(edge, stops)
    if (id === null) return { width: 0, height: 0 }
    const stops = measures.loop.bends ? [...found.bends.values()].flat() : []
    return hugBody([...found.places.values(), ...stops], measures.loop).size
  }

  function measure(node: N): Size {
    return bodies.has(node.id) ? placeBody(node.id) : measures.sizeOf(node)
  }
}

/** Moves what a loop holds so that its box fits around it; `by` is how far it was moved. */
export function hugBody(
  body: (Box & { exit?: number })[],
  { head, pad, right, least }: Omit<Measures<never>['loop'], 'bends'>,
): { size: Size; by: Point } {
  if (body.length === 0) return { size: least, by: { x: 0, y: 0 } }
  const by = { x: pad - Math.min(...body.map(({ x }) => x)), y: head - Math.min(...body.map(({ y }) => y)) }
  for (const place of body) movePlace(place, by)
  const width = Math.max(...body.map((place) => place.x + place.width)) + right
  const height = Math.max(...body.map((place) => place.y + place.height)) + pad
  return { size: { width: Math.max(least.width, width), height }, by }
}

export function movePlace(place: Point & { exit?: number }, by: Point): void {
  place.x += by.x
  place.y += by.y
  if (place.exit !== undefined) place.exit += by.x
}

function keepPlaces<N extends Placed>(
  body: readonly N[],
  sizes: ReadonlyMap<string, Size>,
  { stretches, apart }: Measures<N>,
): Map<string, Place> | undefined {
  const given = body.flatMap(({ id, position }) => (isPoint(position) ? [{ id, position }] : []))
  if (given.length < body.length) return undefined
  for (const factor of stretches) {
    const places = new Map(
      given.map(({ id, position }) => {
        const size = sizes.get(id)!
        const x = Math.round(position.x * factor)
        return [id, { x, y: Math.round(position.y * factor), ...size, exit: x + size.width }]
      }),
    )
    if (!areTooNear([...places.values()], apart)) return places
  }
  return undefined
}

function isPoint(position: unknown): position is Point {
  const { x, y } = (position ?? {}) as { x?: unknown; y?: unknown }
  const fits = (value: unknown) => Number.isFinite(value) && Math.abs(Number(value)) < 1e5
  return fits(x) && fits(y)
}

function areTooNear(boxes: readonly Box[], apart: number): boolean {
  const sorted = boxes.toSorted((a, b) => a.x - b.x)
  return sorted.some((a, at) => {
    for (let i = at + 1; i < sorted.length; i += 1) {
      const b = sorted[i]!
      if (b.x - a.x >= a.width + apart) return false
      if (a.y < b.y + b.height + apart && b.y < a.y + a.height + apart) return true
    }
    return false
  })
}

function placeColumns<N extends Placed, E extends Edge>(
  body: readonly N[],
  edges: readonly E[],
  sizes: ReadonlyMap<string, Size>,
  { gap, lane, label }: Measures<N>,
): { places: Map<string, Place>; bends: Bends<E> } {
  const depths = measureDepths(body, edges)
  const links = splitEdges(edges, depths)
  const columns = orderColumns(
    depths,
    links.flatMap(({ steps }) => steps),
  )
  const sizeOf = (id: string) => sizes.get(id) ?? { width: 0, height: lane }
  const heights = columns.map((column) =>
    column.reduce((sum, id) => sum + sizeOf(id).height + gap.height, -gap.height),
  )
  const tallest = Math.max(0, ...heights)
  const lengths = new Map<string, number>()
  for (const { source, sourceHandle } of edges) {
    lengths.set(source, Math.max(lengths.get(source) ?? 0, sourceHandle?.length ?? 0))
  }
  const all = new Map<string, Place>()
  let x = 0
  for (const [at, column] of columns.entries()) {
    const exit = x + Math.max(...column.map((id) => sizeOf(id).width))
    let y = Math.round((tallest - heights[at]!) / 2)
    for (const id of column) {
      const size = sizeOf(id)
      all.set(id, { x, y, ...size, exit })
      y += size.height + gap.height
    }
    const longest = Math.max(0, ...column.map((id) => lengths.get(id) ?? 0))
    x = exit + Math.max(gap.width, Math.min(longest, LABEL_LENGTH) * LETTER + label)
  }
  const bends: Bends<E> = new Map(
    links.map(({ edge, steps }) => [edge, steps.slice(1).flatMap(({ source }) => all.get(source) ?? [])]),
  )
  return { places: new Map([...all].filter(([id]) => sizes.has(id))), bends }
}
