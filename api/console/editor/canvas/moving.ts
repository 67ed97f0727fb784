import { applyNodeChanges, type NodeChange } from '@xyflow/react'
import { useCallback, useLayoutEffect, useRef, useState } from 'react'
import type { Acts } from '../graph/acts.ts'
import { findLoopUnder } from '../graph/drop.ts'
import type { NodeTypes } from '../graph/kinds.ts'
import { fitLoops } from '../graph/model.ts'
import { type EditorStore, useEditor } from '../graph/store.ts'
import { drawNodes, type FlowNode } from './flow.ts'

export type CanvasOf = { store: EditorStore; types: NodeTypes; acts: Acts; readOnly: boolean }

/**
 * The nodes as they are drawn, and what moves them: a drag is React's alone until it ends, and only then an edit of
 * the draft.
 */
export function useMoving({ store, types, acts, readOnly }: CanvasOf) {
  const draft = useEditor(store, (state) => state.draft)
  const faults = useEditor(store, (state) => state.faults)
  const selected = useEditor(store, (state) => state.selected)
  const panel = useEditor(store, (state) => state.panel)
  const [nodes, setNodes] = useState<FlowNode[]>(() => drawNodes(store.get(), types, []))
  const live = useRef(nodes)
  live.current = nodes
  const dragging = useRef(false)
  const locked = useRef(readOnly)
  locked.current = readOnly
  useLayoutEffect(() => {
    setNodes((before) => drawNodes({ draft, faults, selected, panel }, types, before))
  }, [draft, faults, selected, panel, types])

  const change = useCallback(
    (changes: NodeChange<FlowNode>[]) => {
      const picked = changes.filter((one) => one.type === 'select')
      if (picked.length > 0) {
        const next = new Set(store.get().selected)
        for (const { id, selected: on } of picked) on ? next.add(id) : next.delete(id)
        store.set({ selected: next })
      }
      const rest = changes.filter(({ type }) => type === 'position' || type === 'dimensions')
      if (rest.length > 0) setNodes((before) => applyNodeChanges(rest, before))
      if (dragging.current || locked.current) return
      const moved = rest.flatMap((one) =>
        one.type === 'position' && one.position && one.dragging === false
          ? [[one.id, one.position] as const]
          : [],
      )
      if (moved.length > 0) acts.drop(new Map(moved), 'arrows')
    },
    [store, acts],
  )

  const start = useCallback(() => {
    dragging.current = true
  }, [])

  const over = useCallback(
    (_: unknown, one: FlowNode | FlowNode[], all?: FlowNode[]) => {
      const moved = listMoved(one, all)
      const loops = live.current.some(({ type }) => type === 'loop')
      if (!loops) return
      const at = new Map(moved.map(({ id, position }) => [id, position]))
      const { nodes: fitted, sizes } = fitLoops(store.get().draft.nodes, types)
      const placed = fitted.map((node) => ({ ...node, position: at.get(node.id) ?? node.position }))
      const first = placed.find(({ id }) => at.has(id))
      markLoop(first && findLoopUnder(placed, first.id, sizes))
    },
    [store, types],
  )

  const stop = useCallback(
    (_: unknown, one: FlowNode | FlowNode[], all?: FlowNode[]) => {
      dragging.current = false
      markLoop(undefined)
      const moved = listMoved(one, all)
      const { draft: now } = store.get()
      const before = new Map([...now.nodes, ...now.notes].map(({ id, position }) => [id, position]))
      const really = moved.filter(
        ({ id, position: { x, y } }) => before.get(id)?.x !== x || before.get(id)?.y !== y,
      )
      if (really.length > 0) acts.drop(new Map(really.map(({ id, position }) => [id, position])))
    },
    [store, acts],
  )

  return { nodes, change, start, over, stop }
}

/** The nodes that are dragged: React Flow names one node, or all that are selected. */
function listMoved(one: FlowNode | FlowNode[], all?: FlowNode[]): FlowNode[] {
  return Array.isArray(one) ? one : (all ?? [one])
}

/** Shows into which loop something would be dropped; not by React, since it comes with every frame. */
function markLoop(id: string | undefined): void {
  for (const marked of document.querySelectorAll<HTMLElement>('.react-flow__node-loop')) {
    const on = marked.dataset.id === id
    if (marked.hasAttribute('data-drop') !== on) marked.toggleAttribute('data-drop', on)
  }
}
