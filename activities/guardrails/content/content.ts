import type { Finding } from '../../../db/detection/spans.ts'
import type { TextView } from '../../../db/detection/views.ts'
import { type ContentCategory, SEXUAL_MINORS } from './categories.ts'
import { MINOR_FIGURES } from './figures.ts'
import { type Evidence, judgeEvidence, loadJudges, readEvidence } from './judge.ts'
import { readTokens, type Sentence } from './tokens.ts'
import { listWindows } from './windows.ts'

type ContentFinding = Finding<ContentCategory>

/**
 * Hate, harassment, violence, self-harm and sexual content in a text, of the categories that are asked for: one finding
 * for each sentence that is of it by itself, or for a stretch of sentences that are of it together, with places in the
 * original text (UTF-16 units), sorted by start. The confidence is the probability that the stretch is of its category,
 * as calibrated on texts that were not fitted; below the category's threshold nothing is found. The same text has
 * always the same findings; the time grows with the text's length.
 */
export function findContent(views: TextView[], categories: ReadonlySet<ContentCategory>): ContentFinding[] {
  const found = views
    .filter(({ kind }) => kind !== 'plain')
    .flatMap((view) => findInView(view, [...categories]))
  return [...categories]
    .flatMap((category) => mergeFindings(found.filter(({ kind }) => kind === category)))
    .sort((a, b) => a.start - b.start || a.end - b.end || (a.kind < b.kind ? -1 : 1))
}

/** A finding in a stretch of tokens, before its place in the original text is known. */
type Stretch = Sentence & { kind: ContentCategory; confidence: number; minors: boolean }

function findInView(view: TextView, categories: ContentCategory[]): ContentFinding[] {
  const judges = loadJudges()
  const { tokens, sentences } = readTokens(view.text)
  const list = readEvidence(tokens, judges.vocabulary)
  const evidenceOf = memoize((index) => list(sentences[index]!.from, sentences[index]!.to))
  const windows = listWindows(sentences).map((window) => ({
    ...window,
    evidence: window.first === window.last ? evidenceOf(window.first) : list(window.from, window.to),
  }))
  const stretches = categories.flatMap((kind) => {
    const judge = judges.of[kind]
    const isOwn = memoize((index) => judgeEvidence(judge, evidenceOf(index)) >= judge.threshold)
    const told = new Map<number, Stretch>()
    const together: Stretch[] = []
    for (const { first, last, from, to, evidence } of windows) {
      const confidence = judgeEvidence(judge, evidence)
      if (confidence < judge.threshold) continue
      const found = { kind, confidence, minors: kind === 'sexual' && isOfMinors(evidence) }
      const own = range(first, last).filter(isOwn)
      if (own.length === 0) together.push({ from, to, ...found })
      for (const index of own) {
        const before = told.get(index)
        if (before) {
          before.confidence = Math.max(before.confidence, confidence)
          before.minors ||= found.minors
        } else told.set(index, { ...sentences[index]!, ...found })
      }
    }
    return [...told.values(), ...together]
  })
  return stretches.map(({ from, to, kind, confidence, minors }) => {
    const { start, end } = view.origin({ start: tokens[from]!.start, end: tokens[to - 1]!.end })
    return { kind, start, end, confidence, rule: minors ? SEXUAL_MINORS : `content-${view.kind}` }
  })
}

const isOfMinors = ({ figures }: Evidence) => figures.some(([figure]) => MINOR_FIGURES.has(figure))

const range = (first: number, last: number) =>
  Array.from({ length: last - first + 1 }, (_, index) => first + index)

function memoize<T>(make: (index: number) => T): (index: number) => T {
  const known = new Map<number, T>()
  return (index) => {
    const made = known.get(index) ?? make(index)
    known.set(index, made)
    return made
  }
}

/** Findings of one category that overlap become one, with the highest confidence and its rule. */
function mergeFindings(findings: ContentFinding[]): ContentFinding[] {
  const merged: ContentFinding[] = []
  for (const found of findings.toSorted((a, b) => a.start - b.start || a.end - b.end)) {
    const last = merged.at(-1)
    if (!last || found.start >= last.end) {
      merged.push({ ...found })
      continue
    }
    last.end = Math.max(last.end, found.end)
    if (found.rule === SEXUAL_MINORS || (found.confidence > last.confidence && last.rule !== SEXUAL_MINORS))
      last.rule = found.rule
    last.confidence = Math.max(last.confidence, found.confidence)
  }
  return merged
}
