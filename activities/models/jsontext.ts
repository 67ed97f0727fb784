import { isDeepStrictEqual } from 'node:util'
import { isDeeper } from '../../db/executions/records/depth.ts'
import { isObject } from '../../workflows/json.ts'
import { describeLarge, readJson } from '../reading/json.ts'

const MAX_CHARS = 1024 * 1024
const MAX_DEPTH = 100

/** The most characters that are looked at to find the ends of what might be JSON. */
const MAX_SCANNED = 4 * MAX_CHARS

/** A value, and what could not be kept of it. */
export type JsonFound = { value: unknown; warning?: string | undefined }

/**
 * The JSON of an answer for which JSON was requested. Models that reason put `<think>...</think>` before it, and many
 * put it in a fence of Markdown, or a sentence around it. All of that is taken off, but nothing within the JSON.
 * Undefined if there is no JSON, or if it is not clear which of several is meant.
 */
export function findJson(text: string): JsonFound | undefined {
  if (text.length > MAX_CHARS) return undefined
  const whole = parse(text)
  if (whole) return whole
  const rest = dropThoughts(text).trim()
  const isFenced = rest.startsWith('```') && rest.endsWith('```') && rest.indexOf('\n') > 0
  const inner = isFenced ? rest.slice(rest.indexOf('\n') + 1, -3) : rest
  return parse(inner) ?? chooseOne(listValues(inner))
}

function parse(text: string): JsonFound | undefined {
  if (isDeeper(text, MAX_DEPTH)) return undefined
  try {
    const read = readJson(text)
    return { value: read.value, warning: describeLarge(read) }
  } catch {
    return undefined
  }
}

const OPENING = /<think(?:ing)?>/iy
const CLOSING = /<\/think(?:ing)?>/iy

/** A text without the thoughts at its beginning; empty if they have no end. */
export function dropThoughts(text: string): string {
  let rest = text.trimStart()
  while (matchAt(OPENING, rest, 0)) {
    const end = findClosing(rest, 0)
    if (end < 0) return ''
    rest = rest.slice(end).trimStart()
  }
  return rest
}

function matchAt(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex - at : 0
}

/** The position after the mark that ends thoughts; -1 without such a mark. */
function findClosing(text: string, from: number): number {
  for (let at = text.indexOf('</', from); at >= 0; at = text.indexOf('</', at + 2)) {
    const length = matchAt(CLOSING, text, at)
    if (length > 0) return at + length
  }
  return -1
}

/** The objects and lists of a text, in their order; undefined if one of them is broken, so that its parts are none. */
function listValues(text: string): JsonFound[] | undefined {
  let found: JsonFound[] = []
  let scanned = 0
  for (let at = 0; at < text.length; ) {
    const char = text[at]
    if (char === '<') {
      // Without a mark before it, all that came until now were thoughts.
      if (matchAt(CLOSING, text, at) > 0) found = []
      const end = matchAt(OPENING, text, at) > 0 ? findClosing(text, at) : at + 1
      if (end < 0) return undefined
      at = end
    } else if (char === '{' || char === '[') {
      const end = findEnd(text, at)
      scanned += (end < 0 ? text.length : end) - at
      if (scanned > MAX_SCANNED) return undefined
      const value = end < 0 ? undefined : parse(text.slice(at, end))
      if (value) found.push(value)
      else if (BEGINS_JSON.test(text.slice(at, at + 100))) return undefined
      at = end < 0 ? at + 1 : end
    } else at++
  }
  return found
}

/** Braces and brackets in sentences are followed by other things. */
const BEGINS_JSON = /^(?:\{\s*["}]|\[\s*[[{"])/

/** The position after the bracket that closes the one at `from`; -1 if it is never closed. */
function findEnd(text: string, from: number): number {
  let levels = 0
  let quoted = false
  for (let at = from; at < text.length; at++) {
    const char = text[at]
    if (quoted) {
      if (char === '\\') at++
      else if (char === '"') quoted = false
    } else if (char === '"') quoted = true
    else if (char === '{' || char === '[') levels++
    else if ((char === '}' || char === ']') && --levels === 0) return at + 1
  }
  return -1
}

/** The only object, else the only list: brackets of footnotes are none. The same value may stand there twice. */
function chooseOne(found: JsonFound[] | undefined): JsonFound | undefined {
  const objects = found?.filter(({ value }) => isObject(value)) ?? []
  const [first, ...others] = objects.length > 0 ? objects : (found ?? [])
  return first && others.every(({ value }) => isDeepStrictEqual(value, first.value)) ? first : undefined
}
