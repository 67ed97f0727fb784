import { Handle, type NodeProps, NodeResizer, Position, useUpdateNodeInternals } from '@xyflow/react'
import { createContext, memo, useContext, useEffect, useLayoutEffect, useRef, useState } from 'react'
import type { Note } from '../../graph/notes.ts'
import { Markdown } from '../../kit/code/markdown.tsx'
import { Icon } from '../../kit/controls/icon.tsx'
import type { GraphEdge, GraphNode } from '../../nodeform/contract.ts'
import { kindOf, nameHandle, nameNode } from '../graph/kinds.ts'
import type { End } from '../graph/model.ts'
import type { HandleShown, NoteNode, StepNode } from './flow.ts'
import { Sign } from './signs.tsx'

/** The acts on the canvas itself; it stays the same object. */
export type CanvasActions = {
  addAfter: (end: End) => void
  addInto: (edge: GraphEdge) => void
  addInside: (loop: string) => void
  removeEdge: (edge: GraphEdge) => void
  changeNote: (note: Note, key?: string) => void
  mayEdit: () => boolean
}

export const ActionsContext = createContext<CanvasActions | null>(null)

export function useActions(): CanvasActions {
  return useContext(ActionsContext)!
}

type Props = Pick<NodeProps<StepNode>, 'id' | 'data' | 'selected'>

// While a node is dragged its place changes with every frame; what it shows does not.
function isUnchanged(a: Props, b: Props): boolean {
  return a.data === b.data && a.selected === b.selected
}

/** React Flow draws edges only to handles that it has measured: it is told when a node has others. */
function useHandles({ node, trigger, handles }: StepNode['data']): void {
  const measure = useUpdateNodeInternals()
  const shown = JSON.stringify([trigger, ...handles.map(({ id }) => id)])
  const measured = useRef(shown)
  useLayoutEffect(() => {
    if (measured.current === shown) return
    measured.current = shown
    measure(node.id)
  }, [measure, node.id, shown])
}

/** A node as a card: the sign of its type, its name, and what is wrong with it. */
export const StepCard = memo(function StepCard({ data }: NodeProps<StepNode>) {
  const { node, trigger, handles, tone, said } = data
  const { sign, label, group } = kindOf(node.type)
  useHandles(data)
  return (
    <div
      className="step"
      data-tone={tone}
      data-off={node.disabled || undefined}
      data-group={group}
      data-open={data.open || undefined}
    >
      {!trigger && <Handle type="target" position={Position.Left} id="in" aria-hidden="true" />}
      <span className="step-sign">
        <Sign name={sign} />
      </span>
      <span className="step-text">
        <span className="step-name">{nameNode(node)}</span>
        <span className="step-type">{tellType(node, label)}</span>
      </span>
      {tone && (
        <span className="step-fault" title={said}>
          <Icon name="warning" size={14} />
        </span>
      )}
      <Exits id={node.id} handles={handles} />
    </div>
  )
}, isUnchanged)

/** A loop as a box around its body. */
export const LoopBox = memo(function LoopBox({ data }: NodeProps<StepNode>) {
  const { node, handles, tone, said, empty } = data
  const { sign, label } = kindOf(node.type)
  const { addInside, mayEdit } = useActions()
  useHandles(data)
  return (
    <div
      className="loop"
      data-tone={tone}
      data-off={node.disabled || undefined}
      data-open={data.open || undefined}
    >
      <Handle type="target" position={Position.Left} id="in" aria-hidden="true" />
      <div className="loop-head">
        <span className="step-sign">
          <Sign name={sign} size={16} />
        </span>
        <span className="step-name">{nameNode(node)}</span>
        <span className="step-type">{tellType(node, label)}</span>
        {tone && (
          <span className="step-fault" title={said}>
            <Icon name="warning" size={14} />
          </span>
        )}
      </div>
      {empty && mayEdit() && (
        <button
          type="button"
          className="loop-add nodrag"
          tabIndex={-1}
          aria-label={`Add a node inside ${nameNode(node)}`}
          onClick={(event) => {
            event.stopPropagation()
            addInside(node.id)
          }}
        >
          <Icon name="plus" /> Add a node inside
        </button>
      )}
      <Exits id={node.id} handles={handles} />
    </div>
  )
}, isUnchanged)

/** The type, or the id where the name says the type already: expressions read a node by its id. */
function tellType({ id, name, disabled }: GraphNode, label: string): string {
  const said = name?.startsWith(label) ? id : label
  return disabled ? `${said}, disabled` : said
}

/** Where edges leave: a name where there are several, and a + where nothing follows yet. */
function Exits({ id, handles }: { id: string; handles: HandleShown[] }) {
  const { addAfter, mayEdit } = useActions()
  return handles.map(({ name, id: handle, free }, at) => {
    const top = `${((at + 0.5) / handles.length) * 100}%`
    return (
      <div key={handle} className="exit" style={{ top }}>
        <Handle
          type="source"
          position={Position.Right}
          id={handle}
          aria-hidden="true"
          data-error={name === 'error' || undefined}
        />
        {(handles.length > 1 || name !== null) && <span className="exit-name">{nameHandle(name)}</span>}
        {free && mayEdit() && (
          <button
            type="button"
            tabIndex={-1}
            className="exit-add nodrag"
            aria-label={name === null ? `Add a node after ${id}` : `Add a node after ${id}, ${name}`}
            onClick={(event) => {
              event.stopPropagation()
              addAfter({ id, handle: name })
            }}
          >
            <Icon name="plus" size={12} />
          </button>
        )}
      </div>
    )
  })
}

/** A sticky note: double-click or Enter writes in it. */
export const NoteCard = memo(
  function NoteCard({ data: { note }, selected }: NodeProps<NoteNode>) {
    const { changeNote, mayEdit } = useActions()
    const [writing, setWriting] = useState(note.text === '' && mayEdit())
    const field = useRef<HTMLTextAreaElement>(null)
    useEffect(() => {
      if (writing) field.current?.focus({ preventScroll: true })
    }, [writing])
    return (
      // biome-ignore lint/a11y/noStaticElementInteractions: by keyboard Enter does this, on the node around it
      <div className="note" data-colour={note.colour} onDoubleClick={() => mayEdit() && setWriting(true)}>
        {mayEdit() && (
          <NodeResizer
            isVisible={selected}
            minWidth={120}
            minHeight={60}
            onResizeEnd={(_, { x, y, width, height }) =>
              changeNote({ ...note, position: { x, y }, size: { width, height } })
            }
          />
        )}
        {writing ? (
          <textarea
            ref={field}
            className="nodrag nowheel nopan"
            aria-label="Text of the note"
            title="Markdown: # heading, **bold**, - list, [text](https://…)"
            maxLength={5_000}
            value={note.text}
            onChange={(event) => changeNote({ ...note, text: event.target.value }, `note ${note.id}`)}
            onBlur={() => setWriting(false)}
            onKeyDown={(event) => {
              event.stopPropagation()
              if (event.key === 'Escape') setWriting(false)
            }}
          />
        ) : (
          <Markdown text={note.text || 'Double-click to write'} />
        )}
      </div>
    )
  },
  (a, b) => a.data === b.data && a.selected === b.selected,
)
