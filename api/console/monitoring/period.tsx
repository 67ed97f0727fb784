import { useMemo } from 'react'
import { serverNow } from '../data/clock.ts'
import { Field } from '../kit/controls/field.tsx'
import { Select } from '../kit/controls/input.tsx'
import type { Period } from './data.ts'

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000

const PERIODS = [
  { value: '1', label: 'Last 24 hours' },
  { value: '7', label: 'Last 7 days' },
  { value: '30', label: 'Last 30 days' },
]

/** The span of this number of days that ends with this hour. It changes once an hour, so that what was read is found again. */
export function useSpan(days: string): Period {
  const end = Math.ceil(serverNow() / HOUR_MS) * HOUR_MS
  return useMemo(() => {
    const count = PERIODS.some(({ value }) => value === days) ? Number(days) : 7
    return { from: new Date(end - count * DAY_MS).toISOString(), to: new Date(end).toISOString() }
  }, [days, end])
}

export function PeriodChoice({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  return (
    <Field label="Period">
      <Select value={value} onChange={onChange} choices={PERIODS} />
    </Field>
  )
}
