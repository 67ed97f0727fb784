import {
  applyNodeChanges,
  Background,
  BackgroundVariant,
  type Connection,
  Controls,
  type FinalConnectionState,
  MiniMap,
  type NodeChange,
  ReactFlow,
  useReactFlow,
} from '@xyflow/react'
import '@xyflow/react/dist/base.css'
import './canvas.css'
import '../../workflows/notes.css'
import {
  type DragEvent,
  type ReactNode,
  useCallback,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from 'react'
import type { GraphEdge } from '../../nodeform/contract.ts'
import type { Acts } from '../graph/acts.ts'
import type { Target } from '../graph/edits.ts'
import type { NodeTypes } from '../graph/kinds.ts'
import { fitLoops, refuseEdge } from '../graph/model.ts'
import { type EditorStore, useEditor } from '../graph/store.ts'
import { drawEdges, drawNodes, type FlowNode, nameEdge, readHandle, type WireEdge } from './flow.ts'
import { ActionsContext, type CanvasActions, LoopBox, NoteCard, StepCard } from './nodes.tsx'
import { Wire } from './wire.tsx'

const NODE_TYPES = { step: StepCard, loop: LoopBox, note: NoteCard }
const EDGE_TYPES = { wire: Wire }
const FIT = { padding: 0.16, maxZoom: 1 }
const NO_ATTRIBUTION = { hideAttribution: true }
const LABELS = {
  'node.a11yDescription.default':
    'Enter opens it, arrow keys move it, c connects it, a adds a node after it, Delete removes it.',
  'node.a11yDescription.keyboardDisabled': 'Enter opens it.',
}
/** What the palette gives to what is dragged from it. */
export const DRAGGED = 'application/x-perdure-node'

type CanvasProps = {
  store: EditorStore
  types: NodeTypes
  acts: Acts
  readOnly: boolean
  /** Asks which node to add there. */
  onPick: (target: Target) => void
  onOpen: (id: string) => void
  children?: ReactNode
}

/** The graph, to be drawn on. It alone is drawn again while something is dragged. */
export function Canvas({ store, types, acts, readOnly, onPick, onOpen, children }: CanvasProps) {
  const draft = useEditor(store, (state) => state.draft)
  const faults = useEditor(store, (state) => state.faults)
  const selected = useEditor(store, (state) => state.selected)
  const open = useEditor(store, (state) => state.open)
  const [nodes, setNodes] = useState<FlowNode[]>(() => drawNodes(store.get(), types, []))
  const edges = useRef<WireEdge[]>([])
  const live = useRef(nodes)
  live.current = nodes
  const dragging = useRef(false)
  const flow = useReactFlow<FlowNode, WireEdge>()
  const locked = useRef(readOnly)
  locked.current = readOnly
  useLayoutEffect(() => {
    setNodes((before) => drawNodes({ draft, faults, selected, open }, types, before))
  }, [draft, faults, selected, open, types])
  edges.current = useMemo(() => drawEdges({ draft, faults }, types, edges.current), [draft, faults, types])

  const actions = useMemo<CanvasActions>(
    () => ({
      addAfter: (end) => onPick({ after: end }),
      addInto: (edge) => onPick({ edge: findEdge(store, edge) }),
      addInside: (loop) => onPick({ inside: loop }),
      removeEdge: (edge) => acts.disconnect(findEdge(store, edge)),
      changeNote: (note, key) => {
        const { draft: now } = store.get()
        const notes = now.notes.map((one) => (one.id === note.id ? note : one))
        store.edit({ ...now, notes }, key ? { key } : {})
      },
      mayEdit: () => !locked.current,
    }),
    [store, acts, onPick],
  )

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

  const stop = useCallback(
    (_: unknown, __: FlowNode | FlowNode[], all?: FlowNode[]) => {
      dragging.current = false
      markLoop(undefined)
      const moved = Array.isArray(__) ? __ : (all ?? [__])
      const { draft: now } = store.get()
      const before = new Map([...now.nodes, ...now.notes].map((one) => [one.id, one.position]))
      const really = moved.filter(
        ({ id, position: { x, y } }) => before.get(id)?.x !== x || before.get(id)?.y !== y,
      )
      if (really.length > 0) acts.drop(new Map(really.map(({ id, position }) => [id, position])))
    },
    [store, acts],
  )

  const start = useCallback(() => {
    dragging.current = true
  }, [])

  const over = useCallback(
    (_: unknown, __: FlowNode | FlowNode[], all?: FlowNode[]) => {
      const moved = Array.isArray(__) ? __ : (all ?? [__])
      const loops = live.current.some(({ type }) => type === 'loop')
      if (!loops) return
      const at = new Map(moved.map(({ id, position }) => [id, position]))
      const { nodes: fitted, sizes } = fitLoops(store.get().draft.nodes, types)
      const placed = fitted.map((node) => ({ ...node, position: at.get(node.id) ?? node.position }))
      const first = placed.find(({ id }) => at.has(id))
      markLoop(first && acts.loopUnder(placed, first.id, sizes))
    },
    [store, acts, types],
  )

  const connect = useCallback(
    ({ source, target, sourceHandle }: Connection) => {
      acts.connect({ id: source, handle: readHandle(sourceHandle) }, target)
    },
    [acts],
  )

  const connectEnd = useCallback(
    (event: MouseEvent | TouchEvent, state: FinalConnectionState) => {
      const { fromNode, fromHandle, toNode, toHandle } = state
      if (!fromNode || fromHandle?.type !== 'source' || toHandle) return
      const end = { id: fromNode.id, handle: readHandle(fromHandle.id) }
      // Anywhere on a node is as good as its handle.
      const under = (event.target as Element | null)?.closest<HTMLElement>('.react-flow__node')?.dataset.id
      const wanted = toNode?.id ?? under
      const parent = acts.nodeOf(end.id)?.parentId
      if (wanted && wanted !== end.id && wanted !== parent) {
        acts.connect(end, wanted)
        return
      }
      if (wanted === end.id) return
      const { clientX: x, clientY: y } = 'changedTouches' in event ? event.changedTouches[0]! : event
      const at = flow.screenToFlowPosition({ x, y })
      onPick({ at: { x: at.x, y: at.y - 30 }, after: end })
    },
    [acts, flow, onPick],
  )

  const isValid = useCallback(
    ({ source, target, sourceHandle }: Connection | WireEdge) =>
      refuseEdge(store.get().draft, { id: source, handle: readHandle(sourceHandle) }, target, types) ===
      undefined,
    [store, types],
  )

  const drop = (event: DragEvent) => {
    const type = event.dataTransfer.getData(DRAGGED)
    if (!type || readOnly) return
    event.preventDefault()
    const at = flow.screenToFlowPosition({ x: event.clientX, y: event.clientY })
    acts.add(type, { at: { x: at.x - 100, y: at.y - 30 } })
  }

  return (
    <ActionsContext value={actions}>
      <ReactFlow<FlowNode, WireEdge>
        nodes={nodes}
        edges={edges.current}
        nodeTypes={NODE_TYPES}
        edgeTypes={EDGE_TYPES}
        onNodesChange={change}
        onNodeDragStart={start}
        onNodeDrag={over}
        onNodeDragStop={stop}
        onSelectionDragStart={start}
        onSelectionDragStop={stop}
        onConnect={connect}
        onConnectEnd={connectEnd}
        isValidConnection={isValid}
        onNodeClick={(_, { id, type }) => readOnly && type !== 'note' && onOpen(id)}
        onNodeDoubleClick={(_, { id, type }) => type !== 'note' && onOpen(id)}
        onDragOver={(event) => event.preventDefault()}
        onDrop={drop}
        nodesDraggable={!readOnly}
        nodesConnectable={!readOnly}
        connectOnClick={false}
        edgesFocusable={false}
        deleteKeyCode={null}
        selectionKeyCode="Shift"
        multiSelectionKeyCode={['Meta', 'Control', 'Shift']}
        panOnScroll
        minZoom={0.1}
        maxZoom={2}
        connectionRadius={32}
        nodeDragThreshold={3}
        snapToGrid={false}
        elevateNodesOnSelect={false}
        zoomOnDoubleClick={false}
        fitView
        fitViewOptions={FIT}
        proOptions={NO_ATTRIBUTION}
        ariaLabelConfig={LABELS}
        aria-label="Graph of the workflow"
      >
        <Background variant={BackgroundVariant.Dots} gap={20} size={1.4} />
        <MiniMap
          pannable
          zoomable
          nodeStrokeWidth={3}
          nodeClassName={nameMini}
          ariaLabel="Mini-map"
          position="bottom-right"
        />
        <Controls showInteractive={false} fitViewOptions={FIT} position="bottom-left" aria-label="View" />
        {children}
      </ReactFlow>
    </ActionsContext>
  )
}

/** What the canvas names by its ends is an edge of the graph, which may have more fields. */
function findEdge(store: EditorStore, wanted: GraphEdge) {
  return store.get().draft.edges.find((edge) => nameEdge(edge) === nameEdge(wanted)) ?? wanted
}

function nameMini({ type }: FlowNode): string {
  return `mini-${type}`
}

/** Shows into which loop something would be dropped; not by React, since it comes with every frame. */
function markLoop(id: string | undefined): void {
  for (const marked of document.querySelectorAll<HTMLElement>('.react-flow__node-loop')) {
    const on = marked.dataset.id === id
    if (marked.hasAttribute('data-drop') !== on) marked.toggleAttribute('data-drop', on)
  }
}

/** Moves the view to a node, and the keyboard with it. */
function focusNode(id: string): void {
  document
    .querySelector<HTMLElement>(`.react-flow__node[data-id="${CSS.escape(id)}"]`)
    ?.focus({ preventScroll: true })
}

export function useFocus(): (id: string) => void {
  const wanted = useRef<string | undefined>(undefined)
  const [, tell] = useState(0)
  useEffect(() => {
    const id = wanted.current
    wanted.current = undefined
    if (!id) return
    const before = document.activeElement
    const follow = () => {
      const now = document.activeElement
      // A field that a key has opened meanwhile keeps the keyboard.
      if (now === before || !now?.matches('input, textarea')) focusNode(id)
    }
    // The canvas draws what is new a frame later.
    requestAnimationFrame(() => requestAnimationFrame(follow))
  })
  return useCallback((id: string) => {
    wanted.current = id
    tell((count) => count + 1)
  }, [])
}
