import { isObject } from '../../workflows/json.ts'
import { createPacer } from '../expressions/pace.ts'
import type { MarkedSpan } from './marked.ts'
import { markText } from './marked.ts'

/** A value as a text that people would read, with the place of each string, number and key in it. */
export type ValueText = {
  text: string
  /** The value with markers for what was found there: of the same shape, so that it stays JSON. */
  mark(spans: MarkedSpan[]): Promise<unknown>
}

type TextRange = { start: number; end: number }

/**
 * Writes a JSON value as a text for checks: a string as it is, of anything else a line for each value, after the key that
 * it has. The keys say what the values are, and strings are read without JSON's escapes.
 */
export async function writeValue(value: unknown): Promise<ValueText> {
  if (typeof value === 'string') return { text: value, mark: async (spans) => markText(value, spans) }
  const pieces: string[] = []
  const places: TextRange[] = []
  const pace = createPacer()
  let length = 0
  const add = (text: string) => {
    pieces.push(text)
    length += text.length
  }
  const note = (text: string) => {
    places.push({ start: length, end: length + text.length })
    add(text)
  }
  async function write(part: unknown): Promise<void> {
    await pace()
    if (Array.isArray(part)) for (const one of part) await write(one)
    else if (isObject(part)) {
      for (const [key, child] of Object.entries(part)) {
        note(key)
        add(typeof child === 'object' && child !== null ? ':\n' : ': ')
        await write(child)
      }
    } else {
      note(String(part ?? ''))
      add('\n')
    }
  }
  await write(value)
  const text = pieces.join('')
  return {
    text,
    async mark(spans) {
      let at = 0
      const take = () => findWithin(spans, places[at++]!)
      async function copy(part: unknown): Promise<unknown> {
        await pace()
        if (Array.isArray(part)) {
          const copied: unknown[] = []
          for (const one of part) copied.push(await copy(one))
          return copied
        }
        if (isObject(part)) {
          const copied = new Map<string, unknown>()
          for (const [key, child] of Object.entries(part)) {
            const marked = markText(key, take())
            let name = marked
            for (let n = 2; copied.has(name); n++) name = `${marked} (${n})`
            copied.set(name, await copy(child))
          }
          return Object.fromEntries(copied)
        }
        const found = take()
        if (found.length === 0) return part
        return typeof part === 'string' ? markText(part, found) : found[0]!.marker
      }
      return spans.length === 0 ? value : copy(value)
    },
  }
}

/** The parts of spans that lie in a place, counted from its start. The spans are sorted, and do not overlap. */
function findWithin(spans: MarkedSpan[], { start, end }: TextRange): MarkedSpan[] {
  const found: MarkedSpan[] = []
  for (let at = findFirst(spans, start); at < spans.length && spans[at]!.start < end; at++) {
    const span = spans[at]!
    found.push({
      ...span,
      start: Math.max(span.start, start) - start,
      end: Math.min(span.end, end) - start,
    })
  }
  return found
}

/** The index of the first span that ends after a place. */
function findFirst(spans: MarkedSpan[], place: number): number {
  let low = 0
  let high = spans.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (spans[middle]!.end > place) high = middle
    else low = middle + 1
  }
  return low
}
