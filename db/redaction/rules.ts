import { LRUCache } from 'lru-cache'
import { RE2JS } from 're2js'
import { normalizeKey } from '../../workflows/secrets/secretnames.ts'
import { perDatabase } from '../cache.ts'
import type { Db } from '../connection.ts'
import { labelOf, maskPartly, type PersonalKind, PII_KINDS } from '../detection/pii/kinds.ts'
import { REDACTED } from '../detection/secrets/structures.ts'
import type { RedactionRules } from './redact.ts'

/** LABEL writes `[EMAIL]`; PARTIAL keeps enough of a value for a person who knows it to recognise it. */
export const MASK_STYLES = ['LABEL', 'PARTIAL'] as const

/** The masking settings of the instance. */
export type MaskingSettings = {
  /** Which kinds of personal data are masked. Secrets are always masked. */
  detectors: Record<PersonalKind, boolean>
  style: (typeof MASK_STYLES)[number]
  /** Regular expressions, without look-around and back-references, whose matches are masked as `[name]`. */
  patterns: { name: string; pattern: string }[]
  /** More names of keys whose values are secret, in any spelling. */
  keys: string[]
  updatedAt: Date | null
}

export async function loadMasking(db: Db): Promise<MaskingSettings> {
  const row = await db.selectFrom('masking').select(['settings', 'updatedAt']).executeTakeFirst()
  const {
    detectors,
    style = 'LABEL',
    patterns = [],
    keys = [],
  } = (row?.settings ?? {}) as Partial<MaskingSettings>
  const kinds = PII_KINDS.map((kind) => [kind, detectors?.[kind] ?? true])
  return { detectors: Object.fromEntries(kinds), style, patterns, keys, updatedAt: row?.updatedAt ?? null }
}

/** The current rules for `redact`. */
export async function readRules(db: Db): Promise<RedactionRules> {
  return compileRules(await loadMasking(db))
}

const cacheOf = perDatabase(() => new LRUCache<'rules', RedactionRules>({ max: 1, ttl: 5_000 }))

/** Like readRules, but up to 5 s old, for frequent use. `through` is the caller's transaction. */
export async function readRecentRules(db: Db, through: Db): Promise<RedactionRules> {
  const cache = cacheOf(db)
  const known = cache.get('rules')
  if (known) return known
  const rules = await readRules(through)
  cache.set('rules', rules)
  return rules
}

/** Makes a change of the masking apply in this process at once. */
export function forgetRules(db: Db): void {
  cacheOf(db).clear()
}

function compileRules({
  detectors,
  style,
  patterns,
  keys,
}: Omit<MaskingSettings, 'updatedAt'>): RedactionRules {
  const own = patterns.map(({ name, pattern }) => ({ label: `[${name}]`, regex: compile(pattern) }))
  const labels = [REDACTED, ...PII_KINDS.map(labelOf), ...own.map(({ label }) => label)]
  const marks = new RegExp(`(${labels.map((label) => label.replace(/[[\]]/g, '\\$&')).join('|')})`)
  return {
    kinds: new Set(PII_KINDS.filter((kind) => detectors[kind])),
    mask: style === 'PARTIAL' ? maskPartly : labelOf,
    names: new Set(keys.map(normalizeKey)),
    maskOwn: (text) =>
      own.reduce(
        // Labels are not searched: otherwise a pattern could find its own label again.
        (clean, { regex, label }) =>
          clean
            .split(marks)
            .map((part, i) => (i % 2 === 1 ? part : maskMatches(regex, part, label)))
            .join(''),
        text,
      ),
  }
}

const MAX_MATCHES = 1_000

// Each search takes time linear in the rest of the text, so the number of searches is bounded. After the last
// one the rest of the text is masked as a whole.
function maskMatches(regex: RE2JS, text: string, label: string): string {
  const matcher = regex.matcher(text)
  let clean = ''
  let from = 0
  for (let found = 0; matcher.find(); ) {
    if (matcher.start() === matcher.end()) continue
    if (++found > MAX_MATCHES) return clean + label
    clean += text.slice(from, matcher.start()) + label
    from = matcher.end()
  }
  return clean + text.slice(from)
}

const MAX_PROGRAM = 300

/** Says why a pattern is not valid, or too expensive to search for; undefined if it is fine. */
export function findPatternFault(pattern: string): string | undefined {
  try {
    const regex = compile(pattern)
    if (regex.programSize() > MAX_PROGRAM) return 'is too large: use smaller repetitions'
    return regex.matcher('').find() ? 'must not match the empty string' : undefined
  } catch (error) {
    return `is not a valid RE2 regular expression: ${(error as Error).message}`
  }
}

function compile(pattern: string): RE2JS {
  return RE2JS.compile(RE2JS.translateRegExp(pattern))
}
