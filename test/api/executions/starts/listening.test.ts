import { createHmac, randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { purgeListeners } from '../../../../db/executions/starts/listeners.ts'
import { onServer } from '../../../support/database.ts'
import { keep } from '../../../support/keep.ts'
import { type Body, startService } from '../../../support/service.ts'

const service = await keep(startService())
const { admin, teamId, store } = service
const builder = (await service.signUp('BUILDER')).cookie

type Sent = { method?: string; headers?: Record<string, string>; body?: string }

const hook = (path: string, config: object = {}) => ({
  id: 'hook',
  type: 'WEBHOOK_TRIGGER',
  config: { path, ...config },
})

async function create(config: object = {}, { active = false } = {}): Promise<string> {
  const json = { teamId, name: randomUUID(), nodes: [hook('in', config)], edges: [] }
  const { status, body } = await service.call('POST', '/api/workflows', admin, json)
  expect(status).toBe(201)
  if (active) await service.call('PUT', `/api/workflows/${body.id}`, admin, { active })
  return body.id
}

async function saveDraft(id: string, nodes: object[]): Promise<number> {
  const saved = await service.call('PUT', `/api/workflows/${id}`, admin, { nodes, edges: [], draft: true })
  expect(saved.status).toBe(200)
  return saved.body.draftVersion
}

const listen = (id: string, as = admin, method = 'PUT') =>
  service.call(method, `/api/workflows/${id}/listening`, as)

async function callAt(address: string, { method = 'POST', ...init }: Sent = {}) {
  const response = await service.request(address, { method, ...init })
  const text = await response.text()
  return { status: response.status, body: (text ? JSON.parse(text) : null) as Body }
}
const callTest = (id: string, path = 'in', sent?: Sent) => callAt(`/hooks-test/${id}/${path}`, sent)

const told = ({ status, body }: { status: number; body: Body }) => ({ status, message: body.message })

async function executionOf({ status, body }: { status: number; body: Body }): Promise<Body> {
  expect(status, JSON.stringify(body)).toBe(202)
  return (await service.call('GET', `/api/executions/${body.executionId}`, admin)).body
}

test('while an editor listens, a test call executes the draft of an inactive workflow, as a test', async () => {
  const id = await create({ shape: 'n8n' })
  const version = await saveDraft(id, [hook('new', { shape: 'n8n' })])
  expect((await listen(id, admin, 'GET')).body).toMatchObject({ version, draft: true, until: null })

  const { status, body } = await listen(id, builder)
  expect(status).toBe(200)
  const url = `http://127.0.0.1:3000/hooks-test/${id}/new`
  const hooks = [{ nodeId: 'hook', method: 'POST', path: 'new', url }]
  expect(body).toEqual({ workflowId: id, version, draft: true, until: expect.any(String), hooks, forms: [] })
  const left = Date.parse(body.until) - Date.now()
  expect(left).toBeGreaterThan(110_000)
  expect(left).toBeLessThan(130_000)

  const execution = await executionOf(
    await callTest(id, 'new', { body: '{"a":1}', headers: { 'content-type': 'application/json' } }),
  )
  expect(execution).toMatchObject({ draft: true, workflowVersion: version, trigger: 'WEBHOOK' })
  expect(execution.inputData).toMatchObject({ body: { a: 1 }, webhookUrl: url, executionMode: 'test' })
  // The path of the published version is not that of the draft, and the live address stays closed.
  expect((await callTest(id, 'in')).body.message).toContain('has no webhook at this path')
  expect((await callAt(`/hooks/${id}/in`)).status).toBe(404)
})

test('without a draft a test call executes the published version, still as a test', async () => {
  const id = await create({}, { active: true })
  await listen(id)
  expect(await executionOf(await callTest(id))).toMatchObject({ draft: true, workflowVersion: 1 })
  const live = await executionOf(await callAt(`/hooks/${id}/in`))
  expect(live).toMatchObject({ draft: false, workflowVersion: 1 })
})

test('a test address is closed until an editor listens, once its time is over, and after the last one has stopped', async () => {
  const id = await create({}, { active: true })
  const closed = told(await callTest(id))
  expect(closed.status).toBe(404)
  expect(closed.message).toContain('choose Listen')
  // It says the same of a workflow that does not exist: a caller without credentials learns nothing.
  expect(told(await callTest(randomUUID()))).toEqual(closed)

  await listen(id, admin)
  await listen(id, builder)
  expect((await listen(id, builder, 'DELETE')).status).toBe(200)
  expect((await callTest(id)).status).toBe(202)
  await listen(id, admin, 'DELETE')
  expect(told(await callTest(id))).toEqual(closed)

  await listen(id)
  await onServer(service.database.url, 'update webhook_listeners set expires_at = now()')
  expect(told(await callTest(id))).toEqual(closed)
  await purgeListeners(store)
  expect(await store.db.selectFrom('webhookListeners').selectAll().execute()).toEqual([])
  await listen(id)
  expect((await callTest(id)).status).toBe(202)
  expect((await service.call('DELETE', `/api/workflows/${id}`, admin)).status).toBe(200)
  expect(told(await callTest(id))).toEqual(closed)
})

test('a test call needs the secret and the signature of the version that is tested, and its method', async () => {
  const id = await create({ secretHeader: { name: 'X-Key', value: 'open sesame' } })
  await listen(id)
  expect((await callTest(id)).status).toBe(401)
  const execution = await executionOf(await callTest(id, 'in', { headers: { 'x-key': 'open sesame' } }))
  expect(execution.inputData.headers).not.toHaveProperty('x-key')
  expect(await callTest(id, 'in', { method: 'PUT' })).toMatchObject({ status: 405 })
  await saveDraft(id, [hook('in', { secretHeader: { name: 'X-Key', value: 'another' } })])
  expect((await callTest(id, 'in', { headers: { 'x-key': 'open sesame' } })).status).toBe(401)
  expect((await callTest(id, 'in', { headers: { 'x-key': 'another' } })).status).toBe(202)
})

test('a delivery that is sent again starts nothing while one listens, and is executed again by who listens anew', async () => {
  const signature = { header: 'X-Sig', secret: 'key', deliveryHeader: 'X-Id' }
  const id = await create({ signature }, { active: true })
  const headers = { 'x-sig': createHmac('sha256', 'key').update('{}').digest('hex'), 'x-id': 'one' }
  const send = async (address: string): Promise<string> => {
    const { status, body } = await callAt(`${address}/${id}/in`, { headers, body: '{}' })
    expect(status).toBe(202)
    return body.executionId
  }
  const live = await send('/hooks')
  await listen(id)
  const tested = await send('/hooks-test')
  expect(tested).not.toBe(live)
  await listen(id)
  expect(await send('/hooks-test')).toBe(tested)
  await listen(id, admin, 'DELETE')
  await listen(id)
  expect(await send('/hooks-test')).not.toBe(tested)
  expect(await send('/hooks')).toBe(live)
})

test('only those who may change the workflow listen, and others do not learn of it', async () => {
  const id = await create()
  const operator = (await service.signUp('OPERATOR')).cookie
  expect((await listen(id, operator)).status).toBe(403)
  expect((await listen(id, operator, 'DELETE')).status).toBe(403)
  expect((await listen(id, operator, 'GET')).status).toBe(200)
  const stranger = (await service.otherTeam()).cookie
  for (const method of ['GET', 'PUT', 'DELETE']) expect((await listen(id, stranger, method)).status).toBe(403)
  expect((await callTest(id)).status).toBe(404)
})
