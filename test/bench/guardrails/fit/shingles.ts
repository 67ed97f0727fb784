const WIDTH = 8

/** The 8-grams of a text's words; a shorter text is one shingle as a whole. */
function listShingles(text: string): string[] {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
  if (words.length <= WIDTH) return words.length > 0 ? [words.join(' ')] : []
  return Array.from({ length: words.length - WIDTH + 1 }, (_, place) =>
    words.slice(place, place + WIDTH).join(' '),
  )
}

/** The texts that share no 8-gram with any of `others`, so that nothing measured was fitted. */
export function withoutShared<T extends { text: string }>(
  texts: readonly T[],
  others: readonly { text: string }[],
): T[] {
  const known = new Set(others.flatMap(({ text }) => listShingles(text)))
  return texts.filter(({ text }) => !listShingles(text).some((shingle) => known.has(shingle)))
}
