/**
 * How likely a figure of this size or a larger one is, if figures such as `sample` come of chance alone: the upper tail of
 * the gamma distribution (Pearson's type III) with the mean, deviation and skew of the sample. That tells of far smaller
 * likelihoods than counting could: a sample of 200 has none under 1 in 200.
 */
export function tailBeyond(sample: readonly number[], figure: number): number {
  const mean = sample.reduce((sum, x) => sum + x, 0) / sample.length
  const moment = (power: number) => sample.reduce((sum, x) => sum + (x - mean) ** power, 0) / sample.length
  const deviation = Math.sqrt(moment(2))
  if (!(deviation > 0)) return figure > mean ? 0 : 1
  const distance = (figure - mean) / deviation
  const skew = Math.max(LEAST_SKEW, moment(3) / deviation ** 3)
  const shape = 4 / skew ** 2
  return upperGamma(shape, shape + distance * Math.sqrt(shape))
}

/** With less, the distribution is as good as a normal one, and the sums below would need too many terms. */
const LEAST_SKEW = 0.1
const MOST_TERMS = 2_000
const CLOSE = 1e-14

/** The regularised upper incomplete gamma function: a series below the mean, a continued fraction (Lentz) above it. */
function upperGamma(shape: number, x: number): number {
  if (x <= 0) return 1
  const scale = Math.exp(shape * Math.log(x) - x - logGamma(shape))
  if (x < shape + 1) {
    let term = 1 / shape
    let sum = term
    for (let n = 1; n < MOST_TERMS && term > sum * CLOSE; n++) {
      term *= x / (shape + n)
      sum += term
    }
    return Math.max(0, 1 - sum * scale)
  }
  let b = x + 1 - shape
  let c = 1e300
  let d = 1 / b
  let fraction = d
  for (let n = 1; n < MOST_TERMS; n++) {
    const a = -n * (n - shape)
    b += 2
    d = 1 / (a * d + b)
    c = b + a / c
    fraction *= d * c
    if (Math.abs(d * c - 1) < CLOSE) break
  }
  return Math.min(1, Math.max(0, scale * fraction))
}

/** Stirling's series, from 8 on exact to more digits than are needed. */
function logGamma(x: number): number {
  let shift = 0
  let y = x
  for (; y < 8; y++) shift -= Math.log(y)
  return (
    shift +
    (y - 0.5) * Math.log(y) -
    y +
    Math.log(2 * Math.PI) / 2 +
    1 / (12 * y) -
    1 / (360 * y ** 3) +
    1 / (1260 * y ** 5)
  )
}
