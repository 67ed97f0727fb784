import { compareRows, packRows, ROW_LENGTH } from '../../../../../activities/guardrails/semantic/embedder.ts'
import type { StoredExemplars } from '../../../../../activities/guardrails/semantic/judge.ts'

const STEPS = 600
const RATE = 3
/** Draws the weights to 0: there are more figures in a row than exemplars. */
const RIDGE = 3

/** Fits the linear function of rows that tells those of attacks from others (logistic regression by gradient descent). */
export function fitDirection(attacks: Float32Array, others: Float32Array): StoredExemplars['direction'] {
  const rows = Float32Array.from([...attacks, ...others])
  const count = rows.length / ROW_LENGTH
  const weights = new Float32Array(ROW_LENGTH)
  let bias = 0
  for (let step = 0; step < STEPS; step++) {
    const slopes = new Float64Array(ROW_LENGTH)
    let biasSlope = 0
    for (let row = 0; row < count; row++) {
      const label = row < attacks.length / ROW_LENGTH ? 1 : 0
      const error = 1 / (1 + Math.exp(-(compareRows(rows, row, weights, 0) + bias))) - label
      biasSlope += error
      for (let i = 0; i < ROW_LENGTH; i++) slopes[i]! += error * rows[row * ROW_LENGTH + i]!
    }
    for (let i = 0; i < ROW_LENGTH; i++) weights[i]! -= (RATE * (slopes[i]! + RIDGE * weights[i]!)) / count
    bias -= (RATE * biasSlope) / count
  }
  const scale = Math.hypot(...weights)
  const packed = packRows(weights.map((weight) => weight / scale))
  return {
    bias: Number(bias.toPrecision(5)),
    scale: Number(scale.toPrecision(5)),
    weights: Buffer.from(packed).toString('base64'),
  }
}
