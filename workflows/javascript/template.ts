import { type Token, tokenizer } from 'acorn'
import { MAX_SCRIPT } from './syntax.ts'

/**
 * A text that begins with `=`: its literal parts and its expressions, each with its position in the text.
 * `alone`: it is one expression with nothing around it, which keeps its type.
 */
export type ScriptTemplate = { parts: (string | ScriptPart)[]; alone: boolean }
type ScriptPart = { source: string; start: number }

/** Whether a text is a JavaScript template under the rules 2. */
export function isScriptText(text: string): boolean {
  return text.startsWith('=')
}

/**
 * Splits a text that begins with `=` at its `{{ }}` as n8n does: a backslash before the braces makes them text, and an
 * expression without `}}` goes on to the end. An expression that n8n would cut off within a string or an object, such
 * as `{{ {a: {b: 1}} }}`, ends where JavaScript does. Throws an Error if too much of it is no JavaScript.
 */
export function splitScript(text: string): ScriptTemplate {
  const parts: ScriptTemplate['parts'] = []
  let from = 1
  let at = 1
  const budget = { left: MAX_TOKENIZED }
  for (;;) {
    const open = text.indexOf('{{', at)
    if (open < 0) break
    if (isEscaped(text, open, from)) {
      at = open + 2
      continue
    }
    // n8n makes one of two backslashes only in a text that an expression follows.
    parts.push(text.slice(from, open).replaceAll('\\\\', '\\'))
    const end = findEnd(text, open + 2, budget)
    parts.push({ source: text.slice(open + 2, end).replace('\\}}', '}}'), start: open + 2 })
    from = end + 2
    at = from
  }
  if (from < text.length || parts.length === 0) parts.push(text.slice(from))
  const [first, second, ...more] = parts
  const alone = first === '' && typeof second === 'object' && more.length === 0
  return { parts: alone ? [second] : parts.filter((part) => part !== ''), alone }
}

function isEscaped(text: string, at: number, from: number): boolean {
  let slashes = 0
  while (at - slashes > from && text[at - slashes - 1] === '\\') slashes++
  return slashes % 2 === 1
}

/**
 * The most characters of one text that are read without success, to find where expressions end that JavaScript cannot
 * read.
 */
const MAX_TOKENIZED = 500_000
const TOO_UNCLEAR = 'has too many expressions that are no JavaScript'

/** Where an expression that begins at `from` ends: the position of its `}}`, or of the end of the text. */
function findEnd(text: string, from: number, budget: { left: number }): number {
  const source = text.slice(from, from + MAX_SCRIPT + 100)
  const byTokens = findByTokens(source)
  if (byTokens === undefined) {
    budget.left -= source.length
    if (budget.left < 0) throw new Error(TOO_UNCLEAR)
  }
  const end = byTokens ?? findByBraces(source)
  return end === undefined ? text.length : from + end
}

/** The first `}}` outside of all that JavaScript has open; undefined if the tokens do not say. */
function findByTokens(source: string): number | undefined {
  const tokens = tokenizer(source, {
    ecmaVersion: 'latest',
    sourceType: 'module',
    onComment(block, value, start) {
      // n8n does not know comments, and a comment of one line would hide the braces behind it.
      const at = block ? -1 : value.indexOf('}}')
      if (at >= 0) throw { end: start + 2 + at }
    },
  })
  let depth = 0
  try {
    for (;;) {
      const token: Token = tokens.getToken()
      const { label } = token.type
      if (label === 'eof') return undefined
      if (label === '{' || label === '${') depth++
      if (label !== '}') continue
      if (depth === 0) return source[token.start + 1] === '}' ? token.start : undefined
      depth--
    }
  } catch (error) {
    const { end } = error as { end?: number }
    return depth === 0 ? end : undefined
  }
}

function findByBraces(source: string): number | undefined {
  for (let at = source.indexOf('}}'); at >= 0; at = source.indexOf('}}', at + 2)) {
    if (!isEscaped(source, at, 0)) return at
  }
  return undefined
}
