import type { Note } from '../../graph/notes.ts'
import type { Point } from '../../graph/place.ts'
import type { GraphEdge } from '../../nodeform/contract.ts'
import { handlesOf, isLoop, isTrigger, kindOf, type NodeTypes, startConfig } from './kinds.ts'
import { EMPTY_LOOP, LOOP_HEAD, LOOP_PAD } from './measures.ts'
import {
  type Draft,
  type EditorNode,
  type End,
  findLoopAt,
  findRoom,
  findSpot,
  fitLoops,
  isEdge,
  makeId,
  makeName,
  placeNoted,
  sizeCard,
  withChildren,
} from './model.ts'

const STEP_X = 84

/** Where a new node goes: behind a handle, into an edge, into a loop, or to a point of the canvas. */
export type Target =
  | { after: End }
  | { edge: GraphEdge }
  | { inside: string }
  | { at: Point; free?: true; after?: End }

/** Adds a node and connects it. */
export function addNode(draft: Draft, type: string, target: Target, types: NodeTypes) {
  const id = makeId(type.toLowerCase(), new Set(draft.nodes.map((node) => node.id)))
  const name = makeName(kindOf(type).label, new Set(draft.nodes.map((node) => node.name ?? '')))
  const made: EditorNode = { id, type, name, config: startConfig(type), position: { x: 0, y: 0 } }
  const size = isLoop(type) ? EMPTY_LOOP : sizeCard(made, types)
  const { nodes, sizes } = fitLoops(draft.nodes, types)
  const find = (wanted: string) => nodes.find((node) => node.id === wanted)
  const edge = 'edge' in target ? target.edge : undefined
  const after =
    ('after' in target ? target.after : undefined) ??
    (edge && { id: edge.source, handle: edge.sourceHandle ?? null })
  const before = after && find(after.id)
  const trigger = isTrigger(type, types)
  const room = (parentId: string | undefined, wanted: Point) => findRoom(nodes, sizes, parentId, wanted, size)
  let moved = nodes
  if ('at' in target) {
    const loop = findLoopAt(nodes, sizes, target.at, new Set())
    const parentId = trigger ? undefined : before ? before.parentId : loop
    const from = parentId ? findSpot(nodes, parentId) : { x: 0, y: 0 }
    made.position = { x: Math.round(target.at.x - from.x), y: Math.round(target.at.y - from.y) }
    if (parentId) made.parentId = parentId
    // Who points at a place means it; the middle of the canvas may be taken.
    if (target.free) made.position = room(parentId, made.position)
  } else if ('inside' in target) {
    const body = nodes.filter(({ parentId }) => parentId === target.inside)
    const right = Math.max(LOOP_PAD - STEP_X, ...body.map((one) => one.position.x + sizes.get(one.id)!.width))
    made.parentId = target.inside
    made.position = room(target.inside, { x: right + STEP_X, y: body[0]?.position.y ?? LOOP_HEAD })
  } else if (before) {
    if (before.parentId && !trigger) made.parentId = before.parentId
    const { width, height } = sizes.get(before.id)!
    const handles = handlesOf(before, types)
    const row = Math.max(0, handles.indexOf(after!.handle)) - (handles.length - 1) / 2
    const y = before.position.y + (height - size.height) / 2 + row * (size.height + 32)
    made.position = { x: before.position.x + width + STEP_X, y: Math.round(y) }
    const next = edge && find(edge.target)
    if (next && !trigger) moved = makeRoom(nodes, next, made.position.x + size.width + STEP_X, draft.edges)
    if (!next) made.position = room(made.parentId, made.position)
  }
  const edges = draft.edges.filter((one) => one !== edge || trigger)
  if (before && !trigger) edges.push({ source: before.id, target: id, sourceHandle: after!.handle })
  if (edge && !trigger) {
    edges.push({ source: id, target: edge.target, sourceHandle: handlesOf(made, types)[0] ?? null })
  }
  return { draft: { ...draft, nodes: [...moved, made], edges }, id }
}

/** Moves a node, and all that comes after it, to the right, so that it begins at `x` at least. */
function makeRoom(nodes: EditorNode[], first: EditorNode, x: number, edges: readonly GraphEdge[]) {
  const by = x - first.position.x
  if (by <= 0) return nodes
  const after = new Set([first.id])
  for (const id of after) for (const edge of edges) if (edge.source === id) after.add(edge.target)
  return nodes.map((node) =>
    after.has(node.id)
      ? { ...node, position: { x: Math.round(node.position.x + by), y: node.position.y } }
      : node,
  )
}

export function connect(draft: Draft, source: End, target: string): Draft {
  const edge = { source: source.id, target, sourceHandle: source.handle }
  return { ...draft, edges: [...draft.edges, edge] }
}

export function disconnect(draft: Draft, source: End, target: string): Draft {
  return { ...draft, edges: draft.edges.filter((edge) => !isEdge(edge, source, target)) }
}

/** Removes nodes, with the nodes inside them, and notes. */
export function remove(draft: Draft, ids: Iterable<string>): Draft {
  const gone = withChildren(draft.nodes, ids)
  return {
    ...draft,
    nodes: draft.nodes.filter(({ id }) => !gone.has(id)),
    edges: draft.edges.filter(({ source, target }) => !gone.has(source) && !gone.has(target)),
    notes: draft.notes.filter(({ id }) => !gone.has(id)),
  }
}

/** Disables the nodes, or enables them if all are disabled. */
export function toggleDisabled(draft: Draft, ids: ReadonlySet<string>): Draft {
  const all = draft.nodes.every(({ id, disabled }) => !ids.has(id) || disabled)
  const turn = ({ disabled: _, ...node }: EditorNode): EditorNode =>
    all ? node : { ...node, disabled: true }
  return { ...draft, nodes: draft.nodes.map((node) => (ids.has(node.id) ? turn(node) : node)) }
}

/** Puts nodes into a loop, or out of loops; edges that would cross its border are removed. */
export function putInto(draft: Draft, ids: Iterable<string>, parentId: string | undefined): Draft {
  const chosen = new Set(ids)
  const from = parentId ? findSpot(draft.nodes, parentId) : { x: 0, y: 0 }
  const nodes = draft.nodes.map((node) => {
    if (!chosen.has(node.id) || node.parentId === parentId) return node
    const { parentId: _, ...rest } = node
    const spot = findSpot(draft.nodes, node.id)
    const position = { x: spot.x - from.x, y: spot.y - from.y }
    return { ...rest, position, ...(parentId ? { parentId } : {}) }
  })
  const parents = new Map(nodes.map((node) => [node.id, node.parentId]))
  // Edges that were wrong before stay, to be mended.
  const crosses = ({ source, target }: GraphEdge) =>
    (chosen.has(source) || chosen.has(target)) && parents.get(source) !== parents.get(target)
  return { ...draft, nodes, edges: draft.edges.filter((edge) => !crosses(edge)) }
}

/** Replaces a node; what names its id follows a new one. */
export function replaceNode(draft: Draft, id: string, next: EditorNode): Draft {
  const before = draft.nodes.find((node) => node.id === id)
  if (!before) return draft
  const renamed = next.id !== id
  const taken = renamed && draft.nodes.some((node) => node.id === next.id)
  const node = { ...next, id: taken ? id : next.id, position: before.position }
  if (!renamed || taken) {
    return { ...draft, nodes: draft.nodes.map((one) => (one === before ? node : one)) }
  }
  const follow = (one: string) => (one === id ? next.id : one)
  const nodes = draft.nodes.map((one) => {
    const shown = one === before ? node : one
    const config = renameIn(shown.config, id, next.id) as Record<string, unknown>
    const parent = shown.parentId === id ? { parentId: next.id } : {}
    return config === shown.config && !('parentId' in parent) ? shown : { ...shown, ...parent, config }
  })
  const edges = draft.edges.map((edge) =>
    edge.source === id || edge.target === id
      ? { ...edge, source: follow(edge.source), target: follow(edge.target) }
      : edge,
  )
  return { ...draft, nodes, edges }
}

/** A config in which expressions read the node by its new id. */
function renameIn(value: unknown, from: string, to: string): unknown {
  if (typeof value === 'string') {
    const name = from.replaceAll('-', '\\-')
    const dotted = new RegExp(`(\\$nodes\\.)${name}(?![\\w-])`, 'g')
    const quoted = new RegExp(`(\\$nodes\\[(["'\`]))${name}\\2`, 'g')
    return value.replace(dotted, `$1${to}`).replace(quoted, `$1${to}$2`)
  }
  if (Array.isArray(value)) {
    const list = value.map((one) => renameIn(one, from, to))
    return list.some((one, at) => one !== value[at]) ? list : value
  }
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(([key, one]) => [key, renameIn(one, from, to)] as const)
  const changed = entries.some(([key, one]) => one !== (value as Record<string, unknown>)[key])
  return changed ? Object.fromEntries(entries) : value
}

/** Lays the whole graph out anew; notes go along with their nodes. */
export function arrange(draft: Draft, types: NodeTypes): Draft {
  return { ...draft, ...placeNoted(draft.nodes, draft.edges, draft.notes, types, true) }
}

export function addNote(draft: Draft, position: Point): { draft: Draft; id: string } {
  const id = makeId('note', new Set([...draft.nodes, ...draft.notes].map((one) => one.id)))
  const note: Note = { id, text: '', position, size: { width: 240, height: 140 }, colour: 'yellow' }
  return { draft: { ...draft, notes: [...draft.notes, note] }, id }
}
