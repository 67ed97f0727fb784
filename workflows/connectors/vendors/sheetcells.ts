import type { ActionSchema, ConnectorAction } from '../connector.ts'
import {
  anythingInput,
  flagInput,
  listInput,
  nameInput,
  objectInput,
  textInput,
  wholeNumberInput,
} from '../schemas.ts'
import { BOOK, cells, FIND_SHEET, INPUT, input, place, render, SHEET } from './sheetparts.ts'

/** Cells by their places. */
export const CELL_ACTIONS: Record<string, ConnectorAction> = {
  readCells: {
    name: 'Read cells',
    summary: 'Reads the values of a range as a list of rows, each a list of values.',
    safety: 'REPEATABLE',
    input: objectInput({ ...place, range: cells, ...render }, ['spreadsheet', 'sheet', 'range']),
    steps: [
      ...FIND_SHEET,
      {
        name: 'cells',
        method: 'GET',
        path: `${BOOK}/values/${SHEET}!{{ $input.range }}`,
        query: {
          valueRenderOption: '{{ $input.values }}',
          dateTimeRenderOption: '{{ $input.dates }}',
        },
      },
    ],
  },
  writeCells: {
    name: 'Write cells',
    summary: 'Sets the values of a range.',
    safety: 'REPEATABLE',
    input: objectInput(
      {
        ...place,
        range: cells,
        cells: listInput(
          listInput(
            anythingInput('Value', 'The value of a cell; null leaves it as it is.'),
            'Row',
            'The values of a row.',
          ),
          'Values',
          'The values: a list of rows, each a list of values.',
        ),
        input,
      },
      ['spreadsheet', 'sheet', 'range', 'cells'],
    ),
    steps: [
      ...FIND_SHEET,
      {
        name: 'write',
        method: 'PUT',
        path: `${BOOK}/values/${SHEET}!{{ $input.range }}`,
        query: { valueInputOption: INPUT },
        body: { values: '{{ $input.cells }}' },
      },
    ],
  },
  clearCells: {
    name: 'Clear cells',
    summary: 'Removes the values of a sheet or of a range; their formats stay.',
    safety: 'REPEATABLE',
    input: objectInput(
      {
        ...place,
        range: textInput('Range', 'Only these cells, as A1:D20, 2:5 or A:D. Without it the whole sheet.'),
        keepFirstRow: flagInput('Keep the first row', 'Without a range: the first row keeps its values.'),
      },
      ['spreadsheet', 'sheet'],
    ),
    steps: [
      ...FIND_SHEET,
      {
        name: 'clear',
        when: '$not($input.keepFirstRow = true and $nodes.sheet.rowCount < 2)',
        method: 'POST',
        path:
          `${BOOK}/values/{{ $nodes.sheet.name & ($input.range ? "!" & $input.range : ` +
          '$input.keepFirstRow ? "!2:" & $nodes.sheet.rowCount : "") }}:clear',
        body: {},
      },
    ],
  },
  deleteRows: deleteDimension('ROWS', {
    start: wholeNumberInput('First row', 'The number of the first row to delete.', { minimum: 1 }),
  }),
  deleteColumns: deleteDimension('COLUMNS', {
    start: nameInput('First column', 'The letters of the first column to delete, such as B.'),
  }),
}

function deleteDimension(
  dimension: 'ROWS' | 'COLUMNS',
  start: Record<string, ActionSchema>,
): ConnectorAction {
  const isRows = dimension === 'ROWS'
  const what = isRows ? 'rows' : 'columns'
  return {
    name: `Delete ${what}`,
    summary: `Deletes ${what} of a sheet; those behind them move up.`,
    safety: 'ONCE',
    input: objectInput(
      {
        ...place,
        ...start,
        count: wholeNumberInput('How many', `How many ${what} are deleted.`, { minimum: 1 }),
      },
      ['spreadsheet', 'sheet', 'start', 'count'],
    ),
    steps: [
      ...FIND_SHEET,
      ...(isRows
        ? []
        : [
            {
              name: 'columns',
              make: 'columnRange',
              of: { start: '{{ $input.start }}', count: '{{ $input.count }}' },
            },
          ]),
      {
        name: 'delete',
        method: 'POST',
        path: `${BOOK}:batchUpdate`,
        body: {
          requests: [
            {
              deleteDimension: {
                range: {
                  sheetId: '{{ $nodes.sheet.id }}',
                  dimension,
                  startIndex: isRows ? '{{ $input.start - 1 }}' : '{{ $nodes.columns.startIndex }}',
                  endIndex: isRows
                    ? '{{ $input.start - 1 + $input.count }}'
                    : '{{ $nodes.columns.endIndex }}',
                },
              },
            },
          ],
        },
      },
    ],
    result: { spreadsheetId: '{{ $input.spreadsheet }}' },
  }
}
