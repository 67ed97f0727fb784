import { type KeyboardEvent, type PointerEvent, useLayoutEffect, useRef, useState } from 'react'
import './charts.css'
import { Table } from '../tables/table.tsx'

export type Series = { name: string; values: (number | null)[]; tone?: 'good' | 'bad' | 'busy' | 'warn' }

export type ChartProps = {
  /** What the chart shows; its name for screen readers too. */
  label: string
  kind: 'line' | 'bars'
  /** One label for each value of the series, such as instants. */
  points: string[]
  series: Series[]
  /** How values, and points, are written. */
  format?: (value: number) => string
  formatPoint?: (point: string) => string
  height?: number
}

const LEFT = 52
const RIGHT = 8
const BOTTOM = 20
const TOP = 8
/** The labels of points are at least this far from each other. */
const LABEL_GAP = 90

/** The chart itself; pages use `Chart`, which loads it. */
export function DrawnChart(props: ChartProps) {
  const { label, points, series, format = plain, formatPoint = String } = props
  const { place, width } = useWidth()
  const [at, setAt] = useState<number | null>(null)
  const scale = planScale(props, width)
  const point = (event: PointerEvent<SVGSVGElement>) => {
    const { left } = event.currentTarget.getBoundingClientRect()
    const index = Math.floor((event.clientX - left - LEFT) / scale.step)
    setAt(index >= 0 && index < points.length ? index : null)
  }
  const key = (event: KeyboardEvent) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    if (by === undefined || points.length === 0) return
    event.preventDefault()
    setAt((before) =>
      Math.min(points.length - 1, Math.max(0, (before ?? (by > 0 ? -1 : points.length)) + by)),
    )
  }
  return (
    <figure className="chart" ref={place}>
      <figcaption>
        <strong>{label}</strong>
        {series.map((one, index) => (
          <span key={one.name}>
            <i style={{ background: colourOf(one, index) }} />
            {one.name}
          </span>
        ))}
      </figcaption>
      <svg
        viewBox={`0 0 ${width} ${scale.height}`}
        height={scale.height}
        role="img"
        aria-label={`${label}: arrow keys tell the values`}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the arrow keys tell its values
        tabIndex={0}
        onPointerMove={point}
        onPointerLeave={() => setAt(null)}
        onKeyDown={key}
      >
        <Drawing {...props} scale={scale} at={at} />
      </svg>
      <div className="now" aria-live="polite">
        {at !== null &&
          [
            formatPoint(points[at]!),
            ...series.map(({ name, values }) => `${name} ${tell(values[at], format)}`),
          ].join(' · ')}
      </div>
      <details>
        <summary>As a table</summary>
        <Table
          label={label}
          rows={points.map((one, index) => ({ one, index }))}
          keyOf={({ one }) => one}
          columns={[
            { heading: '', cell: ({ one }) => formatPoint(one) },
            ...series.map(({ name, values }) => ({
              heading: name,
              number: true,
              cell: ({ index }: { index: number }) => tell(values[index], format),
            })),
          ]}
        />
      </details>
    </figure>
  )
}

/** How wide there is room for the chart, in pixels. */
function useWidth() {
  const place = useRef<HTMLElement>(null)
  const [width, setWidth] = useState(600)
  useLayoutEffect(() => {
    const watcher = new ResizeObserver(([entry]) => setWidth(Math.max(200, entry!.contentRect.width)))
    watcher.observe(place.current!)
    return () => watcher.disconnect()
  }, [])
  return { place, width }
}

type Scale = ReturnType<typeof planScale>

/** Where points and values are drawn: `top` is the highest value, `right` where the lines of the grid end. */
function planScale({ kind, points, series, height = 180 }: ChartProps, width: number) {
  const top = roundUp(Math.max(0, ...points.map((_, at) => highest(kind, series, at))))
  const right = width - RIGHT
  const step = (right - LEFT) / Math.max(1, points.length)
  return {
    ...{ top, right, step, height },
    x: (index: number) => LEFT + step * (index + 0.5),
    y: (value: number) => TOP + (height - TOP - BOTTOM) * (1 - value / top),
  }
}

type DrawingProps = ChartProps & { scale: Scale; at: number | null }

function Drawing({ kind, points, series, format = plain, formatPoint = String, scale, at }: DrawingProps) {
  const { top, right, height, x, y } = scale
  const labels = Math.max(1, Math.floor((right - LEFT) / LABEL_GAP))
  const every = Math.max(1, Math.ceil(points.length / labels))
  return (
    <>
      {[0, 0.5, 1].map((share) => (
        <g key={share}>
          <line className="grid" x1={LEFT} x2={right} y1={y(top * share)} y2={y(top * share)} />
          <text x={LEFT - 6} y={y(top * share) + 4} textAnchor="end">
            {format(top * share)}
          </text>
        </g>
      ))}
      {points.map((one, index) =>
        index % every === 0 ? (
          <text key={one} x={x(index)} y={height - 4} textAnchor="middle">
            {formatPoint(one)}
          </text>
        ) : null,
      )}
      {at !== null && <line className="cursor" x1={x(at)} x2={x(at)} y1={TOP} y2={height - BOTTOM} />}
      {kind === 'line'
        ? series.map((one, index) => (
            <path
              key={one.name}
              d={drawLine(one, scale)}
              fill="none"
              strokeWidth={1.8}
              stroke={colourOf(one, index)}
            />
          ))
        : points.map((one, index) => <Bar key={one} {...{ series, index, scale }} />)}
    </>
  )
}

function Bar({ series, index, scale }: { series: Series[]; index: number; scale: Scale }) {
  const { x, y, step } = scale
  let from = 0
  const wide = Math.max(1, Math.min(28, step * 0.7))
  return series.map((one, at) => {
    const value = one.values[index] ?? 0
    const base = from
    from += value
    if (value <= 0) return null
    const high = y(base) - y(base + value)
    return (
      <rect
        key={one.name}
        x={x(index) - wide / 2}
        y={y(base + value)}
        width={wide}
        height={high}
        fill={colourOf(one, at)}
      />
    )
  })
}

/** A small circle around where the pen is. */
const DOT = 'm-1.5 0a1.5 1.5 0 1 0 3 0a1.5 1.5 0 1 0-3 0'

function drawLine({ values }: Series, { x, y }: Scale): string {
  let pen = 'M'
  return values
    .map((value, index) => {
      // Where there is no value, the line has a gap.
      if (value === null) {
        pen = 'M'
        return ''
      }
      const text = `${pen}${x(index).toFixed(1)} ${y(value).toFixed(1)}`
      pen = 'L'
      // A point between two gaps is a dot.
      return values[index - 1] == null && values[index + 1] == null ? `${text}${DOT}` : text
    })
    .join('')
}

function highest(kind: 'line' | 'bars', series: Series[], at: number): number {
  const values = series.map(({ values }) => values[at] ?? 0)
  return kind === 'bars' ? values.reduce((sum, value) => sum + value, 0) : Math.max(0, ...values)
}

function roundUp(value: number): number {
  if (value <= 0) return 1
  const size = 10 ** Math.floor(Math.log10(value))
  return [1, 2, 4, 5, 10].map((factor) => factor * size).find((one) => one >= value) ?? value
}

function colourOf({ tone }: Series, at: number): string {
  return tone ? `var(--${tone})` : `var(--series-${(at % 6) + 1})`
}

function tell(value: number | null | undefined, format: (value: number) => string): string {
  return value === null || value === undefined ? '–' : format(value)
}

function plain(value: number): string {
  return value.toLocaleString(undefined, { maximumFractionDigits: 2 })
}
