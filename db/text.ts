/** Makes a string fit for a PostgreSQL text column: no NUL or lone surrogates, at most `max` UTF-16 units. */
export function cleanText(text: string, max = 10_000): string {
  return text.toWellFormed().replaceAll('\0', '\uFFFD').slice(0, max).toWellFormed()
}
