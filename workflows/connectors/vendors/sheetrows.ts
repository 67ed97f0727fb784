import type { ConnectorAction, ConnectorStep } from '../connector.ts'
import {
  anythingInput,
  choiceInput,
  listInput,
  nameInput,
  objectInput,
  textInput,
  usually,
  wholeNumberInput,
} from '../schemas.ts'
import {
  BOOK,
  extra,
  FIND_SHEET,
  HEADER,
  headerRow,
  INPUT,
  input,
  place,
  render,
  rows,
} from './sheetparts.ts'

/** Titles of columns that are to be added are written before any row. */
const WRITE_TITLES: ConnectorStep[] = [
  {
    name: 'widen',
    when: '$nodes.plan.wider > 0',
    method: 'POST',
    path: `${BOOK}:batchUpdate`,
    body: {
      requests: [
        {
          appendDimension: {
            sheetId: '{{ $nodes.sheet.id }}',
            dimension: 'COLUMNS',
            length: '{{ $nodes.plan.wider }}',
          },
        },
      ],
    },
  },
  {
    name: 'titles',
    when: '$nodes.plan.titles',
    method: 'PUT',
    path: `${BOOK}/values/{{ $nodes.plan.titles.range }}`,
    query: { valueInputOption: 'RAW' },
    body: { range: '{{ $nodes.plan.titles.range }}', values: '{{ $nodes.plan.titles.values }}' },
    repeatable: true,
  },
]

/** Google itself finds the row behind the last one: two that append at the same time do not get the same. */
const append = (when?: string): ConnectorStep => ({
  name: 'append',
  ...(when === undefined ? {} : { when }),
  method: 'POST',
  path: `${BOOK}/values/{{ $nodes.plan.range }}:append`,
  query: { valueInputOption: INPUT, insertDataOption: 'INSERT_ROWS' },
  body: { values: '{{ $nodes.plan.values }}' },
})

const TABLE = {
  sheet: '{{ $nodes.sheet }}',
  rows: '{{ $input.rows }}',
  header: '{{ $nodes.header.values }}',
  headerRow: '{{ $input.headerRow }}',
  extra: '{{ $input.extra }}',
}

/** Rows that are found by a key: its column is read as it is shown and as it is. */
function findRows(upsert: boolean): ConnectorAction['steps'] {
  const column = (step: string, valueRenderOption: string): ConnectorStep => ({
    name: step,
    when: '$nodes.column.range',
    method: 'GET',
    path: `${BOOK}/values/{{ $nodes.column.range }}`,
    query: { valueRenderOption },
  })
  return [
    ...FIND_SHEET,
    HEADER,
    {
      name: 'column',
      make: 'keyColumn',
      of: { ...TABLE, key: '{{ $input.key }}', firstRow: '{{ $input.firstRow }}' },
    },
    column('shown', 'FORMATTED_VALUE'),
    column('plain', 'UNFORMATTED_VALUE'),
    {
      name: 'plan',
      make: 'updatePlan',
      of: {
        ...TABLE,
        upsert,
        key: '{{ $input.key }}',
        firstRow: '{{ $input.firstRow }}',
        shown: '{{ $nodes.shown.values }}',
        plain: '{{ $nodes.plain.values }}',
        missing: '{{ $input.missing }}',
      },
    },
    ...WRITE_TITLES,
    {
      name: 'update',
      when: '$nodes.plan.updates',
      method: 'POST',
      path: `${BOOK}/values:batchUpdate`,
      body: { valueInputOption: INPUT, data: '{{ $nodes.plan.data }}' },
      repeatable: true,
    },
    ...(upsert ? [append('$nodes.plan.appends')] : []),
  ]
}

const keyed = {
  ...place,
  rows,
  key: nameInput(
    'Key',
    'The title of the column whose value says which row it is; or row_number, the number that reading gives a row.',
  ),
  headerRow,
  firstRow: wholeNumberInput(
    'First row',
    'The number of the first row below the titles, if it is not the next one.',
    {
      minimum: 1,
    },
  ),
  extra,
  input,
}
/** Rows as objects by the titles of their columns. */
export const ROW_ACTIONS: Record<string, ConnectorAction> = {
  readRows: {
    name: 'Read rows',
    summary: 'Reads the rows of a sheet as objects by the titles of their columns, each with its row_number.',
    safety: 'REPEATABLE',
    input: objectInput(
      {
        ...place,
        range: textInput('Range', 'Only these cells, as A1:D20 or A:D. Without it all that have something.'),
        headerRow: wholeNumberInput(
          'Row of titles',
          'The row of the range with the titles, counted from 1. Without it the first one that is not empty.',
          { minimum: 1 },
        ),
        firstRow: wholeNumberInput(
          'First row',
          'The first row of the range with values, if it is not the next one.',
          {
            minimum: 1,
          },
        ),
        emptyRows: usually(
          'skip',
          choiceInput(
            ['skip', 'stop', 'keep'],
            'Empty rows',
            'What is done with rows without any value: they are left out.',
            ['Leave them out', 'Read up to the first one', 'Keep them'],
          ),
        ),
        filters: listInput(
          objectInput(
            {
              column: nameInput('Column', 'The title of the column.'),
              value: anythingInput('Value', 'The value that it must have, compared as a text.'),
            },
            ['column'],
          ),
          'Filters',
          'Only rows that have these values.',
        ),
        combine: usually(
          'all',
          choiceInput(['all', 'any'], 'Rows must match', 'All filters,.', [
            'All filters',
            'At least one filter',
          ]),
        ),
        matches: usually(
          'all',
          choiceInput(['all', 'first', 'each'], 'Which rows', 'All that match,.', [
            'All that match',
            'The first one',
            'The first one for each filter',
          ]),
        ),
        ...render,
      },
      ['spreadsheet', 'sheet'],
    ),
    steps: [
      ...FIND_SHEET,
      {
        name: 'cells',
        method: 'GET',
        path: `${BOOK}/values/{{ $nodes.sheet.name & ($input.range ? "!" & $input.range : "") }}`,
        query: {
          valueRenderOption: '{{ $input.values }}',
          dateTimeRenderOption: '{{ $input.dates }}',
        },
      },
      {
        name: 'rows',
        make: 'sheetRows',
        of: {
          answer: '{{ $nodes.cells }}',
          headerRow: '{{ $input.headerRow }}',
          firstRow: '{{ $input.firstRow }}',
          emptyRows: '{{ $input.emptyRows }}',
          filters: '{{ $input.filters }}',
          combine: '{{ $input.combine }}',
          matches: '{{ $input.matches }}',
        },
      },
    ],
  },
  appendRows: {
    name: 'Append rows',
    summary: 'Adds rows behind the last one below the titles, and outputs them as they were given.',
    safety: 'ONCE',
    input: objectInput({ ...place, rows, headerRow, extra, input }, ['spreadsheet', 'sheet', 'rows']),
    steps: [
      ...FIND_SHEET,
      HEADER,
      { name: 'plan', make: 'appendPlan', of: TABLE },
      ...WRITE_TITLES,
      append(),
    ],
    result: '{{ $input.rows }}',
    each: 'rows',
  },
  updateRows: {
    name: 'Update rows',
    summary:
      'Sets the given values in the rows that have the same key, and outputs the rows as they were given; none if ' +
      'nothing was found.',
    safety: 'ONCE',
    input: objectInput(
      {
        ...keyed,
        missing: usually(
          'fail',
          choiceInput(['fail', 'ignore'], 'Rows that are not there', 'They are a failure,.', [
            'Fail, and write nothing',
            'Leave them out',
          ]),
        ),
      },
      ['spreadsheet', 'sheet', 'rows', 'key'],
    ),
    steps: findRows(false),
    result: '{{ $nodes.plan.updates ? $input.rows : [] }}',
    each: 'rows',
  },
  upsertRows: {
    name: 'Append or update rows',
    summary:
      'Sets the given values in the rows that have the same key, and appends the others. Outputs the rows as they were given.',
    safety: 'ONCE',
    input: objectInput(keyed, ['spreadsheet', 'sheet', 'rows', 'key']),
    steps: findRows(true),
    result: '{{ $input.rows }}',
    each: 'rows',
  },
}
