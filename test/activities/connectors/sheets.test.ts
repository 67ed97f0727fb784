import { describe, expect, test } from 'vitest'
import { createBook } from '../../support/connectors/sheets.ts'
import { type Asked, type Reply, useVendors } from '../../support/connectors/vendor.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'

const host = await keep(shareRunning())
const start = useVendors(host)

type Change = (asked: Asked, answer: () => Reply) => Reply

async function startBook(tables: Record<string, unknown[][]>, change: Change = (_, answer) => answer()) {
  const book = createBook(tables)
  const vendor = await start((asked) => change(asked, () => book.answer(asked)))
  const act = (action: string, input: object, more: Record<string, unknown> = {}) =>
    vendor.act(
      { connector: 'google-sheets', action, input: { spreadsheet: 'book', sheet: "Ada's sheet", ...input } },
      more,
    )
  return { book, vendor, act, rows: () => book.read("Ada's sheet") }
}

const PEOPLE = () => ({
  "Ada's sheet": [
    ['Name', 'Age', 'City'],
    ['Ada', 36, 'London'],
    ['Bob', 1_200, ''],
  ],
  Other: [['x']],
})
const isAppend = ({ path }: Asked) => path.endsWith(':append')

describe('reading rows', () => {
  test('gives objects by the titles, with the numbers of their rows', async () => {
    const { act, vendor } = await startBook({
      "Ada's sheet": [[], ['Name', 'Age', '', 'Empty'], ['Ada', 36, true], [], ['Bob', '', 0]],
    })
    const { output } = await act('readRows', {})
    expect(output.value).toEqual([
      { row_number: 3, Name: 'Ada', Age: 36, col_3: true, Empty: '' },
      { row_number: 5, Name: 'Bob', Age: '', col_3: 0, Empty: '' },
    ])
    expect(vendor.asked.map(({ method, path }) => [method, decodeURIComponent(path)])).toEqual([
      ['GET', '/v4/spreadsheets/book'],
      ['GET', "/v4/spreadsheets/book/values/'Ada''s sheet'"],
    ])
    expect(Object.fromEntries(vendor.asked[1]!.query)).toEqual({
      valueRenderOption: 'UNFORMATTED_VALUE',
      dateTimeRenderOption: 'FORMATTED_STRING',
    })
    const stopped = await act('readRows', { emptyRows: 'stop', sheet: 'gid=0' })
    expect(stopped.output.value).toHaveLength(1)
  })

  test.each([
    [{ filters: [{ column: 'City', value: 'London' }] }, ['Ada', 'Cy']],
    [{ filters: [{ column: 'City', value: 'London' }], matches: 'first' }, ['Ada']],
    [
      {
        filters: [
          { column: 'City', value: 'London' },
          { column: 'Age', value: 5 },
        ],
      },
      ['Cy'],
    ],
    [
      {
        combine: 'any',
        filters: [
          { column: 'Age', value: 5 },
          { column: 'City', value: 'London' },
        ],
      },
      ['Cy', 'Ada'],
    ],
    [
      {
        ...{ combine: 'any', matches: 'each' },
        filters: [
          { column: 'City', value: 'London' },
          { column: 'row_number', value: 4 },
        ],
      },
      ['Ada', 'Cy'],
    ],
    [{ filters: [{ column: 'City', value: 'Rome' }] }, []],
    [{ range: 'A3:C', headerRow: 1 }, [undefined]],
  ])('by %o', async (input, names) => {
    const { act } = await startBook({
      "Ada's sheet": [...PEOPLE()["Ada's sheet"].slice(0, 2), ['Dan', 1, 'Rome?'], ['Cy', 5, 'London']],
    })
    const { status, output } = await act('readRows', input)
    expect(status).toBe('SUCCESS')
    expect(output.value.map(({ Name }: { Name?: string }) => Name)).toEqual(names)
  })

  test('of an empty sheet gives none, and of one that is not there says which there are', async () => {
    const { act } = await startBook({ "Ada's sheet": [], Two: [] })
    expect((await act('readRows', {})).output.value).toEqual([])
    const { error } = await act('readRows', { sheet: 'Three' })
    expect(error).toBe(`sheet: the spreadsheet has none that is "Three"; it has "Ada's sheet", "Two"`)
    expect((await act('readRows', { filters: [{ column: 'x', value: 1 }] })).output.value).toEqual([])
  })
})

describe('appending rows', () => {
  test('puts values below the titles that they have', async () => {
    const { act, rows, vendor } = await startBook(PEOPLE())
    const given = [
      { City: 'Paris', Name: 'Cy', Age: { years: 3 } },
      { Name: '=1+1', Age: null },
    ]
    const { output } = await act('appendRows', { rows: '{{ $trigger.rows }}' }, { data: { rows: given } })
    expect(output.value).toEqual(given)
    expect(rows().slice(3)).toEqual([
      ['Cy', '{"years":3}', 'Paris'],
      ['=1+1', '', ''],
    ])
    const appended = vendor.asked.find(isAppend)!
    expect(decodeURIComponent(appended.path)).toBe("/v4/spreadsheets/book/values/'Ada''s sheet'!A1:C1:append")
    expect(Object.fromEntries(appended.query)).toEqual({
      valueInputOption: 'USER_ENTERED',
      insertDataOption: 'INSERT_ROWS',
    })
  })

  test('adds columns, leaves values out, or writes nothing, as it is told', async () => {
    const { act, rows, vendor } = await startBook(PEOPLE())
    const { error } = await act('appendRows', { rows: [{ Name: 'Cy' }, { Nme: 1 }] })
    expect(error).toBe('rows[1]: the sheet has no column "Nme"')
    expect(vendor.asked.every(({ method }) => method === 'GET')).toBe(true)
    await act('appendRows', { rows: [{ Name: 'Cy', Nme: 1 }], extra: 'ignore' })
    await act('appendRows', { rows: [{ Name: 'Dan', Tag: 't', row_number: 9 }], extra: 'add', input: 'RAW' })
    expect(rows()).toEqual([
      ['Name', 'Age', 'City', 'Tag'],
      ['Ada', 36, 'London'],
      ['Bob', 1_200, ''],
      ['Cy', '', ''],
      ['Dan', '', '', 't'],
    ])
  })

  test('gives an empty sheet its titles, and a narrow one its columns', async () => {
    const { act, rows, book } = await startBook({ "Ada's sheet": [] })
    book.sheets[0]!.columns = 1
    await act('appendRows', { rows: [{ a: 1, b: 2 }] })
    expect(rows()).toEqual([
      ['a', 'b'],
      [1, 2],
    ])
    expect(book.sheets[0]!.columns).toBe(2)
  })

  test.each(['cut', 'status'] as const)('never does it twice (%s)', async (how) => {
    const { act, rows, vendor } = await startBook(PEOPLE(), (asked, answer) => {
      const reply = answer()
      return isAppend(asked) ? (how === 'cut' ? 'cut' : { status: 500 }) : reply
    })
    const { status, output } = await act('appendRows', { rows: [{ Name: 'Cy' }] }, { onError: 'CONTINUE' })
    expect(status).toBe('FAILED')
    expect(output.error.type).toBe('OutcomeUnknown')
    expect(vendor.asked.filter(isAppend)).toHaveLength(1)
    expect(rows()).toHaveLength(4)
  })

  test('waits where there were too many requests', async () => {
    let busy = true
    const { act, rows } = await startBook(PEOPLE(), (asked, answer) => {
      if (!isAppend(asked) || !busy) return answer()
      busy = false
      return { status: 429, headers: { 'retry-after': '0' } }
    })
    expect(await act('appendRows', { rows: [{ Name: 'Cy' }] })).toMatchObject({
      status: 'SUCCESS',
      retries: 1,
    })
    expect(rows()).toHaveLength(4)
  })
})

describe('updating rows', () => {
  test('sets only the given values, found by what cells show or are', async () => {
    const { act, rows, vendor } = await startBook(PEOPLE())
    const given = [
      { Age: '1,200', City: 'Rome' },
      { Age: 36, Name: 'Ada L.', City: null },
    ]
    const { output } = await act('updateRows', { rows: given, key: 'Age' })
    expect(output.value).toEqual(given)
    await act('updateRows', { rows: [{ Age: 1200, Name: 'Bo' }], key: 'Age' })
    await act('updateRows', { rows: [{ row_number: 2, City: '' }], key: 'row_number' })
    expect(rows()).toEqual([
      ['Name', 'Age', 'City'],
      ['Ada L.', 36, ''],
      ['Bo', 1_200, 'Rome'],
    ])
    expect(vendor.asked.find(({ path }) => path.endsWith('values:batchUpdate'))?.json).toEqual({
      valueInputOption: 'USER_ENTERED',
      data: [
        { range: "'Ada''s sheet'!C3", values: [['Rome']] },
        { range: "'Ada''s sheet'!A2", values: [['Ada L.']] },
      ],
    })
  })

  test('is done again after an answer that was lost, and fails for keys that are not there', async () => {
    let lost = false
    const { act, rows } = await startBook(PEOPLE(), (asked, answer) => {
      const reply = answer()
      if (lost || !asked.path.endsWith('values:batchUpdate')) return reply
      lost = true
      return 'cut'
    })
    const bob = { rows: [{ Name: 'Bob', Age: 3 }], key: 'Name' }
    expect(await act('updateRows', bob)).toMatchObject({ status: 'SUCCESS', retries: 1 })
    expect(rows()[2]).toEqual(['Bob', 3, ''])
    const none = { rows: [{ Name: 'Zed', Age: 3 }], key: 'Name' }
    expect((await act('updateRows', none)).error).toBe('rows[0]: no row has "Zed" in the column "Name"')
    expect((await act('updateRows', { ...none, missing: 'ignore' })).output.value).toEqual([])
    expect((await act('updateRows', { ...none, key: 'Nme' })).error).toBe(
      'key: the sheet has no column "Nme"',
    )
  })
})

describe('appending or updating rows', () => {
  test('finds what is there, and appends each new key once', async () => {
    const { act, rows } = await startBook(PEOPLE())
    const given = [
      { Name: 'Ada', Age: 37 },
      { Name: 'Cy', Age: 1 },
      { Name: 'Cy', City: 'Rome' },
    ]
    expect((await act('upsertRows', { rows: given, key: 'Name' })).output.value).toEqual(given)
    expect(rows()).toEqual([
      ['Name', 'Age', 'City'],
      ['Ada', 37, 'London'],
      ['Bob', 1_200, ''],
      ['Cy', 1, 'Rome'],
    ])
  })

  test('does not append again if the answer was lost, and finds the row the next time', async () => {
    let lost = false
    const { act, rows } = await startBook(PEOPLE(), (asked, answer) => {
      const reply = answer()
      if (lost || !isAppend(asked)) return reply
      lost = true
      return 'cut'
    })
    const cy = { rows: [{ Name: 'Cy', Age: 1 }], key: 'Name' }
    const { status, output } = await act('upsertRows', cy, { onError: 'CONTINUE' })
    expect({ status, type: output.error.type }).toEqual({ status: 'FAILED', type: 'OutcomeUnknown' })
    expect((await act('upsertRows', cy)).status).toBe('SUCCESS')
    expect(rows()).toHaveLength(4)
  })
})

test('cells, rows, columns and sheets', async () => {
  const { act, rows, book, vendor } = await startBook(PEOPLE())
  expect((await act('readCells', { range: 'A2:B3' })).output.values).toEqual([
    ['Ada', 36],
    ['Bob', 1_200],
  ])
  await act('writeCells', { range: 'C3', cells: [['Oslo']] })
  await act('deleteRows', { start: 2, count: 1 })
  expect(rows()).toEqual([
    ['Name', 'Age', 'City'],
    ['Bob', 1_200, 'Oslo'],
  ])
  await act('deleteColumns', { start: 'B', count: 2 })
  expect(rows()).toEqual([['Name'], ['Bob']])
  await act('clearCells', { keepFirstRow: true })
  expect(rows()).toEqual([['Name']])
  expect(
    await act('createSheet', { sheet: undefined, title: 'New', properties: { index: 1 } }),
  ).toMatchObject({
    error: '',
    output: {
      spreadsheetId: 'book',
      title: 'New',
    },
  })
  expect(
    (await act('createSheet', { sheet: undefined, title: 'New', existing: 'skip' })).output.value,
  ).toEqual([])
  await act('deleteSheet', { sheet: 'New' })
  expect(book.sheets.map(({ title }) => title)).toEqual(["Ada's sheet", 'Other'])
  const made = await vendor.act({
    ...{ connector: 'google-sheets', action: 'createSpreadsheet' },
    input: { title: 'T', sheets: [{ title: 'One' }] },
  })
  expect(made.output).toEqual({
    spreadsheetId: 'new',
    properties: { title: 'T' },
    sheets: [{ properties: { title: 'One' } }],
  })
})
