import { useReactFlow } from '@xyflow/react'
import { useMemo, useRef } from 'react'
import { FIT } from './canvas/fit.ts'

export type Sight = ReturnType<typeof useSight>

/** The visible part of the graph: `canvas` is the element that shows it. Places are those of the graph. */
export function useSight() {
  const flow = useReactFlow()
  const canvas = useRef<HTMLDivElement>(null)
  const acts = useMemo(() => {
    const frame = (nodes?: { id: string }[]) =>
      void flow.fitView({ ...(nodes ? { nodes, maxZoom: 1 } : FIT), duration: 200 })
    return {
      /** Shows the whole graph. */
      fit: () => frame(),
      show: (node: string) => frame([{ id: node }]),
      /** Where a node lies that is put into the middle of what one sees. */
      centre() {
        const { left, top, width, height } = canvas.current!.getBoundingClientRect()
        return flow.screenToFlowPosition({ x: left + width / 2 - 100, y: top + height / 2 - 30 })
      },
      /** Brings a node into sight that is new, or that the panel would cover. */
      reveal(node: string) {
        const look = () => {
          const shown = flow.getInternalNode(node)
          if (!shown || !canvas.current) return
          const { x, y } = shown.internals.positionAbsolute
          const at = flow.flowToScreenPosition({ x: x + (shown.width ?? 0), y })
          const { left, right, top, bottom } = canvas.current.getBoundingClientRect()
          if (at.x > left + 100 && at.x < right && at.y > top && at.y < bottom - 60) return
          void flow.setCenter(x + 100, y + 30, { zoom: flow.getZoom(), duration: 200 })
        }
        requestAnimationFrame(() => requestAnimationFrame(look))
      },
    }
  }, [flow])
  return { canvas, ...acts }
}
