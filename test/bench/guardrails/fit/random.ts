/** Numbers from 0 up to, not including, 1: the same ones for the same seed (mulberry32). */
export function createRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** The values in another order, which the random numbers decide. */
export function shuffle<T>(values: readonly T[], random: () => number): T[] {
  const shuffled = [...values]
  for (let last = shuffled.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1))
    const kept = shuffled[last]!
    shuffled[last] = shuffled[other]!
    shuffled[other] = kept
  }
  return shuffled
}
