import { type Connection, type FinalConnectionState, useReactFlow } from '@xyflow/react'
import { useCallback } from 'react'
import type { Target } from '../graph/edits.ts'
import { refuseEdge } from '../graph/model.ts'
import { type FlowNode, readHandle, type WireEdge } from './flow.ts'
import type { CanvasOf } from './moving.ts'

/** What connects nodes. A wire that ends on the empty canvas asks for the node that it leads to. */
export function useWiring({ store, types, acts }: CanvasOf, onPick: (target: Target) => void) {
  const flow = useReactFlow<FlowNode, WireEdge>()
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

  return { connect, connectEnd, isValid }
}
