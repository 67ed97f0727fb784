import { lazy, Suspense } from 'react'
import { Skeleton } from '../states.tsx'
import type { ChartProps } from './drawn.tsx'

const Drawn = lazy(async () => ({ default: (await import('./drawn.tsx')).DrawnChart }))

/** Lines or stacked bars over points, with a legend, the values under the pointer or arrow keys, and a table. */
export function Chart(props: ChartProps) {
  return (
    <Suspense fallback={<Skeleton rows={4} />}>
      <Drawn {...props} />
    </Suspense>
  )
}
