import { type JsonataCode, quoteString, stringCode, toPlainValue } from './expressions/code.ts'

/** The text between expressions, or the code of an expression. */
export type TemplatePart = string | JsonataCode

/** The parts as one of our templates, with JSONata in `{{ }}`. */
export function writeTemplate(parts: TemplatePart[]): string {
  return parts
    .map((part) => {
      if (typeof part !== 'string') return `{{ ${part.text} }}`
      return part.includes('{{') ? `{{ ${quoteString(part)} }}` : part
    })
    .join('')
}

/** The parts as one JSONata expression. A single expression keeps its type, several parts make a string. */
export function joinTemplateParts(parts: TemplatePart[]): JsonataCode {
  const toCode = (part: TemplatePart) => (typeof part === 'string' ? stringCode(quoteString(part)) : part)
  const [only] = parts
  if (only === undefined) return stringCode('""')
  if (parts.length === 1) return toPlainValue(toCode(only))
  return stringCode(`(${parts.map((part) => toCode(part).text).join(' & ')})`)
}

/** Splits a string at `{{ }}` as n8n does. After a `{{` without an end, everything is plain text. */
export function splitN8nTemplate(text: string): (string | { source: string })[] {
  const parts: (string | { source: string })[] = []
  let at = 0
  let isUnbalanced = false
  for (;;) {
    const open = text.indexOf('{{', at)
    const first = open < 0 ? -1 : text.indexOf('}}', open + 2)
    if (first < 0) break
    const end: number = isUnbalanced ? -1 : findEnd(text, open + 2)
    // Once there is no balanced end, we stop looking for one: a string of many braces would be scanned over
    // and over.
    isUnbalanced ||= end < 0
    const close = end < 0 ? first : end
    parts.push(text.slice(at, open), { source: text.slice(open + 2, close) })
    at = close + 2
  }
  parts.push(text.slice(at))
  return parts
}

/** The first `}}` after as many closing braces as opening ones: {{ {a: {b: 1}} }}, {"a": {{ $json.a }}} */
function findEnd(text: string, from: number): number {
  let depth = 0
  for (let at = from; at < text.length; at++) {
    if (text[at] === '{') depth++
    else if (text[at] === '}' && depth > 0) depth--
    else if (text[at] === '}' && text[at + 1] === '}') return at
  }
  return -1
}
