/** The first bucket ends at so many milliseconds, each further one at so many times more; the last one has no end. */
const FIRST_MS = 10
const FACTOR = 1.25
const LAST = 87

/** The bucket of a duration, from 0. */
export function findLatencyBucket(ms: number): number {
  if (ms < FIRST_MS) return 0
  return Math.min(LAST, Math.floor(Math.log(ms / FIRST_MS) / Math.log(FACTOR) + 1e-9) + 1)
}

/**
 * The milliseconds that a share of durations stay under, at most 25 % off; null if there are none. `counts` has how many
 * are in each bucket, by the bucket's number.
 */
export function readLatency(counts: ReadonlyMap<number, number>, share: number): number | null {
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0)
  if (total === 0) return null
  let left = share * total
  for (const [bucket, count] of [...counts].sort(([a], [b]) => a - b)) {
    if (left > count) {
      left -= count
      continue
    }
    const begin = bucket === 0 ? 0 : FIRST_MS * FACTOR ** (bucket - 1)
    const end = FIRST_MS * FACTOR ** bucket
    return Math.round(begin + (end - begin) * (left / count))
  }
  return null
}
