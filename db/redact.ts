import { compileSecrets, detect, MARK, type Pii } from './detect.ts'
import { PII_KINDS } from './pii.ts'

/** What an instance masks beyond what everybody does; of personal data, which kinds and how. */
export type Rules = Pii & {
  /** Names of keys beside those that everybody takes for a secret's, as `plainName` writes them. */
  names: ReadonlySet<string>
  /** Masks what the instance's own patterns find. */
  maskOwn: (text: string) => string
}

const USUAL: Rules = {
  kinds: new Set(PII_KINDS),
  mask: () => MARK,
  names: new Set(),
  maskOwn: (text) => text,
}

export type RedactOptions = {
  /** Exact values to mask, in their base64, URL, hex and JSON forms too. Under 6 characters: whole values only. */
  secrets?: Iterable<string> | undefined
  /** Mask personal data (pii.ts) as well. Default false. */
  pii?: boolean | undefined
  /** As the instance's admin has set them (masking.ts). Secrets are masked whatever they say. */
  rules?: Rules | undefined
}

const MAX_DEPTH = 64
const MAX_VALUES = 200_000
const MAX_TEXT = 8 * 1024 * 1024
const TRUNCATED = '[truncated]'
const CIRCULAR = '[circular]'

/**
 * The one redactor, for logs, audit details, exports and error texts. Returns a copy in which everything
 * under a key that names a secret, and every text that looks like one (keys, tokens, JWTs, credentials in
 * URLs, card numbers) or holds one of `secrets`, is `[redacted]`. Booleans, null and the structure stay.
 * Texts that are JSON are read once. Cycles become '[circular]'; what is deeper than 64 or beyond 200,000
 * values '[truncated]'. Errors become plain objects. Never throws; redacting twice changes nothing.
 */
export function redact<T>(value: T, options: RedactOptions = {}): T {
  const clean = cleaner(options)
  const isSecret = createNameCheck(options)
  // By object, apart for what stands under a secret key. undefined in it: being walked, so a cycle.
  const seen = [new Map<object, unknown>(), new Map<object, unknown>()] as const
  let left = MAX_VALUES

  function walk(value: unknown, secret: boolean, depth: number, parse: boolean): unknown {
    if (typeof value === 'string') return secret ? maskWhole(value) : readText(value, depth, parse)
    if (typeof value === 'number' || typeof value === 'bigint') {
      const text = String(value)
      return secret || clean(text) !== text ? MARK : value
    }
    if (typeof value !== 'object' || value === null) return value
    if (depth > MAX_DEPTH || left <= 0) return TRUNCATED
    const memo = seen[secret ? 1 : 0]
    if (memo.has(value)) return memo.get(value) ?? CIRCULAR
    memo.set(value, undefined)
    let copy: unknown
    try {
      copy = walkObject(value, secret, depth, parse)
    } catch {
      // A getter or a proxy that throws.
      copy = '[unreadable]'
    }
    memo.set(value, copy)
    return copy
  }

  function walkObject(value: object, secret: boolean, depth: number, parse: boolean): unknown {
    if (value instanceof Date) return value
    if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return '[bytes]'
    if (value instanceof URL) return walk(value.href, secret, depth, parse)
    if (value instanceof Set) return walk([...value], secret, depth, parse)
    if (Array.isArray(value)) {
      const copy: unknown[] = []
      for (const item of value) {
        if (left-- <= 0) {
          copy.push(TRUNCATED)
          break
        }
        copy.push(walk(item, secret, depth + 1, parse))
      }
      return copy
    }
    const copy = new Map<string, unknown>()
    const named = namesSecret(value, isSecret)
    for (const [key, item] of readEntries(value)) {
      if (left-- <= 0) {
        copy.set(TRUNCATED, true)
        break
      }
      let name = clean(key)
      while (copy.has(name)) name += '~'
      copy.set(name, walk(item, secret || isSecret(name) || (named && key === 'value'), depth + 1, parse))
    }
    return Object.fromEntries(copy)
  }

  function readText(text: string, depth: number, parse: boolean): string {
    const first = parse ? text.trimStart()[0] : undefined
    if ((first === '{' || first === '[') && text.length <= MAX_TEXT) {
      const inside = readJson(text)
      if (inside) {
        const after = JSON.stringify(walk(inside.value, false, depth + 1, false))
        // What did not change keeps its own spelling.
        return clean(after === inside.spelled ? text : after)
      }
    }
    return clean(text)
  }

  return walk(value, false, 0, true) as T
}

/** `redact` for one text that is not to be read as JSON: log lines, error messages, excerpts. */
export function redactText(text: string, options: RedactOptions = {}): string {
  return cleaner(options)(text)
}

function cleaner(options: RedactOptions): (text: string) => string {
  const mask = compileSecrets(options.secrets ?? [])
  const { rules = USUAL } = options
  const isSecret = createNameCheck(options)
  return (whole) => {
    let text = whole.length > MAX_TEXT ? whole.slice(0, MAX_TEXT) + TRUNCATED : whole
    // A mask may bare a boundary that lets another detector see more: until nothing changes.
    for (let round = 0; round < 5; round++) {
      const next = rules.maskOwn(detect(mask(text), options.pii ? rules : undefined, isSecret))
      if (next === text) break
      text = next
    }
    return text
  }
}

function createNameCheck({ rules }: RedactOptions): (name: string) => boolean {
  if (!rules || rules.names.size === 0) return isSecretName
  return (name) => isSecretName(name) || (name.length <= 100 && rules.names.has(plainName(name)))
}

/** A key's name however it is spelled: customerRef, customer_ref and Customer-Ref are one. */
export function plainName(name: string): string {
  return name.toLowerCase().replace(/[\s_.-]/g, '')
}

function maskWhole(text: string): string {
  return text === '' ? text : MARK
}

function readJson(text: string): { value: unknown; spelled: string } | undefined {
  try {
    const value = JSON.parse(text)
    // Throws where the text is too deep for the stack.
    return { value, spelled: JSON.stringify(value) }
  } catch {
    return undefined
  }
}

// {name: 'X-Api-Key', value: ...}: headers and parameters as lists keep them.
function namesSecret(value: object, isSecret: (name: string) => boolean): boolean {
  const { name, key } = value as { name?: unknown; key?: unknown }
  return [name, key].some((text) => typeof text === 'string' && isSecret(text))
}

function readEntries(value: object): [string, unknown][] {
  if (value instanceof Map) return [...value].map(([key, item]) => [String(key), item])
  if (!(value instanceof Error)) return Object.entries(value)
  const { name, message, stack, cause } = value
  const own = Object.entries(value).filter(([key]) => key !== 'name')
  return [...Object.entries({ name, message, stack, ...(cause === undefined ? {} : { cause }) }), ...own]
}

const set = (words: string) => new Set(words.split(' '))
// A word anywhere in the name, two neighbouring words together, or the end of a name written in one.
const SECRET_WORDS = set(
  'password passwords passwd pwd passphrase passcode secret secrets token credential credentials auth authorization cookie cookies bearer apikey apikeys ssn cvv cvc otp totp jwt dsn',
)
const SECRET_PAIRS = set(
  'apikey apikeys privatekey privatekeys accesskey secretkey signingkey encryptionkey masterkey sharedkey accountkey servicekey connectionstring sessionid connectsid webhookurl',
)
const SECRET_NAMES = set('pass pin sid sig jsessionid phpsessid authheader')
const SECRET_END =
  /(password|passwd|secret|token|apikey|privatekey|accesskey|secretkey|credentials?|passphrase|authorization)$/
// A last word that says: about the secret, not the secret itself.
const ABOUT = set(
  'at by count counts length size type types used usage limit limits max min expires expiry expired expiration ttl age id ids name names hint policy enabled required valid set status state method mode scheme version provider field fields budget cost costs role rotation scope scopes index label prefix url uri endpoint',
)
const HARMLESS = set(
  'nextpagetoken pagetoken nexttoken continuationtoken synctoken cursortoken tokenspersecond tokensused stoptoken eostoken bostoken padtoken maxtoken mintoken pertoken perouttoken costpertoken pricepertoken',
)

/** True for a key, header or parameter name that names a secret: apiKey, X-Auth-Token; not author, tokens_used. */
export function isSecretName(name: string): boolean {
  if (name.length < 3 || name.length > 100) return false
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '')
  const whole = words.join('')
  if (SECRET_NAMES.has(whole) || SECRET_PAIRS.has(whole)) return true
  if (HARMLESS.has(whole) || (words.length > 1 && ABOUT.has(words.at(-1) ?? ''))) return false
  return (
    SECRET_END.test(whole) ||
    words.some((word, i) => SECRET_WORDS.has(word) || SECRET_PAIRS.has(word + (words[i + 1] ?? '')))
  )
}
