import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import {
  judgeWindow,
  type StoredWeights,
  WEIGHTS_FILE,
  type Weighing,
} from '../../../../../activities/guardrails/injection/confidence.ts'
import { listTokenWindows } from '../../../../../activities/guardrails/injection/evidence.ts'
import { createBucketLister, readFeatures } from '../../../../../activities/guardrails/injection/features.ts'
import { thresholdOf } from '../../../../../activities/guardrails/injection/injection.ts'
import { findMentions, splitMentions } from '../../../../../activities/guardrails/injection/mentions.ts'
import { findRuleHits, RULE_NAMES } from '../../../../../activities/guardrails/injection/rules.ts'
import {
  type LinearModel,
  openModel,
  type StoredModel,
  scoreBuckets,
} from '../../../../../activities/guardrails/linear.ts'
import { createRandom } from '../random.ts'
import { type Example, fitLinear } from '../train.ts'
import type { Sample } from './sentences.ts'
import { listFitted } from './sources.ts'
import { fitStack, type Judged } from './stack.ts'

const BITS = 18
const TRAINING = { bits: BITS, seed: 5, epochs: 6, l2: 3e-5, rate: 0.3 }
const FOLDS = 5
/** Harmless texts are much more frequent than attacks: confidences are calibrated as if there were so many times as many. */
const HARMLESS_WEIGHT = 1.8

/** A text's windows, as the detector sees them: in lower case, without what is only mentioned. */
type Prepared = Sample & { windows: Int32Array[]; rules: number[][] }

const listBuckets = createBucketLister(BITS)

/** Reads a text as the detector does, into the buckets and the rules of each window. */
export function prepare(sample: Sample): Prepared {
  const lower = sample.text.toLowerCase()
  const text = splitMentions(lower, findMentions(lower)).own
  const tokens = readFeatures(text, BITS)
  const hits = findRuleHits(text)
  const windows = listTokenWindows(tokens.count)
  return {
    ...sample,
    windows: windows.map((window) => listBuckets(tokens, window)),
    rules: windows.map(({ from, to }) => {
      const [start, end] = [tokens.starts[from]!, tokens.stops[to - 1]!]
      return [...new Set(hits.filter((hit) => hit.start >= start && hit.start < end).map(({ rule }) => rule))]
    }),
  }
}

/** Which window of a text the model takes most for an attack. */
function findWorst(model: LinearModel, { windows }: Prepared): number {
  let worst = 0
  for (let at = 1; at < windows.length; at++) {
    if (scoreBuckets(model, windows[at]!) > scoreBuckets(model, windows[worst]!)) worst = at
  }
  return worst
}

/**
 * Fits the model in two passes: which window of a long text holds its attack is not known, so the first pass learns from
 * texts of one window, and the second takes of each longer attack the window that the first finds worst.
 */
export function fitModel(samples: readonly Prepared[]): StoredModel {
  const examples = samples.flatMap((sample): Example[] => {
    if (sample.attack && sample.windows.length > 1) return []
    const weight = (sample.weight ?? 1) / Math.sqrt(sample.windows.length)
    return sample.windows.map((buckets) => ({ buckets: [...buckets], label: sample.attack, weight }))
  })
  const first = openModel(fitLinear(examples, TRAINING))
  for (const sample of samples) {
    if (!sample.attack || sample.windows.length < 2) continue
    const buckets = [...sample.windows[findWorst(first, sample)]!]
    examples.push({ buckets, label: true, weight: sample.weight ?? 1 })
  }
  return fitLinear(examples, TRAINING)
}

/** Windows judged by a model that learned nothing from their family. */
function judge(model: LinearModel, samples: readonly Prepared[]): Judged[] {
  return samples.flatMap((sample) => {
    if (sample.windows.length === 0) return []
    const at = findWorst(model, sample)
    const { attack, source, weight = 1 } = sample
    const share = attack ? weight : weight * HARMLESS_WEIGHT
    return [
      {
        score: scoreBuckets(model, sample.windows[at]!),
        rules: sample.rules[at]!,
        attack,
        weight: share,
        source,
      },
    ]
  })
}

/** Families dealt to folds in turn, so that each model is asked of families that it has not seen. */
function dealFolds(samples: readonly Prepared[]): Map<string, number> {
  return new Map(
    [...new Set(samples.map(({ source }) => source))].sort().map((source, at) => [source, at % FOLDS]),
  )
}

/** What the parts of a fit say of families that they have not seen: how many texts of each a sensitivity flags. */
type FamilyRow = { family: string; attacks: boolean; texts: number; flagged: Record<string, number> }

/** Fits model and weighing to samples, and tells how the parts of it did on families that they had not learned from. */
export function fitAll(samples: readonly Prepared[]): { weights: StoredWeights; families: FamilyRow[] } {
  const folds = dealFolds(samples)
  const judged = Array.from({ length: FOLDS }, (_, fold) => {
    const model = openModel(fitModel(samples.filter(({ source }) => folds.get(source) !== fold)))
    return judge(
      model,
      samples.filter(({ source }) => folds.get(source) === fold),
    )
  }).flat()
  const { calibration, rules } = fitStack(judged, RULE_NAMES.length)
  return {
    weights: {
      model: fitModel(samples),
      calibration,
      rules: Object.fromEntries(RULE_NAMES.map((name, rule) => [name, rules[rule]!])),
    },
    families: listFamilies(judged, { ...calibration, rules }),
  }
}

function listFamilies(judged: readonly Judged[], weighing: Weighing): FamilyRow[] {
  const families = Map.groupBy(judged, ({ source, attack }) => `${attack ? '+' : '-'} ${source}`)
  return [...families]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([family, texts]) => {
      const confidences = texts.map(({ score, rules }) =>
        judgeWindow(
          score,
          rules.map((rule) => ({ rule, start: 0, end: 0 })),
          weighing,
        ),
      )
      const share = (sensitivity: number) =>
        confidences.filter((confidence) => confidence >= thresholdOf(sensitivity)).length / texts.length
      return {
        family,
        attacks: texts[0]!.attack,
        texts: texts.length,
        flagged: Object.fromEntries([0.3, 0.7, 0.9].map((sensitivity) => [sensitivity, share(sensitivity)])),
      }
    })
}

/** Writes the weights of the injection detector. The same data and the same packages give the same bytes. */
export async function fitInjection(data: string): Promise<void> {
  const samples = listFitted(data, createRandom(11)).map(prepare)
  const { weights, families } = fitAll(samples)
  writeFileSync(WEIGHTS_FILE, `${JSON.stringify(weights, undefined, 2)}\n`)
  const attacks = samples.filter(({ attack }) => attack).length
  console.log(`${samples.length} texts, ${attacks} of them attacks: ${fileURLToPath(WEIGHTS_FILE)}`)
  console.log({ calibration: weights.calibration, rules: weights.rules })
  console.log('Flagged by models that had not learned from the family, at sensitivities 0.3, 0.7 and 0.9:')
  for (const { family, texts, flagged } of families) {
    const shares = Object.values(flagged).map((share) => `${(100 * share).toFixed(0)}%`.padStart(5))
    console.log(`${family.padEnd(32)}${String(texts).padStart(6)}${shares.join('')}`)
  }
}
