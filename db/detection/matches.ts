/**
 * All matches of a pattern with the flag `g` in a text. Unlike matchAll it does not copy the pattern, which costs more
 * than the search of a short line. The pattern must not be used for another text while this one's matches are read.
 */
export function* eachMatch(pattern: RegExp, text: string): Generator<RegExpExecArray, void, void> {
  pattern.lastIndex = 0
  for (let match = pattern.exec(text); match; match = pattern.exec(text)) {
    const next = pattern.lastIndex
    yield match
    pattern.lastIndex = Math.max(next, match.index + 1)
  }
}
