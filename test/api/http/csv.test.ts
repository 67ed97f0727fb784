import { parse } from 'csv-parse/sync'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { writeCsvRecord } from '../../../api/http/csv.ts'

const FORMULA = /^'*(?:[\t\r\n]|\s*[=+\-@\uff1d\uff0b\uff0d\uff20])/

/** What a reader does to get the original strings back. */
const rearm = (cell: string) => (cell.startsWith("'") && FORMULA.test(cell.slice(1)) ? cell.slice(1) : cell)

test.each([
  ['plain', 'plain'],
  ['a,b', '"a,b"'],
  ['say "x"', '"say ""x"""'],
  ['a\nb', '"a\nb"'],
  ['a\rb', '"a\rb"'],
  [' a ', '" a "'],
  ['', '""'],
  [null, ''],
  [-5, '-5'],
  [0, '0'],
  ['-5', "'-5"],
  ['=1+1', "'=1+1"],
  ['@a', "'@a"],
  ['+a', "'+a"],
  ['\ta', "'\ta"],
  ['  =1', "'  =1"],
  ["'=1", "''=1"],
  ["it's", "it's"],
  ["'quoted'", "'quoted'"],
  ['＝1', "'＝1"],
  ['a\n\\.\nb', '"a\n\\. \nb"'],
  ['日本 😀', '日本 😀'],
] as const)('%j is written as %j', (cell, written) => expect(writeCsvRecord([cell])).toBe(`${written}\r\n`))

test('another parser reads back what was written, and no string cell begins like a formula', () => {
  const piece = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom(
      '"',
      ',',
      '\r',
      '\n',
      '\r\n',
      "'",
      '=',
      '+',
      '-',
      '@',
      '\t',
      ' ',
      '\uFEFF',
      '＝',
      '\0',
      ';',
    ),
  )
  const text = fc.array(piece, { maxLength: 6 }).map((pieces) => pieces.join(''))
  const cell = fc.oneof(text, fc.integer(), fc.constant(null))
  const row = fc.array(cell, { minLength: 2, maxLength: 5 })
  fc.assert(
    fc.property(fc.array(row, { minLength: 1, maxLength: 5 }), (rows) => {
      fc.pre(!JSON.stringify(rows).includes('\\\\.'))
      const written = rows.map(writeCsvRecord).join('')
      const read = parse(written, {
        relax_column_count: true,
        record_delimiter: '\r\n',
        skip_empty_lines: false,
      })
      expect(read.map((cells: string[]) => cells.map(rearm))).toEqual(
        rows.map((cells) => cells.map((one) => (one === null ? '' : String(one)))),
      )
      for (const [i, cells] of read.entries()) {
        for (const [j, one] of cells.entries()) {
          if (typeof rows[i]![j] === 'string') expect(one).not.toMatch(/^(?:[\t\r\n]|\s*[=+\-@＝＋－＠])/)
        }
      }
    }),
    { numRuns: 1_000 },
  )
})
