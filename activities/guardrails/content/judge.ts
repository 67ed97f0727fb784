import { readFileSync } from 'node:fs'
import {
  type Calibration,
  calibrate,
  type LinearModel,
  openModel,
  type StoredModel,
  scoreBuckets,
} from '../linear.ts'
import { CONTENT_CATEGORIES, type ContentCategory } from './categories.ts'
import { listFeatures } from './features.ts'
import { FIGURES, readFigures } from './figures.ts'
import {
  type Meanings,
  type MetWords,
  openVocabulary,
  readMeanings,
  scoreMeanings,
  type Vocabulary,
} from './meanings.ts'
import type { Token } from './tokens.ts'

/**
 * What judges one category: a weight for each figure (`figures.ts`), a model over the hashed features (`features.ts`),
 * what words say by their meaning (`meanings.ts`), what makes a probability of the sum of the three scores, and the least
 * probability that is told.
 */
export type Judge = {
  figures: Float64Array
  model: LinearModel
  meanings: Meanings
  calibration: Calibration
  threshold: number
}

/** A judge as it lies in `weights.json`; the weights of the figures in their order, parted by spaces. */
export type StoredJudge = {
  figures: string
  model: StoredModel
  meanings: { scale: number; weights: string }
  calibration: Calibration
  threshold: number
}

/** What lies in `weights.json`: the judges, and the vocabulary that they share. */
export type StoredJudges = { vocabulary: string; judges: Record<ContentCategory, StoredJudge> }

export type Judges = { vocabulary: Vocabulary; of: Record<ContentCategory, Judge> }

/** The judges of a file's content. Throws if it was fitted for another lexicon, other rules or another vocabulary. */
export function readJudges(stored: StoredJudges): Judges {
  const vocabulary = openVocabulary(stored.vocabulary)
  const read = CONTENT_CATEGORIES.map((category) => {
    const { figures, model, meanings, calibration, threshold } = stored.judges[category]
    const weights = Float64Array.from(figures.split(' '), Number)
    if (weights.length !== FIGURES) {
      throw new Error(
        `The weights of ${category} are for ${weights.length} figures, not ${FIGURES}: fit them again`,
      )
    }
    const bytes = Buffer.from(meanings.weights, 'base64')
    if (bytes.length !== vocabulary.size) {
      throw new Error(
        `The weights of ${category} are for ${bytes.length} words, not ${vocabulary.size}: fit them again`,
      )
    }
    const opened = { scale: meanings.scale, weights: new Int8Array(bytes) }
    return [category, { figures: weights, model: openModel(model), meanings: opened, calibration, threshold }]
  })
  return { vocabulary, of: Object.fromEntries(read) }
}

let judges: Judges | undefined

/** The judges that were fitted, read once. */
export function loadJudges(): Judges {
  judges ??= readJudges(JSON.parse(readFileSync(new URL('./weights.json', import.meta.url), 'utf8')))
  return judges
}

/** What the judges see of a stretch of tokens. */
export type Evidence = { figures: [figure: number, value: number][]; buckets: number[]; met: MetWords }

/** The evidence of the whole sentences from token `from` up to, not including, `to`. */
export type ListEvidence = (from: number, to: number) => Evidence

/** Reads a text once, for the evidence of any number of stretches of it. Linear time. */
export function readEvidence(tokens: readonly Token[], vocabulary: Vocabulary): ListEvidence {
  const figures = readFigures(tokens)
  const features = listFeatures(tokens)
  const meanings = readMeanings(tokens, vocabulary)
  return (from, to) => ({
    figures: figures(from, to),
    buckets: features(from, to),
    met: meanings(from, to),
  })
}

/** The score of a judge: the higher, the surer; it has no unit. */
function scoreEvidence(
  { figures, model, meanings }: Pick<Judge, 'figures' | 'model' | 'meanings'>,
  evidence: Evidence,
): number {
  let score = scoreBuckets(model, evidence.buckets) + scoreMeanings(meanings, evidence.met)
  for (const [figure, value] of evidence.figures) score += figures[figure]! * value
  return score
}

/** The probability, 0 to 1, that a stretch of tokens is of the judge's category. */
export function judgeEvidence(judge: Judge, evidence: Evidence): number {
  return calibrate(scoreEvidence(judge, evidence), judge.calibration)
}
