export type CsvCell = string | number | null

/** Writes one CSV record (RFC 4180) with its line ending. */
export function writeCsvRecord(cells: CsvCell[]): string {
  return `${writeCsvCells(cells)}\r\n`
}

/**
 * Writes the cells of a record, separated by commas. null becomes an empty cell and '' a quoted one, so that
 * `\copy` tells them apart. A string that a spreadsheet would take for a formula gets an apostrophe in front;
 * a number never does.
 */
export function writeCsvCells(cells: CsvCell[]): string {
  return cells.map(writeCsvCell).join(',')
}

function writeCsvCell(cell: CsvCell): string {
  if (cell === null) return ''
  if (typeof cell === 'number') return String(cell)
  const text = disarm(cell)
  return text === '' || /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

// Some spreadsheets skip leading whitespace. A string that already has apostrophes before such a beginning
// gets another one, so that a reader who removes one always gets the original string.
export const FORMULA = /^'*(?:[\t\r\n]|\s*[=+\-@\uff1d\uff0b\uff0d\uff20])/

function disarm(text: string): string {
  const safe = FORMULA.test(text) ? `'${text}` : text
  // Before PostgreSQL 18, a line that is only \. ends the data of `\copy`, even within quotes.
  return safe.includes('\\.') ? safe.replace(/^\\\.$/gm, '\\. ') : safe
}
