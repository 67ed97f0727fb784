import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'csv-parse/sync'
import type { Labelled, Labels } from './seeds.ts'

const NONE: Labels = { hate: 0, harassment: 0, violence: 0, self_harm: 0, sexual: 0 }

/** Dependencies whose READMEs are harmless technical prose; their versions are pinned by the lockfile. */
const READMES = [
  'undici',
  'pino',
  'hono',
  'kysely',
  'valibot',
  'luxon',
  'nodemailer',
  'marked',
  'jose',
  'pg',
  'uuid',
  'fast-check',
  'lru-cache',
]

/** The labelled and the harmless texts of the shared data in `folder`, and the READMEs of our dependencies. */
export function readSources(folder: string): Labelled[] {
  const guardrails = join(folder, 'guardrails')
  return [
    ...readTweets(guardrails),
    ...readHatecheck(guardrails),
    ...readHarmless(guardrails),
    ...readReadmes(),
  ]
}

/**
 * Davidson's tweets. Its offensive ones are not hateful, whatever words they use: they teach that profanity and
 * dialect are not hate. Nothing is known about their other categories.
 */
function readTweets(folder: string): Labelled[] {
  const rows: Record<string, string>[] = parse(readFileSync(join(folder, 'davidson.csv')), { columns: true })
  return rows.flatMap((row) => {
    const [votes, hateful] = [Number(row.count), Number(row.hate_speech)]
    const text = cleanTweet(row.tweet!)
    const base = { text, source: 'davidson' }
    if (row.class === '0')
      return [{ ...base, family: 'hate', labels: { hate: 1 }, weight: (0.5 * hateful) / votes }]
    if (row.class === '1')
      return [{ ...base, family: 'offensive', labels: { hate: 0 }, weight: hateful ? 0.05 : 0.15 }]
    return [{ ...base, family: 'neither', labels: hateful ? {} : NONE, weight: 0.15 }]
  })
}

const cleanTweet = (tweet: string) =>
  tweet
    .replace(/&#\d+;/g, ' ')
    .replace(/&amp;/g, '&')
    .replace(/&[lg]t;/g, ' ')
    .replace(/https?:\S+/g, ' ')
    .replace(/\bRT\b/g, ' ')
    .replace(/@[\w]+:?/g, ' ')
    .trim()

/** Functionalities of HateCheck that the normaliser undoes before the detector sees them. */
const DISGUISED = new Set(['spell_space_add_h', 'spell_leet_h'])

/** HateCheck: hateful or not, by functionality; its threats are violent too. */
function readHatecheck(folder: string): Labelled[] {
  const rows: Record<string, string>[] = parse(readFileSync(join(folder, 'hatecheck.csv')), { columns: true })
  const plain = rows.filter(({ functionality }) => !DISGUISED.has(functionality!))
  return plain.map((row) => {
    const family = row.functionality!
    const hateful = row.label_gold === 'hateful'
    const labels: Labels = { hate: hateful ? 1 : 0 }
    if (family.startsWith('threat_')) labels.violence = 1
    else if (hateful) labels.self_harm = 0
    else if (!family.startsWith('target_')) Object.assign(labels, NONE)
    return { text: row.test_case!.trim(), labels, source: 'hatecheck', family, weight: hateful ? 0.2 : 0.5 }
  })
}

function readHarmless(folder: string): Labelled[] {
  const sentences: { full_text: string }[] = JSON.parse(
    readFileSync(join(folder, 'presidio_synth.json'), 'utf8'),
  )
  const prompts: { prompt: string; label: number }[] = JSON.parse(
    readFileSync(join(folder, 'pig_valid.json'), 'utf8'),
  )
  return [
    ...sentences.map(({ full_text }) => harmless(full_text, 'presidio', 0.1)),
    ...prompts.filter(({ label }) => label === 0).map(({ prompt }) => harmless(prompt, 'piguard', 0.3)),
  ]
}

function readReadmes(): Labelled[] {
  return READMES.flatMap((name) => {
    const file = new URL(`../../../../../node_modules/${name}/README.md`, import.meta.url)
    const paragraphs = readFileSync(file, 'utf8').split(/\n{2,}/)
    return paragraphs
      .filter(({ length }) => length > 60 && length < 2_000)
      .map((text) => harmless(text, 'readme', 0.3))
  })
}

const harmless = (text: string, source: string, weight: number): Labelled => ({
  text,
  labels: NONE,
  source,
  family: source,
  weight,
})
