import { setOwn } from '../../workflows/json.ts'
import type { createPacer } from '../expressions/pace.ts'

/** A piece of about so many characters is parsed at once, which takes a few milliseconds at most. */
const PIECE = 32 * 1024

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c

type Container = unknown[] | Record<string, unknown>

/**
 * Parses JSON that this service has written, or has parsed before, as JSON.parse does; but piece by piece, so that
 * timers and sockets have their turn in between. Throws a SyntaxError for invalid JSON.
 */
export async function parseOwnJson(text: string, pace: ReturnType<typeof createPacer>): Promise<unknown> {
  if (text.length <= 2 * PIECE) return JSON.parse(text)
  // By depth: where a container opens, where what is not parsed of it begins, and its entry that is under way.
  const opens: number[] = []
  const from: number[] = []
  const entry: number[] = []
  /** Its value, once a piece of it has been parsed by itself; and whether that is true of its present entry. */
  const values: (Container | undefined)[] = []
  const built: boolean[] = []
  let depth = -1

  const isList = (at: number) => text[opens[at]!] === '['
  /** Parses what has come of a container, up to `to`. */
  function parsePiece(at: number, to: number): void {
    const value = values[at] ?? (isList(at) ? [] : {})
    values[at] = value
    if (to <= from[at]!) return
    const piece = text.slice(from[at]!, to)
    if (Array.isArray(value)) for (const item of JSON.parse(`[${piece}]`) as unknown[]) value.push(item)
    else addFields(value, JSON.parse(`{${piece}}`))
  }
  function demandBlank(start: number, to: number): void {
    if (text.slice(start, to).trim() !== '') throw invalidJson()
  }
  /** Parses what came before the entries that are under way in the containers around. */
  function parseAround(): void {
    for (let at = 0; at < depth; at++) {
      parsePiece(at, entry[at]! - 1)
      from[at] = entry[at]!
    }
  }
  function endContainer(at: number): void {
    const value = values[depth]
    if (value) {
      // The text that has been parsed so far ends with a comma, unless it is the value of the last entry.
      if (built[depth]) demandBlank(from[depth]!, at)
      else if (text.slice(from[depth]!, at).trim() === '') throw invalidJson()
      else parsePiece(depth, at)
      if (isList(depth) !== (text[at] === ']')) throw invalidJson()
    }
    depth--
    if (!value || depth < 0) return
    const around = values[depth]!
    if (Array.isArray(around)) around.push(value)
    else setOwn(around, readKey(text.slice(entry[depth]!, opens[depth + 1]!)), value)
    built[depth] = true
    from[depth] = at + 1
  }

  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = findEnd(text, at)
    else if (code === COMMA) {
      if (built[depth]) {
        demandBlank(from[depth]!, at)
        built[depth] = false
      } else if (at - from[depth]! <= PIECE) {
        entry[depth] = at + 1
        continue
      } else {
        parseAround()
        parsePiece(depth, at)
        await pace()
      }
      from[depth] = entry[depth] = at + 1
    } else if (code === 0x5b || code === 0x7b) {
      depth++
      opens[depth] = at
      from[depth] = entry[depth] = at + 1
      values[depth] = undefined
      built[depth] = false
    } else if (code === 0x5d || code === 0x7d) {
      if (depth === 0) {
        const value = values[0]
        if (!value) return JSON.parse(text)
        endContainer(at)
        demandBlank(at + 1, text.length)
        return value
      }
      endContainer(at)
    }
  }
  // It is no container, or not whole.
  return JSON.parse(text)
}

function addFields(value: Record<string, unknown>, fields: Record<string, unknown>): void {
  if (!Object.hasOwn(fields, '__proto__')) Object.assign(value, fields)
  else for (const [key, item] of Object.entries(fields)) setOwn(value, key, item)
}

const invalidJson = () => new SyntaxError('invalid JSON')

function readKey(start: string): string {
  return Object.keys(JSON.parse(`{${start}0}`) as object)[0]!
}

/** The position of the quote that ends the string that begins at `from`. */
function findEnd(text: string, from: number): number {
  for (let at = text.indexOf('"', from + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let slashes = 0
    while (text.charCodeAt(at - 1 - slashes) === BACKSLASH) slashes++
    if (slashes % 2 === 0) return at
  }
  return text.length
}
