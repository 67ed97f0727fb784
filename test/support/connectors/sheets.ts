import type { Asked, Reply } from './vendor.ts'

type Sheet = { id: number; title: string; rows: unknown[][]; columns: number }

/** A spreadsheet in memory, which answers as Google's Sheets API does for the requests that are made here. */
export function createBook(tables: Record<string, unknown[][]>) {
  const sheets: Sheet[] = Object.entries(tables).map(([title, rows], id) => ({
    id,
    title,
    rows,
    columns: 26,
  }))
  const properties = ({ id, title, rows, columns }: Sheet) => ({
    sheetId: id,
    title,
    index: sheets.findIndex((one) => one.id === id),
    sheetType: 'GRID',
    gridProperties: { rowCount: Math.max(1_000, rows.length), columnCount: columns },
  })
  const read = (title: string) => sheets.find((one) => one.title === title)!.rows

  function answer({ method, path, query, json }: Pick<Asked, 'method' | 'path' | 'query' | 'json'>): Reply {
    const [, book = '', rest = ''] =
      /^\/v4\/spreadsheets\/?([^/:]*)(.*)$/.exec(decodeURIComponent(path)) ?? []
    if (book === '') return { json: { spreadsheetId: 'new', ...json } }
    if (rest === '')
      return { json: { spreadsheetId: book, sheets: sheets.map((one) => ({ properties: properties(one) })) } }
    if (rest === ':batchUpdate')
      // biome-ignore lint/suspicious/noExplicitAny: answers are what a service says
      return { json: { spreadsheetId: book, replies: change(json.requests as any[]) } }
    if (rest === '/values:batchUpdate') {
      for (const { range, values } of json.data as { range: string; values: unknown[][] }[])
        set(range, values)
      return { json: { spreadsheetId: book } }
    }
    const [, range = '', verb = ''] = /^\/values\/(.*?)(:append|:clear)?$/.exec(rest) ?? []
    const place = locate(range)
    if (!place)
      return { status: 400, json: { error: { code: 400, message: `Unable to parse range: ${range}` } } }
    if (verb === ':append') return { json: { updates: append(place, json.values as unknown[][]) } }
    if (verb === ':clear') {
      set(
        range,
        Array.from({ length: place.height }, () => Array(place.width).fill('')),
      )
      return { json: { spreadsheetId: book, clearedRange: range } }
    }
    if (method === 'PUT') {
      set(range, json.values as unknown[][])
      return { json: { spreadsheetId: book, updatedRange: range } }
    }
    const { sheet, row, column, height, width } = place
    const isPlain = query.get('valueRenderOption') === 'UNFORMATTED_VALUE'
    const shown = sheet.rows
      .slice(row, row + height)
      .map((cells) => trim(cells.slice(column, column + width).map((cell) => (isPlain ? cell : show(cell)))))
    while (shown.at(-1)?.length === 0) shown.pop()
    const start = `${String.fromCharCode(65 + column)}${row + 1}`
    return {
      json: {
        range: `'${sheet.title}'!${start}:Z1000`,
        majorDimension: 'ROWS',
        ...(shown.length > 0 ? { values: shown } : {}),
      },
    }
  }

  function locate(range: string) {
    const [, quoted, plain, cells = ''] = /^(?:'((?:[^']|'')*)'|([^'!]+))(?:!(.*))?$/.exec(range) ?? []
    const title = (quoted ?? plain ?? '').replaceAll("''", "'")
    const sheet = sheets.find((one) => one.title === title)
    if (!sheet) return undefined
    const [from = '', to = from] = cells.split(':')
    const [row, column] = readCell(from, 0)
    const [endRow, endColumn] = readCell(to, Number.POSITIVE_INFINITY)
    const height =
      Math.min(endRow, Math.max(sheet.rows.length, row) + 0) -
      row +
      (endRow === Number.POSITIVE_INFINITY ? 0 : 1)
    const width = Math.min(endColumn, sheet.columns - 1) - column + 1
    return { sheet, row, column, height: Math.max(0, height), width }
  }

  function set(range: string, values: unknown[][]) {
    const { sheet, row, column } = locate(range)!
    for (const [down, cells] of values.entries())
      for (const [right, cell] of cells.entries()) {
        if (cell === null) continue
        while (sheet.rows.length <= row + down) sheet.rows.push([])
        const own = sheet.rows[row + down]!
        while (own.length < column + right) own.push('')
        own[column + right] = cell
      }
    while (sheet.rows.length > 0 && sheet.rows.at(-1)!.every((cell) => cell === '')) sheet.rows.pop()
  }

  function append({ sheet, row }: { sheet: Sheet; row: number }, values: unknown[][]) {
    let at = row
    while (sheet.rows[at]?.some((cell) => cell !== '')) at++
    sheet.rows.splice(at, 0, ...values.map((cells) => [...cells]))
    return { updatedRange: `'${sheet.title}'!A${at + 1}`, updatedRows: values.length }
  }

  // biome-ignore lint/suspicious/noExplicitAny: answers are what a service says
  function change(requests: any[]): unknown[] {
    return requests.map(({ addSheet, deleteSheet, deleteDimension, appendDimension }) => {
      const id = Number((deleteSheet ?? deleteDimension?.range ?? appendDimension)?.sheetId)
      const sheet = sheets.find((one) => one.id === id)
      if (addSheet) {
        const made = { id: 7, title: addSheet.properties.title, rows: [], columns: 26 }
        sheets.push(made)
        return { addSheet: { properties: { ...properties(made), ...addSheet.properties } } }
      }
      if (deleteSheet) sheets.splice(sheets.indexOf(sheet!), 1)
      else if (deleteDimension) {
        const { dimension, startIndex, endIndex } = deleteDimension.range
        const count = endIndex - startIndex
        if (dimension === 'ROWS') sheet!.rows.splice(startIndex, count)
        else for (const row of sheet!.rows) row.splice(startIndex, count)
      } else if (appendDimension?.dimension === 'COLUMNS') sheet!.columns += appendDimension.length
      return {}
    })
  }

  return { answer, read, sheets }
}

const show = (cell: unknown) =>
  typeof cell === 'number'
    ? cell.toLocaleString('en-US')
    : typeof cell === 'boolean'
      ? String(cell).toUpperCase()
      : cell

function trim(cells: unknown[]): unknown[] {
  let end = cells.length
  while (end > 0 && (cells[end - 1] === '' || cells[end - 1] === undefined)) end--
  return cells.slice(0, end)
}

function readCell(text: string, open: number): [row: number, column: number] {
  const [, letters = '', digits = ''] = /^([A-Z]*)(\d*)$/.exec(text) ?? []
  const column = [...letters].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0) - 1
  return [digits === '' ? open : Number(digits) - 1, letters === '' ? open : column]
}
