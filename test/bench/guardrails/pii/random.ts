/** Numbers that look drawn by lot and are the same each time: mulberry32. */
export function createDraw(seed: number) {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
  const below = (n: number) => Math.floor(next() * n)
  const pick = <T>(list: readonly T[]): T => list[below(list.length)]!
  const from = (alphabet: string, length: number) =>
    Array.from({ length }, () => alphabet[below(alphabet.length)]).join('')
  const LOWER = 'abcdefghijklmnopqrstuvwxyz'
  const DIGITS = '0123456789'
  return {
    below,
    pick,
    from,
    digits: (n: number) => from(DIGITS, n),
    hex: (n: number) => from('0123456789abcdef', n),
    lower: (n: number) => from(LOWER + DIGITS, n),
    upper: (n: number) => from(LOWER.toUpperCase() + DIGITS, n),
    alnum: (n: number) => from(LOWER + LOWER.toUpperCase() + DIGITS, n),
    url: (n: number) => from(`${LOWER}${LOWER.toUpperCase()}${DIGITS}-_`, n),
    base64: (n: number) => from(`${LOWER}${LOWER.toUpperCase()}${DIGITS}+/`, n),
    uuid: () => [8, 4, 4, 4, 12].map((n) => from('0123456789abcdef', n)).join('-'),
  }
}

export type Draw = ReturnType<typeof createDraw>
