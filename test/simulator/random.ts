/** Random choices that a seed decides: the same seed makes the same ones. */
export type Random = {
  /** A whole number from 0 to below `end`. */
  below(end: number): number
  chance(of: number): boolean
  pick<T>(from: readonly T[]): T
  /** Mostly a short delay, sometimes a long one, in whole milliseconds. */
  delay(): number
  /** A number from 0 to below 1. */
  next(): number
}

export function createRandom(seed: number): Random {
  let state = seed >>> 0
  // mulberry32
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
  for (let warm = 0; warm < 4; warm++) next()
  const below = (end: number) => Math.floor(next() * end)
  return {
    next,
    below,
    chance: (of) => next() < of,
    pick: (from) => from[below(from.length)]!,
    delay: () => (next() < 0.3 ? 0 : next() < 0.8 ? below(20) : below(2_000)),
  }
}

/** A number that depends on the text and the seed only. */
export function hashText(seed: number, text: string): number {
  let hash = 2_166_136_261 ^ seed
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 16_777_619)
  return createRandom(hash).below(1_000_000)
}
