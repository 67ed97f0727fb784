import { TURN_UNITS, type Work } from '../../workflows/turns.ts'
import { createToll, MalformedBatch, MOST_TEXT } from './rawspan.ts'

/** A value that is no object and no array. A number comes as it is written, so that none loses digits. */
export type JsonScalar = { type: 'string' | 'number' | 'boolean' | 'null'; text: string }

/** Deeper values are refused, also where nothing of them is read. */
const MOST_DEPTH = 100

/** A character takes up to so many when it is escaped. */
const MOST_ESCAPED = 6

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y

/**
 * Reads JSON piece by piece, in turns with other work, and makes values only of what is asked for: what is skipped is
 * checked, and never becomes a value. Its functions throw MalformedBatch.
 */
export function createJsonReader(text: string) {
  let at = 0
  const toll = createToll(TURN_UNITS)

  const fail = (): never => {
    throw new MalformedBatch(`The body is no valid JSON at character ${at + 1}`)
  }

  function* pay(): Work<void> {
    const units = toll(at)
    if (units > 0) yield units
  }

  /** The next character that is no space. */
  function peek(): string | undefined {
    for (;;) {
      const char = text[at]
      if (char !== ' ' && char !== '\n' && char !== '\r' && char !== '\t') return char
      at++
    }
  }

  function accept(char: string): boolean {
    if (peek() !== char) return false
    at++
    return true
  }

  function match(pattern: RegExp): string {
    pattern.lastIndex = at
    const found = pattern.exec(text)?.[0] ?? fail()
    at += found.length
    return found
  }

  function readString(): string {
    if (!accept('"')) fail()
    const start = at
    const most = start + MOST_TEXT * MOST_ESCAPED
    // The end of what is read of it, which no escape goes over.
    let end = at
    let escaped = false
    for (;;) {
      const code = text.charCodeAt(at)
      if (code === 34) break
      if (code === 92) {
        match(ESCAPE)
        escaped = true
      } else if (code >= 32) at++
      else fail()
      if (at <= most) end = at
    }
    at++
    const found = text.slice(start, end)
    return (escaped ? (JSON.parse(`"${found}"`) as string) : found).slice(0, MOST_TEXT)
  }

  function readScalar(): JsonScalar {
    const char = peek()
    if (char === '"') return { type: 'string', text: readString() }
    for (const word of ['true', 'false', 'null']) {
      if (!text.startsWith(word, at)) continue
      at += word.length
      return { type: word === 'null' ? 'null' : 'boolean', text: word }
    }
    return { type: 'number', text: match(NUMBER) }
  }

  function readKey(): string {
    const key = readString()
    if (!accept(':')) fail()
    return key
  }

  function* skip(): Work<void> {
    const closers: string[] = []
    for (;;) {
      const opener = peek()
      if (opener === '{' || opener === '[') {
        at++
        if (closers.length >= MOST_DEPTH) throw new MalformedBatch('The body is nested too deeply')
        closers.push(opener === '{' ? '}' : ']')
        if (!accept(closers.at(-1)!)) {
          if (opener === '{') readKey()
          continue
        }
        closers.pop()
      } else readScalar()
      for (;;) {
        yield* pay()
        const closer = closers.at(-1)
        if (closer === undefined) return
        if (accept(',')) {
          if (closer === '}') readKey()
          break
        }
        if (!accept(closer)) fail()
        closers.pop()
      }
    }
  }

  /** Whether there is such a container; null counts as an empty one. */
  function* opens(char: '{' | '[', name: string): Work<boolean> {
    yield* pay()
    if (accept(char)) return true
    if (text.startsWith('null', at)) {
      at += 4
      return false
    }
    throw new MalformedBatch(`${name} must be ${char === '{' ? 'an object' : 'an array'}`)
  }

  return {
    /** Calls `read` at each value of an object, which must read or skip it. `name` is for the error. */
    *object(name: string, read: (key: string) => Work<void>): Work<void> {
      if (!(yield* opens('{', name)) || accept('}')) return
      do yield* read(readKey())
      while (accept(','))
      if (!accept('}')) fail()
    },
    /** The same for an array, in which protobuf's JSON allows no null. */
    *array(name: string, read: () => Work<void>): Work<void> {
      if (!(yield* opens('[', name)) || accept(']')) return
      do {
        if (peek() === 'n') throw new MalformedBatch(`${name} must not contain null`)
        yield* read()
      } while (accept(','))
      if (!accept(']')) fail()
    },
    skip,
    /** The next value; undefined for an object or an array, which is skipped. */
    *scalar(): Work<JsonScalar | undefined> {
      const char = peek()
      if (char === '{' || char === '[') {
        yield* skip()
        return undefined
      }
      return readScalar()
    },
    /** Throws unless nothing follows. */
    end() {
      if (peek() !== undefined) fail()
    },
  }
}
