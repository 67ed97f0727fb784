import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { listMeaningWindows } from '../../../../../activities/guardrails/semantic/choose.ts'
import {
  EMBEDDING_MODEL,
  type Embedder,
  loadEmbedder,
  openRows,
  packRows,
  ROW_LENGTH,
} from '../../../../../activities/guardrails/semantic/embedder.ts'
import {
  EXEMPLARS_FILE,
  type ShippedExemplars,
  type StoredExemplars,
  scoreRow,
} from '../../../../../activities/guardrails/semantic/judge.ts'
import { listWordBuckets } from '../../../../../activities/guardrails/semantic/words.ts'
import { readSentences, type Sample } from '../injection/sentences.ts'
import { createRandom } from '../random.ts'
import { withoutShared } from '../shingles.ts'
import { fitCalibration, fitLinear } from '../train.ts'
import { fitDirection } from './direction.ts'

/** How much the nearest exemplar of each kind counts beside the direction: found by hand on the sentences for calibration. */
const NEARNESS = { attack: 6, counter: 3 }
/** Of harmless texts with the words of attacks so many are told. */
const FALSE_ALARMS = 0.01
/** Harmless texts are more frequent than attacks: confidences are calibrated as if there were so many times as many. */
const HARMLESS_WEIGHT = 2
const WORD_BITS = 12

/** The exemplars by category, or the counter-exemplars by what they are about. */
export function readExemplarTexts(file: 'attacks.txt' | 'counter.txt'): Map<string, string[]> {
  const [, ...lines] = readFileSync(new URL(file, import.meta.url), 'utf8').split('\n')
  const families = new Map<string, string[]>()
  let family: string[] = []
  for (const line of lines) {
    if (line.startsWith('## ')) {
      family = []
      families.set(line.slice(3), family)
    } else if (line !== '') family.push(line)
  }
  return families
}

/** Writes the exemplars as rows, with what is needed to judge by them. The same machine gives the same bytes each time. */
export async function fitSemantic(): Promise<void> {
  const embed = await loadEmbedder()
  const families = readExemplarTexts('attacks.txt')
  const harmless = [...readExemplarTexts('counter.txt').values()].flat()
  const attacks: Record<string, string> = {}
  for (const [category, texts] of families) attacks[category] = encode(await embedSentences(embed, texts))
  const counter = encode(await embedSentences(embed, harmless))
  const rows = Object.values(attacks).map(decode)
  const all = Float32Array.from(rows.flatMap((some) => [...some]))
  const direction = fitDirection(all, decode(counter))
  const judged = {
    attacks: all,
    counter: decode(counter),
    direction: {
      bias: direction.bias,
      weights: decode(direction.weights).map((weight) => weight * direction.scale),
    },
    nearness: NEARNESS,
  }
  const texts = [...families.values()].flat()
  const known = [...texts, ...harmless].map((text) => ({ text }))
  const samples = withoutShared(readSentences(createRandom(11), 1), known)
  const scored = await scoreSamples(embed, judged, samples)
  const threshold = findThreshold(scored.filter(({ label }) => !label).map(({ score }) => score))
  const stored: StoredExemplars = {
    model: EMBEDDING_MODEL,
    attacks,
    counter,
    direction,
    nearness: NEARNESS,
    threshold,
    calibration: fitCalibration(scored.map((one) => ({ ...one, score: one.score - threshold }))),
    alone: fitCalibration(scored.map(({ similarity, ...rest }) => ({ ...rest, score: similarity }))),
    words: fitWords(texts, harmless),
  }
  writeFileSync(EXEMPLARS_FILE, `${JSON.stringify(stored, undefined, 2)}\n`)
  const told = (label: boolean) => {
    const ones = scored.filter((one) => one.label === label)
    const flagged = ones.filter(({ score }) => score >= threshold).length
    return `${flagged} of ${ones.length} (${((100 * flagged) / ones.length).toFixed(1)}%)`
  }
  console.log(
    `${texts.length} exemplars, ${harmless.length} counter-exemplars: ${fileURLToPath(EXEMPLARS_FILE)}`,
  )
  console.log({ threshold, calibration: stored.calibration, alone: stored.alone, bias: direction.bias })
  console.log(`Told of sentences for calibration: attacks ${told(true)}, harmless ones ${told(false)}`)
}

const encode = (rows: Float32Array) => Buffer.from(packRows(rows)).toString('base64')
const decode = (text: string) => openRows(Buffer.from(text, 'base64'))

/** In lower case, as the readings of texts are. */
const embedSentences = (embed: Embedder, texts: readonly string[]) =>
  embed(texts.map((text) => text.toLowerCase()))

async function scoreSamples(
  embed: Embedder,
  judged: Pick<ShippedExemplars, 'attacks' | 'counter' | 'direction' | 'nearness'>,
  samples: readonly Sample[],
) {
  const scored: { score: number; similarity: number; label: boolean; weight: number }[] = []
  for (const { text, attack } of samples) {
    const rows = await embed(listMeaningWindows(text).map((window) => window.text))
    const meanings = Array.from({ length: rows.length / ROW_LENGTH }, (_, row) => scoreRow(rows, row, judged))
    if (meanings.length === 0) continue
    scored.push({
      score: Math.max(...meanings.map(({ score }) => score)),
      similarity: Math.max(...meanings.map(({ similarity }) => similarity)),
      label: attack,
      weight: attack ? 1 : HARMLESS_WEIGHT,
    })
  }
  return scored
}

function findThreshold(scores: number[]): number {
  const sorted = scores.toSorted((a, b) => b - a)
  return Number(sorted[Math.floor(sorted.length * FALSE_ALARMS)]!.toFixed(2))
}

function fitWords(attacks: readonly string[], harmless: readonly string[]) {
  const examples = [...attacks, ...harmless].map((text, index) => ({
    buckets: [...listWordBuckets(text, WORD_BITS)],
    label: index < attacks.length,
    weight: 1,
  }))
  return fitLinear(examples, { bits: WORD_BITS, seed: 5 })
}
