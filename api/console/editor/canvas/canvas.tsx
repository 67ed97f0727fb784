import '@xyflow/react/dist/base.css'
import './canvas.css'
import '../../graph/notes.css'
import '@xyflow/react/dist/base.css'
import { Background, BackgroundVariant, Controls, MiniMap, ReactFlow, useReactFlow } from '@xyflow/react'
import { type DragEvent, type ReactNode, useCallback, useEffect, useMemo, useRef, useState } from 'react'
import type { GraphEdge } from '../../nodeform/contract.ts'
import type { Target } from '../graph/edits.ts'
import type { NodeTypes } from '../graph/kinds.ts'
import { type EditorStore, useEditor } from '../graph/store.ts'
import { FIT } from './fit.ts'
import { drawEdges, type FlowNode, nameEdge, type WireEdge } from './flow.ts'
import { type CanvasOf, useMoving } from './moving.ts'
import { ActionsContext, type CanvasActions, LoopBox, NoteCard, StepCard } from './nodes.tsx'
import { Wire } from './wire.tsx'
import { useWiring } from './wiring.ts'

const NODE_TYPES = { step: StepCard, loop: LoopBox, note: NoteCard }
const EDGE_TYPES = { wire: Wire }
const NO_ATTRIBUTION = { hideAttribution: true }
const LABELS = {
  'node.a11yDescription.default':
    'Enter opens it, arrow keys move it, c connects it, a adds a node after it, Delete removes it.',
  'node.a11yDescription.keyboardDisabled': 'Enter opens it.',
}
/** What the palette gives to what is dragged from it. */
export const DRAGGED = 'application/x-perdure-node'

type CanvasProps = CanvasOf & {
  /** Asks which node to add there. */
  onPick: (target: Target) => void
  onOpen: (id: string) => void
  children?: ReactNode
}

/** The graph, to be drawn on. It alone is drawn again while something is dragged. */
export function Canvas({ onPick, onOpen, children, ...of }: CanvasProps) {
  const { store, types, acts, readOnly } = of
  const flow = useReactFlow<FlowNode, WireEdge>()
  const moving = useMoving(of)
  const wiring = useWiring(of, onPick)
  const edges = useEdges(store, types)
  const actions = useActions(of, onPick)
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
        nodes={moving.nodes}
        edges={edges}
        nodeTypes={NODE_TYPES}
        edgeTypes={EDGE_TYPES}
        onNodesChange={moving.change}
        onNodeDragStart={moving.start}
        onNodeDrag={moving.over}
        onNodeDragStop={moving.stop}
        onSelectionDragStart={moving.start}
        onSelectionDragStop={moving.stop}
        onConnect={wiring.connect}
        onConnectEnd={wiring.connectEnd}
        isValidConnection={wiring.isValid}
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
        zIndexMode="manual"
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

function useEdges(store: EditorStore, types: NodeTypes): WireEdge[] {
  const draft = useEditor(store, (state) => state.draft)
  const faults = useEditor(store, (state) => state.faults)
  const before = useRef<WireEdge[]>([])
  before.current = useMemo(() => drawEdges({ draft, faults }, types, before.current), [draft, faults, types])
  return before.current
}

/** What nodes, edges and notes can do. It stays the same while `readOnly` changes. */
function useActions({ store, acts, readOnly }: CanvasOf, onPick: (target: Target) => void): CanvasActions {
  const locked = useRef(readOnly)
  locked.current = readOnly
  return useMemo<CanvasActions>(
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
}

/** What the canvas names by its ends is an edge of the graph, which may have more fields. */
function findEdge(store: EditorStore, wanted: GraphEdge) {
  return store.get().draft.edges.find((edge) => nameEdge(edge) === nameEdge(wanted)) ?? wanted
}

function nameMini({ type }: FlowNode): string {
  return `mini-${type}`
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
