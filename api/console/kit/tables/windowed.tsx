import { type ReactNode, useEffect, useLayoutEffect, useRef, useState } from 'react'
import './tables.css'

type WindowedProps<Row> = {
  label: string
  rows: readonly Row[]
  keyOf: (row: Row, at: number) => string
  /** How high each row is, in pixels: all are the same. */
  height: number
  children: (row: Row, at: number) => ReactNode
  /** The row that is brought into view when this changes. */
  shown?: number | undefined
}

const BEYOND = 8

/** A long list that draws only the rows that are seen. It scrolls itself; `max-height` is 60vh, by `.windowed`. */
export function Windowed<Row>({ label, rows, keyOf, height, children, shown }: WindowedProps<Row>) {
  const place = useRef<HTMLDivElement>(null)
  const [{ top, seen }, setView] = useState({ top: 0, seen: 600 })
  useLayoutEffect(() => {
    const element = place.current!
    const measure = () => setView({ top: element.scrollTop, seen: element.clientHeight })
    const watcher = new ResizeObserver(measure)
    watcher.observe(element)
    element.addEventListener('scroll', measure, { passive: true })
    return () => {
      watcher.disconnect()
      element.removeEventListener('scroll', measure)
    }
  }, [])
  useEffect(() => {
    const element = place.current
    if (shown === undefined || !element) return
    const from = shown * height
    if (from < element.scrollTop) element.scrollTop = from
    else if (from + height > element.scrollTop + element.clientHeight) {
      element.scrollTop = from + height - element.clientHeight
    }
  }, [shown, height])
  const first = Math.max(0, Math.floor(top / height) - BEYOND)
  const last = Math.min(rows.length, Math.ceil((top + seen) / height) + BEYOND)
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <section className="windowed" ref={place} aria-label={label} tabIndex={0}>
      <div style={{ height: rows.length * height }}>
        {rows.slice(first, last).map((row, at) => (
          <div key={keyOf(row, first + at)} style={{ top: (first + at) * height, height }}>
            {children(row, first + at)}
          </div>
        ))}
      </div>
    </section>
  )
}
