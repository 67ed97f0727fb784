/** How much of a text before and after a number is read for words that say what the number is, in UTF-16 units. */
const BEFORE = 48
const AFTER = 24

// Up to three letters beside a digit are not a word: those in 4f2eb08cc947 are none.
const WORD =
  /[a-z\u00aa-\u024f\u0370-\u052f]{4,}|(?<![\da-z\u00aa-\u024f\u0370-\u052f])[a-z\u00aa-\u024f\u0370-\u052f]{1,3}(?![\da-z\u00aa-\u024f\u0370-\u052f])/g
const MARKER = /\[?\b[A-Z_]{2,31}\]|\[[A-Z_]{2,31}\b\]?/g

/** Words and pairs of words, in lower case, from a text with `|` between them. */
export function wordSet(words: string): ReadonlySet<string> {
  return new Set(words.split('|').map((word) => word.trim().replace(/\s+/g, ' ')))
}

/** Whether one of the words, or of the pairs of words, is near a place: before it, or just after it on its line. */
export function hasContext(text: string, start: number, end: number, words: ReadonlySet<string>): boolean {
  const isNear = (near: string) => findLastWord(readWords(near), words) >= 0
  return isNear(readBefore(text, start)) || isNear(readAfter(text, end))
}

/** The text before a place, without markers such as `[PHONE]`: what was masked is no context for more. */
export function readBefore(text: string, start: number, length = BEFORE): string {
  return withoutMarkers(text.slice(Math.max(0, start - length), start))
}

/** The text after a place, without markers, to the end of the line. */
export function readAfter(text: string, end: number, length = AFTER): string {
  const after = text.slice(end, end + length)
  const line = after.indexOf('\n')
  return withoutMarkers(line < 0 ? after : after.slice(0, line))
}

/** The words of a text, in lower case: letters alone, so phoneNumber and ip_address are two each. */
export function readWords(text: string): string[] {
  const spelled = /[a-z][A-Z]/.test(text) ? text.replace(/([a-z])(?=[A-Z])/g, '$1 ') : text
  return spelled.toLowerCase().match(WORD) ?? []
}

/** The index of the last word that is in the set, alone or with the one before it; else -1. */
export function findLastWord(words: readonly string[], set: ReadonlySet<string>): number {
  for (let at = words.length - 1; at >= 0; at--) {
    const word = words[at] ?? ''
    if (set.has(word) || (at > 0 && set.has(`${words[at - 1]} ${word}`))) return at
  }
  return -1
}

function withoutMarkers(text: string): string {
  return text.includes('[') || text.includes(']') ? text.replace(MARKER, ' ') : text
}
