/** How many characters a part of a text has at most: about 8,000 tokens of English. */
export const PART_CHARS = 32_000

/** Where a text is best cut, best first: between paragraphs, lines, sentences, words. */
const BORDERS = [/\n\s*\n/g, /\n/g, /[.!?\u3002\uff01\uff1f][)"'\u201d\u2019]?\s/g, /\s/g]

/**
 * Cuts a text into parts of at most `size` characters, at the end of a paragraph if there is one in the second half of
 * a part, else of a line, a sentence or a word; in the middle of one if there is no other way, but never within a
 * character. The parts are without spaces around them, and none is empty.
 */
export function splitText(text: string, size = PART_CHARS): string[] {
  const parts: string[] = []
  let from = 0
  while (text.length - from > size) {
    const cut = findCut(text.slice(from, from + size))
    parts.push(text.slice(from, from + cut))
    from += cut
  }
  parts.push(text.slice(from))
  return parts.map((part) => part.trim()).filter((part) => part !== '')
}

function findCut(window: string): number {
  const half = Math.floor(window.length / 2)
  for (const border of BORDERS) {
    let cut = 0
    for (const match of window.slice(half).matchAll(border)) cut = half + match.index + match[0].length
    if (cut > 0) return cut
  }
  const last = window.charCodeAt(window.length - 1)
  return last >= 0xd800 && last <= 0xdbff ? window.length - 1 : window.length
}

/**
 * Puts texts that follow each other into groups of at most `size` characters, but of two at least, so that there are
 * always fewer groups than texts.
 */
export function groupTexts(texts: string[], size = PART_CHARS): string[][] {
  const groups: string[][] = []
  let chars = 0
  for (const text of texts) {
    const group = groups.at(-1)
    if (group && (group.length < 2 || chars + text.length <= size)) {
      group.push(text)
      chars += text.length
    } else {
      groups.push([text])
      chars = text.length
    }
  }
  const last = groups.at(-1)
  if (groups.length > 1 && last?.length === 1) groups.at(-2)!.push(...groups.pop()!)
  return groups
}
