import { isObject } from '../json.ts'

/**
 * A parameter of n8n as a value of our config. A string that begins with `=` is n8n's own template, which means
 * the same here; any other string is plain text.
 */
export function keepTexts(value: unknown): unknown {
  if (typeof value === 'string') return keepText(value)
  if (Array.isArray(value)) return value.map(keepTexts)
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [keyText(key), keepTexts(entry)]))
}

/** As keepTexts, for a value that n8n reads as a text. */
export function keepText(value: unknown): string {
  const text = typeof value === 'string' ? value : value === null || value === undefined ? '' : String(value)
  if (text.startsWith('=')) return text.includes('{{') ? text : writeLiteral(text.slice(1))
  return writeLiteral(text)
}

/** Plain text, for a config in which `{{` begins an expression and `=` a template. */
export function writeLiteral(text: string): string {
  if (!text.includes('{{') && !/^'?=/.test(text)) return text
  return `={{ ${quoteValue(text)} }}`
}

// Keys are no templates.
function keyText(key: string): string {
  return key
}

/** Whether the value is a template with an expression in it, so that its value is only known when it is needed. */
export function isTemplate(value: unknown): value is string {
  return typeof value === 'string' && value.startsWith('=') && value.includes('{{')
}

/** The text of a parameter that must be known now; undefined if it has an expression. */
export function plainText(value: unknown): string | undefined {
  if (isTemplate(value)) return undefined
  const text = value === null || value === undefined ? '' : String(value)
  return text.startsWith('=') ? text.slice(1) : text
}

/** A number from a parameter, or its template. */
export function keepNumber(value: unknown, fallback: number): unknown {
  if (isTemplate(value)) return value
  const text = plainText(value)
  const number = text === undefined || text.trim() === '' ? Number.NaN : Number(text)
  return Number.isNaN(number) ? fallback : number
}

/** Names in a text with commas between them. */
export function splitNames(value: unknown): string[] {
  const list = Array.isArray(value) ? value.map(String) : String(plainText(value) ?? '').split(',')
  return list.map((name) => name.trim()).filter((name) => name !== '')
}

/** The entries of a list in a parameter, without those that are no objects. */
export function listObjects(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}

/**
 * The pieces of a template: texts, and expressions as templates of their own. For places in which n8n writes the
 * values of the expressions as JSON into the text.
 */
export function splitPieces(text: string): string[] {
  const pieces: string[] = []
  let at = text.startsWith('=') ? text.replace(/^=+/, '') : text
  for (;;) {
    const open = at.indexOf('{{')
    const close = open < 0 ? -1 : at.indexOf('}}', open)
    if (close < 0) break
    if (open > 0) pieces.push(writeLiteral(at.slice(0, open)))
    pieces.push(`=${at.slice(open, close + 2)}`)
    at = at.slice(close + 2)
  }
  if (at !== '') pieces.push(writeLiteral(at))
  return pieces
}

/** JavaScript that gives what n8n makes of a text: the value of its only expression, or the text around several. */
export function writeCode(value: unknown): string {
  if (!isTemplate(value)) return quoteValue(plainText(value) ?? '')
  const pieces = splitPieces(value).map((piece) => {
    const code = /^=\s*\{\{([\s\S]*)\}\}$/.exec(piece)?.[1]
    return code === undefined ? quoteValue(piece) : tryCode(code)
  })
  return pieces.length === 1 ? pieces[0]! : `[${pieces.join(', ')}].join('')`
}

/** The JavaScript of an expression as a part of other JavaScript, which sees nothing if it throws, as n8n has it. */
export function tryCode(source: string): string {
  const code = source.trim().replace(/;+$/, '')
  return SAFE.test(code) ? `(${code})` : `$try(${code}\n)`
}

/** What cannot throw: a field of the item, an argument of a tool, or a number. */
const SAFE = /^(?:\$(?:json|args)(?:\.[\w$]+|\["[^"\\]*"\])?|\d+)$/

/** JavaScript that reads a text as JSON, or fails the node. Another value stays as it is. */
export const parseCode = (code: string, what: string) =>
  `(value => { if (typeof value !== 'string') return value; try { return JSON.parse(value) } catch { ` +
  `return $fail(${quoteValue(`${what} is no JSON`)}) } })(${code})`

/** A value as JavaScript without braces in its texts, which would end the expression around it. */
export const quoteValue = (value: unknown) =>
  JSON.stringify(value).replaceAll('{', '\\u007b').replaceAll('}', '\\u007d')
