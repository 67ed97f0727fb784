import type { Work } from '../../../workflows/turns.ts'
import { tailBeyond } from './tails.ts'

/** Points with `width` figures each, one behind the other. */
export type Points = { figures: Float32Array; width: number }

/** How far two samples are apart. */
export type Distance = {
  /** The distance of their means, of which what chance alone makes of it is taken off; 0 at least. */
  effect: number
  /** How likely chance alone makes a distance as large. */
  likelihood: number
  /** How much chance alone scatters the square of the distance. */
  noise: number
}

/** How often the points are dealt anew, to see the effect of chance. */
const DEALS = 200
/** The number of figures that are summed up in one unit of work. */
const FIGURES_PER_UNIT = 2_000

export const countPoints = ({ figures, width }: Points): number => figures.length / width

/**
 * Compares the means of two samples: their squared distance, unbiased, which is the maximum mean discrepancy with a linear
 * kernel (Gretton et al. 2012). What chance makes of it is seen by dealing all points anew to two samples of the same sizes;
 * `seed` decides how, so that the same samples always compare the same.
 */
export function* compareMeans(reference: Points, current: Points, seed: number): Work<Distance> {
  const { width } = current
  const [n, m] = [countPoints(current), countPoints(reference)]
  const all = new Float32Array(current.figures.length + reference.figures.length)
  all.set(current.figures)
  all.set(reference.figures, current.figures.length)
  const total = new Float64Array(width)
  const squares = new Float64Array(n + m)
  yield units((n + m) * width)
  for (let point = 0; point < n + m; point++) {
    let square = 0
    for (let i = 0; i < width; i++) {
      const figure = all[point * width + i]!
      total[i]! += figure
      square += figure * figure
    }
    squares[point] = square
  }
  const allSquares = squares.reduce((sum, square) => sum + square, 0)
  const order = Uint32Array.from(squares, (_, point) => point)
  const sum = new Float64Array(width)
  /** The distance of the first `n` points of the order from the others. */
  const measure = (): number => {
    sum.fill(0)
    let own = 0
    for (let place = 0; place < n; place++) {
      const point = order[place]!
      own += squares[point]!
      for (let i = 0; i < width; i++) sum[i]! += all[point * width + i]!
    }
    let [inner, outer, cross] = [0, 0, 0]
    for (let i = 0; i < width; i++) {
      const other = total[i]! - sum[i]!
      inner += sum[i]! * sum[i]!
      outer += other * other
      cross += sum[i]! * other
    }
    return (
      (inner - own) / (n * (n - 1)) + (outer - (allSquares - own)) / (m * (m - 1)) - (2 * cross) / (n * m)
    )
  }
  const distance = measure()
  const random = createRandom(seed)
  const dealt: number[] = []
  for (let deal = 0; deal < DEALS; deal++) {
    yield units(n * width)
    // The first n places of a Fisher-Yates shuffle.
    for (let place = 0; place < n; place++) {
      const other = place + Math.floor(random() * (n + m - place))
      const point = order[place]!
      order[place] = order[other]!
      order[other] = point
    }
    dealt.push(measure())
  }
  const noise = Math.sqrt(dealt.reduce((sum, one) => sum + one ** 2, 0) / DEALS)
  return { effect: Math.sqrt(Math.max(0, distance)), likelihood: tailBeyond(dealt, distance), noise }
}

/** The figures of a sample that tell how far its mean is from another's. */
export type SampleSummary = { count: number; sums: Float64Array; squares: number }

export function summarise({ figures, width }: Points): SampleSummary {
  const sums = new Float64Array(width)
  let squares = 0
  for (let at = 0; at < figures.length; at += width)
    for (let i = 0; i < width; i++) {
      const figure = figures[at + i]!
      sums[i]! += figure
      squares += figure * figure
    }
  return { count: figures.length / width, sums, squares }
}

/** The squared distance of two means, unbiased: it may be less than 0. */
export function measureSquare(a: SampleSummary, b: SampleSummary): number {
  let [inner, outer, cross] = [0, 0, 0]
  for (let i = 0; i < a.sums.length; i++) {
    const [x, y] = [a.sums[i]!, b.sums[i]!]
    inner += x * x
    outer += y * y
    cross += x * y
  }
  const [n, m] = [a.count, b.count]
  return (inner - a.squares) / (n * (n - 1)) + (outer - b.squares) / (m * (m - 1)) - (2 * cross) / (n * m)
}

/** How far points lie from their mean: the root of the sum of their variances. */
export function measureSpread(points: Points): number {
  const { sums, squares, count } = summarise(points)
  const ofMean = sums.reduce((sum, figure) => sum + (figure / count) ** 2, 0)
  return Math.sqrt(Math.max(0, squares / count - ofMean))
}

/** The mean of points. */
export function meanOf(points: Points): Float32Array {
  const { sums, count } = summarise(points)
  return Float32Array.from(sums, (sum) => sum / count)
}

const units = (figures: number) => Math.min(20_000, 1 + Math.ceil(figures / FIGURES_PER_UNIT))

/** Numbers from 0 to 1, always the same ones for a seed (mulberry32). */
export function createRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
