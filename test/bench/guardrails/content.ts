import { performance } from 'node:perf_hooks'
import {
  CONTENT_CATEGORIES,
  type ContentCategory,
} from '../../../activities/guardrails/content/categories.ts'
import { findContent } from '../../../activities/guardrails/content/content.ts'
import { listViews } from '../../../db/detection/views.ts'
import { EVASIONS } from './evasions.ts'
import { type Labelled, readSentences } from './fit/content/seeds.ts'
import { readSources } from './fit/content/sources.ts'
import { withoutShared } from './fit/shingles.ts'
import { describeTimes } from './times.ts'

const ALL: ReadonlySet<ContentCategory> = new Set(CONTENT_CATEGORIES)
const DISGUISED = 60

/** How well something was found: shares of 1. */
type ContentQuality = {
  precision: number
  recall: number
  f1: number
  falseAlarms: number
  texts: number
}

export type ContentReport = {
  /** Whether anything was found in a text that has something, of whatever category. */
  any: ContentQuality
  categories: Record<ContentCategory, ContentQuality>
  /** False alarms in harmless texts, by their kind. */
  harmless: Record<string, number>
}

/**
 * Measures the detector of content on our own sentences that were neither fitted nor looked at when it was tuned, without
 * those that share eight words in a row with fitted ones.
 */
export function measureHeldContent(): ContentReport {
  const fitted = [...readSentences('seeds'), ...readSentences('dev', 1)]
  const held = withoutShared(readSentences('held', 1), fitted).map((labelled) => ({
    ...labelled,
    found: new Set(findContent(listViews(labelled.text), ALL).map(({ kind }) => kind)),
  }))
  const qualities = CONTENT_CATEGORIES.map((category) => {
    const known = held.filter(({ labels }) => labels[category] !== undefined)
    return [
      category,
      judgeAnswers(known.map((one) => [one.labels[category] === 1, one.found.has(category)])),
    ] as const
  })
  const harmless = Map.groupBy(
    held.filter((one) => !hasContent(one)),
    ({ family }) => family,
  )
  return {
    any: judgeAnswers(held.map((one) => [hasContent(one), one.found.size > 0])),
    categories: Object.fromEntries(qualities) as Record<ContentCategory, ContentQuality>,
    harmless: Object.fromEntries(
      [...harmless].map(([family, texts]) => [
        family,
        texts.filter(({ found }) => found.size > 0).length / texts.length,
      ]),
    ),
  }
}

const hasContent = ({ labels }: Labelled) => Object.values(labels).includes(1)

function judgeAnswers(answers: [wanted: boolean, found: boolean][]): ContentQuality {
  const count = (wanted: boolean, found: boolean) =>
    answers.filter(([one, other]) => one === wanted && other === found).length
  const [hits, misses, alarms, rest] = [
    count(true, true),
    count(true, false),
    count(false, true),
    count(false, false),
  ]
  return {
    precision: hits / (hits + alarms),
    recall: hits / (hits + misses),
    f1: (2 * hits) / (2 * hits + alarms + misses),
    falseAlarms: alarms / (alarms + rest),
    texts: answers.length,
  }
}

/** The share of texts with content that are found behind each disguise, beside `plain`. */
function measureContentEvasions(): Record<string, number> {
  const texts = readSentences('held', 1).filter(hasContent)
  const found = (text: string) => findContent(listViews(text), ALL).length > 0
  const some = texts.filter((_, index) => index % Math.ceil(texts.length / DISGUISED) === 0)
  const disguises = { plain: (text: string) => text, ...EVASIONS }
  return Object.fromEntries(
    Object.entries(disguises).map(([name, disguise]) => [
      name,
      some.filter(({ text }) => found(disguise(text))).length / some.length,
    ]),
  )
}

/** The lines of the bench; of a folder with the shared data, also what is found in its texts, which were fitted. */
export async function measureContent(data: string | undefined): Promise<string[]> {
  const { any, categories, harmless } = measureHeldContent()
  const lines = [`  any category: ${describeQuality(any)}`]
  for (const category of CONTENT_CATEGORIES)
    lines.push(`  ${category}: ${describeQuality(categories[category])}`)
  lines.push(`  false alarms by kind: ${describeShares(harmless)}`)
  lines.push(`  found behind disguises: ${describeShares(measureContentEvasions())}`)
  if (data) lines.push(...measureFitted(data))
  const prose = readSentences('held', 1)
    .map(({ text }) => text)
    .join('\n')
  for (const length of [2_000, 100_000]) {
    const text = prose.repeat(Math.ceil(length / prose.length)).slice(0, length)
    const views = listViews(text)
    const times = Array.from({ length: length > 10_000 ? 40 : 300 }, () => {
      const began = performance.now()
      findContent(views, ALL)
      return performance.now() - began
    })
    lines.push(`  ${length} characters, without their readings: ${describeTimes(times.slice(5))}`)
  }
  return lines
}

/** How often hate is found in tweets and in HateCheck: these texts were fitted, so it is what was learnt, not a forecast. */
function measureFitted(data: string): string[] {
  const hate: ReadonlySet<ContentCategory> = new Set(['hate'])
  const texts = readSources(data).filter(({ source }) => source === 'davidson' || source === 'hatecheck')
  const some = texts.filter(({ source }, index) => source === 'hatecheck' || index % 10 === 0)
  const shares = [...Map.groupBy(some, ({ source, family }) => `${source} ${family}`)].map(
    ([name, group]) => [
      name,
      group.filter(({ text }) => findContent(listViews(text), hate).length > 0).length / group.length,
    ],
  )
  return [`  hate found in fitted texts: ${describeShares(Object.fromEntries(shares))}`]
}

const percent = (share: number) => `${(100 * share).toFixed(1)}%`

const describeQuality = ({ precision, recall, f1, falseAlarms, texts }: ContentQuality) =>
  `precision ${percent(precision)}, recall ${percent(recall)}, F1 ${f1.toFixed(2)}, false alarms ${percent(falseAlarms)} (${texts} texts)`

const describeShares = (shares: Record<string, number>) =>
  Object.entries(shares)
    .map(([name, share]) => `${name} ${percent(share)}`)
    .join(', ')
