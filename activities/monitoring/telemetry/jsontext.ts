import { TURN_UNITS, type Work } from '../../../workflows/turns.ts'
import { createToll, MalformedBatch, MOST_TEXT } from './rawspan.ts'

/** A value that is no object and no array. A number comes as it is written, so that none loses digits. */
export type JsonScalar = { type: 'string' | 'number' | 'boolean' | 'null'; text: string }

/** Deeper values are refused, also where nothing of them is read. */
const MOST_DEPTH = 100

/** A character takes up to so many when it is escaped. */
const MOST_ESCAPED = 6

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y

/** A text that is being read. */
type Reading = {
  text: string
  /** The next character. */
  at: number
  /** The units of work for the text that was read since the last time. */
  toll: (at: number) => number
}

/** Reads JSON piece by piece; its functions throw MalformedBatch. */
export type JsonReader = {
  /** Calls `read` at each value of an object, which must read or skip it. `name` is for the error. */
  object(name: string, read: (key: string) => Work<void>): Work<void>
  /** The same for an array, in which protobuf's JSON allows no null. */
  array(name: string, read: () => Work<void>): Work<void>
  skip(): Work<void>
  /** The next value; undefined for an object or an array, which is skipped. */
  scalar(): Work<JsonScalar | undefined>
  /** Throws unless nothing follows. */
  end(): void
}

/**
 * Reads JSON piece by piece, in turns with other work, and makes values only of what is asked for: what is skipped is
 * checked, and never becomes a value.
 */
export function createJsonReader(text: string): JsonReader {
  const reading: Reading = { text, at: 0, toll: createToll(TURN_UNITS) }
  return {
    object: (name, read) => readObject(reading, name, read),
    array: (name, read) => readArray(reading, name, read),
    skip: () => skipValue(reading),
    scalar: () => readScalarOrSkip(reading),
    end() {
      if (peek(reading) !== undefined) fail(reading)
    },
  }
}

function fail({ at }: Reading): never {
  throw new MalformedBatch(`The body is no valid JSON at character ${at + 1}`)
}

function* pay({ toll, at }: Reading): Work<void> {
  const units = toll(at)
  if (units > 0) yield units
}

/** The next character that is no space. */
function peek(reading: Reading): string | undefined {
  for (;;) {
    const char = reading.text[reading.at]
    if (char !== ' ' && char !== '\n' && char !== '\r' && char !== '\t') return char
    reading.at++
  }
}

function accept(reading: Reading, char: string): boolean {
  if (peek(reading) !== char) return false
  reading.at++
  return true
}

/** Goes over the character, which must be the next one that is no space. */
function demand(reading: Reading, char: string): void {
  if (!accept(reading, char)) fail(reading)
}

function match(reading: Reading, pattern: RegExp): string {
  pattern.lastIndex = reading.at
  const found = pattern.exec(reading.text)?.[0] ?? fail(reading)
  reading.at += found.length
  return found
}

function readString(reading: Reading): string {
  demand(reading, '"')
  const { text, at: start } = reading
  const most = start + MOST_TEXT * MOST_ESCAPED
  // The end of what is read of it, which no escape goes over.
  let end = start
  let escaped = false
  for (;;) {
    const code = text.charCodeAt(reading.at)
    if (code === 34) break
    if (code === 92) {
      match(reading, ESCAPE)
      escaped = true
    } else if (code >= 32) reading.at++
    else fail(reading)
    if (reading.at <= most) end = reading.at
  }
  reading.at++
  const found = text.slice(start, end)
  return (escaped ? (JSON.parse(`"${found}"`) as string) : found).slice(0, MOST_TEXT)
}

function readKey(reading: Reading): string {
  const key = readString(reading)
  demand(reading, ':')
  return key
}

function readScalar(reading: Reading): JsonScalar {
  if (peek(reading) === '"') return { type: 'string', text: readString(reading) }
  for (const word of ['true', 'false', 'null']) {
    if (!reading.text.startsWith(word, reading.at)) continue
    reading.at += word.length
    return { type: word === 'null' ? 'null' : 'boolean', text: word }
  }
  return { type: 'number', text: match(reading, NUMBER) }
}

function* readScalarOrSkip(reading: Reading): Work<JsonScalar | undefined> {
  const char = peek(reading)
  if (char !== '{' && char !== '[') return readScalar(reading)
  yield* skipValue(reading)
  return undefined
}

function* skipValue(reading: Reading): Work<void> {
  const closers: string[] = []
  for (;;) {
    const opener = peek(reading)
    if (opener === '{' || opener === '[') {
      reading.at++
      if (closers.length >= MOST_DEPTH) throw new MalformedBatch('The body is nested too deeply')
      closers.push(opener === '{' ? '}' : ']')
      if (!accept(reading, closers.at(-1)!)) {
        if (opener === '{') readKey(reading)
        continue
      }
      closers.pop()
    } else readScalar(reading)
    for (;;) {
      yield* pay(reading)
      const closer = closers.at(-1)
      if (closer === undefined) return
      if (accept(reading, ',')) {
        if (closer === '}') readKey(reading)
        break
      }
      demand(reading, closer)
      closers.pop()
    }
  }
}

/** Whether there is such a container; null is read as one without anything in it. */
function* opens(reading: Reading, char: '{' | '[', name: string): Work<boolean> {
  yield* pay(reading)
  if (accept(reading, char)) return true
  if (reading.text.startsWith('null', reading.at)) {
    reading.at += 4
    return false
  }
  throw new MalformedBatch(`${name} must be ${char === '{' ? 'an object' : 'an array'}`)
}

function* readObject(reading: Reading, name: string, read: (key: string) => Work<void>): Work<void> {
  if (!(yield* opens(reading, '{', name)) || accept(reading, '}')) return
  do yield* read(readKey(reading))
  while (accept(reading, ','))
  demand(reading, '}')
}

function* readArray(reading: Reading, name: string, read: () => Work<void>): Work<void> {
  if (!(yield* opens(reading, '[', name)) || accept(reading, ']')) return
  do {
    if (peek(reading) === 'n') throw new MalformedBatch(`${name} must not contain null`)
    yield* read()
  } while (accept(reading, ','))
  demand(reading, ']')
}
