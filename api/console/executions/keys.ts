import { useEffect, useRef } from 'react'
import type { RecordState } from './records.ts'
import type { Row } from './rows.ts'

const VIEWS = ['graph', 'timeline', 'steps']

type Keys = {
  rows: readonly Row[]
  chosen: string | undefined
  onChoose: (record: RecordState) => void
  onClose: (() => void) | null
  onView: (view: string) => void
}

/** Up and down go from record to record, 1 to 3 to a view, Escape closes the record. */
export function useExecutionKeys(keys: Keys): void {
  const latest = useRef(keys)
  useEffect(() => {
    latest.current = keys
  })
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const { rows, chosen, onChoose, onClose, onView } = latest.current
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return
      const { target } = event
      if (!(target instanceof HTMLElement || target instanceof SVGElement)) return
      if (target.closest('input, textarea, select, [contenteditable], [role=dialog], [role=menu]')) return
      const view = VIEWS[Number(event.key) - 1]
      if (view) onView(view)
      else if (event.key === 'Escape' && onClose) onClose()
      else {
        const by = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key]
        // What scrolls of itself, such as a tree of values, keeps its arrows.
        if (by === undefined || target.closest('[role=tablist], .detail .windowed, .detail pre')) return
        const records = rows.flatMap((row) => (row.kind === 'record' ? [row.record] : []))
        const at = records.findIndex(({ id }) => id === chosen)
        const next = records[at < 0 ? (by > 0 ? 0 : records.length - 1) : at + by]
        event.preventDefault()
        if (next) onChoose(next)
      }
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [])
}
