import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { CHECKED_KINDS, PII_KINDS, type PiiKind } from '../../../../db/detection/pii/kinds.ts'
import { findPii } from '../../../../db/detection/pii/pii.ts'
import { AROUND_KEY, AROUND_NAMED, KEYS, NAMED_KEYS, NO_KEYS } from './keys.ts'
import { createDraw, type Draw } from './random.ts'
import { type Labelled, makeSentences } from './sentences.ts'

/** How well one kind is found in one set: how many places are right, wrongly told, and missed. */
export type PiiRow = {
  set: string
  kind: string
  right: number
  wrong: number
  missed: number
  precision: number
  recall: number
}
/** Times of `findPii` for all kinds, in ms. */
type PiiTime = { text: string; characters: number; p50: number; p95: number }
export type PiiReport = {
  rows: PiiRow[]
  keyFalseAlarms: number
  missedKeys: string[]
  alarms: string[]
  times: PiiTime[]
}

const ALL: ReadonlySet<PiiKind> = new Set<PiiKind>([...CHECKED_KINDS, ...PII_KINDS])

/**
 * Measures the detectors of personal data and keys. A place counts as found when it is told exactly, and a told place as
 * wrong when nothing of its kind is there. With `data`, Presidio's generated sentences are measured too: only those of
 * templates with an odd number, as the others were used to make the detectors.
 */
export async function measurePii(data?: string, seed = 16): Promise<PiiReport> {
  const rows = score('faker', makeSentences(createDraw(seed), 6_000))
  if (data) rows.push(...score('presidio', await readPresidio(data)))
  const keys = measureKeys(createDraw(seed + 1))
  rows.push(keys.row)
  return { rows, ...keys, times: measureTimes() }
}

/** The same as lines of a table. */
export async function listPiiFigures(data?: string): Promise<string[]> {
  const { rows, keyFalseAlarms, missedKeys, alarms, times } = await measurePii(data)
  const percent = (share: number) => (Number.isNaN(share) ? '-' : share.toFixed(3))
  return [
    'set       kind          places  precision  recall',
    ...rows.map(
      ({ set, kind, right, missed, precision, recall }) =>
        `${set.padEnd(9)} ${kind.padEnd(13)} ${String(right + missed).padStart(6)}  ${percent(precision).padStart(9)}  ${percent(recall).padStart(6)}`,
    ),
    `false alarms of api_key and jwt on texts that look like keys: ${percent(keyFalseAlarms)}`,
    ...(missedKeys.length > 0 ? [`missed: ${missedKeys.join(', ')}`] : []),
    ...(alarms.length > 0 ? [`told wrongly: ${alarms.join(' | ')}`] : []),
    ...times.map(
      ({ text, characters, p50, p95 }) =>
        `${text.padEnd(10)} ${String(characters).padStart(7)} characters: p50 ${p50.toFixed(2)} ms, p95 ${p95.toFixed(2)} ms`,
    ),
  ]
}

function score(set: string, texts: Labelled[]): PiiRow[] {
  const counts = new Map(PII_KINDS.map((kind) => [kind as string, { right: 0, wrong: 0, missed: 0 }]))
  for (const { text, spans } of texts) {
    const found = findPii(text, ALL)
    for (const [kind, count] of counts) {
      const told = found.filter((one) => one.kind === kind)
      const wanted = spans.filter((one) => one.kind === kind)
      for (const { start, end } of wanted) {
        if (told.some((one) => one.start === start && one.end === end)) count.right++
        else count.missed++
      }
      for (const one of told)
        if (!wanted.some(({ start, end }) => one.start < end && start < one.end)) count.wrong++
    }
  }
  return [...counts].map(([kind, count]) => rate(set, kind, count))
}

function rate(set: string, kind: string, count: { right: number; wrong: number; missed: number }): PiiRow {
  const { right, wrong, missed } = count
  return { set, kind, ...count, precision: right / (right + wrong), recall: right / (right + missed) }
}

const KIND_NAMES: Record<string, string> = {
  EMAIL_ADDRESS: 'email',
  US_SSN: 'ssn',
  CREDIT_CARD: 'credit_card',
  PHONE_NUMBER: 'phone',
  IP_ADDRESS: 'ip_address',
  IBAN_CODE: 'iban',
}
type PresidioItem = {
  full_text: string
  template_id: number
  spans: { entity_type: string; start_position: number; end_position: number }[]
}

async function readPresidio(data: string): Promise<Labelled[]> {
  const items: PresidioItem[] = JSON.parse(
    await readFile(join(data, 'guardrails/presidio_synth.json'), 'utf8'),
  )
  return items
    .filter(({ template_id }) => template_id % 2 === 1)
    .map(({ full_text, spans }) => ({
      text: full_text,
      source: 'presidio',
      spans: spans.map(({ entity_type, start_position, end_position }) => ({
        kind: KIND_NAMES[entity_type] ?? entity_type,
        start: start_position,
        end: end_position,
      })),
    }))
}

const KEY_KINDS: ReadonlySet<PiiKind> = new Set<PiiKind>(['api_key', 'jwt'])
/** A key counts as found when at least this share of it is told. */
const MOST = 0.8

function measureKeys(d: Draw) {
  const count = { right: 0, wrong: 0, missed: 0 }
  const missedKeys = new Set<string>()
  const check = (name: string, text: string, key: string) => {
    const start = text.indexOf(key)
    const told = findPii(text, KEY_KINDS).reduce(
      (sum, one) => sum + Math.max(0, Math.min(one.end, start + key.length) - Math.max(one.start, start)),
      0,
    )
    if (told >= key.length * MOST) count.right++
    else {
      count.missed++
      missedKeys.add(name)
    }
  }
  for (const [name, make] of Object.entries(KEYS))
    for (const around of AROUND_KEY) {
      const key = make(d)
      check(name, around(key), key)
    }
  for (const [name, make] of NAMED_KEYS)
    for (const around of AROUND_NAMED) {
      const key = make(d)
      check(name, around(name, key), key)
    }
  const alarms: string[] = []
  const benign = NO_KEYS.flatMap((make) => Array.from({ length: 10 }, () => make(d)))
  for (const text of benign) if (findPii(text, KEY_KINDS).length > 0) alarms.push(text)
  count.wrong = alarms.length
  return {
    row: rate('keys', 'api_key', count),
    keyFalseAlarms: alarms.length / benign.length,
    missedKeys: [...missedKeys],
    alarms: [...new Set(alarms.map((text) => text.slice(0, 40)))].slice(0, 12),
  }
}

function measureTimes(): PiiTime[] {
  const d = createDraw(7)
  const prose = 'We met on Monday and talked about the budget for next year. Nobody was against it. '
  const mixed = makeSentences(d, 400)
    .map(({ text }) => text)
    .join('\n')
  const texts: [string, string][] = [
    ['prose', prose],
    ['sentences', mixed],
    ['digits', '0123 456 '],
    ['hidden', 'b\u200bo@exa\u0301mple.com '],
  ]
  return texts.flatMap(([name, unit]) =>
    [2_000, 100_000].map((characters) => {
      const text = unit.repeat(Math.ceil(characters / unit.length)).slice(0, characters)
      const times = Array.from({ length: characters > 10_000 ? 15 : 100 }, () => {
        const start = performance.now()
        findPii(text, ALL)
        return performance.now() - start
      }).sort((a, b) => a - b)
      const at = (share: number) => times[Math.min(times.length - 1, Math.floor(times.length * share))]!
      return { text: name, characters, p50: at(0.5), p95: at(0.95) }
    }),
  )
}
