/** The middle of some numbers; NaN of none. */
export function findMedian(values: number[]): number {
  return findQuantile(
    [...values].sort((a, b) => a - b),
    0.5,
  )
}

/** A quantile of numbers in ascending order; NaN of none. */
export function findQuantile(sorted: number[], q: number): number {
  if (sorted.length === 0) return Number.NaN
  const place = (sorted.length - 1) * q
  const below = Math.floor(place)
  const low = sorted[below]!
  const high = sorted[Math.min(below + 1, sorted.length - 1)]!
  return low + (high - low) * (place - below)
}

/**
 * How far numbers scatter around their median, as a standard deviation that outliers hardly change: 1.4826 times the median
 * of their distances; where more than half of them are the same, 1.2533 times the mean.
 */
export function findSpread(values: number[], median: number): number {
  const distances = values.map((value) => Math.abs(value - median))
  const mad = findMedian(distances)
  if (mad > 0) return 1.4826 * mad
  return (1.2533 * distances.reduce((sum, distance) => sum + distance, 0)) / Math.max(1, values.length)
}

/** The probability that a binomial count is `k` or more. Neither `k` nor `n` need be whole. */
export function findUpperTail(k: number, n: number, p: number): number {
  if (k <= 0) return 1
  if (k > n || p <= 0) return 0
  if (p >= 1) return 1
  return incompleteBeta(p, k, n - k + 1)
}

/** The bound that a rate is above with a confidence of `z` standard deviations, and the one that it is below (Wilson). */
export function boundRate(k: number, n: number, z: number): { low: number; high: number } {
  if (n <= 0) return { low: 0, high: 1 }
  const rate = k / n
  const square = z * z
  const center = rate + square / (2 * n)
  const reach = z * Math.sqrt((rate * (1 - rate)) / n + square / (4 * n * n))
  const scale = 1 + square / n
  return { low: Math.max(0, (center - reach) / scale), high: Math.min(1, (center + reach) / scale) }
}

/** How many standard deviations a normal number exceeds with the probability `alpha` (Acklam, a ninth digit is wrong). */
export function findNormalBound(alpha: number): number {
  const p = Math.min(Math.max(alpha, 1e-15), 0.5)
  const c = [0.007784894002430293, 0.3223964580411365, 2.400758277161838, 2.549732539343734]
  const c2 = [-4.374664141464968, -2.938163982698783]
  const d = [0.007784695709041462, 0.3224671290700398, 2.445134137142996, 3.754408661907416]
  if (p < 0.02425) {
    const q = Math.sqrt(-2 * Math.log(p))
    const above = ((((c[0]! * q + c[1]!) * q + c[2]!) * q + c[3]!) * q + c2[0]!) * q + c2[1]!
    return above / ((((d[0]! * q + d[1]!) * q + d[2]!) * q + d[3]!) * q + 1)
  }
  const q = 0.5 - p
  const r = q * q
  const a = [-39.69683028665376, 220.9460984245205, -275.9285104469687, 138.357751867269]
  const a2 = [-30.66479806614716, 2.506628277459239]
  const b = [-54.47609879822406, 161.5858368580409, -155.6989798598866, 66.80131188771972]
  const above = (((((a[0]! * r + a[1]!) * r + a[2]!) * r + a[3]!) * r + a2[0]!) * r + a2[1]!) * q
  return above / (((((b[0]! * r + b[1]!) * r + b[2]!) * r + b[3]!) * r - 13.28068155288572) * r + 1)
}

/** The same for a number whose standard deviation was found from so many others (Hill's first terms). */
export function findStudentBound(alpha: number, freedom: number): number {
  const z = findNormalBound(alpha)
  const v = Math.max(3, freedom)
  const z3 = z ** 3
  const z5 = z ** 5
  return z + (z3 + z) / (4 * v) + (5 * z5 + 16 * z3 + 3 * z) / (96 * v * v)
}

/** The regularized incomplete beta function, by its continued fraction (Lentz). */
function incompleteBeta(x: number, a: number, b: number): number {
  const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log(1 - x))
  return x < (a + 1) / (a + b + 2)
    ? (front * continueFraction(x, a, b)) / a
    : 1 - (front * continueFraction(1 - x, b, a)) / b
}

const TERMS = 300
const TINY = 1e-300

function continueFraction(x: number, a: number, b: number): number {
  const keep = (value: number) => (Math.abs(value) < TINY ? TINY : value)
  let c = 1
  let d = 1 / keep(1 - ((a + b) * x) / (a + 1))
  let value = d
  for (let m = 1; m <= TERMS; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m))
    d = 1 / keep(1 + even * d)
    c = keep(1 + even / c)
    value *= d * c
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1))
    d = 1 / keep(1 + odd * d)
    c = keep(1 + odd / c)
    const change = d * c
    value *= change
    if (Math.abs(change - 1) < 1e-12) break
  }
  return value
}

const LANCZOS = [
  76.18009172947146, -86.50532032941678, 24.01409824083091, -1.231739572450155, 0.1208650973866179e-2,
  -0.5395239384953e-5,
]

function logGamma(x: number): number {
  const shifted = x + 5.5 - (x + 0.5) * Math.log(x + 5.5)
  const series = LANCZOS.reduce((sum, term, place) => sum + term / (x + place + 1), 1.000000000190015)
  return -shifted + Math.log((2.5066282746310007 * series) / x)
}
