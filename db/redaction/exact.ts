import { isObject } from '../../workflows/json.ts'
import { takeTurn } from '../../workflows/turns.ts'
import { REDACTED } from '../detection/secrets/structures.ts'
import { compileSecrets, LEAST_PARTIAL, listForms } from './detect.ts'

/**
 * Masks secrets by their values alone, whatever the keys they stand under and whatever they look like: the output of
 * a login must stay of use to the next node. Under 6 characters a secret is masked where it is a whole value.
 */
export type ExactMask = {
  text(text: string): string
  /** The beginning of a text, at whose end a secret may be cut in two: what is left of it is masked too. */
  start(text: string): string
  /** A message with excerpts of what others said: before the `...` where one ends, a secret may be cut in two, too. */
  excerpt(text: string): string
  /**
   * What `text` makes of a text that comes in pieces: as little as can be is held back, where a secret may have begun.
   * Without `end` the text was cut off, and what is held back is never told.
   */
  pieces(): MaskedPieces
  /** The same for the bytes of a text, as they come: a secret is found across their pieces. */
  bytes(pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined>
  /** A copy of a JSON value; the same value if there is nothing to mask in it. */
  value<T>(value: T): T
  /** The same for the JSON text of a value, in turns with what others do. */
  json(text: string): Promise<string>
}

/** Each returns what can be told now. All that is returned, joined, is the masked text. */
export type MaskedPieces = { next(piece: string): string; end(): string }

/** A mask for these secrets; see compileSecrets for the forms in which they are found. */
export function createExactMask(secrets: Iterable<string>): ExactMask {
  const all = [...new Set(secrets)].filter((secret) => secret !== '')
  const text = compileSecrets(all)
  const forms = listForms(all)
  const inJson = new Set(forms.map(writeInside))
  const written = [...inJson].filter((form) => !OUTSIDE.test(form))
  const doubtful = [...inJson].filter((form) => OUTSIDE.test(form))

  function value(given: unknown): unknown {
    if (typeof given === 'string') return text(given)
    if (typeof given === 'number') return all.includes(String(given)) ? REDACTED : given
    if (Array.isArray(given)) return keepIfSame(given, given.map(value))
    if (!isObject(given)) return given
    const entries = Object.entries(given)
    const masked = new Map<string, unknown>()
    let same = true
    for (const [key, item] of entries) {
      let name = text(key)
      const clean = value(item)
      same &&= name === key && clean === item
      while (masked.has(name)) name += '~'
      masked.set(name, clean)
    }
    return same ? given : Object.fromEntries(masked)
  }

  function maskEnd(clean: string): string {
    let cut = clean.length
    for (const form of forms) cut = Math.min(cut, findCutForm(clean, form))
    return cut < clean.length ? clean.slice(0, cut) + REDACTED : clean
  }

  return {
    text,
    start: (given) => maskEnd(text(given)),
    excerpt(given) {
      const parts = text(given).split(CUT)
      return parts.map((part, at) => (at < parts.length - 1 ? maskEnd(part) : part)).join(CUT)
    },
    pieces: () => maskPieces(all, forms, text),
    bytes: (pieces) =>
      maskBytes(
        pieces,
        forms.map((form) => Buffer.from(form)),
      ),
    // Most values have no secret in them, which their JSON tells many times faster than a walk.
    value: <T>(given: T) => (mayHold(JSON.stringify(given) ?? '') ? (value(given) as T) : given),
    async json(given) {
      let clean = given
      for (const form of written) {
        clean = replaceInJson(clean, form)
        await takeTurn()
      }
      return isDoubtful(clean) ? maskStrings(clean, { text, all }) : clean
    },
  }

  function mayHold(json: string): boolean {
    return written.some((form) => json.includes(form)) || isDoubtful(json)
  }

  /** Whether there may be more to mask in a JSON text, for which it must be known where its strings are. */
  function isDoubtful(json: string): boolean {
    return (
      doubtful.some((form) => json.includes(form)) ||
      all.some((secret) => secret.length < LEAST_PARTIAL && json.includes(writeInside(secret)))
    )
  }
}

/** Masks a text in pieces. A text that is a secret as a whole, and nothing else, is masked too. */
function maskPieces(all: string[], forms: string[], maskWhole: (text: string) => string): MaskedPieces {
  const firsts = new Set(forms.map((form) => form[0]!))
  let held = ''
  let begun = false

  /** The place where the last incomplete form may begin; the length of the held text if no form is incomplete. */
  function findOpen(): number {
    const longest = forms[0]?.length ?? 0
    for (let at = Math.max(0, held.length - longest + 1); at < held.length; at++) {
      if (!firsts.has(held[at]!)) continue
      const rest = held.slice(at)
      if (forms.some((form) => form.length > rest.length && form.startsWith(rest))) return at
    }
    return held.length
  }

  /** Up to where what is held can be masked by itself, since no form reaches across that place. */
  function findCut(): number {
    let cut = findOpen()
    for (let moved = cut < held.length; moved; ) {
      moved = false
      for (const form of forms) {
        const at = held.indexOf(form, Math.max(0, cut - form.length + 1))
        if (at < 0 || at >= cut || at + form.length <= cut) continue
        cut = at
        moved = true
      }
    }
    return cut
  }

  function maskForms(text: string): string {
    let clean = text
    for (const form of forms) if (clean.includes(form)) clean = clean.replaceAll(form, REDACTED)
    return clean
  }

  return {
    next(piece) {
      held += piece
      if (!begun && all.some((secret) => secret.startsWith(held))) return ''
      const cut = findCut()
      const told = maskForms(held.slice(0, cut))
      held = held.slice(cut)
      begun ||= cut > 0
      return told
    },
    end() {
      const rest = begun ? maskForms(held) : maskWhole(held)
      held = ''
      return rest
    },
  }
}

/** Where an excerpt ends. */
const CUT = '...'

const MASK = Buffer.from(REDACTED)

/** Masks `forms`, the longest first. As much is held back as one that begins there may need. */
async function* maskBytes(
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  forms: Buffer[],
): AsyncGenerator<Uint8Array, void, undefined> {
  const longest = Math.max(1, ...forms.map((form) => form.length))
  let held: Buffer = Buffer.alloc(0)
  for await (const piece of pieces) {
    const all = Buffer.concat([held, piece])
    held = yield* maskUpTo(all, all.length - longest + 1, forms)
  }
  yield* maskUpTo(held, held.length, forms)
}

/** Masks what begins before `end`, and returns the rest. */
function* maskUpTo(all: Buffer, end: number, forms: Buffer[]): Generator<Uint8Array, Buffer, undefined> {
  const next = forms.map((form) => all.indexOf(form))
  let at = 0
  while (at < end) {
    let first = -1
    for (const [i, form] of forms.entries()) {
      if (next[i]! >= 0 && next[i]! < at) next[i] = all.indexOf(form, at)
      if (next[i]! >= 0 && next[i]! < end && (first < 0 || next[i]! < next[first]!)) first = i
    }
    if (first < 0) {
      yield all.subarray(at, end)
      at = end
    } else {
      if (next[first]! > at) yield all.subarray(at, next[first])
      yield MASK
      at = next[first]! + forms[first]!.length
    }
  }
  return all.subarray(at)
}

/** The characters of JSON outside of its strings. */
const OUTSIDE = /^[\d.eE+\-{}[\]:,truefalsn\s]*$/

/** A text as it is written within a string of JSON. */
function writeInside(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}

/** Masks each string of a JSON text by itself, and each number that is a secret. */
function maskStrings(json: string, { text, all }: { text: (text: string) => string; all: string[] }): string {
  const numbers = new Set(all.filter((secret) => /^-?\d[\d.eE+-]*$/.test(secret)))
  const maskOutside = (part: string) =>
    numbers.size === 0
      ? part
      : part.replace(/-?\d[\d.eE+-]*/g, (found) => (numbers.has(found) ? `"${REDACTED}"` : found))
  const parts: string[] = []
  let done = 0
  for (let open = json.indexOf('"'); open >= 0; open = json.indexOf('"', done)) {
    let end = json.indexOf('"', open + 1)
    while (end >= 0 && countSlashes(json, end, open) % 2 === 1) end = json.indexOf('"', end + 1)
    if (end < 0) break
    const string = json.slice(open, end + 1)
    const value = JSON.parse(string)
    const clean = text(value)
    parts.push(maskOutside(json.slice(done, open)), clean === value ? string : JSON.stringify(clean))
    done = end + 1
  }
  return parts.join('') + maskOutside(json.slice(done))
}

function countSlashes(text: string, at: number, after: number): number {
  let slashes = 0
  while (at - slashes - 1 > after && text[at - slashes - 1] === '\\') slashes++
  return slashes
}

function keepIfSame<T>(before: T[], after: T[]): T[] {
  return after.every((item, i) => item === before[i]) ? before : after
}

/** Where at the end of a text a form begins and does not end; the text's length if it does not. */
function findCutForm(text: string, form: string): number {
  const head = form.slice(0, LEAST_PARTIAL)
  const from = Math.max(0, text.length - form.length + 1)
  for (let at = text.indexOf(head, from); at >= 0; at = text.indexOf(head, at + 1))
    if (form.startsWith(text.slice(at))) return at
  return text.length
}

/** Masks `form`, which is written as in JSON, in a JSON text: never from the middle of an escaped character. */
function replaceInJson(text: string, form: string): string {
  let at = text.indexOf(form)
  if (at < 0) return text
  const parts: string[] = []
  let done = 0
  while (at >= 0) {
    if (countSlashes(text, at, done - 1) % 2 === 0) {
      parts.push(text.slice(done, at), REDACTED)
      done = at + form.length
      at = text.indexOf(form, done)
    } else at = text.indexOf(form, at + 1)
  }
  return parts.join('') + text.slice(done)
}
