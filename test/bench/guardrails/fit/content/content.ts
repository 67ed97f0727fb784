import { writeFileSync } from 'node:fs'
import {
  CONTENT_CATEGORIES,
  type ContentCategory,
} from '../../../../../activities/guardrails/content/categories.ts'
import { CONTENT_BITS } from '../../../../../activities/guardrails/content/features.ts'
import {
  type Evidence,
  readEvidence,
  type StoredJudge,
} from '../../../../../activities/guardrails/content/judge.ts'
import { readTokens } from '../../../../../activities/guardrails/content/tokens.ts'
import { listWindows } from '../../../../../activities/guardrails/content/windows.ts'
import {
  type Calibration,
  calibrate,
  hashText,
  openModel,
  type StoredModel,
  scoreBuckets,
} from '../../../../../activities/guardrails/linear.ts'
import { withoutShared } from '../shingles.ts'
import { fitCalibration, fitLinear } from '../train.ts'
import { fitFigures } from './figures.ts'
import { embedWords, listVocabulary } from './meanings.ts'
import { fitMix, mixScores, type Scores } from './mix.ts'
import { packVocabulary } from './pack.ts'
import { type Labelled, readSentences } from './seeds.ts'
import { readSources } from './sources.ts'
import {
  type Direction,
  type Embedded,
  embedStretch,
  fitDirection,
  narrowEmbeddings,
  scoreStretch,
  scoreVocabulary,
} from './words.ts'

const SEED = 16
const FOLDS = 6
/** How much the yeses of a category weigh in all, next to its noes. */
const BALANCE = 0.4
/** How much a line of HateCheck counts in the calibration next to one of our sentences: it has many of one kind. */
const HATECHECK = 0.1
/** The share of false alarms in our own harmless sentences, of families left out, that decides from which probability on is told. */
const FALSE_ALARMS = 0.021
/** But never from a probability below or above these: few sentences are left out, so their share is not sure. */
const THRESHOLDS = [0.37, 0.54] as const

/** A stretch's evidence, with the sum of its words' embeddings. */
type Stretch = Evidence & { sum: Float32Array }

/** A labelled text with its evidence, as a whole and in windows. */
type Item = Labelled & { whole: Stretch; windows: Stretch[] }

/** The windows' scores by weights that were fitted without the text's family; `own`: of one of our sentences. */
type HeldOut = { item: Item; windows: Scores[]; label: boolean; weight: number; own: boolean }

/** The weights of a category, without their mix and calibration. */
type Fitted = { figures: number[]; figuresBias: number; model: StoredModel; direction: Direction }

/** Fits the weights of the content detector to our sentences and the shared data in `folder`, and writes them. */
export async function fitContent(folder: string): Promise<void> {
  const held = readSentences('held', 1)
  const texts = withoutShared(
    [...readSentences('seeds'), ...readSentences('dev', 1), ...readSources(folder)],
    held,
  )
  const words = listVocabulary(texts)
  const vocabulary = new Map(words.map((word, place) => [hashText(word), place]))
  const embedded = narrowEmbeddings(await embedWords(words), countShares(texts, words))
  const items = texts.map((labelled) => toItem(labelled, vocabulary, embedded))
  const told = new Set<Item>()
  const judges = CONTENT_CATEGORIES.map((category, index) => {
    const scored = scoreHeldOut(items, category)
    const mix = fitMix(
      scored.flatMap(({ windows, ...one }) =>
        windows.length === 1 ? [{ ...one, scores: windows[0]! }] : [],
      ),
    )
    const highest = scored.map((one) => ({
      ...one,
      score: Math.max(-9, ...one.windows.map((scores) => mixScores(mix, scores))),
    }))
    const calibration = fitCalibration(highest)
    const threshold = chooseThreshold(highest, calibration)
    for (const { item, score } of highest) if (calibrate(score, calibration) >= threshold) told.add(item)
    console.log(
      `${category}: ${describe(highest, calibration, threshold)}; mixed ${Object.values(mix)
        .map((part) => part.toFixed(2))
        .join(', ')}`,
    )
    const fitted = fitCategory(items, category, SEED + index)
    return { category, mix, calibration, threshold, fitted }
  })
  console.log(describeAny(items, told))
  const packed = packVocabulary(
    words,
    judges.map(({ mix, fitted }) => ({
      factor: mix.words,
      said: scoreVocabulary(fitted.direction, embedded),
    })),
  )
  const stored = judges.map(
    ({ category, mix, calibration, threshold, fitted }, index): [ContentCategory, StoredJudge] => [
      category,
      {
        figures: fitted.figures.map((weight) => Number((weight * mix.figures).toFixed(3))).join(' '),
        model: {
          ...fitted.model,
          bias: Number(
            mixScores(mix, {
              figures: fitted.figuresBias,
              hashed: fitted.model.bias,
              words: fitted.direction.bias,
            }).toPrecision(6),
          ),
          scale: Number((fitted.model.scale * mix.hashed).toPrecision(6)),
        },
        meanings: packed.meanings[index]!,
        calibration,
        threshold,
      },
    ],
  )
  const target = new URL('../../../../../activities/guardrails/content/weights.json', import.meta.url)
  const file = { vocabulary: packed.vocabulary, judges: Object.fromEntries(stored) }
  writeFileSync(target, `${JSON.stringify(file, undefined, 2)}\n`)
}

/** How often each word is, as a share of all words. */
function countShares(texts: readonly Labelled[], words: readonly string[]): Float64Array {
  const counts = new Map<string, number>()
  let total = 0
  for (const { text } of texts) {
    for (const { word } of readTokens(text).tokens) {
      counts.set(word, (counts.get(word) ?? 0) + 1)
      total++
    }
  }
  return Float64Array.from(words, (word) => (counts.get(word) ?? 0) / total)
}

/** The probability that so many of our harmless sentences reach as there may be false alarms. */
function chooseThreshold(scored: readonly (HeldOut & { score: number })[], calibration: Calibration): number {
  const harmless = scored.filter(({ own, label }) => own && !label).map(({ score }) => score)
  const score = harmless.toSorted((a, b) => b - a)[Math.floor(harmless.length * FALSE_ALARMS)]!
  const [least, most] = THRESHOLDS
  return Number(Math.min(most, Math.max(least, calibrate(score, calibration))).toFixed(3))
}

function toItem(labelled: Labelled, vocabulary: ReadonlyMap<number, number>, embedded: Embedded): Item {
  const { tokens, sentences } = readTokens(labelled.text)
  const list = readEvidence(tokens, vocabulary)
  const read = (from: number, to: number): Stretch => {
    const evidence = list(from, to)
    return { ...evidence, sum: embedStretch(embedded, evidence.met) }
  }
  return {
    ...labelled,
    whole: read(0, tokens.length),
    windows: listWindows(sentences).map(({ from, to }) => read(from, to)),
  }
}

function fitCategory(items: readonly Item[], category: ContentCategory, seed: number): Fitted {
  const known = items.filter(
    ({ labels, whole }) => labels[category] !== undefined && whole.buckets.length > 0,
  )
  const weigh = (wanted: boolean) =>
    known
      .filter(({ labels }) => (labels[category] === 1) === wanted)
      .reduce((sum, { weight }) => sum + weight, 0)
  const factor = (BALANCE * weigh(false)) / weigh(true)
  const examples = known.map(({ labels, weight, whole }) => {
    const label = labels[category] === 1
    return { ...whole, label, weight: label ? weight * factor : weight }
  })
  const model = fitLinear(examples, { bits: CONTENT_BITS, seed, epochs: 8 })
  const { figures, bias } = fitFigures(examples, category)
  return { figures, figuresBias: bias, model, direction: fitDirection(examples, seed) }
}

/**
 * The scores of texts by weights that were fitted without their whole family (of our sentences and of HateCheck), so
 * that they tell how the detector does on kinds of texts that it has not seen.
 */
function scoreHeldOut(items: readonly Item[], category: ContentCategory): HeldOut[] {
  const families = [...new Set(items.filter(isMeasured).map(({ family }) => family))]
  const foldOf = (item: Item) => (isMeasured(item) ? families.indexOf(item.family) % FOLDS : -1)
  return Array.from({ length: FOLDS }, (_, fold) => fold).flatMap((fold) => {
    const { figures, figuresBias, model, direction } = fitCategory(
      items.filter((item) => foldOf(item) !== fold),
      category,
      SEED + 100 * fold,
    )
    const opened = openModel(model)
    const score = (stretch: Stretch): Scores => ({
      figures: stretch.figures.reduce((sum, [figure, value]) => sum + figures[figure]! * value, figuresBias),
      hashed: scoreBuckets(opened, stretch.buckets),
      words: scoreStretch(direction, stretch.sum),
    })
    const measured = items.filter((item) => foldOf(item) === fold && item.labels[category] !== undefined)
    return measured.map((item) => ({
      item,
      windows: item.windows.map(score),
      label: item.labels[category] === 1,
      own: item.source !== 'hatecheck',
      weight: item.source === 'hatecheck' ? item.weight * HATECHECK : item.weight,
    }))
  })
}

const isMeasured = ({ source }: Item) => source === 'seeds' || source === 'dev' || source === 'hatecheck'

function describe(
  scored: readonly (HeldOut & { score: number })[],
  calibration: Calibration,
  threshold: number,
): string {
  const share = (wanted: boolean, own: boolean) => {
    const of = scored.filter((one) => one.label === wanted && one.own === own)
    const told = of.filter(({ score }) => calibrate(score, calibration) > threshold)
    return of.length === 0 ? '' : `${((100 * told.length) / of.length).toFixed(1)}% of ${of.length}`
  }
  const told = [share(true, true), share(false, true), share(true, false), share(false, false)]
  return `told from ${threshold}; in families left out: our sentences ${told[0]}, harmless ones ${told[1]}; HateCheck ${told[2]}, its others ${told[3]}`
}

/** How much is told in our sentences, of whatever category, by family. */
function describeAny(items: readonly Item[], told: ReadonlySet<Item>): string {
  const own = items.filter(({ source }) => source === 'seeds' || source === 'dev')
  const share = (of: readonly Item[]) =>
    `${((100 * of.filter((one) => told.has(one)).length) / of.length).toFixed(0)}% of ${of.length}`
  const families = [...Map.groupBy(own, ({ family }) => family)].map(
    ([family, of]) => `${family} ${share(of)}`,
  )
  const isHarmful = ({ labels }: Item) => Object.values(labels).includes(1)
  return `any: ${share(own.filter(isHarmful))}, harmless ${share(own.filter((item) => !isHarmful(item)))}\n${families.join('\n')}`
}
