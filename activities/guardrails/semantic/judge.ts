import { readFileSync } from 'node:fs'
import type { ExemplarCategory, KnownExemplar } from '../../../db/guardrails/exemplars.ts'
import { type Calibration, calibrate, type LinearModel, openModel, type StoredModel } from '../linear.ts'
import { compareRows, EMBEDDING_MODEL, openRows, ROW_LENGTH } from './embedder.ts'

/** The file that `npm run fit -- semantic --data DIR` writes. Rows are packed (embedder.ts) and in base64. */
export type StoredExemplars = {
  model: string
  /** The exemplars of each category. */
  attacks: Record<string, string>
  /** Harmless texts that come close to them. */
  counter: string
  /** What tells the two apart, as a linear function of a row: its weights are a packed row. */
  direction: { bias: number; scale: number; weights: string }
  /** How much the nearest exemplar, and the nearest harmless one, count beside that. */
  nearness: { attack: number; counter: number }
  /** From this score on a window is told. */
  threshold: number
  /** The confidence in a score, less the threshold. */
  calibration: Calibration
  /** The confidence in the similarity alone, which is all there is for the exemplars of teams. */
  alone: Calibration
  words: StoredModel
}

export const EXEMPLARS_FILE = new URL('./exemplars.json', import.meta.url)
/** The least similarity to an exemplar of the team that is told. */
const OWN_SIMILARITY = 0.72
/** A text that is less similar to its nearest exemplar cannot be said to mean the same. */
const LEAST_SIMILARITY = 0.5

type Nearest = { similarity: number; row: number }

export type ShippedExemplars = {
  ids: { id: string; category: ExemplarCategory }[]
  attacks: Float32Array
  counter: Float32Array
  direction: { bias: number; weights: Float32Array }
  words: LinearModel
} & Pick<StoredExemplars, 'nearness' | 'threshold' | 'calibration' | 'alone'>

/** The exemplars of a file's text; throws if another model has made them. */
function readExemplars(text: string): ShippedExemplars {
  const stored = JSON.parse(text) as StoredExemplars
  if (stored.model !== EMBEDDING_MODEL)
    throw new Error(`The exemplars were made by ${stored.model}: npm run fit -- semantic`)
  const open = (rows: string) => openRows(Buffer.from(rows, 'base64'))
  const families = Object.entries(stored.attacks).map(([name, rows]) => ({
    category: name as ExemplarCategory,
    rows: open(rows),
  }))
  const attacks = new Float32Array(families.reduce((sum, { rows }) => sum + rows.length, 0))
  let at = 0
  for (const { rows } of families) {
    attacks.set(rows, at)
    at += rows.length
  }
  const { bias, scale, weights } = stored.direction
  return {
    ...stored,
    ids: families.flatMap(({ category, rows }) =>
      Array.from({ length: rows.length / ROW_LENGTH }, (_, index) => ({
        id: `${category}-${index + 1}`,
        category,
      })),
    ),
    attacks,
    counter: open(stored.counter),
    direction: { bias, weights: open(weights).map((weight) => weight * scale) },
    words: openModel(stored.words),
  }
}

let loaded: ShippedExemplars | undefined

/** The committed exemplars, read at the first use in a thread. */
export function loadExemplars(): ShippedExemplars {
  loaded ??= readExemplars(readFileSync(EXEMPLARS_FILE, 'utf8'))
  return loaded
}

/** How much a row means what attacks mean: what the direction says, and how near the nearest ones of both kinds are. */
export function scoreRow(
  rows: Float32Array,
  row: number,
  shipped: Pick<ShippedExemplars, 'attacks' | 'counter' | 'direction' | 'nearness'>,
): Nearest & { score: number } {
  const { attacks, counter, direction, nearness } = shipped
  const nearest = findNearest(rows, row, attacks)
  const near = nearness.attack * nearest.similarity
  const harmless = nearness.counter * findNearest(rows, row, counter).similarity
  const said = direction.bias + compareRows(rows, row, direction.weights, 0)
  return { ...nearest, score: said + near - harmless }
}

/** What a row means: the exemplar it is told for, with its confidence; nothing if it means something else. */
export type Meaning = {
  similarity: number
  confidence: number
  category: ExemplarCategory
  exemplarId: string
  exemplarName?: string
}

/** The team's exemplars that this model has made, as rows. */
export type OwnRows = { exemplar: KnownExemplar; rows: Float32Array }[]

export function openOwn(exemplars: readonly KnownExemplar[]): OwnRows {
  return exemplars
    .filter(({ embedding }) => embedding.model === EMBEDDING_MODEL)
    .map((exemplar) => ({ exemplar, rows: openRows(exemplar.embedding.rows) }))
}

/** The surer of what the exemplars of the service and those of the team say about a row. */
export function judgeRow(
  rows: Float32Array,
  row: number,
  shipped: ShippedExemplars,
  own: OwnRows,
): Meaning | undefined {
  const first = judgeOwn(rows, row, shipped, own)
  const { similarity, row: nearest, score } = scoreRow(rows, row, shipped)
  if (score < shipped.threshold || similarity < LEAST_SIMILARITY) return first
  const confidence = round(calibrate(score - shipped.threshold, shipped.calibration))
  if (first && first.confidence >= confidence) return first
  const { id, category } = shipped.ids[nearest]!
  return { similarity: round(similarity), confidence, category, exemplarId: id }
}

function judgeOwn(
  rows: Float32Array,
  row: number,
  { alone }: ShippedExemplars,
  own: OwnRows,
): Meaning | undefined {
  let best: { similarity: number; exemplar: KnownExemplar } | undefined
  for (const { exemplar, rows: others } of own) {
    const { similarity } = findNearest(rows, row, others)
    if (similarity >= OWN_SIMILARITY && similarity > (best?.similarity ?? 0)) best = { similarity, exemplar }
  }
  if (!best) return undefined
  const { id, name, category } = best.exemplar
  const similarity = round(best.similarity)
  return {
    similarity,
    confidence: round(calibrate(similarity, alone)),
    category,
    exemplarId: id,
    exemplarName: name,
  }
}

function findNearest(rows: Float32Array, row: number, others: Float32Array): Nearest {
  let nearest = { similarity: -1, row: 0 }
  for (let other = 0; other < others.length / ROW_LENGTH; other++) {
    const similarity = compareRows(rows, row, others, other)
    if (similarity > nearest.similarity) nearest = { similarity, row: other }
  }
  return nearest
}

const round = (figure: number) => Math.round(Math.min(1, Math.max(0, figure)) * 1_000) / 1_000
