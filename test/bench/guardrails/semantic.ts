import { findInjection } from '../../../activities/guardrails/injection/injection.ts'
import { compareText } from '../../../activities/guardrails/semantic/compare.ts'
import { type Embedder, loadEmbedder } from '../../../activities/guardrails/semantic/embedder.ts'
import { listViews } from '../../../db/detection/views.ts'
import type { Sample } from './fit/injection/sentences.ts'
import { listMeasured, readHateful, readPresidio, readReadmes } from './fit/injection/sources.ts'
import { createRandom, shuffle } from './fit/random.ts'
import { readExemplarTexts } from './fit/semantic/fit.ts'
import { withoutShared } from './fit/shingles.ts'
import { describeTimes } from './times.ts'

/** Each text takes some tenths of a second: so many of a source. */
const MOST = 60
const SENSITIVITY = 0.7

/** Texts of sources that no exemplar is from and no figure was fitted to, without those that share 8 words in a row with one. */
function listSources(data: string): Map<string, Sample[]> {
  const random = createRandom(7)
  const harmless = [...readPresidio(data), ...readReadmes(), ...readHateful(data, random)]
  const exemplars = [...readExemplarTexts('attacks.txt'), ...readExemplarTexts('counter.txt')]
  const known = exemplars.flatMap(([, texts]) => texts.map((text) => ({ text })))
  const samples = withoutShared([...listMeasured(data), ...harmless], known)
  const groups = Map.groupBy(samples, ({ source, attack }) => `${source}|${attack ? 'attacks' : 'harmless'}`)
  return new Map([...groups].map(([name, texts]) => [name, shuffle(texts, random).slice(0, MOST)]))
}

/** How many texts of each source are similar to an exemplar, and how long it takes; the lines of a table in Markdown. */
export async function measureSemantic(data: string | undefined): Promise<string[]> {
  const embed = await loadEmbedder()
  const times = await measureComparing(embed)
  if (!data) return times
  const lines = [
    '| source | texts | | similar | of these corroborated | missed by the injection detector, similar |',
    '|---|---|---|---|---|---|',
  ]
  const total = { attacks: 0, harmless: 0, hits: 0, alarms: 0 }
  for (const [name, samples] of listSources(data)) {
    const [source, kind] = name.split('|')
    let [similar, corroborated, missed, rescued] = [0, 0, 0, 0]
    for (const { text } of samples) {
      const found = await compareText(embed, text, [])
      const isFound = found.length > 0
      const isInjection = findInjection(listViews(text), SENSITIVITY).length > 0
      if (isFound) similar++
      if (found.some((one) => one.corroborated)) corroborated++
      if (!isInjection) missed++
      if (!isInjection && isFound) rescued++
    }
    total[kind === 'attacks' ? 'attacks' : 'harmless'] += samples.length
    total[kind === 'attacks' ? 'hits' : 'alarms'] += similar
    const percent = `${((100 * similar) / samples.length).toFixed(1)}%`
    lines.push(
      `| ${source} | ${samples.length} | ${kind} | ${percent} | ${corroborated} | ${rescued} of ${missed} |`,
    )
  }
  const { attacks, harmless, hits, alarms } = total
  const percent = (part: number, all: number) => `${((100 * part) / all).toFixed(1)}%`
  return [
    ...lines,
    `precision ${percent(hits, hits + alarms)}, recall ${percent(hits, attacks)}, false alarms ${percent(alarms, harmless)}`,
    ...times,
  ]
}

const PLACES = ['harbour', 'library', 'garden', 'station', 'theatre', 'market', 'school', 'bakery']

async function measureComparing(embed: Embedder): Promise<string[]> {
  const lines: string[] = []
  for (const [length, rounds] of [
    [2_000, 30],
    [100_000, 10],
  ] as const) {
    const times: number[] = []
    for (let round = 0; round < rounds; round++) {
      let text = ''
      for (let at = 0; text.length < length; at++)
        text += `The ${PLACES[at % 8]} number ${at * round} has been painted by those who live beside the ${PLACES[(at * 3) % 8]}. `
      const before = process.cpuUsage()
      await compareText(embed, text.slice(0, length), [])
      const { user, system } = process.cpuUsage(before)
      times.push((user + system) / 1_000)
    }
    lines.push(`${length} characters, processor time: ${describeTimes(times.slice(2))}`)
  }
  return [
    ...lines,
    `resident memory of a process with the model: ${Math.round(process.memoryUsage().rss / 1e6)} MB`,
  ]
}
