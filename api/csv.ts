export type Cell = string | number | null

/** One record of RFC 4180, with its line end. */
export function writeRecord(cells: Cell[]): string {
  return `${writeCells(cells)}\r\n`
}

/**
 * Cells of a record, with commas between. null is an empty cell, '' a quoted one: `\copy` tells them apart.
 * Texts that a spreadsheet would take for a formula get an apostrophe before them; numbers never do.
 */
export function writeCells(cells: Cell[]): string {
  return cells.map(writeCell).join(',')
}

function writeCell(cell: Cell): string {
  if (cell === null) return ''
  if (typeof cell === 'number') return String(cell)
  const text = disarm(cell)
  return text === '' || /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

// Leading space is skipped by some. What has apostrophes before such a beginning gets one more, so that a reader
// who takes one away has the text as it was.
const FORMULA = /^'*(?:[\t\r\n]|\s*[=+\-@\uff1d\uff0b\uff0d\uff20])/

function disarm(text: string): string {
  const safe = FORMULA.test(text) ? `'${text}` : text
  // A line of its own that is \. ends the data of `\copy` before PostgreSQL 18, within quotes too.
  return safe.includes('\\.') ? safe.replace(/^\\\.$/gm, '\\. ') : safe
}
