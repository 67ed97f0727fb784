import type { ConnectorAction } from '../connector.ts'
import {
  choiceInput,
  listInput,
  nameInput,
  objectInput,
  recordInput,
  textInput,
  usually,
} from '../schemas.ts'
import { BOOK, FIND_SHEET, place, spreadsheet } from './sheetparts.ts'

/** Spreadsheets, and the sheets in them. */
export const BOOK_ACTIONS: Record<string, ConnectorAction> = {
  createSpreadsheet: {
    name: 'Create a spreadsheet',
    summary: 'Creates a spreadsheet in the Drive of the account.',
    safety: 'ONCE',
    input: objectInput(
      {
        title: nameInput('Title', 'The title of the spreadsheet.'),
        sheets: listInput(
          recordInput('Sheet', 'The properties of the sheet: {"title": "Orders"}.'),
          'Sheets',
          'Its sheets. Without them it has one.',
        ),
        locale: textInput('Locale', 'The language and country for numbers and dates, such as en_GB.'),
        autoRecalc: choiceInput(
          ['ON_CHANGE', 'MINUTE', 'HOUR'],
          'Recalculate',
          'When volatile functions are recalculated.',
        ),
      },
      ['title'],
    ),
    steps: [
      {
        name: 'create',
        method: 'POST',
        path: '/v4/spreadsheets',
        body: {
          properties:
            '{{ $merge([{"title": $input.title}, $exists($input.locale) ? {"locale": $input.locale} : {}, ' +
            '$exists($input.autoRecalc) ? {"autoRecalc": $input.autoRecalc} : {}]) }}',
          sheets: '{{ $exists($input.sheets) ? [$input.sheets.{"properties": $}] : null }}',
        },
      },
    ],
  },
  getSpreadsheet: {
    name: 'Get a spreadsheet',
    summary: 'Reads what a spreadsheet is: its title, its sheets and their sizes; not their cells.',
    safety: 'REPEATABLE',
    input: objectInput({ spreadsheet }, ['spreadsheet']),
    steps: [{ name: 'get', method: 'GET', path: BOOK }],
  },
  createSheet: {
    name: 'Create a sheet',
    summary: 'Adds a sheet to a spreadsheet, and outputs its properties.',
    safety: 'ONCE',
    input: objectInput(
      {
        spreadsheet,
        title: nameInput('Title', 'The title of the sheet.'),
        properties: recordInput(
          'Properties',
          'More of its properties, as the API has them: {"index": 0, "hidden": true}.',
        ),
        existing: usually(
          'fail',
          choiceInput(
            ['fail', 'skip'],
            'If there is one',
            'What is done if a sheet has that title: a failure,.',
            ['Fail', 'Do nothing, and output nothing'],
          ),
        ),
      },
      ['spreadsheet', 'title'],
    ),
    steps: [
      {
        name: 'book',
        when: '$input.existing = "skip"',
        method: 'GET',
        path: BOOK,
        query: { fields: 'sheets.properties' },
      },
      {
        name: 'create',
        when: '$not($input.title in $nodes.book.sheets.properties.title)',
        method: 'POST',
        path: `${BOOK}:batchUpdate`,
        body: {
          requests: [
            { addSheet: { properties: '{{ $merge([$input.properties, {"title": $input.title}]) }}' } },
          ],
        },
      },
    ],
    result:
      '{{ $exists($nodes.create) ? $merge([{"spreadsheetId": $input.spreadsheet}, ' +
      '$nodes.create.replies[0].addSheet.properties]) : [] }}',
  },
  deleteSheet: {
    name: 'Delete a sheet',
    summary: 'Deletes a sheet with all that is in it.',
    safety: 'ONCE',
    input: objectInput(place, ['spreadsheet', 'sheet']),
    steps: [
      ...FIND_SHEET,
      {
        name: 'delete',
        method: 'POST',
        path: `${BOOK}:batchUpdate`,
        body: { requests: [{ deleteSheet: { sheetId: '{{ $nodes.sheet.id }}' } }] },
      },
    ],
    result: { spreadsheetId: '{{ $input.spreadsheet }}' },
  },
}
