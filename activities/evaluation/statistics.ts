/** Statistics of some figures. The interval is that of the mean, at 95 %; null for fewer than two figures. */
export type FigureSummary = {
  n: number
  mean: number | null
  median: number | null
  min: number | null
  max: number | null
  ci95: Interval | null
}

export type Interval = { low: number; high: number }

/** Mean, median and range of some figures, with the interval of Student's t for the mean. */
export function summarize(values: readonly number[]): FigureSummary {
  const n = values.length
  if (n === 0) return { n, mean: null, median: null, min: null, max: null, ci95: null }
  const sorted = [...values].sort((a, b) => a - b)
  const middle = Math.floor(n / 2)
  const median = n % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
  return {
    n,
    mean: meanOf(values),
    median,
    min: sorted[0]!,
    max: sorted[n - 1]!,
    ci95: intervalOfMean(values),
  }
}

/** The interval of Student's t for a mean, at 95 %; null of fewer than two values. */
export function intervalOfMean(values: readonly number[]): Interval | null {
  const n = values.length
  if (n < 2) return null
  const mean = meanOf(values)
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (n - 1)
  const half = studentQuantile(0.975, n - 1) * Math.sqrt(variance / n)
  return { low: mean - half, high: mean + half }
}

/** Wilson's interval for a share of `n`, at 95 %; null of none. */
export function intervalOfShare(hits: number, n: number): Interval | null {
  if (n === 0) return null
  const z = 1.959963984540054
  const share = hits / n
  const centre = share + (z * z) / (2 * n)
  const half = z * Math.sqrt((share * (1 - share)) / n + (z * z) / (4 * n * n))
  const all = 1 + (z * z) / n
  return {
    low: hits === 0 ? 0 : Math.max(0, (centre - half) / all),
    high: hits === n ? 1 : Math.min(1, (centre + half) / all),
  }
}

/** The two-sided p-value of the exact sign test: how likely so uneven a split is by chance. 1 of none. */
export function testSigns(up: number, down: number): number {
  const n = up + down
  if (n === 0) return 1
  let tail = 0
  for (let k = 0; k <= Math.min(up, down); k++) tail += Math.exp(lnChoose(n, k) - n * Math.LN2)
  return Math.min(1, 2 * tail)
}

/** Up to so many differences, Wilcoxon's test counts all their signs; of more it takes the normal approximation. */
const EXACT_RANKS = 50

/**
 * The two-sided p-value of Wilcoxon's signed-rank test. Differences of 0 are left out, and those of the same size share
 * their ranks, also where it is exact. 1 of none.
 */
export function testSignedRanks(differences: readonly number[]): number {
  const kept = differences
    .filter((difference) => Math.abs(difference) > 1e-9)
    .sort((a, b) => Math.abs(a) - Math.abs(b))
  const n = kept.length
  if (n === 0) return 1
  // Twice the ranks, which are so whole numbers.
  const ranks: number[] = []
  let ties = 0
  for (let from = 0; from < n; ) {
    let to = from + 1
    while (to < n && Math.abs(Math.abs(kept[to]!) - Math.abs(kept[from]!)) < 1e-9) to++
    for (let at = from; at < to; at++) ranks.push(from + to + 1)
    ties += (to - from) ** 3 - (to - from)
    from = to
  }
  const up = ranks.reduce((sum, rank, at) => sum + (kept[at]! > 0 ? rank : 0), 0)
  const all = n * (n + 1)
  const least = Math.min(up, all - up)
  if (n <= EXACT_RANKS) return Math.min(1, 2 * shareOfSums(ranks, least))
  const variance = (n * (n + 1) * (2 * n + 1)) / 24 - ties / 48
  return Math.min(1, 2 * normalTail((all / 2 - least) / 2 / Math.sqrt(variance)))
}

/** Which share of all choices of ranks has a sum of at most `most`. */
function shareOfSums(ranks: readonly number[], most: number): number {
  let shares = [1]
  for (const rank of ranks) {
    const next = new Array<number>(shares.length + rank).fill(0)
    for (const [sum, share] of shares.entries()) {
      next[sum]! += share / 2
      next[sum + rank]! += share / 2
    }
    shares = next
  }
  return shares.slice(0, most + 1).reduce((sum, share) => sum + share, 0)
}

const meanOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length

/** How likely a normal figure is above `z`, for a `z` of 0 and more. */
function normalTail(z: number): number {
  // The incomplete gamma function of a half, which is a chi square with one degree of freedom.
  const x = (z * z) / 2
  if (x === 0) return 0.5
  if (x < 1.5) {
    let term = 2
    let sum = term
    for (let k = 1; k < 200 && term > sum * 1e-16; k++) {
      term *= x / (k + 0.5)
      sum += term
    }
    return 0.5 * (1 - (Math.exp(-x) * Math.sqrt(x) * sum) / Math.sqrt(Math.PI))
  }
  // The continued fraction of Legendre, evaluated from its end.
  let bottom = x + 400.5
  for (let k = 200; k >= 1; k--) bottom = x + 2 * k - 1.5 - (k * (k - 0.5)) / bottom
  return (0.5 * Math.exp(-x) * Math.sqrt(x)) / (bottom * Math.sqrt(Math.PI))
}

/** The value that Student's t with `freedom` degrees is below with this probability, above a half. */
function studentQuantile(probability: number, freedom: number): number {
  let low = 0
  let high = 1
  while (studentBelow(high, freedom) < probability) high *= 2
  for (let step = 0; step < 100 && high - low > 1e-12 * high; step++) {
    const middle = (low + high) / 2
    if (studentBelow(middle, freedom) < probability) low = middle
    else high = middle
  }
  return (low + high) / 2
}

function studentBelow(t: number, freedom: number): number {
  return 1 - incompleteBeta(freedom / (freedom + t * t), freedom / 2, 0.5) / 2
}

/** The regularized incomplete beta function, by its continued fraction (Lentz). */
function incompleteBeta(x: number, a: number, b: number): number {
  if (x <= 0) return 0
  if (x >= 1) return 1
  if (x > (a + 1) / (a + b + 2)) return 1 - incompleteBeta(1 - x, b, a)
  const front = Math.exp(lnGamma(a + b) - lnGamma(a) - lnGamma(b) + a * Math.log(x) + b * Math.log1p(-x)) / a
  const tiny = 1e-300
  let c = 1
  let d = 1 / (1 - ((a + b) * x) / (a + 1) || tiny)
  let product = d
  for (let m = 1; m < 1_000; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m))
    d = 1 / (1 + even * d || tiny)
    c = 1 + even / c || tiny
    product *= d * c
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1))
    d = 1 / (1 + odd * d || tiny)
    c = 1 + odd / c || tiny
    product *= d * c
    if (Math.abs(d * c - 1) < 1e-15) break
  }
  return front * product
}

const lnChoose = (n: number, k: number) => lnGamma(n + 1) - lnGamma(k + 1) - lnGamma(n - k + 1)

const LANCZOS = [
  0.999_999_999_999_809_9, 676.520_368_121_885_1, -1_259.139_216_722_402_8, 771.323_428_777_653_1,
  -176.615_029_162_140_6, 12.507_343_278_686_905, -0.138_571_095_265_720_12, 9.984_369_578_019_572e-6,
  1.505_632_735_149_311_6e-7,
]

function lnGamma(z: number): number {
  if (z < 0.5) return Math.log(Math.PI / Math.sin(Math.PI * z)) - lnGamma(1 - z)
  const x = z - 1
  const t = x + 7.5
  const sum = LANCZOS.slice(1).reduce((all, factor, at) => all + factor / (x + at + 1), LANCZOS[0]!)
  return 0.5 * Math.log(2 * Math.PI) + (x + 0.5) * Math.log(t) - t + Math.log(sum)
}
