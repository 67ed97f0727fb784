type Interval = { low: number; high: number } | null

/** A score from 1 to 5, as people read it. */
export function formatScore(score: number | null | undefined): string {
  return score === null || score === undefined
    ? '–'
    : score.toLocaleString(undefined, { minimumFractionDigits: 1, maximumFractionDigits: 2 })
}

export function formatShare(share: number | null): string {
  return share === null
    ? '–'
    : share.toLocaleString(undefined, { style: 'percent', maximumFractionDigits: 1 })
}

/** Where the true value lies with 95 % certainty. */
export function tellInterval(interval: Interval, format: (value: number) => string): string | undefined {
  return interval ? `95 %: ${format(interval.low)} to ${format(interval.high)}` : undefined
}

/** +0.50, −0.25. */
export function formatDifference(value: number | null): string {
  if (value === null) return '–'
  return value.toLocaleString(undefined, { signDisplay: 'exceptZero', maximumFractionDigits: 2 })
}

export function formatP(value: number): string {
  return value < 0.001 ? '< 0.001' : value.toLocaleString(undefined, { maximumFractionDigits: 3 })
}
