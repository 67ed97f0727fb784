import type { Calibration, StoredModel } from '../../../../activities/guardrails/linear.ts'
import { createRandom, shuffle } from './random.ts'

/** A text to learn from: the buckets of its distinct features, whether the model shall say yes, and how much it counts. */
export type Example = { buckets: readonly number[]; label: boolean; weight: number }

export type Training = { bits: number; seed: number; epochs?: number; l2?: number; rate?: number }

/**
 * Fits a logistic regression by AdaGrad, one example after the other in an order that the seed decides, with the
 * mean of the last half of the epochs' weights, and packs the weights in bytes. The same examples and the same seed
 * give the same bytes. `l2` draws the weights of an example's features to 0 at each of its visits.
 */
export function fitLinear(examples: readonly Example[], training: Training): StoredModel {
  const { bits, seed, epochs = 12, l2 = 1e-4, rate = 0.3 } = training
  const random = createRandom(seed)
  const size = 2 ** bits
  const weights = new Float64Array(size)
  const squares = new Float64Array(size).fill(1e-2)
  const mean = new Float64Array(size)
  let bias = 0
  let biasSquare = 1e-2
  let biasMean = 0
  const kept = Math.floor(epochs / 2)
  for (let epoch = 0; epoch < epochs; epoch++) {
    for (const { buckets, label, weight } of shuffle(examples, random)) {
      if (buckets.length === 0) continue
      const value = 1 / Math.sqrt(buckets.length)
      let score = bias
      for (const bucket of buckets) score += weights[bucket]! * value
      const error = (1 / (1 + Math.exp(-score)) - (label ? 1 : 0)) * weight
      biasSquare += error * error
      bias -= (rate * error) / Math.sqrt(biasSquare)
      for (const bucket of buckets) {
        const slope = error * value + l2 * weights[bucket]!
        squares[bucket]! += slope * slope
        weights[bucket]! -= (rate * slope) / Math.sqrt(squares[bucket]!)
      }
    }
    if (epoch < kept) continue
    biasMean += bias / (epochs - kept)
    for (let bucket = 0; bucket < size; bucket++) mean[bucket]! += weights[bucket]! / (epochs - kept)
  }
  return pack(mean, biasMean, bits)
}

function pack(weights: Float64Array, bias: number, bits: number): StoredModel {
  let largest = 0
  for (const weight of weights) largest = Math.max(largest, Math.abs(weight))
  const scale = Number((largest / 127 || 1).toPrecision(6))
  const bytes = Buffer.alloc(weights.length)
  for (let bucket = 0; bucket < weights.length; bucket++) {
    bytes.writeInt8(Math.max(-127, Math.min(127, Math.round(weights[bucket]! / scale))), bucket)
  }
  return { bits, bias: Number(bias.toPrecision(6)), scale, weights: bytes.toString('base64') }
}

/** A score on held-out data, whether it should have been a yes, and how much it counts (1 if left out). */
export type Scored = { score: number; label: boolean; weight?: number }

/** Platt's calibration: the logistic curve that makes the labels likeliest, found by Newton's steps. */
export function fitCalibration(scored: readonly Scored[]): Calibration {
  let slope = 1
  let offset = 0
  for (let step = 0; step < 50; step++) {
    let [gradientSlope, gradientOffset] = [1e-3 * slope, 1e-3 * offset]
    let [both, slopes, offsets] = [0, 1e-3, 1e-3]
    for (const { score, label, weight = 1 } of scored) {
      const probability = 1 / (1 + Math.exp(-(slope * score + offset)))
      const error = (probability - (label ? 1 : 0)) * weight
      const curve = probability * (1 - probability) * weight
      gradientSlope += error * score
      gradientOffset += error
      slopes += curve * score * score
      both += curve * score
      offsets += curve
    }
    const determinant = slopes * offsets - both * both
    if (Math.abs(determinant) < 1e-12) break
    slope -= (offsets * gradientSlope - both * gradientOffset) / determinant
    offset -= (slopes * gradientOffset - both * gradientSlope) / determinant
  }
  return { slope: Number(slope.toPrecision(6)), offset: Number(offset.toPrecision(6)) }
}
