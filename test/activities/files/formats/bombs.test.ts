import { deflateSync } from 'node:zlib'
import { afterAll, expect, test } from 'vitest'
import { createEvaluator } from '../../../../activities/expressions/evaluator.ts'
import type { ReadingOptions } from '../../../../activities/files/formats/work.ts'
import { makeArchive, makePdf, makeWorkbook, writePage } from '../../../support/files/formats/archives.ts'

// Its processes have a low priority: beside other programs they may start late.
const evaluator = createEvaluator({ processes: 4, patienceMs: 120_000 })
afterAll(() => evaluator.close())

const scope = { input: null, nodes: {}, trigger: null, vars: {}, execution: { id: 'e-1', workflowId: 'w-1' } }

const MB = 1024 * 1024

/** How reading a file fails: the type and the message of its failure, or what it gives. */
function read(
  name: string,
  bytes: Uint8Array | string,
  options: ReadingOptions = {},
  team = 'bad',
): Promise<string> {
  const source = {
    name,
    mimeType: '',
    bytes: Buffer.from(bytes as Uint8Array),
    format: 'auto' as const,
    options,
  }
  return evaluator
    .for({ team })
    .workOnFile({ read: source }, name, scope)
    .then(
      (done) => JSON.stringify(done).slice(0, 1_000),
      ({ type, message }) => `${type}: ${message}`,
    )
}

test('an archive is refused by what it says and by what it has, and its paths do not leave it', {
  tags: 'long',
}, async () => {
  const zeros = new Uint8Array(80 * MB)
  const honest = makeArchive([{ name: 'a', bytes: zeros }])
  expect(honest.length).toBeLessThan(MB)
  expect(await read('a.zip', honest, { entry: 'a' })).toBe(
    'FileTooLarge: a.zip: a has 80 MB unpacked; at most 32 MB are taken out',
  )
  for (const says of [10, 31 * MB]) {
    const liar = makeArchive([{ name: 'a', bytes: zeros, says }])
    expect(await read('a.zip', liar, { entry: 'a' })).toMatch(
      /^InvalidInput: a\.zip: a is not a ZIP archive that can be read: too many bytes/,
    )
  }
  const many = makeArchive(
    Array.from({ length: 20_001 }, (_, at) => ({ name: `${at}`, bytes: '', method: 0 as const })),
  )
  expect(await read('a.zip', many)).toBe('FileTooLarge: a.zip has 20001 files; at most 20000 are read')
  expect(await read('a.zip', makeArchive([{ name: '../../etc/passwd', bytes: 'x' }]))).toMatch(
    /InvalidInput: .*invalid relative path/,
  )
  expect(
    await read('a.zip', makeArchive([{ name: '__proto__', bytes: 'x' }]), { entry: '__proto__' }),
  ).toMatch(/x/)
})

test('a workbook is refused for its size unpacked, for how far its cells reach, and for entities', {
  tags: 'long',
}, async () => {
  expect(await read('a.xlsx', makeWorkbook(' '.repeat(60 * MB)))).toBe(
    'FileTooLarge: a.xlsx has more than 32 MB unpacked, which is too much for a workbook',
  )
  const far = '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
  expect(await read('a.xlsx', makeWorkbook(far))).toBe(
    'FileTooLarge: a.xlsx has a sheet of 1048576 rows and 16384 columns; at most 1000000 cells are read',
  )
  // A million of empty cells.
  const letters = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ']
  const columns = ['', 'A', 'B', 'C'].flatMap((first) => letters.map((letter) => first + letter))
  const rows = Array.from({ length: 9_000 }, (_, row) =>
    columns.map((column) => `<c r="${column}${row + 1}"/>`).join(''),
  )
  const empty = makeWorkbook(rows.map((cells, row) => `<row r="${row + 1}">${cells}</row>`).join(''))
  expect(await read('a.xlsx', empty)).toMatch(/items\\":\[\]/)
  expect(await read('a.xlsx', makeWorkbook('<row r="1"><c><v>1</v></c></row>'))).toMatch(
    /cells without an address/,
  )
  expect(await read('a.xlsx', makeWorkbook('<row r="1"><c r="A0"><v>1</v></c></row>'))).toMatch(
    /cells without an address/,
  )
  for (const index of ['1', '-1', 'length', ''])
    expect(
      await read(
        'a.xlsx',
        makeWorkbook(`<row r="1"><c r="A1" t="s"><v>${index}</v></c></row>`, {
          strings: '<sst><si><t>a</t></si></sst>',
        }),
      ),
    ).toMatch(index === '' ? /items/ : /cells whose texts are missing/)
  const blank = '<row r="1"><c r="A1"><v>7</v></c></row><row r="2"><c r="A2"><v> </v></c></row>'
  expect(await read('a.xlsx', makeWorkbook(blank))).toMatch(/items\\":\[\]/)
  const entities = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>'
  expect(await read('a.xlsx', makeWorkbook('', { before: entities }))).toBe(
    'InvalidInput: a.xlsx has a document type, which no workbook needs',
  )
})

test('XML, JSON and HTML that are nested or expanded without end do no harm', async () => {
  const lol = Array.from({ length: 9 }, (_, i) => `<!ENTITY l${i + 1} "${`&l${i};`.repeat(10)}">`)
  const outcome = await read('a.xml', `<!DOCTYPE x [<!ENTITY l0 "lol">${lol.join('')}]><x>&l9;</x>`)
  expect(outcome.length).toBeLessThan(1_000)
  const deep = 200_000
  expect(await read('a.json', '['.repeat(deep) + ']'.repeat(deep))).toMatch(
    /^InvalidInput: a\.json is nested /,
  )
  expect(await read('a.json', '['.repeat(600) + ']'.repeat(600))).toBe(
    'InvalidInput: a.json is nested deeper than 500 levels',
  )
  expect(await read('a.xml', '<a>'.repeat(deep) + '</a>'.repeat(deep))).toMatch(
    /^(InvalidInput|FileTooLarge): a\.xml/,
  )
  expect(await read('a.html', '<b>'.repeat(deep))).toMatch(/^(InvalidInput|FileTooLarge): a\.html|"text/)
})

test('a PDF is refused for what it unpacks to, and one whose pages go round in circles', {
  tags: 'long',
}, async () => {
  const nested = deflateSync(Buffer.alloc(600 * MB, ' '))
  expect(nested.length).toBeLessThan(MB)
  expect(await read('a.pdf', makePdf([{ packed: nested }]))).toBe('FileTooLarge: a.pdf takes too much memory')
  const operators = deflateSync(Buffer.alloc(160 * MB, 'BT ET '))
  expect(await read('a.pdf', makePdf([{ packed: operators }]))).toMatch(/^FileTooLarge: a\.pdf takes /)
  const many = Buffer.from(
    makePdf([writePage('one')])
      .toString('latin1')
      .replace('/Count 1', '/Count 999999999'),
    'latin1',
  )
  expect(await read('a.pdf', many)).toMatch(/^(FileTooLarge|InvalidInput): a\.pdf|"text/)
  const circle = Buffer.from(
    makePdf([writePage('one')])
      .toString('latin1')
      .replace('/Kids[4 0 R]', '/Kids[2 0 R]'),
    'latin1',
  )
  expect(await read('a.pdf', circle)).toMatch(/^(FileTooLarge|InvalidInput): a\.pdf/)
  expect(
    await read(
      'a.pdf',
      makePdf([`BT /F1 18 Tf 1 0 0 1 20 150 Tm ${'(many words) Tj 1 0 0 1 20 150 Tm '.repeat(500_000)}`]),
    ),
  ).toMatch(/^FileTooLarge: a\.pdf|^OutputTooLarge/)
})

test('a CSV of one endless field, of a million columns, or of more than 8 MB is refused', {
  tags: 'long',
}, async () => {
  expect(await read('a.csv', `a,b\n"${'x'.repeat(15 * MB)}`)).toBe(
    'OutputTooLarge: The output would be larger than 8 MB',
  )
  expect(await read('a.csv', `a\n${'x'.repeat(15 * MB)}`)).toBe(
    'OutputTooLarge: The output would be larger than 8 MB',
  )
  expect(await read('a.csv', `${'a,'.repeat(500_000)}a\n1`)).toMatch(/^OutputTooLarge|written|"text"/)
  expect(await read('a.csv', 'x'.repeat(17 * MB))).toBe(
    'FileTooLarge: a.csv has 17 MB: at most 16 MB are read as a text',
  )
})

test('a calendar whose entries repeat for ever or are nested without end is read in bounds', {
  tags: 'long',
}, async () => {
  const event = (lines: string) =>
    `BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nDTSTART:20260101T000000Z\r\n${lines}\r\nEND:VEVENT\r\nEND:VCALENDAR`
  expect(await read('a.ics', event('RRULE:FREQ=SECONDLY;COUNT=2000000000;BYSECOND=0,1,2,3'))).toMatch(
    /"items/,
  )
  expect(await read('a.ics', `BEGIN:VCALENDAR\r\n${'BEGIN:VEVENT\r\n'.repeat(300_000)}`)).toMatch(
    /^(InvalidInput|FileTooLarge): a\.ics/,
  )
  expect(await read('a.ics', event(`SUMMARY:${'x\r\n '.repeat(1_000_000)}`))).toMatch(
    /^(InvalidInput|FileTooLarge|OutputTooLarge)|"(text|written)"/,
  )
})

test('the bombs of one team do not keep another waiting', { tags: 'long' }, async () => {
  const bomb = makePdf([{ packed: deflateSync(Buffer.alloc(600 * MB, ' ')) }])
  const bad = Array.from({ length: 4 }, () => read('bomb.pdf', bomb))
  for (let at = 0; at < 5; at++) expect(await read('a.csv', 'a\n1', {}, 'good')).toMatch(/items/)
  const over = await Promise.race([Promise.all(bad).then(() => 'over'), 'under way'])
  expect(over).toBe('under way')
  for (const outcome of await Promise.all(bad)) expect(outcome).toMatch(/^FileTooLarge/)
})
