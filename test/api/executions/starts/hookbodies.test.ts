import { createHmac } from 'node:crypto'
import zlib from 'node:zlib'
import { expect, test } from 'vitest'
import { createClient } from '../../../support/client.ts'
import { keep } from '../../../support/keep.ts'
import { type Body, startService } from '../../../support/service.ts'

const service = await keep(startService())
const client = createClient({
  send: (path, init) => service.request(path, { as: service.admin, ...init }),
  teamId: service.teamId,
})

async function createHook(config: object = {}): Promise<string> {
  const node = { id: 'hook', type: 'WEBHOOK_TRIGGER', config: { path: 'in', ...config } }
  const id = await client.create({ nodes: [node], edges: [] })
  await client.ask('PUT', `/api/workflows/${id}`, { active: true })
  return id
}

const plain = await createHook()
const withFiles = await createHook({ files: {} })
const both: [string, string][] = [
  ['buffered', plain],
  ['streamed', withFiles],
]

type Sent = { body: string | Uint8Array; headers?: Record<string, string> }

const post = (body: string | Uint8Array, type?: string, headers = {}): Sent => ({
  body,
  headers: { ...(type === undefined ? {} : { 'content-type': type }), ...headers },
})

async function fire(id: string, { body, headers = {} }: Sent) {
  const sent = typeof body === 'string' ? Buffer.from(body) : body
  const response = await service.request(`/hooks/${id}/in`, {
    method: 'POST',
    headers,
    body: sent as Uint8Array<ArrayBuffer>,
  })
  return { status: response.status, body: (await response.json()) as Body }
}

async function executionOf(id: string, sent: Sent): Promise<Body> {
  const { status, body } = await fire(id, sent)
  expect(status, JSON.stringify(body)).toBe(202)
  return (await service.call('GET', `/api/executions/${body.executionId}`, service.admin)).body
}

const bodyOf = async (id: string, sent: Sent) => (await executionOf(id, sent)).inputData.body

async function countExecutions(): Promise<number> {
  const { rows } = await service.store.db
    .selectFrom('executions')
    .select('id')
    .execute()
    .then((all) => ({ rows: all }))
  return rows.length
}

const latin = (given: string) => Buffer.from(given, 'latin1')
const utf16 = (given: string) => Buffer.from(`\ufeff${given}`, 'utf16le')
const FORM = 'application/x-www-form-urlencoded'
const PARTS = 'multipart/form-data; boundary=b'
const part = (disposition: string, value = '', type?: string) =>
  `--b\r\nContent-Disposition: ${disposition}\r\n${type ? `Content-Type: ${type}\r\n` : ''}\r\n${value}\r\n`

test.each<[what: string, sent: Sent, value: unknown]>([
  ['JSON in Latin-1', post(latin('{"a":"\xe4"}'), 'application/json; charset=iso-8859-1'), { a: 'ä' }],
  ['JSON in UTF-16 with a mark', post(utf16('{"a":"ä"}'), 'application/json'), { a: 'ä' }],
  ['JSON in UTF-16, turned', post(utf16('["ä"]').swap16(), 'application/json; charset=utf-8'), ['ä']],
  ['text in windows-1252', post(latin('5 \x80'), 'text/plain; charset=windows-1252'), '5 €'],
  ['text in UTF-16 with a mark', post(utf16('ä €'), 'text/csv'), 'ä €'],
  [
    'a page that names its charset',
    post(latin('<meta charset=latin1>\xe4'), 'text/html'),
    '<meta charset=latin1>ä',
  ],
  [
    'a form in Latin-1, raw and escaped',
    post(latin('a=\xe4&b=%E4+%80'), `${FORM}; charset=windows-1252`),
    { a: 'ä', b: 'ä €' },
  ],
  ['a form in Shift_JIS', post('a=%93%FA%96%7B', `${FORM}; charset=shift_jis`), { a: '日本' }],
  ['a form in UTF-16', post(utf16('a=ä&b=%C3%A4'), FORM), { a: 'ä', b: 'ä' }],
  ['a form with broken escapes', post('a=%&b=%zz%4&c=%E4', FORM), { a: '%', b: '%zz%4', c: '\ufffd' }],
  ['text that curl -d calls a form', post('just some text', FORM), 'just some text'],
  ['a form of one empty field', post('a=', FORM), { a: '' }],
  ['a form of names alone', post('a&b&', FORM), { a: '', b: '' }],
  ['text that is not in its charset', post(latin('\xe4'), 'text/plain'), { base64: '5A==' }],
  [
    'bytes that begin as UTF-16 does',
    post(Buffer.from([0xff, 0xfe, 0x41, 0]), 'image/x-icon'),
    { base64: '//5BAA==' },
  ],
])('a body of %s', async (_what, sent, value) => {
  expect(await bodyOf(plain, sent)).toEqual(value)
})

test.each(both)('texts of a form in parts are in their charsets (%s)', async (_how, hook) => {
  const own = latin(`${part('form-data; name="a"', '\xe4\x80', 'text/plain; charset=windows-1252')}--b--`)
  expect(await bodyOf(hook, post(own, PARTS))).toEqual({ a: 'ä€' })
  const named = latin(
    `${part('form-data; name=_charset_', 'koi8-r')}${part('form-data; name=a', '\xe4')}--b--`,
  )
  expect(await bodyOf(hook, post(named, PARTS))).toMatchObject({ a: 'Д' })
  const ofAll = latin(`${part('form-data; name=a', '\xe4')}--b--`)
  expect(await bodyOf(hook, post(ofAll, `${PARTS}; charset=latin1`))).toEqual({ a: 'ä' })
  const raw = `${part('form-data; name="ä%22"; note="x; name=y"', 'ä')}--b--`
  expect(await bodyOf(hook, post(raw, PARTS))).toEqual({ 'ä"': 'ä' })
})

const cut = `${part('form-data; name=a', '1')}--b\r\nContent-Disposition: form-data; name=b\r\n\r\nhal`
test.each<[what: string, sent: Sent, message: RegExp | string]>([
  ['an unknown charset', post('{}', 'application/json; charset=klingon'), /"klingon"/],
  ['an unknown charset of a text', post('a', 'text/plain; charset=klingon'), /"klingon"/],
  ['an unknown charset of a form', post('a=1', `${FORM}; charset=klingon`), /"klingon"/],
  ['UTF-32', post(Buffer.from([0xff, 0xfe, 0, 0, 0x41, 0, 0, 0]), 'text/plain'), /utf-32/],
  ['JSON that is not in its charset', post(latin('{"a":"\xe4"}'), 'application/json'), /valid JSON in UTF-8/],
  ['too many fields', post('a&'.repeat(1_001), FORM), /at most 1000 fields/],
  ['740,000 fields', post('a&'.repeat(740_000), FORM), /at most 1000 fields/],
])('%s is a 400 that says so', async (_what, sent, message) => {
  const before = await countExecutions()
  const { status, body } = await fire(plain, sent)
  expect({ status, message: body.message }).toEqual({ status: 400, message: expect.stringMatching(message) })
  expect(await countExecutions()).toBe(before)
})

const broken: [what: string, sent: Sent, message: RegExp][] = [
  ['a cut form', post(cut, PARTS), /whole/],
  ['a form cut behind a part', post(part('form-data; name=a', '1'), PARTS), /whole/],
  [
    'a form cut in a header',
    post(`${part('form-data; name=a', '1')}--b\r\nContent-Dis\r\n--b--`, PARTS),
    /whole/,
  ],
  ['a form without parts', post('x', PARTS), /whole/],
  ['a form without a boundary', post('x', 'multipart/form-data'), /boundary/],
  [
    'a name without an end',
    post(`${part(`form-data; filename=a.txt; name="${'n'.repeat(500)}`, '1')}--b--`, PARTS),
    /quotes do not end/,
  ],
  [
    'a part of headers that are too long',
    post(`${part(`form-data; name=${'n'.repeat(17_000)}; filename=a.txt`, '1')}--b--`, PARTS),
    /more headers than are read/,
  ],
  ['a file without a name', post(`${part('form-data; filename=a.txt', '1')}--b--`, PARTS), /no name/],
  ['a part without a disposition', post('--b\r\nX: 1\r\n\r\n1\r\n--b--', PARTS), /no Content-Disposition/],
  ['too many parts', post(`${part('form-data; name=a').repeat(1_001)}--b--`, PARTS), /at most 1000 fields/],
  [
    'an unknown charset of a part',
    post(`${part('form-data; name=a', '1', 'text/plain; charset=klingon')}--b--`, PARTS),
    /"klingon"/,
  ],
]
test.each(both.flatMap(([how, hook]) => broken.map((one) => [one[0], how, hook, ...one.slice(1)] as const)))(
  '%s is a 400 (%s), and nothing is kept',
  async (_what, _how, hook, sent, message) => {
    const { status, body } = await fire(hook as string, sent as Sent)
    expect({ status, message: body.message }).toEqual({
      status: 400,
      message: expect.stringMatching(message as RegExp),
    })
    const kept = await service.store.db
      .selectFrom('storedFiles')
      .select('id')
      .where('removed', '=', false)
      .execute()
    expect(kept).toEqual([])
  },
)

const JSON_TEXT = `{"text":"${'ä'.repeat(1_000)}"}`
const ENCODERS: Record<string, (bytes: Buffer) => Buffer> = {
  gzip: (bytes) => zlib.gzipSync(bytes),
  br: (bytes) => zlib.brotliCompressSync(bytes),
  zstd: (bytes) => zlib.zstdCompressSync(bytes),
  deflate: (bytes) => zlib.deflateSync(bytes),
  identity: (bytes) => bytes,
}

test.each(Object.keys(ENCODERS))('a body in %s is decompressed, within bounds', async (encoding) => {
  const sent = (bytes: Buffer) =>
    post(ENCODERS[encoding]!(bytes), 'application/json', { 'content-encoding': encoding })
  expect(await bodyOf(plain, sent(Buffer.from(JSON_TEXT)))).toEqual(JSON.parse(JSON_TEXT))
  expect((await fire(plain, sent(Buffer.from(`"${'a'.repeat(1_500_000)}"`)))).status).toBe(413)
  if (encoding === 'identity') return
  const whole = ENCODERS[encoding]!(Buffer.from(JSON_TEXT))
  for (const bytes of [
    whole.subarray(0, -3),
    Buffer.concat([whole, Buffer.from('more')]),
    Buffer.from('{"a":1}'),
  ]) {
    const { status, body } = await fire(
      plain,
      post(bytes, 'application/json', { 'content-encoding': encoding }),
    )
    expect([status, body.message]).toEqual([400, expect.stringContaining(`must be valid ${encoding}`)])
  }
})

test('encodings may be nested twice; others are 415 with those that are known', async () => {
  const twice = zlib.brotliCompressSync(zlib.gzipSync(JSON_TEXT))
  const nested = post(twice, 'application/json', { 'content-encoding': 'gzip, br' })
  expect(await bodyOf(plain, nested)).toEqual(JSON.parse(JSON_TEXT))
  for (const encoding of ['compress', 'gzip, gzip, gzip', 'aws-chunked']) {
    const { status, body } = await fire(
      plain,
      post('{}', 'application/json', { 'content-encoding': encoding }),
    )
    expect([status, body.message]).toEqual([415, expect.stringContaining('gzip, br, zstd or deflate')])
  }
  const named = [...Array(30).fill('identity'), 'gzip'].join(', ')
  const late = post(zlib.gzipSync(JSON_TEXT), 'text/plain', { 'content-encoding': named })
  expect(await bodyOf(plain, late)).toBe(JSON_TEXT)
})

test('a bomb ends at the bound, also within another, and of a file', async () => {
  const zeros = zlib.gzipSync(Buffer.alloc(100_000_000))
  const bomb = zlib.gzipSync(zeros)
  const type = 'application/octet-stream'
  for (const [hook, encoding, bytes] of [
    [plain, 'gzip', zeros],
    [plain, 'gzip, gzip', bomb],
    [withFiles, 'gzip', zeros],
    [withFiles, 'gzip, gzip', bomb],
  ] as const)
    expect((await fire(hook, post(bytes, type, { 'content-encoding': encoding }))).status).toBe(413)
})

const sign = (bytes: Uint8Array) => createHmac('sha256', 'key').update(bytes).digest('hex')

async function download(executionId: string, file: { id: string }): Promise<Buffer> {
  const path = `/api/executions/${executionId}/files/${file.id}`
  const response = await service.request(path, { as: service.admin })
  expect(response.status).toBe(200)
  return Buffer.from(await response.arrayBuffer())
}

test('a signature is of the bytes as they were sent', async () => {
  const signature = { header: 'X-Signature', secret: 'key' }
  const zipped = zlib.gzipSync(JSON_TEXT)
  for (const files of [undefined, {}]) {
    const hook = await createHook({ signature, ...(files ? { files } : {}) })
    const type = files ? 'text/csv' : 'application/json'
    const headers = { 'content-encoding': 'gzip', 'x-signature': sign(zipped) }
    const execution = await executionOf(hook, post(zipped, type, headers))
    if (files)
      expect((await download(execution.id, execution.inputData.body.file)).toString()).toBe(JSON_TEXT)
    else expect(execution.inputData.body).toEqual(JSON.parse(JSON_TEXT))
    const wrong = { ...headers, 'x-signature': sign(Buffer.from(JSON_TEXT)) }
    expect((await fire(hook, post(zipped, type, wrong))).status).toBe(401)
  }
})

test('rawBody has the bytes as they were sent, beside the body', async () => {
  const raw = { rawBody: true }
  const zipped = zlib.gzipSync('{"a": 1}')
  const form = `${part('form-data; name=f; filename=a.txt', 'in the file')}--b--`
  const cases: [config: object, sent: Sent, body: unknown][] = [
    [raw, post('{"a": 1}', 'application/json'), { a: 1 }],
    [raw, post(zipped, 'application/json', { 'content-encoding': 'gzip' }), { a: 1 }],
    [raw, post(''), null],
    [raw, post(form, PARTS), { f: expect.objectContaining({ base64: expect.any(String) }) }],
    [
      { ...raw, files: {} },
      post(form, PARTS),
      { f: { file: expect.objectContaining({ name: 'a.txt', bytes: 11 }) } },
    ],
    [{ ...raw, files: {} }, post('a,b', 'text/csv'), { file: expect.objectContaining({ bytes: 3 }) }],
    [
      { ...raw, files: {} },
      post(zipped, 'text/csv', { 'content-encoding': 'gzip' }),
      { file: expect.objectContaining({ bytes: 8 }) },
    ],
    [{ ...raw, files: {}, shape: 'n8n' }, post('{"a": 1}', 'application/json'), { a: 1 }],
  ]
  for (const [config, sent, body] of cases) {
    const execution = await executionOf(await createHook(config), sent)
    const { rawBody = execution.inputData.$binary?.data, ...input } = execution.inputData
    expect(Object.hasOwn(input, '$binary')).toBe('shape' in config)
    expect(input.body).toEqual(body)
    const bytes = await download(execution.id, rawBody.file)
    expect(bytes.equals(Buffer.from(sent.body))).toBe(true)
    expect(rawBody.file).toMatchObject({ bytes: bytes.length })
  }
  expect((await executionOf(plain, post('{"a": 1}', 'application/json'))).inputData).not.toHaveProperty(
    'rawBody',
  )
})

test('nothing of a rawBody is kept if the body or its signature is wrong', async () => {
  const signature = { header: 'X-Signature', secret: 'key' }
  const before = await service.store.db
    .selectFrom('storedFiles')
    .select('id')
    .where('removed', '=', false)
    .execute()
  for (const files of [undefined, {}]) {
    const hook = await createHook({ rawBody: true, signature, ...(files ? { files } : {}) })
    expect((await fire(hook, post(cut, PARTS, { 'x-signature': 'wrong' }))).status).toBeGreaterThanOrEqual(
      400,
    )
    expect((await fire(hook, post(cut, PARTS, { 'x-signature': sign(Buffer.from(cut)) }))).status).toBe(400)
  }
  const left = await service.store.db
    .selectFrom('storedFiles')
    .select('id')
    .where('removed', '=', false)
    .execute()
  expect(left).toEqual(before)
})

test('large numbers keep their digits, and large bodies their values', async () => {
  const list = Array.from({ length: 20_000 }, (_, n) => ({ id: n, deep: [[n]] }))
  const large = `{"id":12345678901234567890,"list":${JSON.stringify(list)}}`
  expect(large.length).toBeGreaterThan(500_000)
  for (const given of ['{"id":12345678901234567890}', large]) {
    const value = await bodyOf(plain, post(given, 'application/json'))
    expect(value.id).toBe('12345678901234567890')
    if (given === large) expect(value.list).toEqual(list)
    const rounded = await bodyOf(
      await createHook({ largeNumbers: 'number' }),
      post(given, 'application/json'),
    )
    expect(rounded.id).toBe(Number('12345678901234567890'))
  }
  for (const [given, message] of [
    [`[${'[],'.repeat(499_000)}[]]`, ''],
    [`{"a":[${'[],'.repeat(50_000)}{"__proto__":1}]}`, 'a[50000].__proto__'],
    [`${'['.repeat(100_000)}${']'.repeat(100_000)}`, 'valid JSON|nested deeper'],
    [`[${'1,'.repeat(100_000)}`, 'valid JSON'],
  ] as const) {
    const { status, body } = await fire(plain, post(given, 'application/json'))
    expect([status, body.message ?? '']).toEqual([
      message ? 400 : 202,
      expect.stringMatching(message.replace('[50000]', '\\[50000\\]')),
    ])
  }
})

test('a limit by a key of a large body finds its value', async () => {
  const node = { id: 'hook', type: 'WEBHOOK_TRIGGER', config: { path: 'in' } }
  const settings = { concurrency: { limit: 1, key: '{{ $trigger.body.id }}', policy: 'reject' } }
  const id = await client.create({ nodes: [node], edges: [], settings })
  await client.ask('PUT', `/api/workflows/${id}`, { active: true })
  const send = (key: string) =>
    fire(id, post(`{"id":"${key}","pad":"${'x'.repeat(100_000)}"}`, 'application/json'))
  expect((await send('a')).status).toBe(202)
  expect((await send('b')).status).toBe(202)
  expect((await send('a')).status).toBe(409)
})
