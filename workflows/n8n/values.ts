import { type Code, type Names, quote, settle, translateScript } from './javascript.ts'
import type { Complain } from './report.ts'

const UTC = "The date is in UTC here; in n8n it is in the workflow's time zone: see DATE"

/** Reads the parameters of one node: what they say in our templates, in JSONata, or as they stand. */
export type Reader = ReturnType<typeof createReader>

/** An expression that cannot be translated is reported, and fails the run where its value is asked for. */
export function createReader(names: Names, complain: Complain) {
  function readScript(source: string, path: string, whole: string, bare = false): Code {
    try {
      let zoned = false
      const zone = () => {
        zoned = true
      }
      const code = translateScript(source.trim(), { ...names, zoned: zone }, bare)
      if (zoned) complain('expression', path, UTC, whole)
      return code
    } catch (error) {
      const message = `The expression ${(error as Error).message}`
      complain('expression', path, message, whole)
      // Without its braces: JSONata would fill them in.
      const original = source.trim().slice(0, 500)
      return { text: `$error(${quote(`${message}: ${original}`)})`, hint: 'unknown' }
    }
  }

  /** Texts and expressions in order; a text that does not begin with = holds none. */
  function readParts(text: string, path: string, bare = false): (string | Code)[] {
    if (!text.startsWith('=')) return [text]
    return splitScripts(text.slice(1)).flatMap((part): (string | Code)[] =>
      typeof part === 'string' ? (part === '' ? [] : [part]) : [readScript(part.source, path, text, bare)],
    )
  }

  /** The value as a config has it: texts as templates. */
  function template(value: unknown, path: string): unknown {
    if (typeof value === 'string') return writeTemplate(readParts(value, path))
    if (Array.isArray(value)) return value.map((entry, i) => template(entry, `${path}[${i}]`))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value).map(([key, entry]) => [key, template(entry, `${path}.${key}`)]),
    )
  }

  /** The value as JSONata. */
  function code(value: unknown, path: string): Code {
    if (typeof value === 'string') return joinParts(readParts(value, path))
    if (typeof value === 'number') return { text: String(value), hint: 'number' }
    if (typeof value === 'boolean') return { text: String(value), hint: 'boolean' }
    if (value === null || value === undefined) return { text: 'null', hint: 'null' }
    if (Array.isArray(value)) {
      return {
        text: `[${value.map((entry, i) => code(entry, `${path}[${i}]`).text).join(', ')}]`,
        hint: 'list',
      }
    }
    const fields = Object.entries(value).map(
      ([key, entry]) => `${quote(key)}: ${code(entry, `${path}.${key}`).text}`,
    )
    return { text: `{${fields.join(', ')}}`, hint: 'object' }
  }

  /** JSON with expressions in it, inside of texts and in place of values; undefined where it is none. */
  function json(text: string, path: string): { value: unknown } | undefined {
    if (!text.startsWith('=')) return parse(text, path)
    // What is made JSON to stand in JSON stands in it as it is.
    const parts = readParts(text, path, true)
    if (parts.length === 1 && typeof parts[0] === 'object') return { value: writeTemplate(parts) }
    const codes: Code[] = []
    let inText = false
    let marked = ''
    for (const part of parts) {
      if (typeof part === 'string') {
        for (let i = 0; i < part.length; i++) {
          if (part[i] === '\\' && inText) i++
          else if (part[i] === '"') inText = !inText
        }
        marked += part
        continue
      }
      const mark = `\u0001${codes.push(part) - 1}\u0001`
      marked += inText ? mark.replaceAll('\u0001', '\\u0001') : `"\\u0002${mark.slice(1, -1)}\\u0002"`
    }
    const parsed = parse(marked, path)
    return parsed && { value: fill(parsed.value, codes) }
  }

  function parse(text: string, path: string): { value: unknown } | undefined {
    try {
      return { value: JSON.parse(text) }
    } catch {
      complain('parameter', path, 'The text is no JSON', text)
      return undefined
    }
  }

  return { template, code, json, parts: readParts, write: writeTemplate, join: joinParts }
}

/** Marks of expressions back into templates. */
function fill(value: unknown, codes: Code[]): unknown {
  if (typeof value === 'string') {
    const whole = /^\u0002(\d+)\u0002$/.exec(value)
    if (whole) return writeTemplate([codes[Number(whole[1])]!])
    const pieces = value.split('\u0001').map((piece, i) => (i % 2 === 0 ? piece : codes[Number(piece)]!))
    const parts = pieces.filter((piece) => piece !== '')
    // Between quotes it stays a text, whatever the expression gives; nothing is an empty one.
    const [only] = parts
    if (parts.length === 1 && typeof only === 'object') return writeTemplate([asText(only, '""')])
    return writeTemplate(parts)
  }
  if (Array.isArray(value)) return value.map((entry) => fill(entry, codes))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, fill(entry, codes)]))
}

/** As a text; null, which JSONata would write out, as `none` says. */
export function asText(code: Code, none = 'null'): Code {
  if (code.hint === 'text') return code
  if (code.hint === 'number' || code.hint === 'boolean')
    return { text: `$string(${code.text})`, hint: 'text' }
  const plain = code.text.length <= 60
  const [name, bind] = plain ? [code.text, ''] : ['$given', `$given := ${code.text}; `]
  const isNone = none === 'null' ? `${name} = null` : `$not($exists(${name})) or ${name} = null`
  return { text: `(${bind}${isNone} ? ${none} : $string(${name}))`, hint: 'text' }
}

function writeTemplate(parts: (string | Code)[]): string {
  return parts
    .map((part) => {
      if (typeof part !== 'string') return `{{ ${part.text} }}`
      return part.includes('{{') ? `{{ ${quote(part)} }}` : part
    })
    .join('')
}

function joinParts(parts: (string | Code)[]): Code {
  const [only] = parts
  if (parts.length === 0) return { text: '""', hint: 'text' }
  if (parts.length === 1)
    return typeof only === 'string' ? { text: quote(only), hint: 'text' } : settle(only!)
  return {
    text: `(${parts.map((part) => (typeof part === 'string' ? quote(part) : part.text)).join(' & ')})`,
    hint: 'text',
  }
}

/** Splits at `{{ }}` as n8n does. Behind one without an end, all is text. */
function splitScripts(text: string): (string | { source: string })[] {
  const parts: (string | { source: string })[] = []
  let at = 0
  let tangled = false
  for (;;) {
    const open = text.indexOf('{{', at)
    const first = open < 0 ? -1 : text.indexOf('}}', open + 2)
    if (first < 0) break
    const end: number = tangled ? -1 : findEnd(text, open + 2)
    // Looked for once in vain, or texts of many braces would be walked over and over.
    tangled ||= end < 0
    const close = end < 0 ? first : end
    parts.push(text.slice(at, open), { source: text.slice(open + 2, close) })
    at = close + 2
  }
  parts.push(text.slice(at))
  return parts
}

/** The first `}}` behind as many closing braces as opening ones: {{ {a: {b: 1}} }}, {"a": {{ $json.a }}} */
function findEnd(text: string, from: number): number {
  let depth = 0
  for (let at = from; at < text.length; at++) {
    if (text[at] === '{') depth++
    else if (text[at] === '}' && depth > 0) depth--
    else if (text[at] === '}' && text[at + 1] === '}') return at
  }
  return -1
}
