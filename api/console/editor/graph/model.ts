import { groupNodes } from '../../graph/columns.ts'
import { followNodes, type Note } from '../../graph/notes.ts'
import { type Box, hugBody, type Point, placeNodes, type Size } from '../../graph/place.ts'
import type { GraphEdge, GraphNode } from '../../nodeform/contract.ts'
import { handlesOf, isLoop, isTrigger, type NodeTypes } from './kinds.ts'
import { CANVAS, EMPTY_LOOP, LOOP_PAD } from './measures.ts'

/** `position` is measured from the corner of the loop that the node is in. */
export type EditorNode = GraphNode & { position: Point }

/** All that the page edits. It is never changed: each edit makes another one. */
export type Draft = {
  name: string
  description: string
  nodes: EditorNode[]
  edges: GraphEdge[]
  notes: Note[]
  /** The settings of the workflow but its notes. */
  settings: Record<string, unknown>
}

// Imported graphs often have 200 from node to node.
const CARD_WIDTH = 172
const CARD_HEIGHT = 60
const HANDLE_GAP = 24
/** So far beside a loop's box what is dropped is still meant for it. */
const GRACE = 20

/** How large a node's card is: it grows with its handles. */
export function sizeCard(node: GraphNode, types: NodeTypes): Size {
  const count = handlesOf(node, types).length
  return { width: CARD_WIDTH, height: Math.max(CARD_HEIGHT, count * HANDLE_GAP + 12) }
}

type Drawn = GraphNode & { position?: Point | undefined }

/** The nodes with a place for each; `anew` gives up those that they have. */
export function place(
  nodes: readonly Drawn[],
  edges: readonly GraphEdge[],
  types: NodeTypes,
  anew = false,
): EditorNode[] {
  const sizeOf = (node: GraphNode) => (isLoop(node.type) ? EMPTY_LOOP : sizeCard(node, types))
  const { places } = placeNodes(nodes, edges, { ...CANVAS, sizeOf }, anew)
  return nodes.map((node) => {
    const { x, y } = places.get(node.id) ?? { x: 0, y: 0 }
    return node.position?.x === x && node.position.y === y
      ? (node as EditorNode)
      : { ...node, position: { x, y } }
  })
}

/** The nodes moved so that every loop fits around what it holds, and how large each node is. */
export function fitLoops(nodes: readonly EditorNode[], types: NodeTypes) {
  const bodies = groupNodes(nodes)
  const places = new Map<string, Box>()
  const hug = (id: string | null): Size => {
    const body = (bodies.get(id) ?? []).map((node) => {
      const size = isLoop(node.type) ? hug(node.id) : sizeCard(node, types)
      const by = shifts.get(node.id) ?? { x: 0, y: 0 }
      const found = { x: node.position.x - by.x, y: node.position.y - by.y, ...size }
      places.set(node.id, found)
      return found
    })
    if (id === null) return EMPTY_LOOP
    const { size, by } = hugBody(body, CANVAS.loop)
    // What moves in its loop one way moves the loop the other way: on the canvas it stays where it is.
    shifts.set(id, by)
    return size
  }
  const shifts = new Map<string, Point>()
  hug(null)
  const fitted = nodes.map((node) => {
    const { x, y } = places.get(node.id) ?? node.position
    return x === node.position.x && y === node.position.y ? node : { ...node, position: { x, y } }
  })
  return { nodes: fitted, sizes: places as ReadonlyMap<string, Size> }
}

/** Nodes with a place for each, and the notes that went along with them. */
export function placeNoted(
  given: readonly Drawn[],
  edges: readonly GraphEdge[],
  notes: readonly Note[],
  types: NodeTypes,
  anew = false,
): Pick<Draft, 'nodes' | 'notes'> {
  const placed = given.filter((node): node is EditorNode => node.position !== undefined)
  const { nodes } = fitLoops(place(given, edges, types, anew), types)
  if (notes.length === 0) return { nodes, notes: [] }
  return { nodes, notes: followNodes(notes, measureSpots(placed, types), measureSpots(nodes, types)) }
}

/** The place and size of each node on the canvas. */
function measureSpots(nodes: readonly EditorNode[], types: NodeTypes): Map<string, Box> {
  const { sizes } = fitLoops(nodes, types)
  return new Map(
    nodes.map(({ id }) => {
      const { width, height } = sizes.get(id)!
      return [id, { ...findSpot(nodes, id), width, height }]
    }),
  )
}

/** The place of a node on the canvas. */
export function findSpot(nodes: readonly EditorNode[], id: string): Point {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const spot = { x: 0, y: 0 }
  const seen = new Set<string>()
  for (let at = byId.get(id); at && !seen.has(at.id); at = byId.get(at.parentId ?? '')) {
    seen.add(at.id)
    spot.x += at.position.x
    spot.y += at.position.y
  }
  return spot
}

/** The given nodes with all nodes inside them. */
export function withChildren(nodes: readonly GraphNode[], ids: Iterable<string>): Set<string> {
  const all = new Set(ids)
  const bodies = groupNodes(nodes)
  for (const id of all) for (const child of bodies.get(id) ?? []) all.add(child.id)
  return all
}

/** The order in which the canvas draws and the keyboard visits: nodes inside a loop come after it. */
export function sortForCanvas(nodes: readonly EditorNode[]): EditorNode[] {
  const bodies = groupNodes(nodes)
  const list = (id: string | null): EditorNode[] =>
    (bodies.get(id) ?? []).flatMap((node) => [node, ...(isLoop(node.type) ? list(node.id) : [])])
  const sorted = list(null)
  // Nodes inside a node that is not a loop are not lost.
  const seen = new Set(sorted.map(({ id }) => id))
  return [...sorted, ...nodes.filter(({ id }) => !seen.has(id))]
}

/** An id that no node has yet, after its type. */
export function makeId(wanted: string, taken: ReadonlySet<string>): string {
  const base = wanted.replace(/\d+$/, '') || 'node'
  if (!taken.has(wanted)) return wanted
  for (let at = 2; ; at += 1) if (!taken.has(`${base}${at}`)) return `${base}${at}`
}

/** A name that no node has yet: "Set values 2". */
export function makeName(wanted: string, taken: ReadonlySet<string>): string {
  if (!taken.has(wanted)) return wanted
  const base = wanted.replace(/ \d+$/, '')
  for (let at = 2; ; at += 1) if (!taken.has(`${base} ${at}`)) return `${base} ${at}`
}

export type End = { id: string; handle: string | null }

/** Why an edge may not be; undefined if it may. */
export function refuseEdge(draft: Draft, source: End, target: string, types: NodeTypes): string | undefined {
  const from = draft.nodes.find(({ id }) => id === source.id)
  const to = draft.nodes.find(({ id }) => id === target)
  if (!from || !to) return 'There is no such node'
  if (from === to) return 'A node cannot lead to itself'
  if (isTrigger(to.type, types)) return 'Nothing leads to a trigger'
  if ((from.parentId ?? null) !== (to.parentId ?? null))
    return 'Both must be in the same loop, or outside of loops'
  if (draft.edges.some((edge) => isEdge(edge, source, target))) return 'They are connected already'
  if (leadsTo(draft.edges, target, source.id)) return 'This would close a circle: use a loop for that'
  return undefined
}

export function isEdge(edge: GraphEdge, source: End, target: string): boolean {
  return edge.source === source.id && (edge.sourceHandle ?? null) === source.handle && edge.target === target
}

function leadsTo(edges: readonly GraphEdge[], from: string, wanted: string): boolean {
  const after = Map.groupBy(edges, ({ source }) => source)
  const seen = new Set([from])
  for (const id of seen) for (const { target } of after.get(id) ?? []) seen.add(target)
  return seen.has(wanted)
}

/** The deepest loop whose box holds this point of the canvas, but for the given nodes. */
export function findLoopAt(
  nodes: readonly EditorNode[],
  sizes: ReadonlyMap<string, Size>,
  { x, y }: Point,
  except: ReadonlySet<string>,
): string | undefined {
  const loops = sortForCanvas(nodes).filter(({ id, type }) => isLoop(type) && !except.has(id))
  const holds = ({ id }: EditorNode) => {
    const spot = findSpot(nodes, id)
    const { width, height } = sizes.get(id) ?? EMPTY_LOOP
    const beside = x < spot.x - GRACE || x > spot.x + width + GRACE
    return !beside && y >= spot.y - GRACE && y <= spot.y + height + GRACE
  }
  return loops.filter(holds).at(-1)?.id
}

/** A place for a box of this size, beside and below the boxes in the same body. */
export function findRoom(
  nodes: readonly EditorNode[],
  sizes: ReadonlyMap<string, Size>,
  parentId: string | undefined,
  wanted: Point,
  size: Size,
): Point {
  const body = nodes.filter((node) => node.parentId === parentId)
  const spot = { ...wanted }
  const covers = ({ id, position }: EditorNode) => {
    const other = sizes.get(id) ?? size
    const beside =
      position.x + other.width + LOOP_PAD / 2 <= spot.x || spot.x + size.width + LOOP_PAD / 2 <= position.x
    return !beside && position.y + other.height + 16 > spot.y && spot.y + size.height + 16 > position.y
  }
  for (let at = body.find(covers), tries = 0; at && tries < 500; at = body.find(covers), tries += 1) {
    spot.y = at.position.y + (sizes.get(at.id) ?? size).height + LOOP_PAD
  }
  return spot
}
