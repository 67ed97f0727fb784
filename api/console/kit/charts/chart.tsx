import { lazy, Suspense } from 'react'
import { Skeleton } from '../states.tsx'

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

const Drawn = lazy(async () => ({ default: (await import('./drawn.tsx')).DrawnChart }))

/** Lines or stacked bars over points, with a legend, the values under the pointer or arrow keys, and a table. */
export function Chart(props: ChartProps) {
  return (
    <Suspense fallback={<Skeleton rows={4} />}>
      <Drawn {...props} />
    </Suspense>
  )
}
