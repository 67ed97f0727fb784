import { notify } from '../../kit/notices.tsx'
import type { GraphEdge } from '../../nodeform/contract.ts'
import { copyNodes, pasteNodes } from './clipboard.ts'
import {
  addNode,
  addNote,
  arrange,
  connect,
  disconnect,
  putInto,
  remove,
  type Target,
  toggleDisabled,
} from './edits.ts'
import { handlesOf, isLoop, isTrigger, type NodeTypes } from './kinds.ts'
import { type Draft, type EditorNode, type End, findLoopAt, findSpot, fitLoops, refuseEdge } from './model.ts'
import type { EditorStore } from './store.ts'

export type Acts = ReturnType<typeof createActs>

/** What one can do with the graph, on the state as it is then. `focus` moves the keyboard to a node. */
export function createActs(store: EditorStore, types: NodeTypes, focus: (id: string) => void) {
  const refit = (draft: Draft): Draft => ({ ...draft, nodes: fitLoops(draft.nodes, types).nodes })
  const nodeOf = (id: string): EditorNode | undefined =>
    store.get().draft.nodes.find((node) => node.id === id)
  const chosen = () => store.get().selected

  const acts = {
    nodeOf,
    /** The node that the next one follows: the only one that is selected. */
    anchor: () => (chosen().size === 1 ? nodeOf([...chosen()][0]!) : undefined),
    /** The first handle of a node that no edge uses yet, else its first one. */
    freeEnd(node: EditorNode): End {
      const used = store.get().draft.edges.filter(({ source }) => source === node.id)
      const handles = handlesOf(node, types)
      const free = handles.find(
        (handle) => !used.some(({ sourceHandle }) => (sourceHandle ?? null) === handle),
      )
      return { id: node.id, handle: free === undefined ? (handles[0] ?? null) : free }
    },
    add(type: string, target: Target) {
      const { draft, id } = addNode(store.get().draft, type, target, types)
      store.edit(refit(draft), { selected: new Set([id]) })
      focus(id)
      return id
    },
    addNote(at: { x: number; y: number }) {
      const { draft, id } = addNote(store.get().draft, at)
      store.edit(draft, { selected: new Set([id]) })
    },
    /** Says why not, if it may not be. */
    connect(source: End, target: string): boolean {
      const refused = refuseEdge(store.get().draft, source, target, types)
      if (refused) notify(refused, 'bad')
      else store.edit(connect(store.get().draft, source, target))
      return refused === undefined
    },
    disconnect({ source, target, sourceHandle }: GraphEdge) {
      store.edit(disconnect(store.get().draft, { id: source, handle: sourceHandle ?? null }, target))
    },
    remove(ids: ReadonlySet<string> = chosen()) {
      if (ids.size === 0) return
      const { draft, open } = store.get()
      const before = draft.edges.find(({ target }) => ids.has(target))?.source
      const next = remove(draft, ids)
      const still = next.nodes.some(({ id }) => id === open)
      store.edit(refit(next), { selected: new Set(), open: still ? open : undefined })
      if (before && !ids.has(before)) focus(before)
    },
    disable(ids: ReadonlySet<string> = chosen()) {
      if (ids.size > 0) store.edit(toggleDisabled(store.get().draft, ids))
    },
    copy(): string | undefined {
      return copyNodes(store.get().draft, chosen())
    },
    /** The ids that what is pasted has got; undefined if the text holds nothing that can be. */
    paste(text: string): ReadonlyMap<string, string> | undefined {
      const [only] = chosen().size === 1 ? [...chosen()] : []
      const anchor = only === undefined ? undefined : nodeOf(only)
      const parentId =
        anchor && isLoop(anchor.type) && !hasInside(text, anchor.id) ? anchor.id : anchor?.parentId
      const pasted = pasteNodes(store.get().draft, text, types, triggers(text) ? undefined : parentId)
      if (!pasted) return undefined
      const ids = new Set(pasted.renamed.values())
      store.edit(refit(pasted.draft), { selected: ids })
      const [first] = ids
      if (first) focus(first)
      return pasted.renamed
    },
    duplicate() {
      const text = acts.copy()
      if (!text) return
      const parents = new Set([...chosen()].map((id) => nodeOf(id)?.parentId))
      const [parent] = parents.size === 1 ? [...parents] : []
      const pasted = pasteNodes(store.get().draft, text, types, parent)
      if (pasted) store.edit(refit(pasted.draft), { selected: new Set(pasted.renamed.values()) })
    },
    putInto(ids: ReadonlySet<string>, parentId: string | undefined) {
      const before = store.get().draft
      const next = putInto(before, ids, parentId)
      tellCut(before, next)
      store.edit(refit(next))
    },
    /** Nodes were dragged to these places: they are in the loop that they lie on then. */
    drop(positions: ReadonlyMap<string, { x: number; y: number }>, key?: string) {
      const before = store.get().draft
      const { nodes, sizes } = fitLoops(before.nodes, types)
      const moved = nodes.map((node) => {
        const position = positions.get(node.id)
        return position ? { ...node, position: round(position) } : node
      })
      const notes = before.notes.map((note) => {
        const position = positions.get(note.id)
        return position ? { ...note, position: round(position) } : note
      })
      let next: Draft = { ...before, nodes: moved, notes }
      // What moves with its loop stays in it, and the arrow keys move nothing into another loop.
      const movers = [...(key ? [] : positions.keys())].filter((id) => {
        const node = moved.find((one) => one.id === id)
        return node && !isTrigger(node.type, types) && !positions.has(node.parentId ?? '')
      })
      const loops = Map.groupBy(movers, (id) => acts.loopUnder(moved, id, sizes))
      for (const [loop, ids] of loops) next = putInto(next, ids, loop)
      tellCut(before, next)
      store.edit(refit(next), key ? { key } : {})
    },
    loopUnder(nodes: EditorNode[], id: string, sizes: ReturnType<typeof fitLoops>['sizes']) {
      const spot = findSpot(nodes, id)
      const { width, height } = sizes.get(id)!
      const centre = { x: spot.x + width / 2, y: spot.y + Math.min(height / 2, 60) }
      const inside = new Set(nodes.filter((node) => isUnder(nodes, node, id)).map((node) => node.id))
      return findLoopAt(nodes, sizes, centre, inside)
    },
    arrange() {
      store.edit(refit(arrange(store.get().draft, types)))
    },
    selectAll() {
      const { nodes, notes } = store.get().draft
      store.set({ selected: new Set([...nodes, ...notes].map(({ id }) => id)) })
    },
  }
  return acts

  function triggers(text: string): boolean {
    return [...types.values()].some(({ type, kind }) => kind === 'trigger' && text.includes(`"${type}"`))
  }
}

/** A copied loop is not pasted into itself. */
function hasInside(text: string, id: string): boolean {
  return text.includes(`"id": "${id}"`)
}

function isUnder(nodes: EditorNode[], node: EditorNode, loop: string): boolean {
  const byId = new Map(nodes.map((one) => [one.id, one]))
  const seen = new Set<string>()
  for (let at: EditorNode | undefined = node; at && !seen.has(at.id); at = byId.get(at.parentId ?? '')) {
    if (at.id === loop) return true
    seen.add(at.id)
  }
  return false
}

function round({ x, y }: { x: number; y: number }) {
  return { x: Math.round(x), y: Math.round(y) }
}

function tellCut(before: Draft, after: Draft): void {
  const cut = before.edges.length - after.edges.length
  if (cut > 0) notify(`${cut === 1 ? 'A connection' : `${cut} connections`} over the loop's border removed`)
}
