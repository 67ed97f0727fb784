import { BaseEdge, EdgeLabelRenderer, type EdgeProps, getBezierPath } from '@xyflow/react'
import { memo, useRef, useState } from 'react'
import { Icon } from '../../kit/controls/icon.tsx'
import { readHandle, type WireEdge } from './flow.ts'
import { useActions } from './nodes.tsx'

const LEAVE_MS = 200

/** A connection; under the pointer it offers to put a node in between, and to be taken away. */
export const Wire = memo(function Wire(props: EdgeProps<WireEdge>) {
  const { id, source, target, sourceHandleId, data, selected } = props
  const { addInto, removeEdge, mayEdit } = useActions()
  const [over, setOver] = useState(false)
  const timer = useRef(0)
  const [path, x, y] = getBezierPath(props)
  const enter = () => {
    clearTimeout(timer.current)
    setOver(true)
  }
  // The pointer may be on its way from the line to a button.
  const leave = () => {
    timer.current = window.setTimeout(() => setOver(false), LEAVE_MS)
  }
  const edge = { source, target, sourceHandle: data?.label ?? readHandle(sourceHandleId) }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: by keyboard, the dialog of a node's connections does this
    <g onMouseEnter={enter} onMouseLeave={leave} className={data?.wrong ? 'wire wrong' : 'wire'}>
      <BaseEdge id={id} path={path} interactionWidth={22} />
      {(over || selected) && mayEdit() && (
        <EdgeLabelRenderer>
          <div
            className="wire-tools nodrag nopan"
            style={{ transform: `translate(-50%, -50%) translate(${x}px, ${y}px)` }}
            onPointerEnter={enter}
            onPointerLeave={leave}
          >
            <button type="button" tabIndex={-1} aria-label="Add a node here" onClick={() => addInto(edge)}>
              <Icon name="plus" size={12} />
            </button>
            <button
              type="button"
              tabIndex={-1}
              aria-label="Remove this connection"
              onClick={() => removeEdge(edge)}
            >
              <Icon name="close" size={12} />
            </button>
          </div>
        </EdgeLabelRenderer>
      )}
    </g>
  )
})
