import { RE2JS } from 're2js'
import { type Db, json } from './connection.ts'
import { MARK } from './detect.ts'
import { maskPartly, PII_KINDS, type PiiKind } from './pii.ts'
import { plainName, type Rules } from './redact.ts'
import { changeInstance, demandInstance, type Scope } from './scope.ts'

/** LABEL writes `[EMAIL]`, PARTIAL leaves so much that who knows the datum knows it again. */
export const MASK_STYLES = ['LABEL', 'PARTIAL'] as const

export type Masking = {
  /** Which personal data are masked. Secrets always are. */
  detectors: Record<PiiKind, boolean>
  style: (typeof MASK_STYLES)[number]
  /** What else is masked, as `[NAME]`: regular expressions without look-around and back-references. */
  patterns: { name: string; pattern: string }[]
  /** Further names of keys whose values are secret, however they are spelled. */
  keys: string[]
  updatedAt: Date | null
}

type Patch = { [K in Exclude<keyof Masking, 'updatedAt' | 'detectors'>]?: Masking[K] | undefined } & {
  detectors?: { [K in PiiKind]?: boolean | undefined } | undefined
}

/** The masking of the instance. For its admin, else FORBIDDEN. */
export async function readMasking(scope: Scope): Promise<Masking> {
  demandInstance(scope)
  return loadMasking(scope.store.db)
}

/** Changes what is given, from the next export and audit entry on; in other processes 5 s later at most. */
export async function updateMasking(scope: Scope, patch: Patch): Promise<Masking> {
  const changed = await changeInstance(scope, 'MASKING_UPDATED', async (tx) => {
    await tx.selectFrom('masking').select('one').forUpdate().execute()
    const old = await loadMasking(tx)
    const { detectors, style = old.style, patterns = old.patterns, keys = old.keys } = patch
    const kinds = PII_KINDS.map((kind) => [kind, detectors?.[kind] ?? old.detectors[kind]])
    const settings = { detectors: Object.fromEntries(kinds), style, patterns, keys }
    const updatedAt = new Date()
    await tx
      .updateTable('masking')
      .set({ settings: json(settings), updatedAt })
      .execute()
    const result = { ...settings, updatedAt } as Masking
    return { result, resourceId: null, details: describe(result) }
  })
  remembered.delete(scope.store.db)
  return changed
}

// The patterns themselves may tell what they hide.
function describe({ detectors, style, patterns, keys }: Masking) {
  return { detectors, style, patterns: patterns.map(({ name }) => name), keys: keys.length }
}

async function loadMasking(db: Db): Promise<Masking> {
  const row = await db.selectFrom('masking').select(['settings', 'updatedAt']).executeTakeFirst()
  const { detectors, style = 'LABEL', patterns = [], keys = [] } = (row?.settings ?? {}) as Partial<Masking>
  const kinds = PII_KINDS.map((kind) => [kind, detectors?.[kind] ?? true])
  return { detectors: Object.fromEntries(kinds), style, patterns, keys, updatedAt: row?.updatedAt ?? null }
}

/** The rules for `redact`, as they are now. */
export async function readRules(db: Db): Promise<Rules> {
  return compileRules(await loadMasking(db))
}

const REMEMBERED_MS = 5_000
const remembered = new WeakMap<Db, { rules: Rules; until: number }>()

/** The same for what is done often: up to 5 s old. `through` is the transaction that the caller is in. */
export async function recallRules(db: Db, through: Db): Promise<Rules> {
  const known = remembered.get(db)
  if (known && known.until > Date.now()) return known.rules
  const rules = await readRules(through)
  remembered.set(db, { rules, until: Date.now() + REMEMBERED_MS })
  return rules
}

function compileRules({ detectors, style, patterns, keys }: Omit<Masking, 'updatedAt'>): Rules {
  const own = patterns.map(({ name, pattern }) => ({ label: `[${name}]`, regex: compile(pattern) }))
  const labels = [MARK, ...PII_KINDS.map(labelOf), ...own.map(({ label }) => label)]
  const marks = new RegExp(`(${labels.map((label) => label.replace(/[[\]]/g, '\\$&')).join('|')})`)
  return {
    kinds: new Set(PII_KINDS.filter((kind) => detectors[kind])),
    mask: style === 'PARTIAL' ? maskPartly : labelOf,
    names: new Set(keys.map(plainName)),
    maskOwn: (text) =>
      own.reduce(
        // What stands masked already is not looked into, or a pattern would find its own label again.
        (clean, { regex, label }) =>
          clean
            .split(marks)
            .map((part, i) => (i % 2 === 1 ? part : maskMatches(regex, part, label)))
            .join(''),
        text,
      ),
  }
}

function labelOf(kind: PiiKind): string {
  return `[${kind.toUpperCase()}]`
}

const MAX_MATCHES = 1_000

// Each search is linear in what is left of the text, so their number has a bound too; the rest is masked whole.
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

/** Says why a text is no pattern that can be searched for at a bounded cost; undefined where it is one. */
export function findPatternFault(pattern: string): string | undefined {
  try {
    const regex = compile(pattern)
    if (regex.programSize() > MAX_PROGRAM) return 'is too large: use smaller repetitions'
    return regex.matcher('').find() ? 'must not match the empty text' : undefined
  } catch (error) {
    return `is not a regular expression of RE2: ${(error as Error).message}`
  }
}

function compile(pattern: string): RE2JS {
  return RE2JS.compile(RE2JS.translateRegExp(pattern))
}
