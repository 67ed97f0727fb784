/** How planted signals of a kind were found in traffic of a kind, and what was found where nothing was planted. */
export type SignalFigures = {
  kind: string
  baseline: string
  planted: number
  /** Of those that were found: in the how manyth window that had enough requests, from 1. */
  delays: number[]
}

/** `falseAlarms` has the number of each team's, over so many weeks. */
export type MeasuredSignals = {
  signals: SignalFigures[]
  falseAlarms: number[]
  /** How many there are of each metric and baseline. */
  falseBy: Map<string, number>
  weeks: number
  /** Alerts on windows with fewer requests than are judged. */
  onTooFew: number
}

/** Numbers between 0 and 1 that are the same for the same seed (mulberry32), and what is drawn with them. */
export function createChance(seed: number) {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
  const normal = () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next())
  const between = (low: number, high: number) => low + (high - low) * next()
  const poisson = (mean: number) => {
    if (mean > 60) return Math.max(0, Math.round(mean + Math.sqrt(mean) * normal()))
    const limit = Math.exp(-mean)
    let count = 0
    for (let product = next(); product > limit; product *= next()) count++
    return count
  }
  const binomial = (n: number, p: number) => {
    let count = 0
    for (let each = 0; each < n; each++) if (next() < p) count++
    return count
  }
  return { next, normal, between, poisson, binomial }
}

export type Chance = ReturnType<typeof createChance>
