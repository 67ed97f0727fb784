import type { Calibration } from '../../../../../activities/guardrails/linear.ts'

/** A window that the model did not learn from: its score, the numbers of the rules that hit, and whether it is an attack. */
export type Judged = {
  score: number
  rules: readonly number[]
  attack: boolean
  weight: number
  source: string
}

/**
 * The logistic regression of attacks on the score and the rules, by gradient descent; no rule's figure is below 0, and each
 * is drawn to 0, so that a rule which seldom hits says little.
 */
export function fitStack(
  judged: readonly Judged[],
  rules: number,
): { calibration: Calibration; rules: number[] } {
  const figures = new Float64Array(rules)
  let [slope, offset] = [1, 0]
  const total = judged.reduce((sum, { weight }) => sum + weight, 0)
  for (let step = 0; step < 3_000; step++) {
    let [slopes, offsets] = [0, 0]
    const gradients = new Float64Array(rules)
    for (const { score, rules: hits, attack, weight } of judged) {
      let odds = slope * score + offset
      for (const rule of hits) odds += figures[rule]!
      const error = (1 / (1 + Math.exp(-odds)) - (attack ? 1 : 0)) * weight
      slopes += error * score
      offsets += error
      for (const rule of hits) gradients[rule]! += error
    }
    const rate = 2
    slope -= (rate * slopes) / total
    offset -= (rate * offsets) / total
    for (let rule = 0; rule < rules; rule++) {
      const gradient = gradients[rule]! / total + 3e-4 * figures[rule]!
      figures[rule] = Math.max(0, figures[rule]! - rate * 5 * gradient)
    }
  }
  const round = (figure: number) => Number(figure.toPrecision(5))
  return { calibration: { slope: round(slope), offset: round(offset) }, rules: [...figures].map(round) }
}
