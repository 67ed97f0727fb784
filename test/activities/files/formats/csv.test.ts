import { afterAll, expect, test } from 'vitest'
import { createEvaluator } from '../../../../activities/expressions/evaluator.ts'
import { findDelimiter } from '../../../../activities/files/formats/delimiters.ts'
import { createFormats, failureOf } from '../../../support/files/formats/reading.ts'

const evaluator = createEvaluator()
afterAll(() => evaluator.close())
const { read, write } = createFormats(evaluator)

test('the delimiter is the first that gives most records the same number of fields', () => {
  const cases: [text: string, delimiter: string, others: string[]][] = [
    ['Name, Vorname;Ort\nMeier Hans;Bonn\nKunz Eva;Ulm\n', ';', []],
    ['Name, Vorname;Ort\nMeier, Hans;Bonn\n', ';', [',']],
    ['Preis;Menge\n1,50;2\n3,20;4\n', ';', [',']],
    ['Preis;Menge\n1,50;2\n3;4\n', ';', []],
    ['a;b\n1,5;2,5\n3,5;4,5\n', ';', [',']],
    ['a\tb\n1,2\t3;4\n5\t6\n', '\t', []],
    ['a|b|c\n1|2|3\n', '|', []],
    ['id,text\n1,x;y\n2,z\n3,q\n', ',', []],
    ['"x;y;z",b\n"1;2",3\n', ',', []],
    ['"x,y";b\r\n"a\r\n;;b";2\r\n', ';', []],
    ['a;b\r1;2\r3;4', ';', []],
    ['\ufeffa;b\n\n\n1;2\n', ';', []],
    ['say "x;y"\tb\n1\t2\n', '\t', []],
    ['a""b;c\n1;2\n', ';', []],
    ['a;b', ';', []],
    ['name\nAnn\nBo, the second\n', ',', []],
    ['one column\n1\n', ',', []],
    ['', ',', []],
    ['id,tags\n1,a|b\n2,c|d\n', ',', ['|']],
    ['Name, Vorname;Ort\nMeier, Hans;Bonn\nKunz, Eva\n', ';', [',']],
    ['id,tags\n1,"a|b"\n2,"c|d"\n', ',', []],
    // The report's title and its foot are no rows of the table.
    ['Report of May\nid;n\n1;2\n3;4\n5;6\nin all: 3, as of May\n', ';', []],
    // Twenty records are looked at, not one more.
    [`${'1;2\n'.repeat(11)}${'1,2\n'.repeat(9)}${'1,2\n'.repeat(99)}`, ';', []],
    // A quote that nobody closes has no end.
    [`a;b\n1;2\n"${'x,y\n'.repeat(50_000)}`, ';', []],
    [`${'x'.repeat(70_000)};b\n1;2\n`, ',', []],
  ]
  for (const [text, delimiter, others] of cases)
    expect({ text: text.slice(0, 80), ...findDelimiter(text) }).toEqual({
      text: text.slice(0, 80),
      delimiter,
      others,
      rest: text,
    })
})

test('a delimiter that was guessed is in the output, and a doubt is a warning', async () => {
  expect(await read('a.csv', 'Name, Vorname;Ort\nMeier;Bonn\nKunz;Ulm\n')).toEqual({
    format: 'csv',
    delimiter: ';',
    items: [
      { 'Name, Vorname': 'Meier', Ort: 'Bonn' },
      { 'Name, Vorname': 'Kunz', Ort: 'Ulm' },
    ],
  })
  const doubtful = 'Name, Vorname;Ort\nMeier, Hans;Bonn\n'
  expect(await read('a.csv', doubtful)).toEqual({
    format: 'csv',
    delimiter: ';',
    items: [{ 'Name, Vorname': 'Meier, Hans', Ort: 'Bonn' }],
    warnings: ['Its cells were told apart by ";", but "," would do, too. Set delimiter to say which.'],
  })
  expect(await read('a.csv', doubtful, { delimiter: ',' })).toEqual({
    format: 'csv',
    delimiter: ',',
    items: [{ Name: 'Meier', 'Vorname;Ort': ' Hans;Bonn' }],
  })
})

test('what is written with any delimiter is read as the same without one', async () => {
  const items = [
    { note: 'a;b', tags: 'x|y' },
    { note: 'c;d', tags: 'z|"q"' },
    { note: '1,5\tx', tags: 'p|q' },
  ]
  for (const delimiter of [',', ';', '\t', '|'])
    for (const list of [items, items.map(({ note, tags }) => ({ note, tags, more: 'x' }))])
      expect(await read('a.csv', await write('csv', list, { delimiter }))).toEqual({
        format: 'csv',
        delimiter,
        items: list,
      })
  const notes = items.map(({ note }) => ({ note }))
  expect(await read('a.csv', await write('csv', notes))).toEqual({
    format: 'csv',
    delimiter: ',',
    items: notes,
  })
})

test('a line such as sep=; says the delimiter, and is no record', async () => {
  const items = [{ 'a,b': '1,2', c: '3' }]
  for (const start of ['sep=;\r\n', '\ufeffsep=;\n', 'SEP=;\r', '"sep=;"\n']) {
    expect(await read('a.csv', `${start}a,b;c\n1,2;3\n`)).toEqual({ format: 'csv', delimiter: ';', items })
    expect(await read('a.csv', `${start}a,b;c\n1,2;3\n`, { delimiter: ';' })).toMatchObject({ items })
  }
  expect(await read('a.csv', 'sep=^\na^b\n1^2')).toMatchObject({
    delimiter: '^',
    items: [{ a: '1', b: '2' }],
  })
  expect(await read('a.csv', 'sep=\t\na\tb\n1\t2')).toMatchObject({ items: [{ a: '1', b: '2' }] })
  expect(await read('a.csv', 'sep=;')).toMatchObject({ delimiter: ';', items: [] })
  expect(await read('a.csv', 'sep=ab,c\n1,2\n')).toMatchObject({ items: [{ 'sep=ab': '1', c: '2' }] })
})

test('stray quotes are refused, and taken with lenient', async () => {
  const cases: [line: string, cells: string[]][] = [
    ['5" pipe,2', ['5" pipe', '2']],
    ['"Smith" & Sons,2', ['"Smith" & Sons', '2']],
    ['"Joe "Bob" Smith",2', ['"Joe "Bob" Smith"', '2']],
    ['a,b"', ['a', 'b"']],
  ]
  for (const [line, cells] of cases) {
    const text = `a,b\n${line}\n`
    expect(await failureOf(read('a.csv', text))).toMatch(
      /^InvalidInput: a\.csv is not valid CSV: .*quote.*; lenient takes stray quotes$/i,
    )
    expect(await read('a.csv', text, { lenient: true, header: false })).toMatchObject({
      items: [['a', 'b'], cells],
    })
  }
  const proper = 'a,b\n"1 ""x""","2\n3"\n'
  expect(await read('a.csv', proper, { lenient: true })).toEqual(await read('a.csv', proper))
  expect(await failureOf(read('a.csv', 'a,b\n"1,2', { lenient: true }))).toMatch(/Quote Not Closed/)
})

test('cells stay texts: long integers, leading zeros and spaces', async () => {
  const text = 'id,zip,n\n12345678901234567890,01067, 1e5 \n'
  expect(await read('a.csv', text)).toMatchObject({
    items: [{ id: '12345678901234567890', zip: '01067', n: ' 1e5 ' }],
  })
})

test('JSON keeps the digits of large numbers, with a warning', async () => {
  const text = '{"id": 9007199254740993, "ids": [12345678901234567890, 1], "n": 1.5}'
  expect(await read('a.json', text)).toEqual({
    format: 'json',
    value: { id: '9007199254740993', ids: ['12345678901234567890', 1], n: 1.5 },
    warnings: [
      '2 numbers are too large for JavaScript to hold exactly, the first one at the key "id": they are texts of their digits',
    ],
  })
  expect(await read('a.json', text, { largeNumbers: 'number' })).toMatchObject({
    value: { id: 9007199254740992, ids: [12345678901234567000, 1] },
    warnings: [expect.stringMatching(/were rounded$/)],
  })
})
