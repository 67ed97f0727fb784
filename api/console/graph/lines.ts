import type { EdgeEnds } from './columns.ts'
import {
  type Bends,
  type Box,
  LABEL_LENGTH,
  LETTER,
  type Measures,
  movePlace,
  type Place,
  placeNodes,
} from './place.ts'

/** A node to be drawn: as the API gives it, or as it was read from a file. */
export type DrawnNode = {
  id: string
  type: string
  name?: string | null | undefined
  parentId?: string | null | undefined
  position?: unknown
  disabled?: boolean | undefined
}
export type DrawnEdge = EdgeEnds & { sourceHandle?: string | null | undefined }

/** The height of a node's box, and of a loop's head. */
export const HEIGHT = 46
const LINE = 12
const WIDTH = 164

const DRAWN: Measures<DrawnNode> = {
  sizeOf: () => ({ width: WIDTH, height: HEIGHT }),
  gap: { width: 56, height: 26 },
  lane: HEIGHT,
  label: 30,
  apart: 8,
  stretches: [1],
  loop: { head: HEIGHT + 8, pad: 16, right: 16, least: { width: WIDTH, height: HEIGHT }, bends: true },
}

/** Where everything of a drawing lies, measured from the drawing's corner, which is the origin. */
export function drawPlaces<N extends DrawnNode, E extends DrawnEdge>(
  nodes: readonly N[],
  edges: readonly E[],
) {
  const placed = placeNodes(nodes, edges, DRAWN)
  const { places, bends, bodies } = placed
  const bodyOf = new Map([...bodies].flatMap(([id, body]) => body.map((node) => [node.id, id] as const)))
  const inBody = Map.groupBy(bends, ([edge]) => bodyOf.get(edge.source) ?? null)
  const shiftBody = (id: string | null, by: { x: number; y: number }) => {
    for (const stop of (inBody.get(id) ?? []).flatMap(([, stops]) => stops)) movePlace(stop, by)
    for (const node of bodies.get(id) ?? []) {
      const place = places.get(node.id)!
      movePlace(place, by)
      if (bodies.has(node.id)) shiftBody(node.id, place)
    }
  }
  const outer = [
    ...(bodies.get(null) ?? []).map(({ id }) => places.get(id)!),
    ...(inBody.get(null) ?? []).flatMap(([, stops]) => stops),
  ]
  shiftBody(null, { x: -Math.min(...outer.map(({ x }) => x)), y: -Math.min(...outer.map(({ y }) => y)) })
  return placed
}

/** Moves a drawing, and says how much room it then needs from the origin. */
export function shiftDrawing<E>(
  { places, bends }: { places: Map<string, Place>; bends: Bends<E> },
  by: { x: number; y: number },
): { width: number; height: number } {
  const all = [...places.values(), ...[...bends.values()].flat()]
  for (const place of all) movePlace(place, by)
  return measureBoxes(all)
}

export function measureBoxes(boxes: readonly Box[]): { width: number; height: number } {
  return {
    width: Math.max(0, ...boxes.map((box) => box.x + box.width)),
    height: Math.max(0, ...boxes.map((box) => box.y + box.height)),
  }
}

/** The height at which edges come and go. */
function middle({ y, height }: Place): number {
  return y + height / 2
}

/** The path of an edge's line. */
export function drawWay(from: Place, to: Place, bends: readonly Place[]): string {
  let at = from
  let way = `M${from.x + from.width} ${middle(from)}`
  for (const next of [...bends, to]) {
    // Beside what is wider in its column an edge goes on straight, and turns between the columns.
    const x = at.exit
    const end = next === to ? to.x - 5 : next.x
    const bend = Math.max(28, Math.abs(end - x) / 2)
    way += `H${x}C${x + bend} ${middle(at)} ${end - bend} ${middle(next)} ${end} ${middle(next)}`
    at = next
  }
  return way
}

/** The path of an edge's arrow head. */
export function drawHead(to: Place): string {
  const y = middle(to)
  return `M${to.x - 6} ${y - 4}L${to.x} ${y}L${to.x - 6} ${y + 4}z`
}

/**
 * The handles that edges leave by, in the gap after their source, where the columns leave them room: above all boxes,
 * and none over another.
 */
export function placeLabels<E extends DrawnEdge>(
  edges: readonly E[],
  { places, bends }: { places: ReadonlyMap<string, Place>; bends: Bends<E> },
): { edge: E; x: number; y: number; text: string }[] {
  const taken: { x: number; y: number; half: number }[] = []
  return edges.flatMap((edge) => {
    const from = places.get(edge.source)
    const to = places.get(edge.target)
    if (!from || !to || !edge.sourceHandle) return []
    const text = cutWord(edge.sourceHandle, LABEL_LENGTH)
    const next = bends.get(edge)?.[0] ?? to
    const half = ([...text].length * LETTER) / 2
    const spot = { x: (from.exit + next.x - 4) / 2, y: (middle(from) + middle(next)) / 2 + 3, half }
    // A level line would be hidden by its label.
    if (Math.abs(middle(next) - middle(from)) < 2 * LINE) spot.y -= 8
    const isTaken = () =>
      taken.some((one) => Math.abs(one.x - spot.x) < one.half + half && Math.abs(one.y - spot.y) < LINE)
    while (isTaken()) spot.y += LINE / 2
    taken.push(spot)
    return [{ edge, text, x: spot.x, y: spot.y }]
  })
}

/** A node that was given no name has its id. */
export function nameOf({ id, type, name }: DrawnNode): string {
  return name && name !== type ? name : id
}

/** The first letters of a text that is too long for its place. */
export function cutWord(text: string, length: number): string {
  const signs = [...text]
  return signs.length > length ? `${signs.slice(0, length - 1).join('')}…` : text
}
