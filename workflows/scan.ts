/** Where an expression ends in its text, and how deep it goes. */
export type Extent = { end: number; depth: number; doubling: number }

/** Deeper than any reader allows: not worth reading on. */
const TOO_DEEP = 1_000

type Level = { bracket: string; doubling: number; operand: number }

/**
 * Reads over a JSONata expression from `from`: to its end or, with `closed`, to the `}}` that no string, name,
 * comment, regex or object of the expression holds; `end` is -1 where there is none. `depth` counts nested
 * brackets, `doubling` nested left operands of `??` and `?:`: JSONata's parser copies these, so time and memory
 * double with each level.
 */
export function scanExpression(text: string, from: number, closed: boolean): Extent {
  const levels: Level[] = [{ bracket: '', doubling: 0, operand: 0 }]
  let depth = 0
  let braces = 0
  let value = false
  for (let at = from; at < text.length; ) {
    const char = text[at]!
    const next = text[at + 1]
    const level = levels[levels.length - 1]!
    if (closed && char === '}' && next === '}' && braces === 0) {
      return { end: at, depth, doubling: raise(levels[0]!) }
    }
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
      value = false
      at += 2
      continue
    }
    if (char === '(' || char === '[' || char === '{') {
      levels.push({ bracket: char, doubling: 0, operand: 0 })
      if (char === '{') braces++
      depth = Math.max(depth, levels.length - 1)
      if (depth > TOO_DEEP) break
    } else if ((char === ')' || char === ']' || char === '}') && levels.length > 1) {
      const closing = levels.pop()!
      if (closing.bracket === '{') braces--
      const inner = raise(closing)
      const outer = levels.at(-1)!
      outer.operand = Math.max(outer.operand, inner)
    } else if (char === ',' || char === ';') {
      level.doubling = raise(level)
      level.operand = 0
    }
    if (char.trim() !== '') value = isValueEnd(text, at)
    at++
  }
  return { end: closed ? -1 : text.length, depth, doubling: Math.max(...levels.map(raise)) }
}

function raise(level: Level): number {
  return Math.max(level.doubling, level.operand)
}

/** The position after a string, quoted name, comment or regex at `at`; `at` itself where there is none. */
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

/** As JSONata scans it, to the letter: up to a slash outside of brackets that is not escaped. */
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

/** Whether a slash after this character divides; after any other it begins a regex. */
function isValueEnd(text: string, at: number): boolean {
  if (!/[\w)\]}$%*\u0080-\uffff]/.test(text[at]!)) return false
  return !/(?:^|[^\w$.])(?:and|or|in)$/.test(text.slice(Math.max(0, at - 3), at + 1))
}
