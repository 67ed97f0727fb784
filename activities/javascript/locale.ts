import { createHash } from 'node:crypto'
import { createRequire } from 'node:module'
import { LRUCache } from 'lru-cache'
import { IANAZone } from 'luxon'

/** What scripts ask for that their engine does not have: dates and numbers as languages write them, and texts. */
export const LOCALE_CALLS = {
  intl: answerIntl,
  /** Epoch milliseconds of a date in any form that this engine reads; null if it reads none. */
  date: (text: string) => Date.parse(text),
  /** The offset of a time zone from UTC at an instant, in minutes. */
  offset: ([zone, time]: [string, number]) => IANAZone.create(zone).offset(time),
  digest: ({ algorithm, text }: { algorithm: string; text: string }) =>
    createHash(DIGESTS[algorithm as keyof typeof DIGESTS])
      .update(text, 'utf8')
      .digest('hex'),
  base64: ({ encode, decode }: { encode?: string; decode?: string }) =>
    encode === undefined
      ? Buffer.from(decode ?? '', 'base64').toString('utf8')
      : Buffer.from(encode, 'utf8').toString('base64'),
  transliterate: (text: string) => loadTransliterate()(text, { unknown: '?' }),
}

/** n8n's names of digests. */
const DIGESTS = {
  md5: 'md5',
  sha1: 'sha1',
  sha224: 'sha224',
  sha256: 'sha256',
  sha384: 'sha384',
  sha512: 'sha512',
  sha3: 'sha3-512',
}

type Transliterate = (text: string, options: { unknown: string }) => string
let transliterate: Transliterate | undefined

/** Loaded when it is needed, because its tables are big and rarely used. */
function loadTransliterate(): Transliterate {
  const load = createRequire(import.meta.url)
  transliterate ??= (load('transliteration') as { transliterate: Transliterate }).transliterate
  return transliterate
}

type IntlQuestion = {
  kind: string
  locales?: string | string[]
  options?: Record<string, unknown>
  method: string
  args: unknown[]
}

const METHODS: Record<string, string[]> = {
  DateTimeFormat: ['format', 'formatToParts', 'formatRange', 'formatRangeToParts'],
  NumberFormat: ['format', 'formatToParts'],
  RelativeTimeFormat: ['format', 'formatToParts'],
  ListFormat: ['format', 'formatToParts'],
  PluralRules: ['select'],
  Collator: ['compare'],
  DisplayNames: ['of'],
}

type Formatter = Record<string, (...args: unknown[]) => unknown>

/** Formatters are dear to make. */
const formatters = new LRUCache<string, Formatter>({ max: 200 })

function answerIntl({ kind, locales, options, method, args }: IntlQuestion): {
  value?: unknown
  error?: string
} {
  try {
    if (kind === 'String') {
      const text = String(args[0])
      return { value: method === 'upper' ? text.toLocaleUpperCase(locales) : text.toLocaleLowerCase(locales) }
    }
    if (kind === 'Intl') {
      if (method === 'getCanonicalLocales') return { value: Intl.getCanonicalLocales(args[0] as string) }
      return { value: Intl.supportedValuesOf(args[0] as 'calendar') }
    }
    const methods = Object.hasOwn(METHODS, kind) ? METHODS[kind]! : []
    const Kind = Intl[kind as 'NumberFormat']
    if (method === 'supportedLocalesOf' && methods.length > 0)
      return { value: Kind.supportedLocalesOf(args[0] as string) }
    if (method !== 'resolvedOptions' && !methods.includes(method))
      throw new RangeError(`no ${kind}.${method}`)
    const key = JSON.stringify([kind, locales, options])
    let formatter = formatters.get(key)
    if (!formatter) {
      formatter = new Kind(locales, options) as unknown as Formatter
      formatters.set(key, formatter)
    }
    return { value: formatter[method]!(...args.map(readAmount)) }
  } catch (error) {
    return { error: String((error as Error).message).slice(0, 200) }
  }
}

/** JSON has neither NaN nor infinite numbers. */
function readAmount(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !('special' in value)) return value
  return Number(value.special)
}
