/** Where an expression ends, how deeply it nests, and what it costs to parse: see scanExpression. */
export type ExpressionExtent = { end: number; depth: number; doubling: number; work: number; steps: number }

/** The scan stops at this depth, which no caller accepts. */
const TOO_DEEP = 1_000

type Level = {
  bracket: string
  doubling: number
  operand: number
  /** The work of what is before the current operand, and of the operand itself. */
  work: number
  operandWork: number
  /** The steps of the current path. */
  steps: number
}

const openLevel = (bracket: string): Level => ({
  bracket,
  doubling: 0,
  operand: 0,
  work: 0,
  operandWork: 0,
  steps: 0,
})

/**
 * The characters that end a path. `*`, `%` and `/` do so only after a value: before one they are part of a path, or a
 * regex.
 */
const PATH_ENDS = new Set(',;:?=<>&+-!~')

/**
 * Scans a JSONata expression that begins at `from`. It ends with the text or, if `within` is given, before the first
 * `}}` that is not part of a string, quoted name, comment, regex or object; `end` is -1 if that is further away than
 * this many characters. `depth` counts nested brackets, `doubling` nested left operands of `??` and `?:`, which
 * JSONata's parser copies, so that time and memory double with each level. `work` counts characters (a string is one),
 * those in such an operand twice for each level: parsing takes up to 7 us for each. `steps` is the longest path's
 * number of dots: parsing a path takes the square of it.
 */
export function scanExpression(text: string, from: number, within?: number): ExpressionExtent {
  const closed = within !== undefined
  // Spaces and the braces around an expression do not count.
  const limit = closed ? Math.min(text.length, from + within + 100) : text.length
  const levels: Level[] = [openLevel('')]
  let depth = 0
  let steps = 0
  let braces = 0
  let value = false
  for (let at = from; at < limit; ) {
    const char = text[at]!
    const next = text[at + 1]
    const level = levels[levels.length - 1]!
    if (closed && char === '}' && next === '}' && braces === 0) {
      return measure(at)
    }
    level.operandWork++
    const skipped = skipLexeme(text, at, value)
    if (skipped !== at) {
      if (char !== '/') value = true
      else if (next !== '*') value = false
      at = skipped
      continue
    }
    if (char === '?' && (next === '?' || next === ':')) {
      level.doubling = Math.max(level.doubling, level.operand + 1)
      level.operand = 0
      level.work += 2 * level.operandWork
      level.operandWork = 0
      level.steps = 0
      value = false
      at += 2
      continue
    }
    if (char === '*' && next === '*') {
      value = true
      level.operandWork++
      at += 2
      continue
    }
    if (char === '(' || char === '[' || char === '{') {
      levels.push(openLevel(char))
      if (char === '{') braces++
      depth = Math.max(depth, levels.length - 1)
      if (depth > TOO_DEEP) break
    } else if ((char === ')' || char === ']' || char === '}') && levels.length > 1) {
      const closing = levels.pop()!
      if (closing.bracket === '{') braces--
      const inner = raise(closing)
      const outer = levels.at(-1)!
      outer.operand = Math.max(outer.operand, inner)
      outer.operandWork += closing.work + closing.operandWork
    } else if (char === ',' || char === ';') {
      level.doubling = raise(level)
      level.operand = 0
      level.work += level.operandWork
      level.operandWork = 0
    }
    if (char === '.') steps = Math.max(steps, ++level.steps)
    else if (PATH_ENDS.has(char) || (value && '*%/'.includes(char))) level.steps = 0
    if (char.trim() !== '') value = isValueEnd(text, at)
    at++
  }
  return measure(closed ? -1 : text.length)

  // Brackets that were never closed count too: the parser reads them before it finds out.
  function measure(end: number): ExpressionExtent {
    const work = levels.reduce((sum, level) => sum + level.work + level.operandWork, 0)
    return { end, depth, doubling: Math.max(...levels.map(raise)), work, steps }
  }
}

/**
 * The character that fills strings, quoted names and regexes in coverLexemes, so that a pattern can tell them from
 * code.
 */
export const FILLING = '\0'

/**
 * The text of an expression, of the same length, in which strings (`"` or `'`, here always `"`), quoted names and
 * regexes have FILLING between their first and last character, and comments are spaces.
 */
export function coverLexemes(text: string): string {
  const parts: string[] = []
  let from = 0
  let value = false
  for (let at = 0; at < text.length; ) {
    const char = text[at]!
    const end = skipLexeme(text, at, value)
    if (end === at) {
      if (char.trim() !== '') value = isValueEnd(text, at)
      at++
      continue
    }
    const isComment = char === '/' && text[at + 1] === '*'
    if (char !== '/') value = true
    else if (!isComment) value = false
    parts.push(text.slice(from, at), isComment ? ' '.repeat(end - at) : coverLexeme(char, end - at))
    from = end
    at = end
  }
  return parts.join('') + text.slice(from)
}

function coverLexeme(quote: string, length: number): string {
  const end = quote === "'" ? '"' : quote
  return length < 2 ? end : end + FILLING.repeat(length - 2) + end
}

function raise(level: Level): number {
  return Math.max(level.doubling, level.operand)
}

/**
 * The position after the string, quoted name, comment or regex that begins at `at`; `at` itself if none does.
 */
function skipLexeme(text: string, at: number, afterValue: boolean): number {
  const char = text[at]
  if (char === '"' || char === "'") return skipQuoted(text, at, char)
  if (char === '`') return past(text.indexOf('`', at + 1), text, 1)
  if (char !== '/') return at
  if (text[at + 1] === '*') return past(text.indexOf('*/', at + 2), text, 2)
  return afterValue ? at : skipRegex(text, at)
}

function past(found: number, text: string, length: number): number {
  return found < 0 ? text.length : found + length
}

function skipQuoted(text: string, at: number, quote: string): number {
  for (let i = at + 1; i < text.length; i++) {
    if (text[i] === '\\') i++
    else if (text[i] === quote) return i + 1
  }
  return text.length
}

/**
 * Scans a regex exactly as JSONata does: up to the first slash that is outside of brackets and not escaped.
 */
function skipRegex(text: string, at: number): number {
  let depth = 0
  let slashes = 0
  for (let i = at + 1; i < text.length; i++) {
    const char = text[i]!
    if (char === '/' && depth === 0 && slashes % 2 === 0) return i + 1
    if (slashes === 0 && '([{'.includes(char)) depth++
    if (slashes === 0 && ')]}'.includes(char)) depth--
    slashes = char === '\\' ? slashes + 1 : 0
  }
  return text.length
}

/** Whether a slash after this character is a division. After any other character it begins a regex. */
function isValueEnd(text: string, at: number): boolean {
  if (!/[\w)\]}$%*\u0080-\uffff]/.test(text[at]!)) return false
  return !/(?:^|[^\w$.])(?:and|or|in)$/.test(text.slice(Math.max(0, at - 3), at + 1))
}
