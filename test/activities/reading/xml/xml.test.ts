import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { buildXml } from '../../../../activities/reading/xml/build.ts'
import { findXmlEncoding } from '../../../../activities/reading/xml/encoding.ts'
import { parseXml } from '../../../../activities/reading/xml/parse.ts'

describe('what XML says', () => {
  const cases: [text: string, value: unknown, ordered?: unknown][] = [
    ['<a>&#x20AC;&#128512;&#x1F600;</a>', { a: '€😀😀' }, { a: { '#children': ['€😀😀'] } }],
    [
      '<a x="&#60;&#38;amp;&quot;&#9;">&lt;&gt;&amp;&apos;&quot;</a>',
      { a: { '@x': '<&amp;"\t', '#text': '<>&\'"' } },
    ],
    ['<a><![CDATA[ <b>&amp; ]]></a>', { a: ' <b>&amp; ' }, { a: { '#children': [' <b>&amp; '] } }],
    ['<a>x<![CDATA[<]]>y<!-- no --> z</a>', { a: 'x<y z' }, { a: { '#children': ['x<y z'] } }],
    [
      '<p>Hello <b>big</b> <i>bold</i> world</p>',
      { p: { b: 'big', i: 'bold', '#text': ['Hello ', ' ', ' world'] } },
      {
        p: {
          '#children': [
            'Hello ',
            { b: { '#children': ['big'] } },
            ' ',
            { i: { '#children': ['bold'] } },
            ' world',
          ],
        },
      },
    ],
    [
      '<p id="1">One<br/></p>',
      { p: { '@id': '1', br: '', '#text': 'One' } },
      { p: { '@id': '1', '#children': ['One', { br: { '#children': [] } }] } },
    ],
    [
      '<l>\n  <i>1</i>\n  <k/>\n  <i> 2 </i>\n</l>',
      { l: { i: ['1', '2'], k: '' } },
      {
        l: {
          '#children': [
            { i: { '#children': ['1'] } },
            { k: { '#children': [] } },
            { i: { '#children': [' 2 '] } },
          ],
        },
      },
    ],
    ['<a>&#32; x&#10;</a>', { a: '  x\n' }],
    ['<a> \n </a>', { a: '' }, { a: { '#children': [' \n '] } }],
    [
      '<a xml:space="preserve"> x <b> y </b></a>',
      { a: { '@xml:space': 'preserve', '#text': ' x ', b: ' y ' } },
    ],
    ['<a>1\r\n2\r3&#13;</a>', { a: '1\n2\n3\r' }],
    ["<a x='a\r\n\tb&#10;&#13;'/>", { a: { '@x': 'a  b\n\r' } }],
    ['<n:a xmlns:n="urn:x" n:y="1"><n:b/></n:a>', { 'n:a': { '@xmlns:n': 'urn:x', '@n:y': '1', 'n:b': '' } }],
    ['<ß-1.ö>x</ß-1.ö>', { 'ß-1.ö': 'x' }],
    ['<a><__proto__>1</__proto__></a>', { a: JSON.parse('{"__proto__": "1"}') }],
    [
      '<?xml version="1.0" encoding="utf-8"?>\n<?style href="a.css" type="b"?><!-- c --><a/>\n<?go on?>\n',
      {
        '?xml': { '@version': '1.0', '@encoding': 'utf-8' },
        '?style': { '@href': 'a.css', '@type': 'b' },
        a: '',
        '?go': 'on',
      },
    ],
    ['\ufeff<a>12345678901234567890</a>', { a: '12345678901234567890' }],
    [
      '<!DOCTYPE a SYSTEM "a.dtd" [<!ELEMENT a ANY><!-- c --><?p q?><!ATTLIST a x CDATA #IMPLIED>]><a/>',
      { a: '' },
    ],
  ]
  test.each(cases)('%s', (text, value, ordered) => {
    expect(parseXml(text)).toEqual(value)
    if (ordered) expect(parseXml(text, { order: true })).toEqual(ordered)
    // What is written of it is read as the same.
    for (const order of [false, true]) {
      const read = parseXml(text, { order })
      const again = parseXml(buildXml(read, { document: true }), { order })
      expect(withoutEncoding(again)).toEqual(withoutEncoding(read))
    }
  })
})

test('what is not well-formed is refused with its place', () => {
  const cases: [text: string, problem: RegExp][] = [
    ['<a/><b/>', /^line 1, column 5: has a second root element, b/],
    ['<a>\n</a>\ntext', /^line 2, column 5: has text outside of its root element/],
    ['text<a/>', /text outside/],
    ['<a/><![CDATA[x]]>', /CDATA section outside/],
    ['', /has no root element/],
    ['<!-- c -->', /has no root element/],
    ['<a>&nbsp;</a>', /has the entity &nbsp;: only those of XML itself/],
    ['<a>&toString;</a>', /has the entity/],
    ['<a>&#0;</a>', /&#0;, which is no character/],
    ['<a>&#xD800;</a>', /no character/],
    ['<a>&#x110000;</a>', /no character/],
    ['<a>&#99999999999999999999;</a>', /no character/],
    ['<a>\u0000</a>', /U\+0000/],
    ['<a>\ud800</a>', /U\+D800/],
    ['<a>AT&T</a>', /a & begins no reference/],
    ['<a>1 < 2</a>', /a < begins no tag/],
    ['<a x="<"/>', /not complete/],
    ['<a x=1/>', /not complete/],
    ['<a x/>', /not complete/],
    ['<a x="1"y="2"/>', /no space before it/],
    ['<a x="1" x="2"/>', /attribute x comes twice/],
    ['<a>]]></a>', /\]\]>/],
    ['<a><!-- a -- b --></a>', /a comment has --/],
    ['<a><b></a>', /closes a where b is open/],
    ['<a>', /ends before a is closed/],
    ['</a>', /closes a, which is not open/],
    [' <?xml version="1.0"?><a/>', /XML declaration may only come first/],
    ['<?xml version="2.0"?><a/>', /invalid XML declaration/],
    ['<?xml encoding="utf-8"?><a/>', /invalid XML declaration/],
    ['<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', /document type with entities/],
    ['<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>', /document type with entities/],
    ['<!DOCTYPE a [<!ENTITY % b "c"> %b;]><a/>', /document type with entities/],
    ['<!DOCTYPE a [<!ATTLIST a x CDATA "1">]><a/>', /default values/],
    ['<a/><!DOCTYPE a>', /not at its place/],
    ['<a>'.repeat(2_000), /nested more than 1000 levels/],
  ]
  for (const [text, problem] of cases) expect(() => parseXml(text), text.slice(0, 60)).toThrow(problem)
})

test('any value of the shape that is read is written and read as the same', () => {
  const character = fc.constantFrom(...' \n\r\tab<>&"\']😀€\u0085'.match(/./gsu)!)
  const text = fc.string({ unit: character, maxLength: 6 })
  const name = fc.constantFrom('a', 'b', 'c:d', 'ä')
  const { element } = fc.letrec<{ element: unknown; child: unknown }>((tie) => ({
    element: fc.record({ '@x': text, '#children': fc.array(tie('child'), { maxLength: 4 }) }),
    child: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      text,
      fc.dictionary(name, tie('element'), { minKeys: 1, maxKeys: 1 }),
    ),
  }))
  fc.assert(
    fc.property(element, (root) => {
      // What parse gives is what must come back: texts that touch are one, and what is empty is nothing.
      const written = buildXml({ root })
      const ordered = parseXml(written, { order: true })
      expect(parseXml(buildXml(ordered), { order: true })).toEqual(ordered)
      const plain = parseXml(written)
      expect(parseXml(buildXml(plain))).toEqual(plain)
      expect(textsOf(ordered)).toBe(textsOf({ root }))
    }),
    { numRuns: 500 },
  )
})

test('what XML cannot have is not written', () => {
  const cases: [value: Record<string, unknown>, problem: RegExp][] = [
    [{ a: '\u0001' }, /U\+0001/],
    [{ a: { '@x': '\ud800' } }, /U\+D800/],
    [{ 'a b': 1 }, /"a b" is not a valid name/],
    [{ a: { '@x y': 1 } }, /not a valid name/],
    [{ '@x': 1 }, /an attribute needs an element/],
    [{ a: { '?p': 'x ?> y' } }, /which ends it/],
  ]
  for (const [value, problem] of cases) expect(() => buildXml(value)).toThrow(problem)
  for (const value of [{ a: 1, b: 2 }, { a: [1, 2] }, { '#text': 'x', a: 1 }, {}])
    expect(() => buildXml(value, { document: true })).toThrow(/one root element/)
})

test('numbers, booleans, null and declarations are written', () => {
  const value = {
    root: { n: 1.5, ok: false, none: null, list: [1, [2]], '@a': true },
    '?xml': { '@version': '1.0', '@encoding': 'latin1' },
  }
  expect(buildXml(value, { document: true })).toBe(
    '<?xml version="1.0" encoding="UTF-8"?>\n<root a="true">\n  <n>1.5</n>\n  <ok>false</ok>\n  <none/>\n  <list>1</list>\n  <list>2</list>\n</root>\n',
  )
})

test('the encoding is that of the mark, else that of the declaration', () => {
  const declared = '<?xml version="1.0" encoding="ISO-8859-1"?><a/>'
  expect(findXmlEncoding(Buffer.from(declared))).toBe('windows-1252')
  expect(findXmlEncoding(Buffer.from(`\ufeff${declared}`))).toBe('utf-8')
  expect(findXmlEncoding(Buffer.from(`\ufeff${declared}`, 'utf16le'))).toBe('utf-16le')
  expect(findXmlEncoding(Buffer.from('<?xml version="1.0" encoding="UTF-16"?><a/>'))).toBeUndefined()
  expect(findXmlEncoding(Buffer.from('<a/>'))).toBeUndefined()
})

function withoutEncoding(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value).replace(/"@encoding":"[^"]*"/, '"@encoding":""'))
}

/** All texts in their order, as white space between elements alone may be left out. */
function textsOf(value: unknown): string {
  if (typeof value === 'string') return value.replace(/[ \t\n]/g, '')
  return Object.entries(Object(value))
    .map(([key, child]) => (key.startsWith('@') ? '' : textsOf(child)))
    .join('')
}

describe('instructions', () => {
  test.each([
    ['a="1" b = \'2\'', { '@a': '1', '@b': '2' }],
    ['a="1" and more', 'a="1" and more'],
    ['plain', 'plain'],
    ['', ''],
  ])('%s', (data, wanted) => {
    expect(parseXml(`<r/><?i ${data}?>`)['?i']).toEqual(wanted)
  })

  test('many long ones without a pair take no more time than their length', () => {
    const started = process.cpuUsage()
    const text = `<r>${`<?i ${'b'.repeat(1_990)}?>`.repeat(1_000)}</r>`
    expect((parseXml(text) as { r: { '?i': string[] } }).r['?i']).toHaveLength(1_000)
    // Where each character of the data was tried as a beginning, it was 5 s.
    expect(process.cpuUsage(started).user).toBeLessThan(1_500_000)
  })
})
