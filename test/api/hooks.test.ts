import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Service, startService } from '../service.ts'

let service: Service
let workflowId: string
beforeAll(async () => {
  service = await startService()
  workflowId = await create([
    { id: 'in', type: 'WEBHOOK_TRIGGER', config: { path: 'orders' } },
    { id: 'in-get', type: 'WEBHOOK_TRIGGER', config: { path: 'orders', method: 'GET' } },
    { id: 'put', type: 'WEBHOOK_TRIGGER', config: { path: 'put', method: 'PUT' } },
    { id: 'off', type: 'WEBHOOK_TRIGGER', config: { path: 'off' }, disabled: true },
    {
      id: 'secret',
      type: 'WEBHOOK_TRIGGER',
      config: { path: 'secret', secretHeader: { name: 'X-Hook-Key', value: 'open sesame' } },
    },
  ])
  await activate(workflowId, true)
})
afterAll(() => service.stop())

// biome-ignore lint/suspicious/noExplicitAny: answers are read field by field
type Body = any

let count = 0
async function create(nodes: object[]): Promise<string> {
  const json = { teamId: service.teamId, name: `hooks ${++count}`, nodes, edges: [] }
  const answer = await service.request('/api/workflows', { method: 'POST', as: service.admin, json })
  expect(answer.status).toBe(201)
  return ((await answer.json()) as Body).id
}

async function activate(id: string, active: boolean) {
  const answer = await service.request(`/api/workflows/${id}`, {
    method: 'PUT',
    as: service.admin,
    json: { active },
  })
  expect(answer.status).toBe(200)
}

async function fire(path: string, init: RequestInit = { method: 'POST' }) {
  const answer = await service.request(`/hooks/${path}`, init)
  const text = await answer.text()
  return { status: answer.status, headers: answer.headers, body: (text ? JSON.parse(text) : null) as Body }
}

/** What the run that a call began got as its input. */
async function inputOf(path: string, init?: RequestInit): Promise<Body> {
  const { status, body } = await fire(`${workflowId}/${path}`, init)
  expect(status, JSON.stringify(body)).toBe(202)
  const answer = await service.request(`/api/executions/${body.executionId}`, { as: service.admin })
  return ((await answer.json()) as Body).inputData
}

const post = (body: string | Uint8Array, type?: string): RequestInit => ({
  method: 'POST',
  body,
  headers: type ? { 'content-type': type } : {},
})

test('a call begins a run of the trigger at its path, with body, query, headers and method', async () => {
  const { status, body, headers } = await fire(`${workflowId}/orders?a=1&b=2&b=3&__proto__=x`, {
    method: 'POST',
    body: '{"n":[1,null]}',
    headers: {
      'Content-Type': 'application/json; charset=utf-8',
      'X-Shop': 'Main',
      Cookie: 'perdure_session=x',
      Authorization: 'Bearer x',
    },
  })
  expect(status).toBe(202)
  expect(body).toEqual({
    executionId: expect.stringMatching(/^[0-9a-f-]{36}$/),
    status: 'PENDING',
    startedAt: expect.stringMatching(/Z$/),
  })
  expect(headers.get('location')).toBe(`/api/executions/${body.executionId}`)
  const answer = await service.request(`/api/executions/${body.executionId}`, { as: service.admin })
  expect(await answer.json()).toMatchObject({ trigger: 'WEBHOOK', status: 'PENDING', workflowId })
  const row = await service.store.db
    .selectFrom('executions')
    .select(['triggerNodeId', 'startedByKind', 'startedById', 'inputData'])
    .where('id', '=', body.executionId)
    .executeTakeFirstOrThrow()
  expect(row).toEqual({
    triggerNodeId: 'in',
    startedByKind: 'SYSTEM',
    startedById: null,
    inputData: {
      body: { n: [1, null] },
      query: { a: '1', b: ['2', '3'] },
      headers: { 'content-type': 'application/json; charset=utf-8', 'x-shop': 'Main' },
      method: 'POST',
    },
  })
})

test.each([
  ['JSON of any kind', post('[1]', 'application/vnd.api+json'), [1]],
  ['a form', post('a=1&b=2&b=3&c=', 'application/x-www-form-urlencoded'), { a: '1', b: ['2', '3'], c: '' }],
  ['text', post('<a/>', 'application/xml'), '<a/>'],
  ['bytes', post(new Uint8Array([0xff, 0, 1]), 'application/octet-stream'), { base64: '/wAB' }],
  ['nothing', { method: 'POST' }, null],
])('a body of %s', async (_what, init, expected) => {
  expect((await inputOf('orders', init)).body).toEqual(expected)
})

test('each method has its own trigger', async () => {
  expect(await inputOf('orders', { method: 'GET' })).toMatchObject({ method: 'GET', body: null })
  const wrong = await fire(`${workflowId}/orders`, { method: 'PUT' })
  expect(wrong.status).toBe(405)
  expect(wrong.headers.get('allow')).toBe('POST, GET')
  expect(wrong.body).toMatchObject({
    status: 405,
    error: 'Method Not Allowed',
    path: `/hooks/${workflowId}/orders`,
  })
  expect((await fire(`${workflowId}/put`, { method: 'POST' })).status).toBe(405)
  expect((await fire(`${workflowId}/put`, { method: 'PUT' })).status).toBe(202)
  expect((await fire(`${workflowId}/put`, { method: 'HEAD' })).status).toBe(405)
})

test('a secret is asked for, and never reaches the run', async () => {
  const send = (headers: Record<string, string>) => fire(`${workflowId}/secret`, { method: 'POST', headers })
  expect((await send({})).status).toBe(401)
  expect((await send({ 'x-hook-key': 'open' })).status).toBe(401)
  expect((await send({ 'x-hook-key': 'open sesame!' })).status).toBe(401)
  expect(
    (await inputOf('secret', { method: 'POST', headers: { 'x-hook-key': 'open sesame', 'x-b': 'c' } }))
      .headers,
  ).toEqual({
    'x-b': 'c',
  })
})

test('what is unknown, disabled or inactive is not there', async () => {
  expect((await fire('00000000-0000-4000-8000-000000000000/orders')).status).toBe(404)
  expect((await fire(`${workflowId}/nothing`)).status).toBe(404)
  expect((await fire(`${workflowId}/off`)).status).toBe(404)
  expect((await fire(`${workflowId}/orders/more`)).status).toBe(404)
  expect((await fire('no-uuid/orders')).status).toBe(400)
  const id = await create([{ id: 'in', type: 'WEBHOOK_TRIGGER', config: { path: 'orders' } }])
  expect((await fire(`${id}/orders`)).status).toBe(404)
  await activate(id, true)
  expect((await fire(`${id}/orders`)).status).toBe(202)
  await activate(id, false)
  expect((await fire(`${id}/orders`)).status).toBe(404)
})

test('refuses broken JSON, prototype keys and bodies over 1.5 MB, also chunked', async () => {
  const path = `${workflowId}/orders`
  expect((await fire(path, post('{', 'application/json'))).status).toBe(400)
  expect((await fire(path, post('{"__proto__":{}}', 'application/json'))).status).toBe(400)
  expect((await fire(path, post('x'.repeat(1_500_001), 'text/plain'))).status).toBe(413)
  expect((await fire(path, post('x'.repeat(1_499_000), 'text/plain'))).status).toBe(202)
  const chunks = new ReadableStream({
    pull(controller) {
      controller.enqueue(new Uint8Array(100_000))
    },
  })
  const init = { method: 'POST', body: chunks, duplex: 'half' } as RequestInit
  expect((await fire(path, init)).status).toBe(413)
})

test('two hundred calls at once are two hundred runs', async () => {
  const id = await create([{ id: 'in', type: 'WEBHOOK_TRIGGER', config: { path: 'many' } }])
  await activate(id, true)
  const answers = await Promise.all(Array.from({ length: 200 }, () => fire(`${id}/many`)))
  expect(new Set(answers.map(({ body }) => body.executionId)).size).toBe(200)
  const list = await service.request(`/api/executions?workflowId=${id}&status=PENDING`, { as: service.admin })
  expect(await list.json()).toMatchObject({ totalElements: 200, totalPages: 10 })
})
