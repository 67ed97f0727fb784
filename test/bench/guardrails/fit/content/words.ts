import { type MetWords, sizeOf } from '../../../../../activities/guardrails/content/meanings.ts'
import { createRandom, shuffle } from '../random.ts'

const WIDE = 512
const NARROW = 128
const SAMPLE = 6_000
const ROUNDS = 12
/** How often a word must be for its weight to be halved, as a share of all words. */
const COMMON = 1e-3
const EPOCHS = 14
const RATE = 0.15
const L2 = 2e-4

/** The embeddings of a vocabulary, with `NARROW` figures a word; a word that is everywhere has small ones. */
export type Embedded = Float32Array

/** Draws the embeddings onto their main directions (orthogonal iteration), and weighs each word by how rare it is. */
export function narrowEmbeddings(vectors: Float32Array, shares: Float64Array): Embedded {
  const count = vectors.length / WIDE
  const mean = new Float64Array(WIDE)
  for (let place = 0; place < vectors.length; place++) mean[place % WIDE]! += vectors[place]! / count
  const covariance = new Float64Array(WIDE * WIDE)
  const step = Math.max(1, Math.floor(count / SAMPLE))
  const centred = new Float64Array(WIDE)
  for (let word = 0; word < count; word += step) {
    for (let place = 0; place < WIDE; place++) centred[place] = vectors[word * WIDE + place]! - mean[place]!
    for (let row = 0; row < WIDE; row++) {
      const value = centred[row]!
      for (let column = 0; column < WIDE; column++)
        covariance[row * WIDE + column]! += value * centred[column]!
    }
  }
  const directions = findDirections(covariance)
  const narrow = new Float32Array(count * NARROW)
  for (let word = 0; word < count; word++) {
    const weight = COMMON / (COMMON + shares[word]!)
    for (let place = 0; place < WIDE; place++) centred[place] = vectors[word * WIDE + place]! - mean[place]!
    for (const [index, direction] of directions.entries()) {
      let sum = 0
      for (let place = 0; place < WIDE; place++) sum += direction[place]! * centred[place]!
      narrow[word * NARROW + index] = sum * weight
    }
  }
  return narrow
}

function findDirections(covariance: Float64Array): Float64Array[] {
  const random = createRandom(7)
  let directions: Float64Array[] = Array.from({ length: NARROW }, () =>
    Float64Array.from({ length: WIDE }, () => random() - 0.5),
  )
  for (let round = 0; round < ROUNDS; round++) {
    directions = orthogonalise(directions.map((direction) => multiply(covariance, direction)))
  }
  return directions
}

function multiply(matrix: Float64Array, vector: Float64Array): Float64Array {
  return Float64Array.from(vector, (_, row) => {
    let sum = 0
    for (let column = 0; column < WIDE; column++) sum += matrix[row * WIDE + column]! * vector[column]!
    return sum
  })
}

function orthogonalise(vectors: Float64Array[]): Float64Array[] {
  for (const [index, vector] of vectors.entries()) {
    for (const before of vectors.slice(0, index)) {
      const shared = vector.reduce((sum, value, place) => sum + value * before[place]!, 0)
      for (let place = 0; place < WIDE; place++) vector[place]! -= shared * before[place]!
    }
    const length = Math.hypot(...vector)
    for (let place = 0; place < WIDE; place++) vector[place]! /= length
  }
  return vectors
}

/** The sum of a stretch's words, as their scores are summed. */
export function embedStretch(embedded: Embedded, { known, words }: MetWords): Float32Array {
  const sum = new Float32Array(NARROW)
  for (const word of known) {
    for (let place = 0; place < NARROW; place++) sum[place]! += embedded[word * NARROW + place]!
  }
  const size = sizeOf(words)
  return sum.map((value) => value / size)
}

type Embeddable = { sum: Float32Array; label: boolean; weight: number }

/** A direction among the embeddings, and what is added to the score along it. */
export type Direction = { weights: Float64Array; bias: number }

/** Fits a logistic regression over the embeddings by AdaGrad, with the mean of the last half of the epochs' weights. */
export function fitDirection(examples: readonly Embeddable[], seed: number): Direction {
  const random = createRandom(seed)
  const weights = new Float64Array(NARROW + 1)
  const squares = new Float64Array(NARROW + 1).fill(1e-2)
  const mean = new Float64Array(NARROW + 1)
  for (let epoch = 0; epoch < EPOCHS; epoch++) {
    for (const { sum, label, weight } of shuffle(examples, random)) {
      let score = weights[NARROW]!
      for (let place = 0; place < NARROW; place++) score += weights[place]! * sum[place]!
      const error = (1 / (1 + Math.exp(-score)) - (label ? 1 : 0)) * weight
      for (let place = 0; place <= NARROW; place++) {
        const slope = place === NARROW ? error : error * sum[place]! + L2 * weights[place]! * weight
        squares[place]! += slope * slope
        weights[place]! -= (RATE * slope) / Math.sqrt(squares[place]!)
      }
    }
    if (epoch < EPOCHS / 2) continue
    for (let place = 0; place <= NARROW; place++) mean[place]! += weights[place]! / (EPOCHS / 2)
  }
  return { weights: mean.slice(0, NARROW), bias: mean[NARROW]! }
}

/** The score of a stretch along a direction. */
export function scoreStretch({ weights, bias }: Direction, sum: Float32Array): number {
  return weights.reduce((score, weight, place) => score + weight * sum[place]!, bias)
}

/** What each word of a vocabulary says along a direction. */
export function scoreVocabulary({ weights }: Direction, embedded: Embedded): Float64Array {
  return Float64Array.from({ length: embedded.length / NARROW }, (_, word) =>
    weights.reduce((score, weight, place) => score + weight * embedded[word * NARROW + place]!, 0),
  )
}
