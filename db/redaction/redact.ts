import { isSecretName, normalizeKey } from '../../workflows/secrets/secretnames.ts'
import { PII_KINDS } from '../detection/pii/kinds.ts'
import { REDACTED } from '../detection/secrets/structures.ts'
import { compileSecrets, findSecrets, type Pii } from './detect.ts'

/** The masking of an instance: which personal data and how, and what it masks in addition to the usual. */
export type RedactionRules = Pii & {
  /** More names of keys whose values are secret, as `normalizeKey` spells them. */
  names: ReadonlySet<string>
  /** Masks the matches of the instance's own patterns. */
  maskOwn: (text: string) => string
}

const USUAL: RedactionRules = {
  kinds: new Set(PII_KINDS),
  mask: () => REDACTED,
  names: new Set(),
  maskOwn: (text) => text,
}

export type RedactOptions = {
  /** Exact values to mask, also in base64, URL, hex and JSON form; under 6 characters, whole values only. */
  secrets?: Iterable<string> | undefined
  /** Whether to mask personal data (pii.ts) as well. Default: false. */
  pii?: boolean | undefined
  /**
   * The rules that the instance's admin has set (masking.ts). They cannot turn off the masking of secrets.
   */
  rules?: RedactionRules | undefined
}

const MAX_DEPTH = 64
const MAX_VALUES = 200_000
const MAX_TEXT = 8 * 1024 * 1024
const TRUNCATED = '[truncated]'
const CIRCULAR = '[circular]'

/**
 * The only redactor, for logs, audit details, exports and error messages. Returns a copy with `[redacted]` in
 * place of every value under a key that names a secret, of everything that looks like a secret (keys, tokens,
 * JWTs, credentials in URLs, card numbers), and of the values in `secrets`. Booleans, null and the structure
 * are kept. Strings that hold JSON are parsed, but not strings within them. Cycles become '[circular]';
 * values deeper than 64 levels or beyond the first 200,000 become '[truncated]'. Errors become plain objects.
 * Never throws; redacting twice changes nothing.
 */
export function redact<T>(value: T, options: RedactOptions = {}): T {
  const clean = cleaner(options)
  const isSecret = createNameCheck(options)
  // Copies by object, apart for objects under a secret key; undefined while an object is walked (a cycle).
  const seen = [new Map<object, unknown>(), new Map<object, unknown>()] as const
  let left = MAX_VALUES

  function walk(value: unknown, secret: boolean, depth: number, parse: boolean): unknown {
    if (typeof value === 'string') return secret ? maskWhole(value) : readText(value, depth, parse)
    if (typeof value === 'number' || typeof value === 'bigint') {
      const text = String(value)
      return secret || clean(text) !== text ? REDACTED : value
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
      // A getter or a proxy has thrown.
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
        // If nothing was masked, the text keeps its own spacing and spelling.
        return clean(after === inside.spelled ? text : after)
      }
    }
    return clean(text)
  }

  return walk(value, false, 0, true) as T
}

/** Like `redact`, for a text that is not parsed as JSON: a log line, an error message, an excerpt. */
export function redactText(text: string, options: RedactOptions = {}): string {
  return cleaner(options)(text)
}

function cleaner(options: RedactOptions): (text: string) => string {
  const mask = compileSecrets(options.secrets ?? [])
  const { rules = USUAL } = options
  const isSecret = createNameCheck(options)
  return (whole) => {
    let text = whole.length > MAX_TEXT ? whole.slice(0, MAX_TEXT) + TRUNCATED : whole
    // A mask can create a boundary at which another detector finds more: repeat until nothing changes.
    for (let round = 0; round < 5; round++) {
      const next = rules.maskOwn(findSecrets(mask(text), options.pii ? rules : undefined, isSecret))
      if (next === text) break
      text = next
    }
    return text
  }
}

function createNameCheck({ rules }: RedactOptions): (name: string) => boolean {
  if (!rules || rules.names.size === 0) return isSecretName
  return (name) => isSecretName(name) || (name.length <= 100 && rules.names.has(normalizeKey(name)))
}

function maskWhole(text: string): string {
  return text === '' ? text : REDACTED
}

function readJson(text: string): { value: unknown; spelled: string } | undefined {
  try {
    const value = JSON.parse(text)
    // Throws if the value is nested too deeply for the stack.
    return { value, spelled: JSON.stringify(value) }
  } catch {
    return undefined
  }
}

// Lists of headers and parameters have items like {name: 'X-Api-Key', value: ...}.
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
