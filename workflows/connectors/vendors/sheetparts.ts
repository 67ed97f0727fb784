import type { ConnectorAction, ConnectorStep } from '../connector.ts'
import { choiceInput, listInput, nameInput, recordInput, usually, wholeNumberInput } from '../schemas.ts'

export const spreadsheet = nameInput(
  'Spreadsheet',
  'The spreadsheet: its id, the long part of its address between /d/ and /edit.',
  { 'x-options': 'spreadsheets' },
)
export const place = {
  spreadsheet,
  sheet: nameInput('Sheet', 'The sheet: its name, or its id as it stands in the address, such as gid=0.', {
    'x-options': 'sheets',
  }),
}
export const cells = nameInput('Range', 'The cells, as A1:D20 or A:D; without the name of the sheet.')
export const headerRow = usually(
  1,
  wholeNumberInput('Row of titles', 'The number of the row with the titles of the columns: 1.', {
    minimum: 1,
  }),
)
export const rows = listInput(
  recordInput('Row', 'The values of a row by the titles of its columns.'),
  'Rows',
  'The rows: objects whose keys are the titles of columns. Objects in cells are written as JSON.',
  { minItems: 1 },
)
export const extra = usually(
  'refuse',
  choiceInput(
    ['add', 'ignore', 'refuse'],
    'Other columns',
    'What is done with values for columns that the sheet does not have. A sheet without titles always gets them.',
    ['Add the columns', 'Leave the values out', 'Fail, and write nothing'],
  ),
)
export const input = usually(
  'USER_ENTERED',
  choiceInput(
    ['USER_ENTERED', 'RAW'],
    'How values are read',
    'As if typed in: numbers, dates and formulas of texts. Or as they are. As if typed in.',
    ['As if typed in', 'As they are'],
  ),
)
export const render = {
  values: usually(
    'UNFORMATTED_VALUE',
    choiceInput(
      ['UNFORMATTED_VALUE', 'FORMATTED_VALUE', 'FORMULA'],
      'Values',
      'What is read of a cell: its value,.',
      ['The value', 'The text that is shown', 'The formula'],
    ),
  ),
  dates: usually(
    'FORMATTED_STRING',
    choiceInput(
      ['FORMATTED_STRING', 'SERIAL_NUMBER'],
      'Dates',
      'How dates are read: as the text that is shown,.',
      ['The text that is shown', 'A number of days'],
    ),
  ),
}

export const BOOK = '/v4/spreadsheets/{{ $input.spreadsheet }}'
export const SHEET = '{{ $nodes.sheet.name }}'
export const INPUT = '{{ $input.input }}'

/** The sheet that is meant, with its id and its name as ranges have it. */
export const FIND_SHEET: ConnectorAction['steps'] = [
  { name: 'book', method: 'GET', path: BOOK, query: { fields: 'sheets.properties' } },
  { name: 'sheet', make: 'findSheet', of: { book: '{{ $nodes.book }}', sheet: '{{ $input.sheet }}' } },
]

export const HEADER: ConnectorStep = {
  name: 'header',
  method: 'GET',
  path: `${BOOK}/values/${SHEET}!{{ $input.headerRow }}:{{ $input.headerRow }}`,
  query: { valueRenderOption: 'FORMATTED_VALUE' },
}
