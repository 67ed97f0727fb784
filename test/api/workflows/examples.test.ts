import { randomBytes, randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { listKeyUse } from '../../../db/operation/keyuse.ts'
import { type Store, serviceScope } from '../../../db/scope.ts'
import { deleteExample, readExample } from '../../../db/workflows/examples.ts'
import { MAX_EXAMPLE_BYTES, rotateExamples } from '../../../db/workflows/examplevalues.ts'
import { keep } from '../../support/keep.ts'
import { type Body, shareService } from '../../support/service.ts'

const service = await keep(shareService())
const { store, teamId } = service
const operator = (await service.signUp('OPERATOR')).cookie
const viewer = await service.token('VIEWER')

const hook = {
  id: 'order',
  type: 'WEBHOOK_TRIGGER',
  config: {
    path: 'orders',
    secretHeader: { name: 'X-Shop-Key', value: 'a long random string' },
    signature: { header: 'X-Signature', secret: 'another long string' },
  },
}
const nodes = [hook, { id: 'start', type: 'MANUAL_TRIGGER' }, { id: 'pass', type: 'NO_OP' }]
const edges = [
  { source: 'order', target: 'pass' },
  { source: 'start', target: 'pass' },
]

async function create(): Promise<string> {
  const json = { teamId, name: randomUUID(), nodes, edges }
  const { status, body } = await service.call('POST', '/api/workflows', service.admin, json)
  expect(status, JSON.stringify(body)).toBe(201)
  return body.id
}
const shared = await create()

const call = (method: string, rest = '', json?: unknown, { as = service.admin, workflow = shared } = {}) =>
  service.call(method, `/api/workflows/${workflow}/examples${rest}`, as, json)

/** JSON as a client may write it, which `JSON.stringify` of a value would not. */
const post = async (text: string, workflow = shared) => {
  const headers = { 'content-type': 'application/json' }
  const path = `/api/workflows/${workflow}/examples`
  const response = await service.request(path, { method: 'POST', as: service.admin, body: text, headers })
  return { status: response.status, text: await response.text() }
}

test('an example is saved, listed, read, changed and deleted, sealed and with entries that do not say what it holds', async () => {
  const workflow = await create()
  const at = { workflow }
  const request = {
    method: 'POST',
    headers: { 'x-shop': 'north' },
    query: { a: ['1', '2'] },
    body: { total: 120 },
  }
  const made = await call('POST', '', { name: ' A large order ', trigger: 'order', request }, at)
  expect(made.status, made.text).toBe(201)
  const { id } = made.body
  expect(made.headers.get('location')).toBe(`/api/workflows/${workflow}/examples/${id}`)
  const bytes = JSON.stringify(request).length
  const shown = { id, workflowId: workflow, name: 'A large order', trigger: 'order', kind: 'REQUEST', bytes }
  expect(made.body).toEqual({
    ...shown,
    request,
    createdAt: expect.any(String),
    updatedAt: expect.any(String),
  })
  const { request: _, ...item } = made.body
  for (const as of [viewer, operator]) {
    expect((await call('GET', '', undefined, { as, workflow })).body).toEqual([item])
    expect((await call('GET', `/${id}`, undefined, { as, workflow })).body).toEqual(made.body)
  }
  const same = await call('PUT', `/${id}`, made.body, at)
  expect(same.body).toEqual(made.body)
  const changed = await call('PUT', `/${id}`, { name: 'Data', trigger: 'start', data: { total: 90_210 } }, at)
  expect(changed.body).toMatchObject({
    id,
    name: 'Data',
    trigger: 'start',
    kind: 'DATA',
    data: { total: 90_210 },
  })
  expect(changed.body).not.toHaveProperty('request')
  const { sealed } = await store.db
    .selectFrom('workflowExamples')
    .select('sealed')
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  expect(sealed.includes('90210')).toBe(false)
  expect((await call('DELETE', `/${id}`, undefined, at)).status).toBe(200)
  expect((await call('GET', `/${id}`, undefined, at)).status).toBe(404)
  const { body, text } = await service.call(
    'GET',
    `/api/audit/team/${teamId}?resourceId=${workflow}`,
    service.admin,
  )
  expect(
    body.content.map(({ action, details }: Body) => [action, details.exampleId, details.changed]),
  ).toEqual([
    ['WORKFLOW_EXAMPLE_DELETED', id, undefined],
    ['WORKFLOW_EXAMPLE_UPDATED', id, ['name', 'trigger', 'kind', 'bytes', 'value']],
    ['WORKFLOW_EXAMPLE_CREATED', id, undefined],
    ['WORKFLOW_CREATED', undefined, undefined],
  ])
  expect(text).not.toMatch(/90210|north/)
})

test('what says who calls is not kept', async () => {
  const headers = {
    ...{
      Authorization: 'Bearer s3cret',
      cookie: 's3cret',
      'Proxy-Authorization': 's3cret',
      'X-SHOP-KEY': 's3cret',
    },
    ...{ 'x-signature': 's3cret', 'perdure-call': 's3cret', Accept: 'text/plain' },
  }
  const made = await call('POST', '', { name: 'Headers', trigger: 'order', request: { headers } })
  expect(made.body.request).toEqual({ headers: { Accept: 'text/plain' } })
})

test('what is wrong with an example is named', async () => {
  const faults = async (json: object, method = 'POST', rest = '') => {
    const { status, body } = await call(method, rest, json)
    expect(status, JSON.stringify(json)).toBe(400)
    return body.errors.map(({ path, message }: Body) => `${path} ${message}`)
  }
  const value = { data: {} }
  expect(await faults({})).toEqual(['name is required', 'trigger is required'])
  expect(await faults({ name: 'a', trigger: 'start' })).toEqual([
    'data is required, unless `request` is given',
  ])
  expect(await faults({ name: 'a', trigger: 'order', data: {}, request: {} })).toEqual([
    'request cannot be given together with `data`',
  ])
  expect(await faults({ name: 'a', trigger: 'pass', ...value })).toEqual([
    'trigger is not a trigger of the workflow; its triggers are "order", "start"',
  ])
  expect(await faults({ name: 'a', trigger: 'start', request: {} })).toEqual([
    'request is for a WEBHOOK_TRIGGER, and "start" is a MANUAL_TRIGGER: give `data` instead',
  ])
  expect(await faults({ name: 'a', trigger: 'order', request: { query: { a: {} }, headers: [] } })).toEqual([
    'request.headers must be an object, not an array',
    'request.query.a must be a string, a number, a boolean, or an array of them',
  ])
  const large = { name: 'Large', trigger: 'start', data: { text: 'x'.repeat(MAX_EXAMPLE_BYTES - 11) } }
  expect((await call('POST', '', large)).status).toBe(201)
  large.data.text += 'x'
  expect(await faults({ ...large, trigger: 'gone' })).toEqual([
    expect.stringMatching(/^trigger is not a trigger/),
    'data must have at most 262144 bytes as JSON, and has 262145',
  ])
  const [{ id }] = (await call('GET')).body.filter(({ name }: Body) => name === 'Large')
  expect(await faults({ trigger: 'gone' }, 'PUT', `/${id}`)).toHaveLength(1)
  expect(await faults({ data: large.data }, 'PUT', `/${id}`)).toHaveLength(1)
  expect((await call('POST', '', { name: 'Large', trigger: 'start', ...value })).body.message).toBe(
    'The workflow already has an example named "Large"',
  )
})

test('any JSON is kept as it is, and what cannot be kept is named', async () => {
  const data = '{"constructor":1,"":"\\ud800","nul":"\\u0000","deep":[{"prototype":[1]}],"n":-0.5}'
  const made = await post(`{"name":"Odd","trigger":"start","data":${data}}`)
  expect(made.status, made.text).toBe(201)
  expect(made.text).toContain(`"data":${data}`)
  const proto = await post('{"name":"Own","trigger":"order","request":{"query":{"__proto__":"a"},"body":[]}}')
  expect([proto.status, JSON.parse(proto.text).message]).toEqual([
    400,
    'request.query.__proto__: is not allowed as a key',
  ])
  const digits = await post('{"name":"Digits","trigger":"start","data":{"id":12345678901234567890},"dta":1}')
  expect(digits.text).toContain('"id":"12345678901234567890"')
  expect(JSON.parse(digits.text).warnings).toHaveLength(2)
  expect((await post('{"name":"\\ud800","trigger":"start","data":{}}')).status).toBe(400)
  expect((await post('{"name":"List","trigger":"start","data":[]}')).status).toBe(400)
})

test('an example of a trigger that only the draft has is saved, and stays when the trigger is removed', async () => {
  const workflow = await create()
  const path = `/api/workflows/${workflow}`
  const late = { ...hook, id: 'late', config: { path: 'late' } }
  const put = (json: object) => service.call('PUT', path, service.admin, json)
  await put({ draft: true, nodes: [...nodes, late], edges })
  const json = { name: 'Late', trigger: 'late', request: { body: 1 } }
  const { status, body } = await call('POST', '', json, { workflow })
  expect(status).toBe(201)
  expect((await service.call('DELETE', `${path}/draft`, service.admin)).status).toBe(200)
  const renamed = await call('PUT', `/${body.id}`, { name: 'Gone' }, { workflow })
  expect(renamed.body).toMatchObject({ name: 'Gone', trigger: 'late', request: { body: 1 } })
  expect((await call('PUT', `/${body.id}`, { request: {} }, { workflow })).status).toBe(400)
})

test('examples are deleted with their workflow and are no part of its export', async () => {
  const workflow = await create()
  const json = { name: 'Kept', trigger: 'start', data: { mark: 'x90210x' } }
  const { body } = await call('POST', '', json, { workflow })
  const path = `/api/workflows/${workflow}`
  expect((await service.call('GET', `${path}/export`, service.admin)).text).not.toContain('x90210x')
  await service.call('DELETE', path, service.admin)
  const { rows } = await sql`select from workflow_examples where id = ${body.id}`.execute(store.db)
  expect(rows).toHaveLength(0)
  for (const [method, rest, sent] of [
    ['GET', ''],
    ['POST', '', json],
    ['GET', `/${body.id}`],
    ['PUT', `/${body.id}`, json],
    ['DELETE', `/${body.id}`],
  ] as const)
    expect((await call(method, rest, sent, { workflow })).body.message).toBe('There is no such workflow')
})

test('examples that are saved and changed while their workflow is deleted go with it', async () => {
  const workflow = await create()
  const json = (at: number) => ({ name: `n${at}`, trigger: 'start', data: { at } })
  const { id } = (await call('POST', '', json(0), { workflow })).body
  const acts = Array.from({ length: 10 }, (_, at) => [
    call('POST', '', json(at + 1), { workflow }),
    call('PUT', `/${id}`, { data: { at } }, { workflow }),
  ])
  const deleted = service.call('DELETE', `/api/workflows/${workflow}`, service.admin)
  const statuses = (await Promise.all(acts.flat())).map(({ status }) => status)
  expect((await deleted).status).toBe(200)
  expect(statuses.filter((status) => ![200, 201, 404].includes(status))).toEqual([])
  const { rows } = await sql`select from workflow_examples where workflow_id = ${workflow}`.execute(store.db)
  expect(rows).toHaveLength(0)
})

test('neither another team nor another workflow reaches an example, and an OPERATOR changes none', async () => {
  const json = { name: randomUUID(), trigger: 'start', data: {} }
  const { id } = (await call('POST', '', json)).body
  const other = await service.otherTeam()
  const mine = await create()
  for (const [method, sent] of [['GET'], ['PUT', { name: 'b' }], ['DELETE']] as const) {
    expect((await call(method, `/${id}`, sent, { as: other.cookie })).status).toBe(403)
    const elsewhere = await call(method, `/${id}`, sent, { workflow: mine })
    expect([elsewhere.status, elsewhere.body.message]).toEqual([404, 'There is no such example'])
    if (method !== 'GET') expect((await call(method, `/${id}`, sent, { as: operator })).status).toBe(403)
  }
  expect((await call('GET', '', undefined, { as: other.cookie })).status).toBe(403)
})

test('examples are counted and sealed anew with a new key, and what is sealed with a lost one is said', async () => {
  const { db } = store
  const workflow = await create()
  const json = { name: 'Key', trigger: 'start', data: { n: 1 } }
  const { id } = (await call('POST', '', json, { workflow })).body
  const k2 = randomBytes(32)
  const withKeys = (...known: [string, Buffer][]): Store => ({
    ...store,
    keys: { current: 'k2', byId: new Map([['k2', k2], ...known]) },
  })
  const scopeOf = (chosen: Store) =>
    serviceScope(chosen, { kind: 'SYSTEM', id: null, name: 'test' }, [[teamId, 'ADMIN']])
  await expect(readExample(scopeOf(withKeys()), workflow, id)).rejects.toMatchObject({ code: 'CONFLICT' })
  const both = withKeys(...store.keys.byId)
  const { rows } = await sql<{ count: number }>`select count(*)::int as count from workflow_examples`.execute(
    db,
  )
  const { count } = rows[0]!
  expect((await listKeyUse(both)).find((one) => one.id === 'k1')?.others.examples).toBe(count)
  expect([await rotateExamples(both), await rotateExamples(both)]).toEqual([count, 0])
  expect((await readExample(scopeOf(withKeys()), workflow, id)).data).toEqual({ n: 1 })
  // This process has not got the new key.
  const lost = await call('GET', `/${id}`, undefined, { workflow })
  expect([lost.status, lost.body.message]).toEqual([
    409,
    expect.stringContaining('a key that this service does not'),
  ])
  expect((await call('PUT', `/${id}`, { name: 'Other' }, { workflow })).status).toBe(409)
  expect((await call('PUT', `/${id}`, { data: { n: 2 } }, { workflow })).body.data).toEqual({ n: 2 })
  await deleteExample(scopeOf(both), workflow, id)
})
