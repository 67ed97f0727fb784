import type { Edge, Node } from '@xyflow/react'
import type { Note } from '../../graph/notes.ts'
import { handlesOf, isLoop, isTrigger, kindOf, type NodeTypes, nameNode } from '../graph/kinds.ts'
import { type EditorNode, fitLoops, sortForCanvas } from '../graph/model.ts'
import { type EditorState, type Fault, findOpen } from '../graph/store.ts'

type Tone = 'bad' | 'warn' | undefined
type Shown = { tone: Tone; said: string; open: boolean }
export type HandleShown = { name: string | null; id: string; free: boolean }

type StepData = Shown & { node: EditorNode; trigger: boolean; handles: HandleShown[]; empty: boolean }
export type StepNode = Node<StepData, 'step' | 'loop'>
export type NoteNode = Node<{ note: Note }, 'note'>
export type FlowNode = StepNode | NoteNode
export type WireEdge = Edge<{ label: string | null; wrong: boolean }, 'wire'>

/** xyflow wants a name for every handle, and no name of a user may be the main one's. */
function idOfHandle(name: string | null): string {
  return name === null ? 'main' : `: ${name}`
}

export function readHandle(id: string | null | undefined): string | null {
  return id?.startsWith(': ') ? id.slice(2) : null
}

/** How high the edges of a node lie: over the box of its loop, and under the cards there, which are one higher. */
function layerOf({ parentId }: EditorNode, byId: ReadonlyMap<string, EditorNode>): number {
  let layer = 0
  const seen = new Set<string>()
  for (let id = parentId; id && !seen.has(id); id = byId.get(id)?.parentId) {
    seen.add(id)
    layer += 2
  }
  return layer
}

/** The nodes as the canvas draws them; what has not changed since `before` stays the same object. */
export function drawNodes(
  state: Pick<EditorState, 'draft' | 'faults' | 'selected' | 'panel'>,
  types: NodeTypes,
  before: readonly FlowNode[],
): FlowNode[] {
  const { draft, faults, selected } = state
  const open = findOpen(state)
  const { nodes, sizes } = fitLoops(draft.nodes, types)
  const known = new Map(before.map((one) => [one.id, one]))
  const used = new Set(draft.edges.map((edge) => `${edge.source} ${idOfHandle(edge.sourceHandle ?? null)}`))
  const parents = new Set(draft.nodes.map(({ parentId }) => parentId))
  const drafted = new Map(draft.nodes.map((node) => [node.id, node]))
  const wrong = Map.groupBy(faults, ({ nodeId }) => nodeId)
  const steps = sortForCanvas(nodes).map((node): FlowNode => {
    const old = known.get(node.id) as StepNode | undefined
    const handles = handlesOf(node, types).map((name) => {
      const id = idOfHandle(name)
      return { name, id, free: !used.has(`${node.id} ${id}`) }
    })
    const { tone, said } = tellFaults(wrong.get(node.id))
    const source = drafted.get(node.id) ?? node
    const data: StepData = {
      ...{ node: source, handles, tone, said, open: open === node.id },
      ...{ trigger: isTrigger(node.type, types), empty: isLoop(node.type) && !parents.has(node.id) },
    }
    const { width, height } = sizes.get(node.id)!
    const drawn: StepNode = {
      ...{ id: node.id, type: isLoop(node.type) ? 'loop' : 'step', position: node.position, width, height },
      data: old && isSame(old.data, data) ? old.data : data,
      selected: selected.has(node.id),
      zIndex: layerOf(node, drafted) + 1,
      ariaLabel: `${nameNode(node)}, ${kindOf(node.type).label}${node.disabled ? ', disabled' : ''}${said ? `: ${said}` : ''}`,
      ...(node.parentId && drafted.has(node.parentId) ? { parentId: node.parentId } : {}),
    }
    return reuse(old, drawn)
  })
  const notes = draft.notes.map((note): FlowNode => {
    const old = known.get(note.id) as NoteNode | undefined
    const drawn: NoteNode = {
      ...{ id: note.id, type: 'note', position: note.position, ...note.size, zIndex: -1 },
      data: old?.data.note === note ? old.data : { note },
      selected: selected.has(note.id),
      ariaLabel: `Note: ${note.text.slice(0, 80) || 'empty'}`,
    }
    return reuse(old, drawn)
  })
  return [...notes, ...steps]
}

/** The old one with what xyflow has measured, if nothing is new. */
function reuse<N extends FlowNode>(old: N | undefined, next: N): N {
  if (!old || old.type !== next.type) return next
  const same =
    old.data === next.data &&
    old.position.x === next.position.x &&
    old.position.y === next.position.y &&
    old.parentId === next.parentId &&
    old.width === next.width &&
    old.height === next.height &&
    old.selected === next.selected &&
    old.zIndex === next.zIndex &&
    old.ariaLabel === next.ariaLabel
  if (same) return old
  // A size that has changed is measured anew.
  const kept = old.width === next.width && old.height === next.height && old.measured
  return kept ? { ...next, measured: kept } : next
}

function isSame(a: StepData, b: StepData): boolean {
  return (
    a.node === b.node &&
    a.tone === b.tone &&
    a.said === b.said &&
    a.open === b.open &&
    a.empty === b.empty &&
    a.handles.length === b.handles.length &&
    a.handles.every(({ id, free }, at) => id === b.handles[at]!.id && free === b.handles[at]!.free)
  )
}

function tellFaults(faults: Fault[] | undefined): { tone: Tone; said: string } {
  if (!faults) return { tone: undefined, said: '' }
  const said = faults.map(({ within, message }) => [within, message].filter(Boolean).join(' ')).join('; ')
  return { tone: faults.every(({ warning }) => warning) ? 'warn' : 'bad', said }
}

/** The edges as the canvas draws them. */
export function drawEdges(
  { draft, faults }: Pick<EditorState, 'draft' | 'faults'>,
  types: NodeTypes,
  before: readonly WireEdge[],
): WireEdge[] {
  const byId = new Map(draft.nodes.map((node) => [node.id, node]))
  const known = new Map(before.map((one) => [one.id, one]))
  const wrong = new Set(faults.flatMap(({ edge, warning }) => (edge && !warning ? [nameEdge(edge)] : [])))
  const seen = new Set<string>()
  return draft.edges.flatMap((edge) => {
    const source = byId.get(edge.source)
    const id = nameEdge(edge)
    if (!source || !byId.has(edge.target) || seen.has(id)) return []
    seen.add(id)
    const handle = edge.sourceHandle ?? null
    const handles = handlesOf(source, types)
    // An edge by a handle that is gone is drawn all the same, so that the user can remove it.
    const gone = !handles.includes(handle)
    const old = known.get(id)
    const data = { label: gone ? handle : null, wrong: gone || wrong.has(id) }
    const sourceHandle = idOfHandle(gone ? (handles[0] ?? null) : handle)
    if (
      old?.data?.label === data.label &&
      old.data.wrong === data.wrong &&
      old.sourceHandle === sourceHandle &&
      old.zIndex === layerOf(source, byId)
    ) {
      return [old]
    }
    const { target } = edge
    const label = `From ${nameNode(source)}${handle ? ` (${handle})` : ''} to ${nameNode(byId.get(target)!)}`
    return [
      {
        ...{ id, source: edge.source, target, sourceHandle, targetHandle: 'in', type: 'wire' as const, data },
        ...{ ariaLabel: label, zIndex: layerOf(source, byId) },
      },
    ]
  })
}

export function nameEdge(edge: { source: string; target: string; sourceHandle?: string | null }): string {
  return `${edge.source} ${idOfHandle(edge.sourceHandle ?? null)} ${edge.target}`
}
