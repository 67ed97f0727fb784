import type { Finding, Span } from '../../../db/detection/spans.ts'
import type { TextView } from '../../../db/detection/views.ts'
import { judgeWindow, loadWeights } from './confidence.ts'
import { type WindowEvidence, weighWindows } from './evidence.ts'
import { createBucketLister } from './features.ts'
import { findMentions, splitMentions } from './mentions.ts'
import { RULE_NAMES, type RuleHit } from './rules.ts'

type Injection = Finding<'PROMPT_INJECTION'>

/** What a sensitivity of 0.7 asks for is a confidence of a half; each tenth less asks for so many log-odds more. */
const EVEN_SENSITIVITY = 0.7
const ODDS_PER_SENSITIVITY = 5.5
/** Below this no sensitivity flags. */
const LEAST_CONFIDENCE = 0.15
/** Who only mentions an attack has at most this much of the confidence in it. */
const MENTIONED = 0.45
/** An attack that had to be decoded or made visible first is more of one: so many log-odds. */
const DISGUISED = 1
const MOST_FINDINGS = 100
/** A message in tag characters, or letters with invisible characters between them; flags of regions are not meant. */
const INVISIBLE =
  /[\u{e0020}-\u{e007e}]{8}|(?:\p{L}[\u200b-\u200f\u2060-\u2064\u00ad\ufeff]){4}|[\u202a-\u202e\u2066-\u2069]\p{L}{3}/u

/** The confidence from which on a sensitivity, 0 to 1, flags: the higher the sensitivity, the lower. */
export function thresholdOf(sensitivity: number): number {
  const odds = ODDS_PER_SENSITIVITY * (EVEN_SENSITIVITY - sensitivity)
  return Math.max(LEAST_CONFIDENCE, 1 / (1 + Math.exp(-odds)))
}

/**
 * The places where a text tries to take over a model that reads it, in units of the original text, sorted by start,
 * none over another. A higher `sensitivity` (0 to 1) gives the same findings and more. Linear time, no state.
 */
export function findInjection(views: TextView[], sensitivity: number): Injection[] {
  const threshold = thresholdOf(sensitivity)
  return listInjections(views).filter(({ confidence }) => confidence >= threshold)
}

/** All that any sensitivity would flag. */
function listInjections(views: TextView[]): Injection[] {
  const read = new Set<string>()
  const disguised = views.some(({ kind, text }) => kind === 'plain' && INVISIBLE.test(text))
  const judge = createJudge()
  const found: Injection[] = []
  for (const view of views) {
    const text = lowerInPlace(view.text)
    // The folded reading of a plain text, and decoded ones that only repeat it, say nothing new.
    if (read.has(text)) continue
    read.add(text)
    const isDecoded = view.kind !== 'plain' && (view.kind !== 'folded' || disguised)
    for (const finding of judgeView(judge, view, text, isDecoded ? DISGUISED : 0)) found.push(finding)
  }
  return keepSurest(found)
}

type Judge = (view: TextView, text: string, more: number, share: number) => Injection[]

function judgeView(judge: Judge, view: TextView, text: string, more: number): Injection[] {
  const mentions = findMentions(text)
  if (mentions.length === 0) return judge(view, text, more, 1)
  const { own, mentioned } = splitMentions(text, mentions)
  return [...judge(view, own, more, 1), ...judge(view, mentioned, more, MENTIONED)]
}

/** Judges texts with the committed weights: `more` log-odds come on top, and of the confidence only a `share` is left. */
function createJudge(): Judge {
  const { model, weighing } = loadWeights()
  const listBuckets = createBucketLister(model.bits)
  return (view, text, more, share) =>
    weighWindows(text, model, listBuckets).flatMap((window): Injection[] => {
      const { score, hits } = window
      // A disguise alone is no attack: it counts where there is something to disguise.
      const isSuspect = hits.length > 0 || score > 0
      const confidence = share * judgeWindow(score, hits, weighing, isSuspect ? more : 0)
      if (confidence < LEAST_CONFIDENCE) return []
      return [
        {
          ...view.origin(narrow(window)),
          kind: 'PROMPT_INJECTION',
          confidence: Math.round(confidence * 1_000) / 1_000,
          rule: nameRule(hits, weighing.rules),
        },
      ]
    })
}

/** What the rules hit in a window; the whole window if none did. */
function narrow({ start, end, hits }: WindowEvidence): Span {
  if (hits.length === 0) return { start, end }
  return { start: hits[0]!.start, end: Math.max(...hits.map((hit) => hit.end)) }
}

function nameRule(hits: readonly RuleHit[], figures: readonly number[]): string {
  const [first, ...others] = hits
  if (!first) return 'wording'
  const strongest = others.reduce(
    (best, { rule }) => (figures[rule]! > figures[best]! ? rule : best),
    first.rule,
  )
  return RULE_NAMES[strongest]!
}

/** Keeps the surest of findings that overlap, then the shorter, then the first; a limited number, sorted by start. */
function keepSurest(found: Injection[]): Injection[] {
  const order = found.toSorted(
    (a, b) =>
      b.confidence - a.confidence ||
      a.end - a.start - (b.end - b.start) ||
      a.start - b.start ||
      a.end - b.end,
  )
  const kept: Injection[] = []
  for (const finding of order) {
    if (kept.length === MOST_FINDINGS) break
    if (finding.end === finding.start) continue
    if (kept.every(({ start, end }) => finding.start >= end || finding.end <= start)) kept.push(finding)
  }
  return kept.sort((a, b) => a.start - b.start)
}

/** The text in lower case, each place where it was before: the few letters that would become two stay as they are. */
function lowerInPlace(text: string): string {
  const lower = text.toLowerCase()
  if (lower.length === text.length) return lower
  return text.replace(/\p{Lu}/gu, (letter) => {
    const small = letter.toLowerCase()
    return small.length === letter.length ? small : letter
  })
}
