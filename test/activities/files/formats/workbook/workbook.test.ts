import { readFileSync } from 'node:fs'
import { afterAll, describe, expect, test } from 'vitest'
import { createEvaluator } from '../../../../../activities/expressions/evaluator.ts'
import { findBuiltIn, readFormatCode } from '../../../../../activities/files/formats/workbook/formatcodes.ts'
import { readIsoSerial, writeSerial } from '../../../../../activities/files/formats/workbook/serials.ts'
import { makeArchive, makeWorkbook } from '../../../../support/files/formats/archives.ts'
import { createFormats, failureOf } from '../../../../support/files/formats/reading.ts'

const evaluator = createEvaluator()
afterAll(() => evaluator.close())
const { read, write } = createFormats(evaluator)

const fixture = (name: string) => readFileSync(new URL(name, import.meta.url))
const pad = (number: number) => String(number).padStart(2, '0')

/** A workbook of one column, whose cells have these formats and values. */
function makeColumn(cells: [code: string | number, value: number | string][], properties = ''): Buffer {
  const codes = cells.map(([code], at) =>
    typeof code === 'number' ? '' : `<numFmt numFmtId="${164 + at}" formatCode="${escapeCode(code)}"/>`,
  )
  const ids = cells.map(([code], at) => `<xf numFmtId="${typeof code === 'number' ? code : 164 + at}"/>`)
  const rows = cells.map(
    ([, value], at) => `<row r="${at + 1}"><c r="A${at + 1}" s="${at}"><v>${value}</v></c></row>`,
  )
  return makeWorkbook(rows.join(''), {
    properties,
    styles: `<styleSheet><numFmts>${codes.join('')}</numFmts><cellStyleXfs><xf numFmtId="22"/></cellStyleXfs><cellXfs>${ids.join('')}</cellXfs><dxfs><dxf><numFmt numFmtId="164" formatCode="0"/></dxf></dxfs></styleSheet>`,
  })
}

const escapeCode = (code: string) =>
  code.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;')

async function readColumn(bytes: Buffer, dates?: 'number'): Promise<unknown[]> {
  const { items } = await read('a.xlsx', bytes, { header: false, ...(dates ? { dates } : {}) })
  return items.map(([cell]: unknown[]) => cell)
}

test('all minutes of a day are exact, with and without a day, as Excel stores them', async () => {
  const minutes = Array.from({ length: 1_440 }, (_, minute) => minute)
  const clock = (minute: number) => `${pad(Math.floor(minute / 60))}:${pad(minute % 60)}:00`
  for (const day of [1, 59, 61, 25_569, 45_292, 46_053, 2_958_465])
    for (const minute of minutes) {
      const text = writeSerial(Number(String(day + minute / 1_440)), 'moment', false)
      expect(text?.slice(11), `${day} ${minute}`).toBe(clock(minute))
    }
  const cells = minutes.flatMap((minute): [string, number][] => [
    ['h:mm', minute / 1_440],
    ['d.m.yy h:mm', 46_053 + minute / 1_440],
    ['[h]:mm', minute / 1_440],
  ])
  expect(await readColumn(makeColumn(cells))).toEqual(
    minutes.flatMap((minute) => [clock(minute), `2026-01-31T${clock(minute)}`, clock(minute)]),
  )
})

test('days are those of Excel in both calendars, and what is no day stays a number', async () => {
  const days: [number, string | number][] = [
    [0.5, '12:00:00'],
    [1, '1900-01-01T00:00:00'],
    [31, '1900-01-31T00:00:00'],
    [59, '1900-02-28T00:00:00'],
    [59.75, '1900-02-28T18:00:00'],
    [60, 60],
    [60.5, 60.5],
    [61, '1900-03-01T00:00:00'],
    [45_351, '2024-02-29T00:00:00'],
    [46_053.354_169_562_5, '2026-01-31T08:30:00.250'],
    [2_958_465.5, '9999-12-31T12:00:00'],
    [2_958_466, 2_958_466],
    [-1, -1],
    [1e300, 1e300],
  ]
  const column = makeColumn(days.map(([serial]) => [22, serial]))
  expect(await readColumn(column)).toEqual(days.map(([, text]) => text))
  expect((await read('a.xlsx', column, { header: false })).warnings).toEqual([
    "5 dates of Made are no day of the calendar, such as Excel's 29 February 1900, and stay numbers",
  ])
  expect(await readColumn(column, 'number')).toEqual(days.map(([serial]) => serial))
  for (const value of ['1', 'true', 'TRUE']) {
    const mac = makeColumn(
      [
        [22, 0],
        [22, 44_591.5],
        ['h:mm', 0.5],
        ['[h]:mm', 1.5],
      ],
      `date1904="${value}"`,
    )
    expect(await readColumn(mac)).toEqual([
      '1904-01-01T00:00:00',
      '2026-01-31T12:00:00',
      '12:00:00',
      '36:00:00',
    ])
    expect(await readColumn(mac, 'number')).toEqual([1_462, 46_053.5, 0.5, 1.5])
  }
  for (const value of ['0', 'false'])
    expect(await readColumn(makeColumn([[14, 46_053]], `date1904="${value}"`))).toEqual([
      '2026-01-31T00:00:00',
    ])
})

test('times that have passed go beyond days and below zero', async () => {
  const cells: [string | number, number, string][] = [
    [46, 1.5, '36:00:00'],
    ['[h]:mm', 0, '00:00:00'],
    ['[h]:mm', -0.0625, '-01:30:00'],
    ['[hh]:mm:ss.000', 100.000_011_574_074_07, '2400:00:01'],
    ['[mm]', 0.25, '06:00:00'],
    ['[ss]', 1 / 86_400, '00:00:01'],
    ['[s].000', 0.000_005_787_037, '00:00:00.500'],
    ['h:mm', -0.5, '-12:00:00'],
    ['h:mm', 0.999_999_999_99, '00:00:00'],
  ]
  expect(await readColumn(makeColumn(cells.map(([code, serial]) => [code, serial])))).toEqual(
    cells.map(([, , text]) => text),
  )
})

describe('a format says how a number is meant', () => {
  const kinds: [kind: string | undefined, codes: string[]][] = [
    [
      'day',
      [
        'yyyy\\-mm\\-dd;@',
        '[$-409]d\\-mmm\\-yyyy;@',
        '[$-F800]dddd\\,\\ mmmm\\ dd',
        'MMM-YY',
        'm',
        '[$-411]ge.m.d',
        'yyyy"年"m"月"',
        '[Red][DBNum1]d/m',
        '[$-804]aaaa',
        'd"h s"',
        'd\\h',
      ],
    ],
    ['moment', ['d.m.yy h:mm', 'yyyy-mm-ddThh:mm:ss', 'm/d/yy h:mm AM/PM', '[$-F400]d h']],
    [
      'time',
      [
        'h:mm',
        '[$-F400]h:mm:ss\\ AM/PM',
        'mm:ss.0',
        's.000',
        'hh"時"mm"分"',
        '上午/下午h"时"',
        '[Blue]h:mm A/P',
      ],
    ],
    ['elapsed', ['[h]:mm', '[HH]:MM:SS', '[mm]', '[ss].00', '[Red]-[h]:mm', 'd [h]']],
    [
      undefined,
      [
        'General',
        '0',
        '0.00" s"',
        '#,##0.00\\ [$EUR]',
        '[Red]0.0',
        '0.0E+00',
        '##0.0e-0',
        'General" days"',
        '@',
        '"d/m/y"',
        '\\d\\m',
        '_d0*y',
        '0 "h"',
        'G/通用格式',
        '',
        '# ??/??',
        '[$USD-409] #,##0',
      ],
    ],
  ]
  test.each(kinds)('%s', (kind, codes) => {
    for (const code of codes) expect({ code, kind: readFormatCode(code)(45_000.5) }).toEqual({ code, kind })
  })

  test('by its sections and their conditions', () => {
    const cases: [code: string, value: number, kind: string | undefined][] = [
      ['[<1]h:mm;[>=1]d/m/yy', 0.5, 'time'],
      ['[<1]h:mm;[>=1]d/m/yy', 2, 'day'],
      ['[>=1][h]:mm;0', 0.5, undefined],
      ['[h]:mm;-[h]:mm;"-"', 0, 'elapsed'],
      ['[h]:mm;[Red]-[h]:mm', -1, 'elapsed'],
      ['yyyy-mm-dd;;', 0, 'day'],
      ['0;d/m/yy', -1, 'day'],
      ['0;d/m/yy', 1, undefined],
      ['d/m/yy;0', -1, undefined],
      ['d/m/yy;@', -1, 'day'],
    ]
    for (const [code, value, kind] of cases)
      expect({ code, value, kind: readFormatCode(code)(value) }).toEqual({ code, value, kind })
  })

  test('and the built-in ones by their numbers', () => {
    const kindOf = (id: number) => readFormatCode(findBuiltIn(id) ?? '')(45_000)
    const dates = Array.from({ length: 60 }, (_, id) => id).filter((id) => kindOf(id) !== undefined)
    const from = (first: number, last: number) =>
      Array.from({ length: last - first + 1 }, (_, at) => first + at)
    expect(dates).toEqual([...from(14, 22), ...from(27, 36), ...from(45, 47), ...from(50, 58)])
    expect([14, 18, 20, 22, 45, 46, 47].map(kindOf)).toEqual([
      'day',
      'time',
      'time',
      'moment',
      'time',
      'elapsed',
      'time',
    ])
  })

  test('hostile formats take no more time than their length, and no more sections than Excel has', () => {
    const started = process.cpuUsage()
    for (const sign of ['[', ';', '"', '[s', '[<'])
      for (let at = 0; at < 1_000; at++) readFormatCode(`${at}y${sign.repeat(990 / sign.length)}`)(1)
    // With 2,000 sections a format, or a look for each bracket's end, it was 20 s.
    expect(process.cpuUsage(started).user).toBeLessThan(4_000_000)
    expect(readFormatCode(`0;0;0;0${';yyyy'.repeat(100)}`)(45_000)).toBeUndefined()
    expect(readFormatCode('yyyy;"-"yyyy;"none";@')(45_000)).toBe('day')
  })
})

test('dates in ISO 8601, texts, long numbers and formulas are read as they are meant', async () => {
  const rows =
    '<row r="1"><c r="A1" t="d"><v>2026-01-31T08:30:00.25</v></c><c r="B1" t="d" s="1"><v>2026-01-31</v></c><c r="C1" t="d"><v>12:30</v></c></row>' +
    '<row r="2"><c r="A2" t="s"><v>0</v></c><c r="B2" t="s"><v>1</v></c><c r="C2" t="str"><f>A1</f><v>_x000D_&#10;x</v></c></row>' +
    '<row r="3"><c r="A3"><v>9007199254740993</v></c><c r="B3"><v>9007199254740992</v></c><c r="C3"><v>1.2345678901234567E+19</v></c></row>' +
    '<row r="4"><c r="A4" s="1"><f>NOW()</f><v>46053.5</v></c><c r="B4" t="b"><v>0</v></c><c r="C4" t="n"><v> 7 </v></c></row>' +
    '<row r="1048576"/>'
  const strings =
    '<si><r><t xml:space="preserve">rich </t></r><r><rPr><b/></rPr><t>text</t></r></si><si><t>東京</t><rPh sb="0" eb="2"><t>トウキョウ</t></rPh></si>'
  expect(await read('a.xlsx', makeWorkbook(rows, { strings }), { header: false })).toEqual({
    format: 'xlsx',
    sheet: 1,
    items: [
      ['2026-01-31T08:30:00.250', '2026-01-31T00:00:00', '12:30:00'],
      ['rich text', '東京', '\r\nx'],
      ['9007199254740993', 9007199254740992, 1.2345678901234567e19],
      ['2026-01-31T12:00:00', false, 7],
    ],
    warnings: ['1 number is too large for JavaScript to hold exactly: it is a text of its digits'],
  })
  expect(
    await read('a.xlsx', makeWorkbook(rows, { strings }), {
      header: false,
      range: 'A3:A3',
      largeNumbers: 'number',
    }),
  ).toMatchObject({ items: [[9007199254740992]], warnings: [expect.stringMatching(/was rounded$/)] })
  expect(readIsoSerial('1900-02-28', false)).toBe(59)
  expect(readIsoSerial('1900-03-01', false)).toBe(61)
  expect(readIsoSerial('1904-01-02', true)).toBe(1)
  expect(readIsoSerial('soon', false)).toBeUndefined()
})

test('a package with prefixes, absolute paths and names of its own is read', async () => {
  const relations = 'http://purl.oclc.org/ooxml/officeDocument/relationships'
  const bytes = makeArchive([
    {
      name: 'xl/workbook.xml',
      bytes: `<x:workbook xmlns:x="urn:x" xmlns:q="${relations}"><x:sheets><x:sheet name="Chart" q:id="c"/><x:sheet name="One &amp; only" q:id="a"/></x:sheets></x:workbook>`,
    },
    {
      name: 'xl/_rels/workbook.xml.rels',
      bytes: `<Relationships><Relationship Id="c" Type="${relations}/chartsheet" Target="c.xml"/><Relationship Id="a" Type="${relations}/worksheet" Target="/other/data.xml"/><Relationship Id="s" Type="${relations}/styles" Target="../look.xml"/></Relationships>`,
    },
    {
      name: 'look.xml',
      bytes: '<x:styleSheet xmlns:x="urn:x"><x:cellXfs><x:xf numFmtId="20"/></x:cellXfs></x:styleSheet>',
    },
    {
      name: 'other/data.xml',
      bytes: `<x:worksheet xmlns:x="urn:x"><x:sheetData><x:row r="1"><x:c s="0" r="B2"><x:v>0.5</x:v></x:c></x:row></x:sheetData></x:worksheet>`,
    },
  ])
  for (const sheet of [1, 'One & only'])
    expect(await read('a.xlsx', bytes, { header: false, sheet, range: 'B2:B2' })).toMatchObject({
      items: [['12:00:00']],
    })
  expect(await failureOf(read('a.xlsx', bytes, { sheet: 'Chart' }))).toBe(
    'InvalidConfig: sheet is no sheet of a.xlsx: it has One & only',
  )
  expect(await failureOf(read('a.xlsx', makeWorkbook('<row r="1"><c r="A1"><v>1</c></row>')))).toMatch(
    /^InvalidInput: a\.xlsx is not XLSX that can be read: xl\/worksheets\/sheet1\.xml: line 1, column \d+: closes c where v is open/,
  )
})

test('workbooks of openpyxl and xlsxwriter are read as those wrote them', async () => {
  const zeiten = [
    {
      day: '2026-01-31T00:00:00',
      moment: '2026-01-31T08:30:15.250',
      time: '12:00:00',
      span: '36:00:00',
      back: null,
      n: 1.5,
      text: ' a\nb A ',
      '=': null,
      ok: true,
    },
    {
      day: '1904-03-01T00:00:00',
      moment: '2026-03-01T00:00:00',
      time: '23:59:59',
      span: '00:00:00',
      back: null,
      n: -7,
      text: null,
      '=': null,
      ok: false,
    },
  ]
  for (const name of ['openpyxl1900.xlsx', 'openpyxl1904.xlsx'])
    expect(await read(name, fixture(name))).toEqual({
      format: 'xlsx',
      sheet: 1,
      items: zeiten,
      warnings: ['2 formulas of Zeiten have no stored value, and are null: open and save the file in Excel'],
    })
  expect(await read('a.xlsx', fixture('xlsxwriter.xlsx'), { sheet: 'Formulas' })).toMatchObject({
    items: [{ a: '12:00:00', b: '36:00:00' }],
  })
  const { items } = await read('a.xlsx', fixture('xlsxwriter.xlsx'), { header: false, range: 'A2:I22' })
  const rows = new Map(items.map(([code, ...cells]: unknown[]) => [code, cells]))
  const day = '2026-01-31T08:30:00'
  const short = ['1900-01-01T12:00:00', '1900-02-28T00:00:00', 60, '1900-03-01T00:00:00', day]
  expect(rows.get('yyyy\\-mm\\-dd;@')).toEqual([0, 0.5, ...short, -1.5])
  expect(rows.get('d.m.yy h:mm')).toEqual(['00:00:00', '12:00:00', ...short, -1.5])
  expect(rows.get('h:mm')).toEqual(['00:00:00', '12:00:00', ...short, '-36:00:00'])
  const long = [
    '00:00:00',
    '12:00:00',
    '36:00:00',
    '1416:00:00',
    '1440:00:00',
    '1464:00:00',
    '1105280:30:00',
    '-36:00:00',
  ]
  for (const code of ['[h]:mm', '[mm]:ss', '[ss]', '[h]:mm;-[h]:mm;"-"'])
    expect(rows.get(code), code).toEqual(long)
  for (const code of ['"Day "0', '0.00" s"', '#,##0.00\\ [$EUR]', '[Red]0.0', '0.0E+00', 'General" days"'])
    expect(rows.get(code), code).toEqual([0, 0.5, 1.5, 59, 60, 61, 46053.35416666666, -1.5])
})

test('what is written for dates, times and long numbers is read back equal', async () => {
  const items = [
    {
      at: '2026-01-31T08:30:00.250',
      day: '2026-01-31',
      clock: '12:00:00',
      span: '-36:00:00',
      id: '12345678901234567890',
      zip: '01067',
      n: 0.1,
      big: 1e21,
      ok: true,
      none: null,
    },
  ]
  expect(await read('a.xlsx', await write('xlsx', items))).toEqual({ format: 'xlsx', sheet: 1, items })
})
