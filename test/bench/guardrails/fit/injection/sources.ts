import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'csv-parse/sync'
import { shuffle } from '../random.ts'
import { readHeld, readSentences, type Sample } from './sentences.ts'

/** Packages, pinned in package.json, whose README is harmless technical prose to fit with. */
const READMES = [
  'ajv',
  'cheerio',
  'csv-parse',
  'fast-check',
  'fast-xml-parser',
  'hono',
  'html-to-text',
  'imapflow',
  'jmespath',
  'jose',
  'jsonata',
  'kysely',
  'lru-cache',
  'luxon',
  'marked',
  'mysql2',
  'node-cron',
  'node-html-parser',
  'nodemailer',
  'pino',
  'playwright-core',
  'prom-client',
  'read-excel-file',
  'showdown',
  'transliteration',
  'undici',
  'uuid',
  'valibot',
  'xml2js',
  'yauzl',
]
const MODULES = new URL('../../../../../node_modules/', import.meta.url)

/** Harmless pages: the READMEs of packages, in pieces of about 1,500 characters that end with a line. */
export function readReadmes(): Sample[] {
  return READMES.flatMap((name) => {
    const folder = new URL(`${name}/`, MODULES)
    const file = readdirSync(folder).find((entry) => /^readme\.md$/i.test(entry))
    if (!file) return []
    const pieces = readFileSync(new URL(file, folder), 'utf8').match(/[\s\S]{1,1500}(?:\n|$)/g) ?? []
    return pieces.slice(0, 40).map((text) => ({ text, attack: false, source: 'readmes' }))
  })
}

/** Files of packages, pinned in package.json, that say in comments what each function does. */
const COMMENTED = ['@types/node', 'playwright-core/types']
const COMMENTS = 1_500

/** Harmless technical sentences with words that attacks use: comments of packages. */
function readComments(random: () => number): Sample[] {
  const files = COMMENTED.flatMap((name) => {
    const folder = new URL(`${name}/`, MODULES)
    return readdirSync(folder)
      .filter((file) => file.endsWith('.d.ts'))
      .sort()
      .map((file) => readFileSync(new URL(file, folder), 'utf8'))
  })
  const sentences = files
    .flatMap((text) => text.match(/\/\*\*[\s\S]*?\*\//g) ?? [])
    .flatMap((comment) =>
      comment
        .replace(/```[\s\S]*?```/g, '')
        .replace(/\s*\n\s*\*?|\/\*\*|\*\//g, ' ')
        .split(/(?<=[.:]) (?=[A-Z])/),
    )
    .map((sentence) => sentence.replace(/\{@link ([^}]*)\}/g, '$1').trim())
    .filter((sentence) => sentence.length > 25 && sentence.length < 400 && !sentence.includes('@'))
    .filter((sentence) => SUSPICIOUS.test(sentence))
  return shuffle([...new Set(sentences)], random)
    .slice(0, COMMENTS)
    .map((text) => ({ text, attack: false, source: 'comments' }))
}

/** Words of which attacks are full. */
const SUSPICIOUS =
  /\b(?:ignor|overrid|bypass|reset|secret|password|prompt|system|previous|above|instruction|command|rule|restrict|print|reveal|repeat|access|grant|den(?:y|ied)|hidden|must|admin|role|key|token|exec|disable|message|output|return(?:s)? the (?:text|string|code))/i

const readJson = (folder: string, file: string) =>
  JSON.parse(readFileSync(join(folder, 'guardrails', file), 'utf8'))

/** Prompts that people used to free models of their rules. */
function readInTheWild(folder: string): Sample[] {
  const texts = readJson(folder, 'inthewild.json') as string[]
  return texts.map((text) => ({ text, attack: true, source: 'inthewild' }))
}

/** Instructions that were hidden in mails and pages: attacks where they lie, not what a user may ask. */
function readBipia(folder: string): Sample[] {
  const families = readJson(folder, 'bipia_text.json') as Record<string, string[]>
  return Object.entries(families).flatMap(([, texts]) =>
    texts.map((text) => ({ text, attack: true, source: 'bipia' })),
  )
}

/** Harmless sentences with names, addresses and numbers. */
export function readPresidio(folder: string): Sample[] {
  const items = readJson(folder, 'presidio_synth.json') as { full_text: string }[]
  return items.map(({ full_text }) => ({ text: full_text, attack: false, source: 'presidio' }))
}

/** Tweets and test sentences, hateful or not: none of them speaks to a model. */
export function readHateful(folder: string, random: () => number): Sample[] {
  const rows = (file: string) =>
    parse(readFileSync(join(folder, 'guardrails', file)), {
      columns: true,
      relax_column_count: true,
      relax_quotes: true,
    }) as Record<string, string>[]
  const tweets = shuffle(rows('davidson.csv'), random).slice(0, 1_500)
  const cases = shuffle(rows('hatecheck.csv'), random).slice(0, 500)
  return [
    ...tweets.map(({ tweet }) => ({ text: tweet!, attack: false, source: 'davidson' })),
    ...cases.map(({ test_case }) => ({ text: test_case!, attack: false, source: 'hatecheck' })),
  ]
}

/** Only for measuring: nothing is fitted to these prompts, which come from well-known test sets. */
function readPigValid(folder: string): Sample[] {
  const items = readJson(folder, 'pig_valid.json') as { prompt: string; label: 0 | 1; source: string }[]
  return items.map(({ prompt, label, source }) => ({
    text: prompt,
    attack: label === 1,
    source: `pig:${source}`,
  }))
}

/** Longer texts of our own sentences: harmless ones, and ones with an attack somewhere in them. */
function compose(sentences: readonly Sample[], around: readonly Sample[], random: () => number): Sample[] {
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)]!
  const harmless = sentences.filter(({ attack }) => !attack)
  const attacks = sentences.filter(({ attack }) => attack)
  const buried = attacks.filter(({ source }) => BURIED.has(source))
  const join = (parts: string[]) => parts.join(pick([' ', '\n', '\n\n']))
  const listParts = (count: number, other: readonly Sample[]) =>
    Array.from({ length: count }, () => pick(random() < 0.67 ? harmless : other).text)
  return Array.from({ length: COMPOSED }, (_, at): Sample => {
    if (at % 2)
      return {
        text: join(listParts(2 + Math.floor(random() * 8), around)),
        attack: false,
        source: 'composed',
      }
    const parts = listParts(1 + Math.floor(random() * 5), around)
    parts.splice(Math.floor(random() * (parts.length + 1)), 0, pick(at % 4 ? buried : attacks).text)
    return { text: join(parts), attack: true, source: 'composed' }
  })
}

const COMPOSED = 1_800
const BURIED = new Set(['own:to-assistants', 'own:buried-tasks'])
const VARIANTS = 4

/** All that the detector is fitted to. The same data, packages and random numbers give the same texts. */
export function listFitted(folder: string, random: () => number): Sample[] {
  const sentences = readSentences(random, VARIANTS)
  const less = (samples: Sample[], weight: number) => samples.map((sample) => ({ ...sample, weight }))
  const names = shuffle(readPresidio(folder), random).slice(0, 800)
  const readmes = readReadmes()
  return [
    ...sentences,
    ...less(names, 0.5),
    ...less(readHateful(folder, random), 0.5),
    ...less(readmes, 0.5),
    ...less(readComments(random), 0.5),
    ...compose(sentences, [...names, ...readmes.slice(0, 60)], random),
  ]
}

/** Where instructions for assistants may hide: a mail, the result of a tool, a page. */
const CARRIERS: ((text: string) => string)[] = [
  (text) =>
    `Hi Rosa,\n\nthe painters finished the hall this morning and the floor should be dry by six. ${text}\n\nSee you at the weekend, Bo`,
  (text) => JSON.stringify({ station: 'Harbour', departures: ['12:04', '12:34'], remark: text, platform: 2 }),
  (text) =>
    `<h2>Our bakery</h2><p>Rye and spelt from the stone oven.</p><p>${text}</p><p>Closed on Sundays.</p>`,
]

/** What the detector is measured with: attacks, and harmless texts, of sources that it was not fitted to. */
export function listMeasured(folder: string): Sample[] {
  return [
    ...readHeld(),
    ...readInTheWild(folder),
    ...readPigValid(folder),
    ...readBipia(folder).map((sample, at) => ({
      ...sample,
      text: CARRIERS[at % CARRIERS.length]!(sample.text),
    })),
  ]
}
