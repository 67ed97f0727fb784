import type { ContentCategory } from '../../../../../activities/guardrails/content/categories.ts'
import { FIGURES, priorWeights } from '../../../../../activities/guardrails/content/figures.ts'

type FigureExample = { figures: readonly [number, number][]; label: boolean; weight: number }

const STEPS = 120
const RATE = 0.03
const DECAY = 0.95
/** How hard the weights are drawn to what the rules say before anything is fitted. */
const PULL = 2e-3
/** What the rules' points become: points were given with a single sign in mind, texts have several. */
const SHRINK = 0.6

/** Fits the weights of the figures by full steps of a logistic regression (RMSProp), drawn to the rules' own points. */
export function fitFigures(examples: readonly FigureExample[], category: ContentCategory) {
  const prior = priorWeights(category).map((points) => points * SHRINK)
  const weights = Float64Array.from(prior)
  const squares = new Float64Array(FIGURES)
  const total = examples.reduce((sum, { weight }) => sum + weight, 0)
  let bias = -3
  let biasSquare = 0
  for (let step = 0; step < STEPS; step++) {
    const slopes = Float64Array.from(weights, (weight, figure) => PULL * (weight - prior[figure]!))
    let biasSlope = 0
    for (const { figures, label, weight } of examples) {
      let score = bias
      for (const [figure, value] of figures) score += weights[figure]! * value
      const error = ((1 / (1 + Math.exp(-score)) - (label ? 1 : 0)) * weight) / total
      biasSlope += error
      for (const [figure, value] of figures) slopes[figure]! += error * value
    }
    for (const [figure, slope] of slopes.entries()) {
      squares[figure] = DECAY * squares[figure]! + (1 - DECAY) * slope * slope
      weights[figure]! -= (RATE * slope) / Math.sqrt(squares[figure]! + 1e-10)
    }
    biasSquare = DECAY * biasSquare + (1 - DECAY) * biasSlope * biasSlope
    bias -= (RATE * biasSlope) / Math.sqrt(biasSquare + 1e-10)
  }
  return {
    figures: Array.from(weights, (weight) => Number(weight.toFixed(3))),
    bias: Number(bias.toFixed(3)),
  }
}
