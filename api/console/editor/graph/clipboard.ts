import type { Note } from '../../graph/notes.ts'
import type { GraphEdge } from '../../nodeform/contract.ts'
import type { NodeTypes } from './kinds.ts'
import { type Draft, type EditorNode, findSpot, makeId, makeName, placeNoted, withChildren } from './model.ts'

const KIND = 'perdure/nodes'

/** `own`: the canvas copied it; else it is a workflow, or of n8n. */
type Cut = { kind: typeof KIND; own?: boolean; nodes: EditorNode[]; edges: GraphEdge[]; notes: Note[] }

/** The chosen nodes with what is in them, as a text that another workflow's page, or a mail, can take. */
export function copyNodes(draft: Draft, selected: ReadonlySet<string>): string | undefined {
  const ids = withChildren(draft.nodes, selected)
  const nodes = draft.nodes
    .filter(({ id }) => ids.has(id))
    .map((node) => {
      if (node.parentId && ids.has(node.parentId)) return node
      const { parentId: _, ...rest } = node
      return { ...rest, position: findSpot(draft.nodes, node.id) }
    })
  const notes = draft.notes.filter(({ id }) => selected.has(id))
  if (nodes.length + notes.length === 0) return undefined
  const edges = draft.edges.filter(({ source, target }) => ids.has(source) && ids.has(target))
  const cut: Cut = { kind: KIND, nodes, edges, notes }
  return JSON.stringify(cut, null, 2)
}

/** Adds what was copied, here or in another workflow, or a whole graph as JSON. Undefined if the text holds neither. */
export function pasteNodes(
  draft: Draft,
  text: string,
  types: NodeTypes,
  parentId?: string,
): { draft: Draft; renamed: ReadonlyMap<string, string> } | undefined {
  const cut = readCut(text, types)
  if (!cut) return undefined
  const taken = new Set([...draft.nodes, ...draft.notes].map(({ id }) => id))
  const names = new Set(draft.nodes.map(({ name }) => name ?? ''))
  const renamed = new Map<string, string>()
  for (const { id } of [...cut.nodes, ...cut.notes]) {
    const free = makeId(id, taken)
    taken.add(free)
    renamed.set(id, free)
  }
  const follow = (id: string) => renamed.get(id) ?? id
  const by = findShift(draft, cut, parentId)
  const nodes = cut.nodes.map((node) => {
    const { parentId: own, ...rest } = node
    const inside = own !== undefined && renamed.has(own)
    const name = node.name && makeName(node.name, names)
    if (name) names.add(name)
    const parent = inside ? follow(own) : parentId
    const { x, y } = node.position
    return {
      ...rest,
      ...{ id: follow(node.id), position: inside ? node.position : { x: x + by.x, y: y + by.y } },
      ...(name ? { name } : {}),
      ...(parent ? { parentId: parent } : {}),
    }
  })
  const edges = cut.edges.map((edge) => {
    const { id: _, ...rest } = edge
    return { ...rest, source: follow(edge.source), target: follow(edge.target) }
  })
  const notes = cut.notes.map((note) => ({
    ...note,
    ...{ id: follow(note.id), position: { x: note.position.x + by.x, y: note.position.y + by.y } },
  }))
  return {
    draft: {
      ...draft,
      nodes: [...draft.nodes, ...(JSON.parse(renameAll(JSON.stringify(nodes), renamed)) as EditorNode[])],
      edges: [...draft.edges, ...edges],
      notes: [...draft.notes, ...notes],
    },
    renamed,
  }
}

/** Copies read each other, not what they were copied from. */
function renameAll(text: string, renamed: ReadonlyMap<string, string>): string {
  return text.replace(/(\$nodes\.)([A-Za-z0-9_-]+)/g, (all, start, id) =>
    renamed.has(id) ? `${start}${renamed.get(id)}` : all,
  )
}

/** Copies stand beside what they were copied from; in another workflow below all that is there. */
function findShift(draft: Draft, cut: Cut, parentId: string | undefined) {
  const tops = [...cut.nodes.filter(({ parentId: own }) => !own), ...cut.notes]
  if (parentId) {
    const body = draft.nodes.filter((node) => node.parentId === parentId)
    const bottom = Math.max(0, ...body.map(({ position }) => position.y + 96))
    const left = Math.min(...tops.map(({ position }) => position.x))
    return { x: 28 - left, y: Math.max(56, bottom) - Math.min(...tops.map(({ position }) => position.y)) }
  }
  if (!cut.own) {
    const there = draft.nodes.filter(({ parentId: own }) => !own)
    const under = Math.max(...there.map(({ position }) => position.y)) + 160
    const left = Math.min(...there.map(({ position }) => position.x))
    const corner = (axis: 'x' | 'y') => Math.min(...tops.map(({ position }) => position[axis]))
    return there.length > 0 ? { x: left - corner('x'), y: under - corner('y') } : { x: 0, y: 0 }
  }
  const spots = new Set([...draft.nodes, ...draft.notes].map(({ position: { x, y } }) => `${x} ${y}`))
  let by = 0
  while (tops.some(({ position: { x, y } }) => spots.has(`${x + by} ${y + by}`))) by += 40
  return { x: by, y: by }
}

function readCut(text: string, types: NodeTypes): Cut | undefined {
  let value: Partial<Cut>
  try {
    value = JSON.parse(text) as Partial<Cut>
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null || !Array.isArray(value.nodes)) return undefined
  const known = value.nodes.filter((node) => typeof node?.id === 'string' && types.has(node.type))
  const nodes = known.map((node) => ({ ...node, config: node.config ?? {} }))
  const ids = new Set(nodes.map(({ id }) => id))
  const edges = (Array.isArray(value.edges) ? value.edges : [])
    .filter((edge) => ids.has(edge?.source) && ids.has(edge?.target))
    .map((edge) => ({ ...edge, sourceHandle: edge.sourceHandle ?? null }))
  // A whole workflow has its notes in its settings.
  const given =
    value.kind === KIND ? value.notes : (value as { settings?: { notes?: Note[] } }).settings?.notes
  const notes = Array.isArray(given) ? given : []
  if (nodes.length + notes.length === 0) return undefined
  return { kind: KIND, own: value.kind === KIND, ...placeNoted(nodes, edges, notes, types), edges }
}
