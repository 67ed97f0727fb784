import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { makeArchive, makeWorkbook } from '../../support/files/formats/archives.ts'
import { keep } from '../../support/keep.ts'
import { nodeOf, shareRunning } from '../../support/running.ts'

const running = await keep(shareRunning())

type Config = Record<string, unknown>
type Step = [type: string, config: Config]

/** Executes these nodes one after the other. */
function chain(steps: Step[], data: Config = {}) {
  const nodes = steps.map(([type, config], at) => ({ id: `n${at}`, type, config }))
  const sources = ['start', ...nodes.map(({ id }) => id)]
  return running.run(
    {
      nodes: [{ id: 'start', type: 'MANUAL_TRIGGER', config: {} }, ...nodes],
      edges: nodes.map(({ id }, at) => ({ source: sources[at]!, target: id })),
    },
    data,
  )
}

/** The output of the last of these nodes, or why it failed. */
async function outcome(steps: Step[], data?: Config): Promise<unknown> {
  const node = nodeOf(await chain(steps, data), `n${steps.length - 1}`)
  return node.status === 'SUCCESS' ? node.outputData : node.errorMessage
}

/** The faults that saving a node with this config reports, each with its path in the config. */
async function faultsOf(type: string, config: Config): Promise<string[]> {
  const json = { name: 'w', teamId: running.teamId, nodes: [{ id: 'n', type, config }], edges: [] }
  const response = await running.request('/api/workflows', { method: 'POST', as: running.admin, json })
  expect(response.status, type).toBe(400)
  const { errors } = (await response.json()) as { errors: { path: string; message: string }[] }
  return errors.map(({ path, message }) => `${path.replace('nodes[0].config.', '')}: ${message}`)
}

test('a node writes a file of its input, and the next one reads it', async () => {
  const items = [
    { id: 1, name: 'Ann' },
    { id: 2, name: 'Bo' },
  ]
  const file = {
    id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    name: 'people.csv',
    mimeType: 'text/csv',
    bytes: 19,
  }
  const run = await chain(
    [
      ['CONVERT_TO_FILE', { format: 'csv', name: '{{ $input.what }}.csv', data: '{{ $input.items }}' }],
      ['EXTRACT_FROM_FILE', {}],
    ],
    { what: 'people', items },
  )
  expect(run.status, run.errorMessage ?? '').toBe('SUCCESS')
  expect(nodeOf(run, 'n0').outputData).toEqual({ file })
  const read = [
    { id: '1', name: 'Ann' },
    { id: '2', name: 'Bo' },
  ]
  expect(nodeOf(run, 'n1').outputData).toEqual({ format: 'csv', delimiter: ',', items: read })
  for (const [format, found] of [
    ['xlsx', { items }],
    ['json', { value: { items } }],
  ] as const)
    expect(
      await outcome(
        [
          ['CONVERT_TO_FILE', { format }],
          ['EXTRACT_FROM_FILE', {}],
        ],
        { items },
      ),
    ).toMatchObject({ format, ...found })
})

test('the file may lie deep in the input, and be of an archive', async () => {
  const bytes = makeArchive([{ name: 'in/data.csv', bytes: 'a\n1\n' }])
  const data = bytes.toString('base64')
  expect(
    await outcome([
      ['CONVERT_TO_FILE', { format: 'base64', data, name: 'all.zip' }],
      ['SET', { values: { deep: { list: [1, '{{ $input }}'] } } }],
      ['EXTRACT_FROM_FILE', { entry: '{{ "in/data.csv" }}', as: 'file' }],
      ['EXTRACT_FROM_FILE', { file: '{{ $input }}', header: false }],
    ]),
  ).toEqual({ format: 'csv', delimiter: ',', items: [['a'], ['1']] })
})

test('what is wrong with a file or its data is the failure of the node', async () => {
  const text: Step = ['CONVERT_TO_FILE', { format: 'text', data: 'words', name: 'a.pdf' }]
  expect(await outcome([text, ['EXTRACT_FROM_FILE', { format: 'pdf' }]])).toMatch(/^a\.pdf is not PDF/)
  expect(await outcome([text, ['EXTRACT_FROM_FILE', { format: 'json' }]])).toMatch(
    /^a\.pdf is not valid JSON/,
  )
  expect(await outcome([['EXTRACT_FROM_FILE', {}]])).toBe('file is not set, and the input has no file')
  expect(await outcome([['EXTRACT_FROM_FILE', { file: '{{ $input.none }}' }]])).toMatch(
    /^file must be a file/,
  )
  const foreign = {
    file: { id: '6f1c3f5e-0000-4000-8000-000000000000', name: 'x', mimeType: 'text/plain', bytes: 1 },
  }
  expect(await outcome([['EXTRACT_FROM_FILE', {}]], foreign)).toMatch(/file that is none of this execution/)
  expect(await outcome([['EXTRACT_FROM_FILE', { pages: '{{ $input.p }}' }]], { ...foreign, p: 'all' })).toBe(
    'pages must be pages such as 1-3,7',
  )
  expect(await outcome([['CONVERT_TO_FILE', { format: 'base64', data: '!' }]])).toBe(
    'data must be a string of base64',
  )
  expect(await outcome([['CONVERT_TO_FILE', { format: 'text', data: '{{ $input.none }}' }]])).toBe(
    'data must have a value, but it is empty',
  )
  expect(await outcome([['CONVERT_TO_FILE', { format: 'json', name: '{{ "../x" }}' }]])).toBe(
    'name must be a name without / and \\',
  )
})

test('a large file is written by the process that reads it, and its warnings are in the record', async () => {
  const items = Array.from({ length: 20_000 }, (_, id) => ({ id, text: 'x'.repeat(40) }))
  const csv = ['id,text', ...items.map(({ id, text }) => `${id},${text}`)].join('\n')
  const latin = Buffer.from(`${csv}\n1,Zo\xeb`, 'latin1').toString('base64')
  const run = await chain(
    [
      ['CONVERT_TO_FILE', { format: 'base64', data: '{{ $input.latin }}', name: 'a.csv' }],
      ['EXTRACT_FROM_FILE', {}],
      ['TRANSFORM', { expression: '{"count": $count($input.items), "last": $input.items[20000].text}' }],
    ],
    { latin },
  )
  expect(nodeOf(run, 'n2').outputData).toEqual({ count: 20_001, last: 'Zoë' })
  expect(nodeOf(run, 'n1').warnings).toMatchObject([
    { path: 'config.file', message: expect.stringMatching(/windows-1252/) },
  ])
})

test('values of files stay true: delimiters, times, mixed text and long numbers', async () => {
  const read = async (name: string, bytes: Buffer | string, config: Config = {}) => {
    const data = Buffer.from(bytes as Buffer).toString('base64')
    const run = await chain([
      ['CONVERT_TO_FILE', { format: 'base64', data, name }],
      ['EXTRACT_FROM_FILE', config],
    ])
    const { status, outputData, errorMessage, warnings } = nodeOf(run, 'n1')
    return { output: status === 'SUCCESS' ? outputData : errorMessage, warnings: warnings ?? [] }
  }
  const warning = (message: RegExp) => [{ path: 'config.file', message: expect.stringMatching(message) }]
  expect(await read('a.csv', 'Name, Vorname;Ort\nMeier, Hans;Bonn\n')).toEqual({
    output: { format: 'csv', delimiter: ';', items: [{ 'Name, Vorname': 'Meier, Hans', Ort: 'Bonn' }] },
    warnings: warning(/^Its cells were told apart by ";", but "," would do, too/),
  })
  expect(await read('a.csv', 'sep=|\na|b\n5" pipe|2\n', { format: 'csv', lenient: true })).toEqual({
    output: { format: 'csv', delimiter: '|', items: [{ a: '5" pipe', b: '2' }] },
    warnings: [],
  })
  expect(await read('a.json', '{"id": 9007199254740993}')).toEqual({
    output: { format: 'json', value: { id: '9007199254740993' } },
    warnings: warning(/at the key "id": it is a text of its digits$/),
  })
  expect(await read('a.json', '{"id": 9007199254740993}', { largeNumbers: 'number' })).toEqual({
    output: { format: 'json', value: { id: 9007199254740992 } },
    warnings: warning(/at the key "id": it was rounded$/),
  })
  const styles =
    '<styleSheet><numFmts><numFmt numFmtId="164" formatCode="[h]:mm"/></numFmts><cellXfs><xf numFmtId="0"/><xf numFmtId="22"/><xf numFmtId="20"/><xf numFmtId="164"/></cellXfs></styleSheet>'
  const cells = [
    [1, 46_053 + 1 / 1_440],
    [2, 0.5],
    [3, 1.5],
  ].map(([style, value], at) => `<c r="${'ABC'[at]}1" s="${style}"><v>${value}</v></c>`)
  expect(
    await read('a.xlsx', makeWorkbook(`<row r="1">${cells.join('')}</row>`, { styles }), { header: false }),
  ).toEqual({
    output: { format: 'xlsx', sheet: 1, items: [['2026-01-31T00:01:00', '12:00:00', '36:00:00']] },
    warnings: [],
  })
  const xml = '<?xml version="1.0" encoding="ISO-8859-1"?><p>Zo\xeb &#x20AC; <b>1</b> &#128512;</p>'
  expect(
    (await read('a.xml', Buffer.from(xml, 'latin1'), { format: 'xml', order: true })).output,
  ).toMatchObject({ value: { p: { '#children': ['Zoë € ', { b: { '#children': ['1'] } }, ' 😀'] } } })
  expect(await read('a.xml', '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>')).toMatchObject({
    output: expect.stringMatching(
      /^a\.xml is not valid XML: line 1, column 14: has a document type with entities/,
    ),
  })
})

test('settings that a format does not know, or that are wrong, are refused when the workflow is saved', async () => {
  expect(
    await faultsOf('EXTRACT_FROM_FILE', { format: 'csv', sheet: 1, pages: '1', encoding: 'klingon' }),
  ).toEqual([
    'encoding: must be an encoding such as utf-8, utf-16le or windows-1252',
    'sheet: is only for the format xlsx',
    'pages: is only for the format pdf',
  ])
  expect(await faultsOf('EXTRACT_FROM_FILE', { format: 'csv', sheet: 1, pages: '1', as: 'file' })).toEqual([
    'sheet: is only for the format xlsx',
    'pages: is only for the format pdf',
    'as: is only for the format zip, gzip',
  ])
  expect(
    await faultsOf('EXTRACT_FROM_FILE', { format: 'doc', range: 'A1', headerRow: 0, pages: 'x' }),
  ).toHaveLength(4)
  expect(
    await faultsOf('EXTRACT_FROM_FILE', { format: 'text', lenient: true, order: true, largeNumbers: 'text' }),
  ).toEqual([
    'lenient: is only for the format csv',
    'order: is only for the format xml',
    'largeNumbers: is only for the format json, xlsx',
  ])
  expect(await faultsOf('CONVERT_TO_FILE', {})).toHaveLength(1)
  expect(await faultsOf('CONVERT_TO_FILE', { format: 'text', data: 'x', name: 'a/b' })).toEqual([
    'name: must be a name without / and \\',
  ])
  expect(await faultsOf('CONVERT_TO_FILE', { format: 'xml', sheet: 'a' })).toEqual([
    'sheet: is only for the format xlsx',
    'data: is required for the format xml',
  ])
})

test('a file of 32 MB is read, and a larger one is refused before it is', async () => {
  const line = `${'x'.repeat(99)}\n`
  // Larger than what a node can output: made of a file of an archive, which is packed small.
  const packed = (bytes: number) =>
    makeArchive([{ name: 'all.txt', bytes: line.repeat(bytes / 100) }]).toString('base64')
  const steps = (data: string): Step[] => [
    ['CONVERT_TO_FILE', { format: 'base64', data, name: 'a.zip' }],
    ['EXTRACT_FROM_FILE', { entry: 'all.txt', as: 'file' }],
    ['EXTRACT_FROM_FILE', { format: 'csv' }],
  ]
  expect(await outcome(steps(packed(30_000_000)))).toMatch(
    /^all\.txt has 28\.6 MB: at most 16 MB are read as a text/,
  )
  expect(await outcome(steps(packed(40_000_000)).slice(0, 2))).toMatch(
    /^a\.zip: all\.txt has 38\.1 MB unpacked; at most 32 MB/,
  )
})

test('files are packed, unpacked and hashed', async () => {
  const write: Step = ['CONVERT_TO_FILE', { format: 'text', data: 'hello hello hello hello', name: 'a.txt' }]
  const both = '{{ [$nodes.n0, $nodes.n1] }}'
  const packed = await outcome([
    write,
    ['CONVERT_TO_FILE', { format: 'json', data: { a: 1 }, name: 'a.txt' }],
    ['CONVERT_TO_FILE', { format: 'zip', data: both, name: 'both.zip' }],
    ['EXTRACT_FROM_FILE', {}],
  ])
  expect(packed).toMatchObject({
    entries: [
      { name: 'a.txt', bytes: 23 },
      { name: 'a_1.txt', bytes: 7 },
    ],
  })
  const gzip: Step[] = [
    write,
    ['CONVERT_TO_FILE', { format: 'gzip', data: '{{ $input }}', name: 'a.txt.gz' }],
  ]
  expect(await outcome([...gzip, ['EXTRACT_FROM_FILE', {}]])).toEqual({
    format: 'gzip',
    text: 'hello hello hello hello',
  })
  const file = await outcome([...gzip, ['EXTRACT_FROM_FILE', { format: 'gzip', as: 'file' }]])
  expect(file).toMatchObject({ file: { name: 'a.txt', mimeType: 'text/plain', bytes: 23 } })
  const bytes = ['EXTRACT_FROM_FILE', { format: 'base64' }] satisfies Step
  expect(await outcome([write, bytes])).toMatchObject({
    text: Buffer.from('hello hello hello hello').toString('base64'),
  })
  const hash = await outcome([write, ['CRYPTO', { operation: 'hash', file: '{{ $input }}' }]])
  const text = await outcome([['CRYPTO', { operation: 'hash', value: 'hello hello hello hello' }]])
  expect(hash).toEqual(text)
  expect(await outcome([['CRYPTO', { operation: 'hash', file: '{{ $input }}' }]])).toContain('must be a file')
  expect(await outcome([['CONVERT_TO_FILE', { format: 'zip', data: [] }]])).toContain('data must have a file')
  expect(await outcome([['CONVERT_TO_FILE', { format: 'gzip', data: 'text' }]])).toContain(
    'data must be a file',
  )
})

test('an archive that unpacks to far more than it has is refused', async () => {
  const bomb = (bytes: Buffer, name: string): Step => [
    'CONVERT_TO_FILE',
    { format: 'base64', data: bytes.toString('base64'), name },
  ]
  const gzip = bomb(gzipSync(Buffer.alloc(60 * 1024 * 1024)), 'bomb.gz')
  expect(await outcome([gzip, ['EXTRACT_FROM_FILE', {}]])).toBe('bomb.gz has more than 48 MB unpacked')
  const dense = bomb(gzipSync(Buffer.alloc(8 * 1024 * 1024)), 'dense.gz')
  const unpack: Step = ['EXTRACT_FROM_FILE', { item: { unpack: true, field: 'f' } }]
  expect(await outcome([dense, unpack])).toBe('dense.gz unpacks to more than 1000 times its bytes')
  const many = Array.from({ length: 101 }, (_, i) => ({ name: `f${i}.txt`, bytes: 'x' }))
  const archive = bomb(makeArchive(many), 'many.zip')
  expect(await outcome([archive, unpack])).toBe('many.zip has 101 files; at most 100 are unpacked at once')
  const tar = bomb(gzipSync('x'), 'a.tar.gz')
  expect(await outcome([tar, unpack])).toContain('is a TAR archive')
})
