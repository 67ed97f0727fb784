/**
 * A linear model over hashed features: a text's features are numbers of `bits` bits, each with one weight of a
 * byte. `scale` makes a weight of the byte, `bias` is the score of a text without features.
 */
export type LinearModel = { bits: number; bias: number; scale: number; weights: Int8Array }

/** A linear model as it lies in a file: the weights in base64. */
export type StoredModel = { bits: number; bias: number; scale: number; weights: string }

/** What makes a probability of a score: the logistic function of `slope` times the score, plus `offset`. */
export type Calibration = { slope: number; offset: number }

const FNV_OFFSET = 0x811c9dc5
const FNV_PRIME = 0x01000193

/**
 * The hash of a text's UTF-16 units from `from` to `to` (FNV-1a, mixed at its end, 32 bits). With `seed`, the hash
 * of what came before goes into it: so a feature of several words needs no string of its own.
 */
export function hashText(text: string, seed = FNV_OFFSET, from = 0, to = text.length): number {
  let hash = seed >>> 0
  for (let place = from; place < to; place++) hash = Math.imul(hash ^ text.charCodeAt(place), FNV_PRIME)
  return mixHash(hash)
}

/** The hash of two hashes, in their order. */
export function joinHashes(first: number, second: number): number {
  return mixHash(Math.imul(first ^ FNV_OFFSET, FNV_PRIME) ^ Math.imul(second, 0x9e3779b1))
}

function mixHash(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return (mixed ^ (mixed >>> 16)) >>> 0
}

/** The model of a file; throws if its weights are not as many as its features. */
export function openModel({ bits, bias, scale, weights }: StoredModel): LinearModel {
  const bytes = Buffer.from(weights, 'base64')
  if (bytes.length !== 2 ** bits) {
    throw new Error(`A model of ${bits} bits has ${2 ** bits} weights, not ${bytes.length}`)
  }
  return { bits, bias, scale, weights: new Int8Array(bytes.buffer, bytes.byteOffset, bytes.length) }
}

/** The bucket of a feature's hash, in a model of `bits` bits. */
export function bucketOf(hash: number, bits: number): number {
  return hash >>> (32 - bits)
}

/**
 * The score of a text whose distinct features lie in `buckets`: the sum of their weights, divided by the root of
 * their number, so that long texts and short ones are on one scale; above 0 the model says yes.
 */
export function scoreBuckets(model: LinearModel, buckets: Iterable<number>): number {
  let sum = 0
  let count = 0
  for (const bucket of buckets) {
    sum += model.weights[bucket]!
    count++
  }
  return count === 0 ? model.bias : model.bias + (sum * model.scale) / Math.sqrt(count)
}

/** The probability, 0 to 1, that a calibration gives a score. */
export function calibrate(score: number, { slope, offset }: Calibration): number {
  return 1 / (1 + Math.exp(-(slope * score + offset)))
}
