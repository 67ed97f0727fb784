import { deflateSync } from 'node:zlib'
import { afterAll, expect, test } from 'vitest'
import { createEvaluator } from '../../../../activities/expressions/evaluator.ts'
import { makeArchive, makePdf, makeWorkbook, writePage } from '../../../support/files/formats/archives.ts'
import { type Asked, createFormats, failureOf } from '../../../support/files/formats/reading.ts'

const evaluator = createEvaluator()
afterAll(() => evaluator.close())

const scope = { input: null, nodes: {}, trigger: null, vars: {}, execution: { id: 'e-1', workflowId: 'w-1' } }
const { read, write } = createFormats(evaluator)
const failure = failureOf

test('CSV is read as by the CSV node, with the delimiter that fits its records', async () => {
  expect(await read('a.csv', 'id,name\n1,Ann\n2,"B, C"\n')).toEqual({
    format: 'csv',
    delimiter: ',',
    items: [
      { id: '1', name: 'Ann' },
      { id: '2', name: 'B, C' },
    ],
  })
  expect(await read('a.csv', '\ufeff"x,y";b\r\n1;2\r\n')).toMatchObject({ items: [{ 'x,y': '1', b: '2' }] })
  expect(await read('a.tsv', 'a\tb\n1\t2', { header: false })).toMatchObject({
    items: [
      ['a', 'b'],
      ['1', '2'],
    ],
  })
  expect(await read('a.csv', 'a;b\n1;2', { delimiter: ',' })).toMatchObject({ items: [{ 'a;b': '1;2' }] })
  expect(await read('a.csv', '')).toMatchObject({ items: [] })
  expect(await failure(read('a.csv', 'a,b\n"1,2'))).toMatch(/^InvalidInput: a\.csv is not valid CSV: /)
})

test('a text is decoded by its mark, by what it says of itself, as UTF-8, or with a warning as windows-1252', async () => {
  const text = 'Zoë €'
  const wide = Buffer.from(`\ufeff${text}`, 'utf16le')
  expect(await read('a.txt', text)).toEqual({ format: 'text', text })
  expect(await read('a.txt', `\ufeff${text}`)).toEqual({ format: 'text', text })
  expect(await read('a.txt', wide)).toEqual({ format: 'text', text })
  expect(await read('a.txt', Buffer.from(wide).swap16())).toEqual({ format: 'text', text })
  const plain = 'UTF-16 without a mark'
  expect(await read('a.txt', Buffer.from(plain, 'utf16le'))).toEqual({ format: 'text', text: plain })
  const latin = Buffer.from([0x5a, 0x6f, 0xeb, 0x20, 0x80])
  expect(await read('a.txt', latin)).toMatchObject({
    text,
    warnings: [expect.stringMatching(/not UTF-8.*windows-1252/)],
  })
  expect(await read('a.txt', latin, { encoding: 'windows-1252' })).toEqual({ format: 'text', text })
  const xml = Buffer.from('<?xml version="1.0" encoding="ISO-8859-1"?><a>Zo\xeb</a>', 'latin1')
  expect(await read('a.xml', xml)).toMatchObject({ format: 'xml', value: { a: 'Zoë' } })
  const html = Buffer.from('<html><meta charset="latin1"><p>Zo\xeb</p></html>', 'latin1')
  expect(await read('a.html', html)).toEqual({ format: 'html', text: 'Zoë' })
  expect(await failure(read('a.txt', wide.subarray(0, 5)))).toMatch(
    /InvalidInput: a\.txt is not valid utf-16le/,
  )
  expect(await failure(read('a.txt', latin, { encoding: 'utf-8' }))).toMatch(/a\.txt is not valid utf-8/)
  expect(await failure(read('a.txt', Buffer.from([0xff, 0xfe, 0, 0, 65, 0, 0, 0])))).toMatch(/UTF-32/)
})

test('JSON, XML and HTML have the shapes of their nodes', async () => {
  expect(await read('a.json', '[1,{"a":null}]')).toEqual({ format: 'json', value: [1, { a: null }] })
  expect(await failure(read('a.json', '{'))).toMatch(/^InvalidInput: a\.json is not valid JSON/)
  expect(await read('a.xml', '<a x="1"><b>one</b><b>2</b></a>')).toEqual({
    format: 'xml',
    value: { a: { '@x': '1', b: ['one', '2'] } },
  })
  expect(await failure(read('a.xml', '<a><b></a>'))).toMatch(/^InvalidInput: a\.xml is not valid XML/)
  const page = '<h1> Shop </h1><a href="/1">One</a>'
  const fields = { title: 'h1', link: { selector: 'a', attribute: 'href' } }
  expect(await read('a.html', page, { fields })).toEqual({
    format: 'html',
    values: { title: 'Shop', link: '/1' },
  })
})

test('the format is told by the bytes, then the type, then the name, then the text', async () => {
  const pdf = makePdf([writePage('Hello')])
  const zip = makeArchive([{ name: 'a.txt', bytes: 'a' }])
  const xlsx = await write('xlsx', [{ a: 1 }])
  const cases: [name: string, bytes: Uint8Array | string, mimeType: string, format: string][] = [
    ['wrong.csv', pdf, 'text/csv', 'pdf'],
    ['wrong.pdf', zip, 'application/pdf', 'zip'],
    ['none', xlsx, '', 'xlsx'],
    ['data.bin', 'a,b', 'text/csv; charset=utf-8', 'csv'],
    ['data.json', '{}', 'application/octet-stream', 'json'],
    ['feed', '<rss/>', 'application/rss+xml', 'xml'],
    ['none', '<?xml version="1.0"?><a/>', '', 'xml'],
    ['none', '<!DOCTYPE html><p>x', '', 'html'],
    ['none', ' {"a": 1}', '', 'json'],
    ['none', 'BEGIN:VCALENDAR\r\nVERSION:2.0\r\nEND:VCALENDAR\r\n', '', 'ics'],
    ['none', 'only words', '', 'text'],
  ]
  for (const [name, bytes, mimeType, format] of cases)
    expect({ name, format: (await read(name, bytes, { mimeType })).format }).toEqual({ name, format })
  const bad: [name: string, bytes: Uint8Array | string, asked: Asked, message: RegExp][] = [
    ['old.xls', Buffer.from('d0cf11e0a1b11ae1', 'hex'), {}, /is an old file of Excel.*\.xlsx/],
    ['a.csv', Buffer.from('1f8b0800', 'hex'), { mimeType: 'text/csv' }, /compressed with gzip/],
    ['a.png', Buffer.from('89504e470d0a1a0a', 'hex'), {}, /a PNG image/],
    ['a.bin', Buffer.from([0, 1, 2, 3]), {}, /is in no format that can be told/],
    ['a.pdf', 'words', {}, /a\.pdf is not PDF/],
    ['a.xlsx', zip, {}, /is not XLSX, but another kind of archive/],
    ['a.xlsx', '', {}, /is empty, and not XLSX/],
    ['a.csv', pdf, { format: 'csv' }, /is not CSV, but a PDF/],
  ]
  for (const [name, bytes, asked, message] of bad)
    expect(
      await failure(read(name, bytes, { ...(name === 'a.pdf' ? { format: 'pdf' } : {}), ...asked })),
    ).toMatch(message)
})

test('a workbook has the types of its cells, by sheet, range and header', async () => {
  const rows =
    '<row r="1"><c r="A1" t="inlineStr"><is><t>id</t></is></c><c r="B1" t="inlineStr"><is><t>when</t></is></c><c r="C1" t="inlineStr"><is><t>ok</t></is></c></row>' +
    '<row r="2"><c r="A2"><v>1.5</v></c><c r="B2" s="1"><v>45292.5</v></c><c r="C2" t="b"><v>1</v></c></row>' +
    '<row r="4"><c r="A4"><f>1+1</f><v>2</v></c><c r="B4"><f>A4</f></c><c r="C4" t="e"><v>#N/A</v></c></row>'
  const bytes = makeWorkbook(rows)
  expect(await read('a.xlsx', bytes)).toEqual({
    format: 'xlsx',
    sheet: 1,
    items: [
      { id: 1.5, when: '2024-01-01T12:00:00', ok: true },
      { id: 2, when: null, ok: null },
    ],
    warnings: [
      '1 formula of Made has no stored value, and is null: open and save the file in Excel',
      '1 cell of Made has an error such as #N/A, and is null',
    ],
  })
  expect(await read('a.xlsx', bytes, { dates: 'number', range: 'B1:C2', sheet: 'Made' })).toMatchObject({
    sheet: 'Made',
    items: [{ when: 45292.5, ok: true }],
  })
  expect(await read('a.xlsx', bytes, { header: false, range: 'a2:a4' })).toMatchObject({
    items: [[1.5], [null], [2]],
  })
  expect(await read('a.xlsx', bytes, { headerRow: 2 })).toMatchObject({
    items: [{ '1.5': 2, '2024-01-01T12:00:00': null }],
  })
  expect(await failure(read('a.xlsx', bytes, { sheet: 'Other' }))).toMatch(
    /^InvalidConfig: sheet is no sheet of a\.xlsx: .*Made/,
  )
  expect(await failure(read('a.xlsx', bytes, { sheet: 2 }))).toMatch(/^InvalidConfig: sheet is no sheet/)
  expect(await failure(read('a.xlsx', bytes, { headerRow: 9 }))).toMatch(/^InvalidConfig: headerRow/)
})

test('the text of a PDF comes by page; damaged, encrypted and scanned ones are told', async () => {
  const bytes = makePdf([writePage('Hello', 'World'), writePage('Second'), writePage('Third')])
  expect(await read('a.pdf', bytes)).toEqual({
    format: 'pdf',
    text: 'Hello\nWorld\n\nSecond\n\nThird',
    pages: [
      { page: 1, text: 'Hello\nWorld' },
      { page: 2, text: 'Second' },
      { page: 3, text: 'Third' },
    ],
    pageCount: 3,
    info: {},
  })
  const packed = deflateSync(writePage('Packed'))
  expect(await read('a.pdf', makePdf([{ packed }]))).toMatchObject({ text: 'Packed' })
  expect(await read('a.pdf', bytes, { pages: '3, 1-2' })).toMatchObject({
    pages: [{ page: 3 }, { page: 1 }, { page: 2 }],
  })
  expect(await failure(read('a.pdf', bytes, { pages: '2-4' }))).toMatch(
    /^InvalidConfig: pages names 2-4, but .* 1 to 3/,
  )
  expect(await read('a.pdf', makePdf(['']))).toMatchObject({
    text: '',
    warnings: [expect.stringMatching(/no text/)],
  })
  const key = '<0000000000000000000000000000000000000000000000000000000000000000>'
  const encrypted = makePdf(
    [writePage('x')],
    `/ID[<00><00>]/Encrypt<</Filter/Standard/V 1/R 2/P -4/O${key}/U${key}>>`,
  )
  expect(await failure(read('a.pdf', encrypted))).toBe(
    'InvalidInput: a.pdf is encrypted: it can only be read with a password',
  )
  expect(await failure(read('a.pdf', '%PDF-1.4\nnothing'))).toMatch(
    /^InvalidInput: a\.pdf is not a PDF that can be read/,
  )
})

test('an archive is listed, and a file of it is taken out', async () => {
  const bytes = makeArchive([
    { name: 'docs/', bytes: '' },
    { name: 'docs/a.txt', bytes: 'Hello' },
    { name: 'b.bin', bytes: 'x'.repeat(1000), method: 0 },
    { name: 'secret', bytes: 'x', flags: 1 },
    { name: 'twice', bytes: '1' },
    { name: 'twice', bytes: '2' },
  ])
  const { entries } = await read('a.zip', bytes)
  expect(entries.slice(0, 4)).toMatchObject([
    { name: 'docs/', directory: true },
    {
      name: 'docs/a.txt',
      bytes: 5,
      directory: false,
      encrypted: false,
      modified: '2026-01-01T00:00:00.000Z',
    },
    { name: 'b.bin', bytes: 1000, packed: 1000 },
    { encrypted: true },
  ])
  expect(await read('a.zip', bytes, { entry: 'docs/a.txt' })).toEqual({ format: 'zip', text: 'Hello' })
  const source = { name: 'a.zip', mimeType: '', bytes, format: 'zip' as const }
  const taken = await evaluator.workOnFile(
    { read: { ...source, options: { entry: 'docs/a.txt', as: 'file' } } },
    '',
    scope,
  )
  expect({ ...taken, bytes: Buffer.from((taken as { bytes: Uint8Array }).bytes).toString() }).toMatchObject({
    name: 'a.txt',
    bytes: 'Hello',
  })
  expect(await failure(read('a.zip', bytes, { entry: 'no' }))).toMatch(
    /^InvalidConfig: entry is no file in a\.zip; it has docs\/, docs\/a\.txt/,
  )
  expect(await failure(read('a.zip', bytes, { entry: 'secret' }))).toMatch(
    /^InvalidInput: a\.zip: secret is encrypted/,
  )
  expect(await failure(read('a.zip', bytes, { entry: 'twice' }))).toMatch(/2 files of the name twice/)
  expect(await failure(read('a.zip', bytes.subarray(0, -40)))).toMatch(
    /^InvalidInput: a\.zip is not a ZIP archive that can be read/,
  )
  const damaged = Buffer.from(makeArchive([{ name: 'a', bytes: 'Hello', method: 0 }]))
  damaged[33] = 0
  expect(await failure(read('a.zip', damaged, { entry: 'a' }))).toMatch(/checksum is wrong/)
})

test('a calendar gives its entries, and what repeats stays one entry with its rule', async () => {
  const text = [
    'BEGIN:VCALENDAR',
    'VERSION:2.0',
    'X-WR-CALNAME:Team',
    'BEGIN:VEVENT',
    'UID:1@x',
    'SUMMARY:Stand-up\\, daily',
    'DTSTART;TZID=Europe/Berlin:20260131T083000',
    'DTEND;TZID=Europe/Berlin:20260131T084500',
    'RRULE:FREQ=DAILY;COUNT=3',
    'EXDATE;TZID=Europe/Berlin:20260201T083000',
    'ATTENDEE;CN=Ann;PARTSTAT=ACCEPTED:mailto:ann@example.com',
    'END:VEVENT',
    'BEGIN:VTODO',
    'UID:2@x',
    'DUE:20260201T100000Z',
    'END:VTODO',
    'BEGIN:VEVENT',
    'UID:3@x',
    'DTSTART;VALUE=DATE:20260301',
    'END:VEVENT',
    'END:VCALENDAR',
  ].join('\r\n')
  expect(await read('a.ics', text)).toEqual({
    format: 'ics',
    calendar: 'Team',
    items: [
      {
        kind: 'event',
        uid: '1@x',
        summary: 'Stand-up, daily',
        start: '2026-01-31T08:30:00',
        end: '2026-01-31T08:45:00',
        allDay: false,
        timezone: 'Europe/Berlin',
        rule: 'FREQ=DAILY;COUNT=3',
        except: ['2026-02-01T08:30:00'],
        attendees: [{ address: 'ann@example.com', name: 'Ann', status: 'ACCEPTED' }],
      },
      { kind: 'todo', uid: '2@x', due: '2026-02-01T10:00:00Z' },
      { kind: 'event', uid: '3@x', start: '2026-03-01', allDay: true },
    ],
  })
  expect(await failure(read('a.ics', 'BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VCALENDAR'))).toMatch(
    /^InvalidInput: a\.ics is not a calendar/,
  )
  expect(await failure(read('a.ics', 'words'))).toMatch(/^InvalidInput: a\.ics is not a calendar/)
})

test('what is written can be read again', async () => {
  const items = [
    { id: 1, name: 'Ann', tags: ['x'], ok: true },
    { id: 2, name: '=1+1', none: null },
  ]
  expect(String(await write('csv', items))).toBe('id,name,tags,ok,none\n1,Ann,"[""x""]",true,\n2,=1+1,,,\n')
  const options = { delimiter: ';', columns: ['name'], bom: true, escapeFormulas: true, header: false }
  expect(String(await write('csv', items, options))).toBe("\ufeffAnn\n'=1+1\n")
  expect(
    await read('a.xlsx', await write('xlsx', items, { sheet: 'People' }), { sheet: 'People' }),
  ).toMatchObject({
    items: [
      { id: 1, name: 'Ann', tags: '["x"]', ok: true, none: null },
      { id: 2, name: '=1+1', tags: null, ok: null, none: null },
    ],
  })
  expect(String(await write('json', items[0], { indent: 2 }))).toBe(JSON.stringify(items[0], null, 2))
  expect(String(await write('xml', { a: { '@x': '1', b: 'two' } }))).toBe('<a x="1">\n  <b>two</b>\n</a>\n')
  expect(String(await write('html', '<p>x</p>'))).toBe('<p>x</p>')
  expect(String(await write('text', 'Zoë'))).toBe('Zoë')
  expect((await write('base64', 'data:image/png;base64,/+8=')).toString('hex')).toBe('ffef')
  const event = {
    uid: 'u',
    summary: 'A, b',
    start: '2026-01-31T08:30:00',
    end: '2026-01-31T09:00:00',
    timezone: 'Europe/Berlin',
    rule: 'FREQ=DAILY;COUNT=2',
  }
  const more = [{ start: '2026-02-01', stamp: '2026-01-01T00:00:00Z' }, { start: '2026-02-01T08:00:00.000Z' }]
  const written = await read('a.ics', await write('ics', [event, ...more]))
  expect(written.items).toMatchObject([
    event,
    { start: '2026-02-01', allDay: true, stamp: '2026-01-01T00:00:00Z' },
    { start: '2026-02-01T08:00:00Z' },
  ])
})

test('data that a format cannot have is refused, with all that is wrong in an event', async () => {
  expect(await failure(write('base64', 'no base64!'))).toMatch(
    /^InvalidInput: data must be a string of base64/,
  )
  expect(await failure(write('xml', [1]))).toMatch(/^InvalidInput: data must be an object/)
  expect(await failure(write('xml', { 'a b': 1 }))).toMatch(
    /^InvalidInput: data cannot be written as XML: "a b"/,
  )
  expect(await failure(write('xlsx', [{ a: 'x'.repeat(32_768) }]))).toMatch(
    /^InvalidInput: data has a text of 32768 characters/,
  )
  expect(await failure(write('ics', [{ start: 'soon', rule: 'x', title: 1, end: 2 }]))).toBe(
    'InvalidInput: the event at index 0: title is no key of an event; ' +
      'start must be a date such as 2026-01-31, 2026-01-31T08:30:00 or 2026-01-31T08:30:00Z; end must be a string; ' +
      'rule must be one of iCalendar, such as FREQ=DAILY;COUNT=3',
  )
  expect(await failure(write('ics', [{}]))).toMatch(/start is required/)
})

test('no text of an event can add a line to its calendar', async () => {
  const event = { start: '2026-01-31', summary: 'a\r\nATTACH:b\rc', description: 'a\tb' }
  const written = (await write('ics', [event])).toString()
  expect(written.split('\r\n').map((line) => line.split(/[:;]/)[0])).toEqual(
    'BEGIN VERSION PRODID BEGIN UID DTSTAMP DTSTART SUMMARY DESCRIPTION END END '.split(' '),
  )
  expect(written).toContain('SUMMARY:a\\nATTACH:b\\nc\r\n')
  const line = 'a\r\nATTACH:x'
  const faults = 'uid url status timezone organizer rule'
    .split(' ')
    .map(async (key) => failure(write('ics', [{ start: '2026-01-31T08:00:00', [key]: line }])))
  for (const fault of await Promise.all(faults))
    expect(fault).toMatch(/^InvalidInput: the event at index 0: \w+ must be a single line/)
  expect(await failure(write('ics', [{ start: '2026-01-31', summary: 'a\0b' }]))).toMatch(
    /summary must not have control characters/,
  )
})

test('a workbook keeps its texts as they are, and has no more columns than Excel reads', async () => {
  const items = [{ a: 'b\u0001\0\u001f', b: '_x0041_ _x_ __x005f_', c: 'x\r\ny\tz' }]
  expect(await read('a.xlsx', await write('xlsx', items))).toMatchObject({ items })
  const wide = Object.fromEntries(Array.from({ length: 16_385 }, (_, at) => [`c${at}`, 1]))
  for (const rows of [[wide], [Object.keys(wide)]])
    expect(await failure(write('xlsx', rows))).toBe(
      'InvalidInput: data has 16385 columns; a sheet has at most 16384',
    )
})
