import http from 'node:http'
import { expect, test } from 'vitest'
import { keep } from '../../../support/keep.ts'
import { startRunning } from '../../../support/running.ts'
import type { Body } from '../../../support/service.ts'

const service = await keep(startRunning())
const { teamId, ask } = service
const origin = await service.listen()

const hook = (config: object = {}, more: object = {}) => ({
  id: 'hook',
  type: 'WEBHOOK_TRIGGER',
  config: { path: 'in', ...config },
  ...more,
})
const branch = [
  { id: 'big', type: 'IF_ELSE', config: { condition: '{{ $number($trigger.body.total) > 100 }}' } },
  { id: 'much', type: 'NO_OP' },
  { id: 'little', type: 'NO_OP' },
]
const edges = [
  { source: 'hook', target: 'big' },
  { source: 'big', sourceHandle: 'true', target: 'much' },
  { source: 'big', sourceHandle: 'false', target: 'little' },
]

async function createActive(nodes: object[], links: object[] = []): Promise<string> {
  const id = await service.create({ nodes, edges: links } as never)
  await ask('PUT', `/api/workflows/${id}`, { active: true })
  return id
}

const post = (id: string, more: object, headers = {}, as = service.admin) =>
  service.call('POST', `/api/workflows/${id}/execute`, as, { teamId, ...more }, headers)

async function executed(id: string, request: object): Promise<Body> {
  const { status, body } = await post(id, { request })
  expect(status, JSON.stringify(body)).toBe(202)
  expect(body.warnings).toBeUndefined()
  return service.read(body.executionId)
}

type Sent = {
  query?: string
  headers?: Record<string, string | string[]>
  body?: string | Buffer
  method?: string
}

/** Calls the webhook over HTTP with just these headers and bytes. */
async function called(id: string, { query = '', headers = {}, body, method = 'POST' }: Sent): Promise<Body> {
  const text = await new Promise<string>((resolve, reject) => {
    const own = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
    const sent = http.request(`${origin}/hooks/${id}/in${query}`, { method, headers: { ...headers, ...own } })
    sent.on('error', reject).on('response', (response) => {
      let got = ''
      response.on('data', (piece) => {
        got += piece
      })
      response.on('end', () => resolve(got))
    })
    sent.end(body)
  })
  const { executionId } = JSON.parse(text)
  expect(executionId, text).toBeDefined()
  return service.read(executionId)
}

/** What only the connection of a call decides. */
function withoutConnection({ inputData }: Body) {
  const { host, connection, 'content-length': length, ...headers } = inputData.headers
  return { ...inputData, headers, hasHost: typeof host, hasLength: typeof length }
}

const plain = await createActive([hook(), ...branch], edges)
const n8n = await createActive([hook({ shape: 'n8n' })])
const json = { 'content-type': 'application/json' }
const FORM = { 'content-type': 'application/x-www-form-urlencoded' }
const PARTS = { 'content-type': 'multipart/form-data; boundary=b' }
const text = (given: string) => ({ 'content-type': `text/plain${given}` })

test.each<[what: string, request: Body, sent: Sent]>([
  [
    'JSON',
    { headers: json, body: { total: 120, tags: ['ä', null] } },
    { headers: json, body: '{"total":120,"tags":["ä",null]}' },
  ],
  ['JSON without a Content-Type', { body: { total: 120 } }, { headers: json, body: '{"total":120}' }],
  ['JSON as text', { headers: json, body: ' [1.50] ' }, { headers: json, body: ' [1.50] ' }],
  [
    'a form',
    { headers: FORM, body: { total: 120, a: ['1', ' &='] } },
    { headers: FORM, body: 'total=120&a=1&a=+%26%3D' },
  ],
  [
    'a form as text',
    { headers: FORM, body: 'total=120&a=1&a=2' },
    { headers: FORM, body: 'total=120&a=1&a=2' },
  ],
  ['text', { headers: text(''), body: 'total ä' }, { headers: text(''), body: 'total ä' }],
  [
    'text in Latin-1',
    { headers: text('; charset=iso-8859-1'), body: 'ä €' },
    { headers: text('; charset=iso-8859-1'), body: Buffer.from('\xe4 \x80', 'latin1') },
  ],
  ['text of no type', { body: '{"total":120}' }, { body: '{"total":120}' }],
  [
    'raw bytes',
    { headers: { 'content-type': 'image/png' }, body: { base64: 'iVBORw==' } },
    { headers: { 'content-type': 'image/png' }, body: Buffer.from('iVBORw==', 'base64') },
  ],
  [
    'a form in parts',
    {
      headers: PARTS,
      body: { 'a"b': 'ä', doc: { filename: 'x.txt', contentType: 'text/plain', base64: 'YQ==' } },
    },
    {
      headers: PARTS,
      body:
        '--b\r\nContent-Disposition: form-data; name="a%22b"\r\n\r\nä\r\n--b\r\n' +
        'Content-Disposition: form-data; name="doc"; filename="x.txt"\r\nContent-Type: text/plain\r\n\r\na\r\n--b--\r\n',
    },
  ],
  [
    'repeated keys of a query, and headers in any case',
    {
      query: { a: ['1', '2'], n: 3, 'ä&': '' },
      headers: { 'X-Thing': 'a', 'x-many': ['b', 'c'], Cookie: 'd', AUTHORIZATION: 'e' },
    },
    {
      query: '?a=1&a=2&n=3&%C3%A4%26=',
      headers: {
        'X-Thing': 'a',
        'x-many': ['b', 'c'],
        Cookie: 'd',
        AUTHORIZATION: 'e',
        'content-length': '0',
      },
      body: '',
    },
  ],
])('%s is read as a real call is', async (_, request, sent) => {
  for (const id of [plain, n8n]) {
    const own = withoutConnection(await executed(id, request))
    const real = withoutConnection(await called(id, sent))
    expect({ ...own, hasLength: 0 }).toEqual({ ...real, hasLength: 0 })
  }
})

test.each([120, 20, '120'])(
  'a condition takes the branch that it takes with a real call: %j',
  async (total) => {
    const body = JSON.stringify({ total })
    const real = await called(plain, { headers: json, body })
    const own = await executed(plain, { body: { total } })
    const branchOf = async ({ id }: Body) => (await service.ended(id)).nodeExecutions.at(-1)!.nodeId
    expect(await branchOf(own)).toBe(Number(total) > 100 ? 'much' : 'little')
    expect(await branchOf(real)).toBe(await branchOf(own))
  },
)

test('data without a body gets a warning, and is the output of the trigger as it is', async () => {
  const { status, body } = await post(plain, { data: { total: 120 } })
  expect(status).toBe(202)
  expect(body.warnings).toEqual([
    {
      path: 'data',
      message: expect.stringContaining('the webhook "hook" give {body, query, headers, method}'),
    },
  ])
  expect((await service.ended(body.executionId)).nodeExecutions[0]!.outputData).toEqual({ total: 120 })
  expect((await post(plain, { data: { body: { total: 1 } } })).body.warnings).toBeUndefined()
  const awaited = await service.call('POST', `/api/workflows/${plain}/execute?waitMs=20000`, service.admin, {
    teamId,
    data: {},
  })
  expect([awaited.status, awaited.body.warnings?.length]).toEqual([200, 1])
})

test('a trigger can be chosen where there are several', async () => {
  const id = await service.create({
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER' },
      hook(),
      hook({ method: 'GET' }, { id: 'get' }),
      hook({ path: 'off' }, { id: 'off', disabled: true }),
      { id: 'set', type: 'NO_OP' },
    ],
    edges: [],
  } as never)
  const { body } = await post(id, { trigger: 'get', request: { query: { a: '1' } } })
  const run = await service.ended(body.executionId)
  expect(run.nodeExecutions.map(({ nodeId }) => nodeId)).toEqual(['get'])
  expect(run.inputData).toEqual({
    body: null,
    query: { a: '1' },
    headers: { host: '127.0.0.1:3000' },
    method: 'GET',
  })
  expect((await service.read((await post(id, {})).body.executionId)).status).toBeDefined()
  const refusals: [asked: object, path: string, sentence: string][] = [
    [
      { request: {} },
      'request',
      'starts at "start", a MANUAL_TRIGGER; name a webhook in `trigger`: "hook", "get"',
    ],
    [{ trigger: 'nope' }, 'trigger', 'there is no such node; the triggers are "start", "hook", "get"'],
    [{ trigger: 'set' }, 'trigger', 'is not a trigger'],
    [{ trigger: 'off', request: {} }, 'trigger', 'is disabled'],
    [
      { trigger: 'hook', request: { method: 'get' } },
      'request.method',
      'accepts POST, not "GET"; the trigger "get" does',
    ],
    [{ trigger: 'get', request: { body: 1 } }, 'request.body', 'a GET has no body'],
  ]
  for (const [asked, path, sentence] of refusals) {
    const refused = await post(id, asked)
    expect([refused.status, refused.body.errors[0].path]).toEqual([400, path])
    expect(refused.body.errors[0].message).toContain(sentence)
  }
})

test('a request that the webhook would refuse is refused, with all that is wrong', async () => {
  const refused = async (request: object, more = {}) => {
    const { status, body } = await post(plain, { request, ...more })
    expect(status, JSON.stringify(body)).toBe(400)
    return body.errors.map(({ path }: Body) => path)
  }
  expect(await refused({ body: 1 }, { data: {} })).toEqual(['request'])
  expect(await refused({ headers: { a: null }, query: { b: {} }, method: 3 })).toEqual([
    'request.method',
    'request.headers.a',
    'request.query.b',
  ])
  const form = { headers: { 'a b': '1', ...FORM }, method: 'PUT', body: { a: {} } }
  expect(await refused(form)).toEqual(['request.method', 'request.headers.a b', 'request.body.a'])
  expect(await refused({ headers: json, body: '{"a":' })).toEqual(['request.body'])
  expect(await refused({ headers: text('; charset=nope'), body: 'ä' })).toEqual(['request.body'])
  expect(await refused({ headers: text(''), body: {} })).toEqual(['request.body'])
  expect(await refused({ headers: { 'content-encoding': 'gzip' }, body: 'a' })).toEqual(['request.body'])
  const unknown = { 'content-encoding': 'lzw' }
  expect(await refused({ headers: unknown, body: { base64: 'YQ==' } })).toEqual([
    'request.headers.content-encoding',
  ])
})

test('neither secret nor signature is asked for, and the secret does not reach the execution', async () => {
  const secretHeader = { name: 'X-Secret', value: 'open sesame' }
  const id = await createActive([
    hook({ secretHeader, signature: { header: 'X-Signed', secret: 'very secret' } }),
  ])
  const { inputData } = await executed(id, { headers: { 'X-Secret': 'a', 'x-signed': 'b', c: 'd' }, body: 1 })
  expect(Object.keys(inputData.headers).toSorted()).toEqual(['c', 'content-length', 'content-type', 'host'])
})

test('files of a request are kept once, and a repeated key starts nothing', async () => {
  const id = await createActive([hook({ files: {}, rawBody: true })])
  const body = { doc: { filename: 'x.txt', contentType: 'text/plain', base64: 'YQ==' } }
  const request = { headers: { 'content-type': 'multipart/form-data' }, body }
  const key = { 'idempotency-key': 'once' }
  const first = await post(id, { request }, key)
  const again = await post(id, { request }, key)
  expect([first.status, again.body.executionId]).toEqual([202, first.body.executionId])
  expect((await post(id, { request: { ...request, body: {} } }, key)).status).toBe(409)
  const { inputData } = await service.read(first.body.executionId)
  expect(inputData).toMatchObject({
    body: { doc: { file: { name: 'x.txt' } } },
    rawBody: { file: { name: 'rawBody' } },
  })
  const { db } = service.store
  const owned = await db.selectFrom('executionFiles').select('executionId').execute()
  expect(owned.map(({ executionId }) => executionId)).toEqual([
    first.body.executionId,
    first.body.executionId,
  ])
  expect(await db.selectFrom('storedFiles').select('id').where('removed', '=', false).execute()).toHaveLength(
    2,
  )
})

test.each<[what: string, sent: Sent]>([
  ['JSON', { headers: json, body: '{"total":120,"tags":["ä",null]}', query: '?a=1&a=2&b=' }],
  ['a form', { headers: { ...FORM, 'x-thing': ['a', 'b'] }, body: 'total=120&a=1&a=2' }],
  ['bytes', { headers: { 'content-type': 'image/png' }, body: Buffer.from('iVBORw==', 'base64') }],
])('the last real call is found, kept as an example, and gives the same output: %s', async (what, sent) => {
  const real = await called(plain, sent)
  const list = `/api/executions?workflowId=${plain}&trigger=WEBHOOK&size=1`
  expect((await service.call('GET', list, service.admin)).body.content[0].id).toBe(real.id)
  const { request } = await ask<Body>('POST', `/api/workflows/${plain}/examples`, {
    name: what,
    trigger: 'hook',
    request: real.inputData,
  })
  expect(request).toEqual(real.inputData)
  expect(withoutConnection(await executed(plain, request))).toEqual(withoutConnection(real))
})
