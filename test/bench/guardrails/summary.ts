import { performance } from 'node:perf_hooks'
import { CONTENT_CATEGORIES } from '../../../activities/guardrails/content/categories.ts'
import { DETECTORS, type Detection, type DetectorName } from '../../../activities/guardrails/detectors.ts'
import { fitText } from '../../../activities/jsonschema/texts.ts'
import { CHECKED_KINDS } from '../../../db/detection/pii/kinds.ts'
import { listViews, type TextView } from '../../../db/detection/views.ts'
import { listAdversarial } from './adversarial.ts'
import { measureHeldContent } from './content.ts'
import type { InjectionReport } from './injection.ts'
import { measurePii, type PiiRow } from './pii/pii.ts'
import { createDraw } from './pii/random.ts'
import { makeSentences } from './pii/sentences.ts'

const ASKED: Required<Detection> = {
  PII_REDACTION: { kinds: [...CHECKED_KINDS] },
  PROMPT_INJECTION: { sensitivity: 0.7 },
  CONTENT_FILTER: { categories: [...CONTENT_CATEGORIES] },
}
const LENGTHS = [2_000, 100_000] as const

type Times = { p50: number; p95: number }

/** Milliseconds that a work takes: the best of three times, as other programs on the machine only add to it. */
function spend(work: () => unknown): number {
  const once = () => {
    const began = performance.now()
    work()
    return performance.now() - began
  }
  return Math.min(once(), once(), once())
}

function summarise(times: number[]): Times {
  // The first ones compile.
  const sorted = times.slice(Math.min(20, times.length >> 2)).sort((a, b) => a - b)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!
  return { p50: at(0.5), p95: at(0.95) }
}

/** Different texts of a length: sentences with and without personal data. */
function listTexts(length: number, count: number): string[] {
  const all = makeSentences(createDraw(3), 3_000)
    .map(({ text }) => text)
    .join('\n')
  return Array.from({ length: count }, (_, at) => {
    const start = (at * 7_919) % Math.max(1, all.length - length)
    return all.slice(start, start + length).padEnd(length, all)
  })
}

/** Times of each detector and of the readings that they share, for texts of a length; `together` is the sum of a text's. */
function measureTimes(length: number): Map<string, Times> {
  const spent = new Map<string, number[]>()
  const note = (name: string, ms: number) => spent.set(name, [...(spent.get(name) ?? []), ms])
  for (const text of listTexts(length, length > 10_000 ? 30 : 200)) {
    let views: TextView[] = []
    let all = spend(() => {
      views = listViews(text)
    })
    note('readings', all)
    for (const name of Object.keys(ASKED) as DetectorName[]) {
      const ms = spend(() => DETECTORS[name]!(text, () => views, ASKED[name] as never))
      note(name, ms)
      all += ms
    }
    note('together', all)
  }
  return new Map([...spent].map(([name, times]) => [name, summarise(times)]))
}

async function measureSchemaTimes(length: number): Promise<Times> {
  const entry = { id: 12, name: 'Ada', tags: ['a', 'b'] }
  const schema = {
    items: {
      type: 'object',
      required: ['id'],
      properties: { id: { type: 'integer' }, name: { pattern: '^\\p{Lu}' }, tags: { uniqueItems: true } },
      additionalProperties: false,
    },
  }
  const text = JSON.stringify(
    Array(Math.floor((length - 2) / (JSON.stringify(entry).length + 1))).fill(entry),
  )
  const times: number[] = []
  for (let round = 0; round < (length > 10_000 ? 20 : 100); round++) {
    const began = performance.now()
    await fitText(schema, text)
    times.push(performance.now() - began)
  }
  return summarise(times)
}

/** One table for all detectors, as the guide has it. Without an `injection` report, which needs the data, its figures are left out. */
export async function writeSummary(data: string | undefined, injection?: InjectionReport): Promise<string[]> {
  const { rows, keyFalseAlarms } = await measurePii(data)
  const { any } = measureHeldContent()
  const [short, long] = LENGTHS.map(measureTimes) as [Map<string, Times>, Map<string, Times>]
  const times = (name: string) => `${describe(short.get(name)!)} | ${describe(long.get(name)!)}`
  const line = (...cells: string[]) => `| ${cells.join(' | ')} |`
  const pii = (kinds: string[]) => pool(rows.filter(({ kind }) => kinds.includes(kind)))
  const four = pii(['email', 'ssn', 'credit_card', 'ip_address'])
  const phones = pii(['phone'])
  const keys = pii(['api_key'])
  return [
    line('detector', 'precision', 'recall', 'false alarms', '2,000 characters: p50 / p95 ms', '100,000'),
    '|---|---|---|---|---|---|',
    line(
      '`redactPii`: e-mail, SSN, cards, IP',
      share(four.precision),
      share(four.recall),
      '-',
      times('PII_REDACTION'),
    ),
    line(
      '`redactPii`: telephones',
      share(phones.precision),
      share(phones.recall),
      '-',
      'as above | as above',
    ),
    line(
      '`redactPii`: keys',
      share(keys.precision),
      share(keys.recall),
      share(keyFalseAlarms),
      'as above | as above',
    ),
    ...(injection
      ? [
          line(
            '`detectPromptInjection` at 0.7',
            share(injection.precision),
            share(injection.recall),
            share(injection.falseAlarms),
            times('PROMPT_INJECTION'),
          ),
        ]
      : []),
    line(
      '`filterContent`',
      share(any.precision),
      share(any.recall),
      share(any.falseAlarms),
      times('CONTENT_FILTER'),
    ),
    line(
      '`validateSchema`',
      '-',
      '-',
      '-',
      `${describe(await measureSchemaTimes(LENGTHS[0]))} | ${describe(await measureSchemaTimes(LENGTHS[1]))}`,
    ),
    line('readings that the first three share', '-', '-', '-', times('readings')),
    line('the first three together', '-', '-', '-', times('together')),
  ]
}

const share = (part: number) => `${(100 * part).toFixed(1)}%`
const describe = ({ p50, p95 }: Times) => `${p50.toFixed(1)} / ${p95.toFixed(1)}`

function pool(rows: PiiRow[]) {
  const sum = (of: (row: PiiRow) => number) => rows.reduce((all, row) => all + of(row), 0)
  const right = sum((row) => row.right)
  return {
    precision: right / (right + sum(({ wrong }) => wrong)),
    recall: right / (right + sum(({ missed }) => missed)),
  }
}

/** How long all detectors together take for texts that are made to be slow. */
export function measureAdversarial(): string[] {
  const times = listAdversarial().map(([name, text]) => {
    const ms = spend(() => {
      const views = listViews(text)
      for (const detector of Object.keys(ASKED) as DetectorName[])
        DETECTORS[detector]!(text, () => views, ASKED[detector] as never)
    })
    return { name, ms }
  })
  times.sort((a, b) => b.ms - a.ms)
  const slowest = times.slice(0, 5).map(({ name, ms }) => `${name} ${ms.toFixed(0)} ms`)
  const median = times[times.length >> 1]!.ms
  return [
    `  ${times.length} kinds of 100,000 characters: median ${median.toFixed(0)} ms; the slowest: ${slowest.join(', ')}`,
  ]
}
