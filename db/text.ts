/** A text that a PostgreSQL text column takes: no NUL, no lone surrogates, at most `max` characters. */
export function cleanText(text: string, max = 10_000): string {
  return text.toWellFormed().replaceAll('\0', '\uFFFD').slice(0, max).toWellFormed()
}
