/** What the three parts of a judge say of a stretch. */
export type Scores = { figures: number; hashed: number; words: number }

/** How much each part counts; none counts less than nothing. */
export type Mix = Scores

type Labelled = { scores: Scores; label: boolean; weight: number }

const STEPS = 400
const RATE = 0.05
const PARTS = ['figures', 'hashed', 'words'] as const

/** The mix whose sum tells the labels best, by a logistic regression on scores of texts that were not fitted. */
export function fitMix(labelled: readonly Labelled[]): Mix {
  const mix: Mix = { figures: 0.5, hashed: 0.5, words: 0.5 }
  const total = labelled.reduce((sum, { weight }) => sum + weight, 0)
  let bias = 0
  for (let step = 0; step < STEPS; step++) {
    const slopes = { figures: 0, hashed: 0, words: 0 }
    let biasSlope = 0
    for (const { scores, label, weight } of labelled) {
      const error =
        (1 / (1 + Math.exp(-(mixScores(mix, scores) + bias))) - (label ? 1 : 0)) * (weight / total)
      for (const part of PARTS) slopes[part] += error * scores[part]
      biasSlope += error
    }
    for (const part of PARTS) mix[part] = Math.max(0, mix[part] - RATE * slopes[part])
    bias -= RATE * biasSlope
  }
  return mix
}

export const mixScores = (mix: Mix, scores: Scores): number =>
  PARTS.reduce((sum, part) => sum + mix[part] * scores[part], 0)
