import type { Point } from '../../graph/place.ts'
import { notify } from '../../kit/notices.tsx'
import type { GraphEdge } from '../../nodeform/contract.ts'
import { copyNodes, pasteNodes } from './clipboard.ts'
import { dropAt } from './drop.ts'
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
import { handlesOf, isLoop, type NodeTypes } from './kinds.ts'
import { type Draft, type EditorNode, type End, fitLoops, refuseEdge } from './model.ts'
import type { EditorStore } from './store.ts'

export type Acts = ReturnType<typeof createActs>

/** What one can do with the graph, on the state as it is then. `focus` moves the keyboard to a node. */
export function createActs(store: EditorStore, types: NodeTypes, focus: (id: string) => void) {
  const refit = (draft: Draft): Draft => ({ ...draft, nodes: fitLoops(draft.nodes, types).nodes })
  const nodeOf = (id: string): EditorNode | undefined =>
    store.get().draft.nodes.find((node) => node.id === id)
  const chosen = () => store.get().selected
  const paste = (text: string, parentId: string | undefined) => {
    const pasted = pasteNodes(store.get().draft, text, types, parentId)
    if (pasted) store.edit(refit(pasted.draft), { selected: new Set(pasted.renamed.values()) })
    return pasted?.renamed
  }

  const acts = {
    nodeOf,
    /** The node that the next one follows: the only one that is selected. */
    anchor: () => (chosen().size === 1 ? nodeOf([...chosen()][0]!) : undefined),
    freeEnd: (node: EditorNode): End => findFreeEnd(store.get().draft, node, types),
    add(type: string, target: Target) {
      const { draft, id } = addNode(store.get().draft, type, target, types)
      store.edit(refit(draft), { selected: new Set([id]), panel: 'node' })
      focus(id)
      return id
    },
    addNote(at: Point) {
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
      const { draft } = store.get()
      const before = draft.edges.find(({ target }) => ids.has(target))?.source
      store.edit(refit(remove(draft, ids)), { selected: new Set() })
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
      const anchor = acts.anchor()
      const inside = anchor && isLoop(anchor.type) && !holdsNode(text, anchor.id)
      const parentId = inside ? anchor.id : anchor?.parentId
      const renamed = paste(text, holdsTrigger(text, types) ? undefined : parentId)
      const [first] = renamed?.values() ?? []
      if (first) focus(first)
      return renamed
    },
    duplicate() {
      const text = acts.copy()
      if (!text) return
      const parents = new Set([...chosen()].map((id) => nodeOf(id)?.parentId))
      const [parent] = parents.size === 1 ? [...parents] : []
      paste(text, parent)
    },
    putInto(ids: ReadonlySet<string>, parentId: string | undefined) {
      const before = store.get().draft
      const next = putInto(before, ids, parentId)
      tellCut(before, next)
      store.edit(refit(next))
    },
    /** Nodes and notes were moved to these places. With a key, which the arrow keys have, nodes stay in their loops. */
    drop(places: ReadonlyMap<string, Point>, key?: string) {
      const before = store.get().draft
      const next = dropAt(before, places, types, key !== undefined)
      tellCut(before, next)
      store.edit(refit(next), key ? { key } : {})
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
}

/** The first handle of a node that no edge uses yet, else its first one. */
function findFreeEnd({ edges }: Draft, node: EditorNode, types: NodeTypes): End {
  const { id } = node
  const used = edges.filter(({ source }) => source === id).map(({ sourceHandle }) => sourceHandle ?? null)
  const handles = handlesOf(node, types)
  const free = handles.find((handle) => !used.includes(handle))
  return { id, handle: free === undefined ? (handles[0] ?? null) : free }
}

/** A copied loop is not pasted into itself. */
function holdsNode(text: string, id: string): boolean {
  return text.includes(`"id": "${id}"`)
}

function holdsTrigger(text: string, types: NodeTypes): boolean {
  return [...types.values()].some(({ type, kind }) => kind === 'trigger' && text.includes(`"${type}"`))
}

function tellCut(before: Draft, after: Draft): void {
  const cut = before.edges.length - after.edges.length
  if (cut > 0) notify(`${cut === 1 ? 'A connection' : `${cut} connections`} over the loop's border removed`)
}
