import { findInjection } from '../../../activities/guardrails/injection/injection.ts'
import { listViews } from '../../../db/detection/views.ts'
import { EVASIONS } from './evasions.ts'
import type { Sample } from './fit/injection/sentences.ts'
import { listFitted, listMeasured } from './fit/injection/sources.ts'
import { createRandom, shuffle } from './fit/random.ts'
import { withoutShared } from './fit/shingles.ts'

/** The sensitivities of which the guide speaks. */
const SENSITIVITIES = [0.3, 0.7, 0.9] as const
const DEFAULT = 0.7
/** So many attacks go through each disguise. */
const DISGUISED = 120

/** How many of a source's texts each sensitivity flags, as shares: of attacks that is recall, of others false alarms. */
type InjectionRow = { source: string; attacks: boolean; texts: number; flagged: number[] }
export type InjectionReport = {
  rows: InjectionRow[]
  /** At 0.7, all sources together: of what was flagged, attacks; of the attacks, flagged; of the others, flagged. */
  precision: number
  recall: number
  falseAlarms: number
  /** The share of attacks that are found at 0.7 behind each disguise, beside `plain`. */
  evasions: Record<string, number>
  /** Milliseconds of processor time for the readings and the detector, for texts of so many characters. */
  times: { characters: number; p50: number; p95: number }[]
}

/** Measures the injection detector on sources that it was not fitted to, without texts that share 8 words in a row with fitted ones. */
export function measureInjection(data: string): InjectionReport {
  const fitted = listFitted(data, createRandom(11))
  const measured = withoutShared(listMeasured(data), fitted)
  const isFlagged = ({ text }: { text: string }, sensitivity: number) =>
    findInjection(listViews(text), sensitivity).length > 0
  const share = (samples: readonly Sample[], sensitivity: number) =>
    samples.filter((sample) => isFlagged(sample, sensitivity)).length / samples.length
  const groups = Map.groupBy(measured, ({ source, attack }) => `${attack ? 'attack' : 'harmless'} ${source}`)
  const rows = [...groups.values()].map((samples) => ({
    source: samples[0]!.source,
    attacks: samples[0]!.attack,
    texts: samples.length,
    flagged: SENSITIVITIES.map((sensitivity) => share(samples, sensitivity)),
  }))
  const count = (attacks: boolean, of: (row: InjectionRow) => number) =>
    rows.filter((row) => row.attacks === attacks).reduce((sum, row) => sum + of(row), 0)
  const flagged = (row: InjectionRow) => row.texts * row.flagged[1]!
  const hits = count(true, flagged)
  const alarms = count(false, flagged)
  return {
    rows,
    precision: hits / (hits + alarms),
    recall: hits / count(true, ({ texts }) => texts),
    falseAlarms: alarms / count(false, ({ texts }) => texts),
    evasions: measureEvasions(measured, (sample) => isFlagged(sample, DEFAULT)),
    times: [2_000, 100_000].map((characters) => measureTimes(measured, characters)),
  }
}

function measureEvasions(measured: readonly Sample[], isFlagged: (sample: { text: string }) => boolean) {
  const attacks = shuffle(
    measured.filter(({ attack, text }) => attack && text.length <= 1_500),
    createRandom(3),
  ).slice(0, DISGUISED)
  const share = (disguise: (text: string) => string) =>
    attacks.filter(({ text }) => isFlagged({ text: disguise(text) })).length / attacks.length
  const disguised = Object.entries(EVASIONS).map(([name, disguise]) => [name, share(disguise)] as const)
  return { plain: share((text) => text), ...Object.fromEntries(disguised) }
}

/** Texts of one length, put together from what is measured. */
function measureTimes(measured: readonly Sample[], characters: number) {
  const all = measured.map(({ text }) => text).join('\n')
  const rounds = characters > 10_000 ? 12 : 150
  const times = Array.from({ length: rounds }, (_, round) => {
    const start = (round * 7_919) % Math.max(1, all.length - characters)
    const text = all.slice(start, start + characters).padEnd(characters, all)
    const begin = process.cpuUsage()
    findInjection(listViews(text), DEFAULT)
    const { user, system } = process.cpuUsage(begin)
    return (user + system) / 1_000
  })
  // The first rounds compile.
  const sorted = times.slice(Math.min(10, rounds / 4)).sort((a, b) => a - b)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!
  return { characters, p50: at(0.5), p95: at(0.95) }
}

/** The report as lines of a table in Markdown. */
export function printInjection({
  rows,
  precision,
  recall,
  falseAlarms,
  evasions,
  times,
}: InjectionReport): string[] {
  const percent = (share: number) => `${(100 * share).toFixed(1)}%`
  return [
    '| source | texts | | flagged at 0.3 | at 0.7 | at 0.9 |',
    '|---|---|---|---|---|---|',
    ...rows.map(
      ({ source, texts, attacks, flagged }) =>
        `| ${source} | ${texts} | ${attacks ? 'attacks' : 'harmless'} | ${flagged.map(percent).join(' | ')} |`,
    ),
    `precision ${percent(precision)}, recall ${percent(recall)}, false alarms ${percent(falseAlarms)} (sensitivity 0.7)`,
    `found behind a disguise: ${Object.entries(evasions)
      .map(([name, share]) => `${name} ${percent(share)}`)
      .join(', ')}`,
    ...times.map(
      ({ characters, p50, p95 }) =>
        `${characters} characters: p50 ${p50.toFixed(1)} ms, p95 ${p95.toFixed(1)} ms`,
    ),
  ]
}
