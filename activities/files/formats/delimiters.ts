/** The delimiters that are tried, in this order: a comma is the one that texts and numbers have most often. */
const CANDIDATES = ['\t', ';', '|', ',']

/** Cells with one of them are written in quotes, so that their delimiter is found again, also by other programs. */
export const SOME_DELIMITER = /[\t;|,]/

const MAX_RECORDS = 20

/** How much of a text is looked at for its records. */
const MAX_CHARS = 65_536

/** A line that Excel puts before the records, and that is not one of them. */
const OWN_LINE = /^\ufeff?"?sep=([^\r\n])"?(?:\r\n|\n|\r|$)/i

/** `others` are delimiters that would do, too. */
export type FoundDelimiter = { delimiter: string; others: string[]; rest: string }

/**
 * The delimiter of a CSV text, and its `rest` without a line such as `sep=;`, which names it. Without such a line it is
 * the first candidate that gives most of the first 20 records the same number of fields, two or more; else a comma. A
 * candidate that gives the first record that number, too, goes before others: in `id,tags` there is no bar, whatever
 * the cells below have.
 */
export function findDelimiter(text: string): FoundDelimiter {
  const own = OWN_LINE.exec(text)
  if (own) return { delimiter: own[1]!, others: [], rest: text.slice(own[0].length) }
  const start = text.slice(text.startsWith('\ufeff') ? 1 : 0, MAX_CHARS)
  const found = CANDIDATES.map((delimiter) => ({ delimiter, ...judge(countFields(start, delimiter)) }))
  const fits = found.filter(({ isRegular }) => isRegular)
  const { delimiter = ',' } = fits.find(({ fitsFirst }) => fitsFirst) ?? fits[0] ?? {}
  const others = fits.map((fit) => fit.delimiter).filter((other) => other !== delimiter)
  return { delimiter, others, rest: text }
}

/** How a delimiter is written in a sentence. */
export function nameDelimiter(delimiter: string): string {
  return delimiter === '\t' ? 'a tab' : `"${delimiter}"`
}

/** Whether most records have the same number of fields, two or more, and the first one has that number. */
function judge(counts: number[]): { isRegular: boolean; fitsFirst: boolean } {
  const often = new Map<number, number>()
  for (const count of counts) often.set(count, (often.get(count) ?? 0) + 1)
  const usual = [...often].find(([fields, records]) => fields > 1 && records * 2 > counts.length)?.[0]
  return { isRegular: usual !== undefined, fitsFirst: usual !== undefined && counts[0] === usual }
}

/** How many fields the first records have. Empty lines are no records. A quote opens a cell after any of the delimiters. */
function countFields(text: string, delimiter: string): number[] {
  const counts: number[] = []
  let fields = 1
  let recordAt = 0
  let isQuoted = false
  for (let at = 0; at < text.length && counts.length < MAX_RECORDS; at++) {
    const char = text[at]
    if (isQuoted) {
      if (char !== '"') continue
      if (text[at + 1] === '"') at++
      else isQuoted = false
    } else if (char === '"' && (at === recordAt || CANDIDATES.includes(text[at - 1]!))) isQuoted = true
    else if (char === delimiter) fields++
    else if (char === '\n' || char === '\r') {
      if (at > recordAt) counts.push(fields)
      fields = 1
      recordAt = at + 1
    }
  }
  // A record that was cut off is looked at only if there are no others.
  const isWhole = text.length < MAX_CHARS - 1 || counts.length === 0
  if (counts.length < MAX_RECORDS && recordAt < text.length && isWhole) counts.push(fields)
  return counts
}
