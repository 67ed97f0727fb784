import type { Span } from '../../../db/detection/spans.ts'
import { listViews } from '../../../db/detection/views.ts'
import type { KnownExemplar } from '../../../db/guardrails/exemplars.ts'
import { findInjection } from '../injection/injection.ts'
import { chooseWindows, listMeaningWindows } from './choose.ts'
import { EMBEDDING_MODEL, type Embedder, packRows } from './embedder.ts'
import { judgeRow, loadExemplars, type Meaning, openOwn } from './judge.ts'
import type { Similar } from './messages.ts'
import { cutSentences } from './windows.ts'

/** The sensitivity at which the injection detector is asked whether it finds the same: its default. */
const CORROBORATING = 0.7
const MOST_SIMILAR = 100

/**
 * The places of a text that mean what exemplars mean, sorted by start, none over another. The same text and exemplars
 * give the same places, in a time that has a bound.
 */
export async function compareText(
  embed: Embedder,
  text: string,
  exemplars: readonly KnownExemplar[],
): Promise<Similar[]> {
  const shipped = loadExemplars()
  const own = openOwn(exemplars)
  const ownTexts = own.map(({ exemplar }) => exemplar.text)
  const windows = chooseWindows(listMeaningWindows(text), shipped.words, ownTexts)
  const rows = await embed(windows.map((window) => window.text))
  const found = windows.flatMap(({ start, end }, row): (Span & Meaning)[] => {
    const meaning = judgeRow(rows, row, shipped, own)
    return meaning ? [{ start, end, ...meaning }] : []
  })
  if (found.length === 0) return []
  const injections = findInjection(listViews(text), CORROBORATING)
  return keepSurest(found).map((meaning) => ({
    ...meaning,
    corroborated: injections.some(({ start, end }) => start < meaning.end && end > meaning.start),
  }))
}

/** The embedding of an exemplar: a row for each of its sentences, or for the whole if it has none. */
export async function embedText(embed: Embedder, text: string): Promise<{ model: string; rows: Uint8Array }> {
  const sentences = cutSentences(text).map((sentence) => sentence.text)
  const rows = await embed(sentences.length > 0 ? sentences : [text])
  return { model: EMBEDDING_MODEL, rows: packRows(rows) }
}

/** Keeps the surest of places that overlap, then the first; a limited number of them, sorted by start. */
function keepSurest<Found extends Span & Meaning>(found: Found[]): Found[] {
  const kept: Found[] = []
  for (const one of found.toSorted(
    (a, b) => b.confidence - a.confidence || a.start - b.start || a.end - b.end,
  )) {
    if (kept.length === MOST_SIMILAR) break
    if (kept.every(({ start, end }) => one.start >= end || one.end <= start)) kept.push(one)
  }
  return kept.sort((a, b) => a.start - b.start)
}
