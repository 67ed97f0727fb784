/** A sheet's title as it is written before the `!` of a range. */
export function quoteSheet(title: string): string {
  return `'${title.replaceAll("'", "''")}'`
}

/** The letters of a column, counted from 0: A, Z, AA. */
export function nameColumn(at: number): string {
  let letters = ''
  for (let rest = at + 1; rest > 0; rest = Math.floor((rest - 1) / 26))
    letters = String.fromCharCode(65 + ((rest - 1) % 26)) + letters
  return letters
}

/** The place of a column by its letters, counted from 0; undefined for other texts. */
export function readColumn(letters: string): number | undefined {
  const text = letters.trim().toUpperCase()
  if (!/^[A-Z]{1,3}$/.test(text)) return undefined
  return [...text].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0) - 1
}

/** The number of the first row of a range that an answer names: `'My sheet'!B5:D9` is 5. Without one it is 1. */
export function readFirstRow(range: unknown): number {
  const cells = String(range ?? '').replace(/^.*!/s, '')
  return Number(/^[A-Z]*(\d+)/i.exec(cells)?.[1] ?? 1)
}
