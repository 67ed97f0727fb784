import { type RedactionRules, redact } from '../../../../db/redaction/redact.ts'
import { isObject } from '../../../../workflows/json.ts'

/** The beginning of a text is what is compared, and so much of a value is looked at to find it. */
const MOST_CHARS = 1_000
const MOST_READ = 4_000
const MOST_VALUES = 500
const MOST_DEPTH = 20

/**
 * The texts in a value, redacted: keys, numbers and structure say little of what it is about. `length` is that of all its
 * texts; `text` is their beginning.
 */
export function readTexts(value: unknown, rules: RedactionRules): { text: string; length: number } {
  const cut = cutValue(value)
  const texts: string[] = []
  collect(redact(cut.value, { pii: true, rules }), texts)
  return { text: texts.join('\n').slice(0, MOST_CHARS), length: cut.length }
}

/** A copy with as much of the texts as is read: redacting all of a large value would take too long. */
function cutValue(given: unknown): { value: unknown; length: number } {
  let read = 0
  let values = 0
  let length = 0
  const walk = (value: unknown, depth: number): unknown => {
    if (values++ >= MOST_VALUES || depth > MOST_DEPTH) return null
    if (typeof value === 'string') {
      length += value.length
      const part = value.slice(0, Math.max(0, MOST_READ - read))
      read += part.length
      return part
    }
    if (Array.isArray(value)) return value.slice(0, MOST_VALUES).map((item) => walk(item, depth + 1))
    if (!isObject(value)) return value
    return Object.fromEntries(
      Object.entries(value)
        .slice(0, MOST_VALUES)
        .map(([key, item]) => [key, walk(item, depth + 1)]),
    )
  }
  return { value: walk(given, 0), length }
}

function collect(value: unknown, texts: string[]): void {
  if (typeof value === 'string') {
    if (value.trim() !== '') texts.push(value)
  } else if (Array.isArray(value)) for (const item of value) collect(item, texts)
  else if (isObject(value)) for (const item of Object.values(value)) collect(item, texts)
}
