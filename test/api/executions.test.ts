import { randomBytes } from 'node:crypto'
import { Client, Connection } from '@temporalio/client'
import { sql } from 'kysely'
import { pino } from 'pino'
import { v7 as uuid } from 'uuid'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { createDataConverter } from '../../activities/codec.ts'
import { type Carrier, carryOut } from '../../activities/outbox.ts'
import { type Body, type Service, startService } from '../service.ts'

let service: Service
let other: Awaited<ReturnType<Service['otherTeam']>>
let builder: string
let operator: string
let viewer: string
let connection: Connection
/** A Temporal without a worker: what it takes stays RUNNING. Undefined while Temporal is away. */
let carrier: Carrier | undefined
let reachable: Carrier

beforeAll(async () => {
  service = await startService({
    carryOut: async (errand) => (carrier ? carryOut(carrier, errand) : false),
  })
  other = await service.otherTeam()
  builder = (await service.signUp('BUILDER')).cookie
  operator = (await service.signUp('OPERATOR')).cookie
  viewer = await service.token('VIEWER')
  connection = await Connection.connect({ address: inject('temporalAddress') })
  reachable = {
    store: service.store,
    client: new Client({ connection, dataConverter: createDataConverter(service.store.keys) }),
    taskQueue: `nobody-${randomBytes(4).toString('hex')}`,
    eager: false,
    log: pino({ level: 'silent' }),
  }
})
afterAll(async () => {
  await connection.close()
  await service.stop()
})

const NOBODY = '00000000-0000-4000-8000-000000000000'
const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
const nodes = [
  { id: 'start', type: 'MANUAL_TRIGGER' },
  { id: 'set', type: 'SET', config: { values: { x: 1 } } },
]
const edges = [{ source: 'start', target: 'set' }]

async function create(more: object = {}, as = builder, teamId = service.teamId): Promise<string> {
  const json = { teamId, name: `w ${uuid()}`, nodes, edges, ...more }
  const { status, body } = await service.call('POST', '/api/workflows', as, json)
  expect(status, JSON.stringify(body)).toBe(201)
  return body.id
}
const execute = (id: string, json: unknown = { teamId: service.teamId }, as = operator, headers = {}) =>
  service.call('POST', `/api/workflows/${id}/execute`, as, json, headers)
const start = async (id: string): Promise<string> => (await execute(id)).body.executionId
const read = async (id: string): Promise<Body> =>
  (await service.call('GET', `/api/executions/${id}`, viewer)).body
const errandsOf = async (id: string) =>
  (
    await service.store.db
      .selectFrom('outbox')
      .select('kind')
      .where('subjectId', '=', id)
      .orderBy('kind')
      .execute()
  ).map(({ kind }) => kind)

async function withTemporal<T>(work: () => Promise<T>): Promise<T> {
  carrier = reachable
  try {
    return await work()
  } finally {
    carrier = undefined
  }
}

test('an execute with Temporal away is accepted as PENDING, and its START is queued', async () => {
  const id = await create({ settings: { timeoutMs: 60_000 } })
  const { status, body, headers } = await execute(id, { teamId: service.teamId, data: { n: 1 } })
  expect(status).toBe(202)
  expect(body).toEqual({
    executionId: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/),
    status: 'PENDING',
    startedAt: TIME,
  })
  expect(headers.get('location')).toBe(`/api/executions/${body.executionId}`)
  expect(await errandsOf(body.executionId)).toEqual(['START'])
  expect(await read(body.executionId)).toEqual({
    id: body.executionId,
    workflowId: id,
    workflowName: expect.stringMatching(/^w /),
    workflowVersion: 1,
    status: 'PENDING',
    trigger: 'MANUAL',
    inputData: { n: 1 },
    outputData: null,
    errorMessage: null,
    retriedFrom: null,
    recovery: null,
    retries: [],
    onlyNode: null,
    createdAt: body.startedAt,
    parentExecutionId: null,
    parentNodeId: null,
    queuedAt: null,
    startedAt: null,
    completedAt: null,
    durationMs: null,
    nodeExecutions: [],
    nodeExecutionsTotal: 0,
  })
  const row = await service.store.db
    .selectFrom('executions')
    .select(['timeoutMs', 'nodeCount', 'triggerNodeId', 'startedByKind', 'inputBytes'])
    .where('id', '=', body.executionId)
    .executeTakeFirstOrThrow()
  expect(row).toEqual({
    timeoutMs: 60_000,
    nodeCount: 2,
    triggerNodeId: 'start',
    startedByKind: 'USER',
    inputBytes: 7,
  })
})

test('an execute that Temporal took answers RUNNING', async () => {
  const id = await create()
  const { status, body } = await withTemporal(() => execute(id))
  expect(status).toBe(202)
  expect(body.status).toBe('RUNNING')
  expect(await errandsOf(body.executionId)).toEqual([])
  expect(await read(body.executionId)).toMatchObject({
    status: 'RUNNING',
    startedAt: TIME,
    completedAt: null,
    durationMs: null,
  })
})

test('the trigger says how it was started, and the list names it triggerType', async () => {
  const id = await create()
  const { body } = await execute(id, { teamId: service.teamId }, await service.token('OPERATOR'))
  expect((await read(body.executionId)).trigger).toBe('API')
  const list = await service.call('GET', `/api/executions?workflowId=${id}`, viewer)
  expect(list.body.content).toEqual([
    {
      id: body.executionId,
      workflowId: id,
      workflowName: expect.any(String),
      status: 'PENDING',
      startedAt: null,
      finishedAt: null,
      durationMs: null,
      triggerType: 'API',
      nodeCount: 2,
      errorMessage: null,
      retriedFrom: null,
    },
  ])
})

test('a run is pinned to the version and name of its start', async () => {
  const id = await create({ name: `before ${uuid()}` })
  const first = await start(id)
  await service.call('PUT', `/api/workflows/${id}`, builder, {
    name: `after ${id}`,
    nodes: [nodes[0]],
    edges: [],
  })
  expect(await read(first)).toMatchObject({
    workflowVersion: 1,
    workflowName: expect.stringMatching(/^before/),
  })
  const second = await start(id)
  expect(await read(second)).toMatchObject({ workflowVersion: 2, workflowName: `after ${id}` })
  const { body } = await service.call('GET', `/api/executions?workflowId=${id}`, viewer)
  expect(body.content.map((item: Body) => item.nodeCount)).toEqual([1, 2])
})

test('a run starts at the manual trigger, else at the first, and without any not at all', async () => {
  const hook = { id: 'hook', type: 'WEBHOOK_TRIGGER', config: { path: 'in' } }
  const at = async (id: string) =>
    (
      await service.store.db
        .selectFrom('executions')
        .select('triggerNodeId')
        .where('workflowId', '=', id)
        .executeTakeFirst()
    )?.triggerNodeId
  const both = await create({ nodes: [hook, nodes[0]], edges: [] })
  await start(both)
  expect(await at(both)).toBe('start')
  const one = await create({ nodes: [hook], edges: [] })
  await start(one)
  expect(await at(one)).toBe('hook')
  const none = await execute(await create({ nodes: [nodes[1]], edges: [] }))
  expect(none.status).toBe(409)
  expect(none.body.message).toBe('The workflow has no trigger to start at')
})

test('execute refuses bad input', async () => {
  const id = await create()
  const { teamId } = service
  for (const json of [
    {},
    { teamId: 'x' },
    { teamId, data: [] },
    { teamId, data: 'x' },
    { teamId, data: null },
    [],
  ]) {
    expect((await execute(id, json)).status, JSON.stringify(json)).toBe(400)
  }
  expect((await execute(id, { teamId: 5, data: 5 })).body.errors).toEqual([
    { path: 'teamId', message: 'must be a text' },
    { path: 'data', message: 'must be an object' },
  ])
  const raw = (body: string, type = 'application/json') =>
    service.request(`/api/workflows/${id}/execute`, {
      method: 'POST',
      as: operator,
      headers: { 'content-type': type },
      body,
    })
  expect((await raw('{')).status).toBe(400)
  expect((await raw(`{"teamId":"${teamId}","data":{"__proto__":{"x":1}}}`)).status).toBe(400)
  expect((await raw(`{"teamId":"${teamId}","data":{"x":"${'x'.repeat(2_000_000)}"}}`)).status).toBe(413)
  expect((await raw('a=b', 'application/x-www-form-urlencoded')).status).toBe(415)
  expect((await execute(id, { teamId: other.teamId })).status).toBe(404)
  expect((await execute(NOBODY)).status).toBe(404)
  expect((await execute('nothing')).status).toBe(400)
})

test('data keeps what JSON can say: NUL, lone surrogates, the key constructor', async () => {
  const data = { constructor: { prototype: 1 }, nul: 'a\0b', lone: '\ud800', deep: [[{ ü: 1e300 }]] }
  const { status, body } = await execute(await create(), { teamId: service.teamId, data })
  expect(status).toBe(202)
  expect((await read(body.executionId)).inputData).toEqual(data)
})

test('one key is one execution, for the same body', async () => {
  const id = await create()
  const headers = { 'idempotency-key': 'order-1' }
  const { teamId } = service
  const first = await execute(id, { teamId, data: { a: 1, b: { c: 2, d: 3 } } }, operator, headers)
  const again = await execute(id, { data: { b: { d: 3, c: 2 }, a: 1 }, teamId }, builder, headers)
  expect(again).toMatchObject({ status: 202, body: first.body })
  expect((await execute(id, { teamId, data: { a: 2 } }, operator, headers)).status).toBe(409)
  expect((await execute(await create(), { teamId, data: { a: 2 } }, operator, headers)).status).toBe(202)
  const bare = { 'idempotency-key': 'order-2' }
  const one = await execute(id, { teamId }, operator, bare)
  expect((await execute(id, { teamId, data: {} }, operator, bare)).body.executionId).toBe(
    one.body.executionId,
  )

  await service.store.db
    .updateTable('executions')
    .set({ status: 'SUCCESS' })
    .where('id', '=', one.body.executionId)
    .execute()
  expect((await execute(id, { teamId }, operator, bare)).body).toEqual({ ...one.body, status: 'SUCCESS' })
  expect((await execute(id, { teamId }, operator, { 'idempotency-key': 'x'.repeat(255) })).status).toBe(202)
  for (const key of ['x'.repeat(256), '', 'tab\there', 'ü']) {
    const refused = await execute(id, { teamId }, operator, { 'idempotency-key': key })
    expect(refused.status, key).toBe(400)
    expect(refused.body.errors[0].path).toBe('Idempotency-Key')
  }
})

test('fifty calls at once with one key begin one execution', async () => {
  const id = await create()
  const headers = { 'idempotency-key': 'race' }
  const calls = Array.from({ length: 50 }, (_, at) =>
    execute(id, { teamId: service.teamId, data: { n: at % 10 === 9 ? 2 : 1 } }, operator, headers),
  )
  const answers = await Promise.all(calls)
  const taken = answers.filter(({ status }) => status === 202)
  expect(new Set(taken.map(({ body }) => body.executionId)).size).toBe(1)
  // Whichever body came first, the calls with the other one are refused.
  expect([45, 5]).toContain(taken.length)
  expect(answers.filter(({ status }) => status === 409)).toHaveLength(50 - taken.length)
  expect((await service.call('GET', `/api/executions?workflowId=${id}`, viewer)).body.totalElements).toBe(1)
  expect(await errandsOf(taken[0]!.body.executionId)).toEqual(['START'])
})

test('what is PENDING is cancelled without Temporal, and is not started later', async () => {
  const id = await start(await create())
  const { status, text } = await service.call('POST', `/api/executions/${id}/cancel`, operator)
  expect(status).toBe(200)
  expect(text).toBe('')
  const cancelled = await read(id)
  expect(cancelled).toMatchObject({ status: 'CANCELLED', startedAt: null, completedAt: TIME, durationMs: 0 })
  expect(cancelled.errorMessage).toBe('The run was cancelled before it started')
  expect(await errandsOf(id)).toEqual(['CANCEL'])
  expect(await carryOut(reachable, { kind: 'START', subjectId: id, key: '' })).toBe(true)
  await expect(reachable.client.workflow.getHandle(id).describe()).rejects.toThrow(/not found/i)
  expect((await read(id)).status).toBe('CANCELLED')
  const entries = await service.store.db
    .selectFrom('auditEntries')
    .select(['action', 'resourceType', 'actorRole'])
    .where('resourceId', '=', id)
    .execute()
  expect(entries).toEqual([
    { action: 'EXECUTION_CANCELLED', resourceType: 'EXECUTION', actorRole: 'OPERATOR' },
  ])
})

test('what runs is told through Temporal', async () => {
  const workflowId = await create()
  const { id, status, text } = await withTemporal(async () => {
    const id = await start(workflowId)
    return { id, ...(await service.call('POST', `/api/executions/${id}/cancel`, operator)) }
  })
  expect(status).toBe(200)
  expect(text).toBe('')
  const { history } = await reachable.client.workflowService.getWorkflowExecutionHistory({
    namespace: 'default',
    execution: { workflowId: id },
  })
  expect(history?.events?.some((event) => event.workflowExecutionCancelRequestedEventAttributes)).toBe(true)
  const row = await service.store.db
    .selectFrom('executions')
    .select(['status', 'cancelRequestedAt'])
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  expect(row).toEqual({ status: 'RUNNING', cancelRequestedAt: expect.any(Date) })
  await reachable.client.workflow.getHandle(id).terminate()
})

test('with Temporal away a cancel of what runs stays queued', async () => {
  const workflowId = await create()
  const id = await withTemporal(() => start(workflowId))
  expect((await service.call('POST', `/api/executions/${id}/cancel`, operator)).status).toBe(200)
  expect(await errandsOf(id)).toEqual(['CANCEL'])
  await reachable.client.workflow.getHandle(id).terminate()
})

test('what has ended cannot be cancelled', async () => {
  for (const status of ['SUCCESS', 'FAILED', 'CANCELLED']) {
    const id = await start(await create())
    await service.store.db.updateTable('executions').set({ status }).where('id', '=', id).execute()
    const answer = await service.call('POST', `/api/executions/${id}/cancel`, operator)
    expect(answer.status).toBe(409)
    expect(answer.body.message).toBe(`The execution has ended already: ${status}`)
  }
})

test('of many cancels at once one wins', async () => {
  const id = await start(await create())
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => service.call('POST', `/api/executions/${id}/cancel`, operator)),
  )
  expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(9).fill(409)])
})

test('who may: without credentials 401, too small a role or another team 403, nothing there 404', async () => {
  const workflowId = await create()
  const id = await start(workflowId)
  const reads = [
    `/api/executions/${id}`,
    `/api/executions?workflowId=${workflowId}`,
    `/api/executions/team/${service.teamId}`,
  ]
  for (const path of reads) {
    expect((await service.call('GET', path, undefined)).status).toBe(401)
    expect((await service.call('GET', path, other.cookie)).status).toBe(403)
    for (const as of [viewer, operator, builder])
      expect((await service.call('GET', path, as)).status).toBe(200)
  }
  for (const path of [`/api/executions/${id}/cancel`, `/api/workflows/${workflowId}/execute`]) {
    const json = path.endsWith('execute') ? { teamId: service.teamId } : undefined
    expect((await service.call('POST', path, undefined, json)).status).toBe(401)
    expect((await service.call('POST', path, other.cookie, json)).status).toBe(403)
    expect((await service.call('POST', path, viewer, json)).status).toBe(403)
  }
  expect((await service.call('GET', `/api/executions/${NOBODY}`, viewer)).status).toBe(404)
  expect((await service.call('GET', `/api/executions?workflowId=${NOBODY}`, viewer)).status).toBe(404)
  expect((await service.call('GET', `/api/executions/team/${NOBODY}`, builder)).status).toBe(404)
  expect((await service.call('POST', `/api/executions/${NOBODY}/cancel`, operator)).status).toBe(404)
  for (const path of [
    '/api/executions/x',
    '/api/executions/team/x',
    '/api/executions?workflowId=x',
    '/api/executions',
  ]) {
    expect((await service.call('GET', path, viewer)).status, path).toBe(400)
  }
  expect((await service.call('POST', '/api/executions/x/cancel', operator)).status).toBe(400)
})

test('lists filter by status, workflow and time, count what they filter, and page newest first', async () => {
  const team = await service.otherTeam()
  const first = await create({}, team.cookie, team.teamId)
  const second = await create({}, team.cookie, team.teamId)
  const states = ['SUCCESS', 'FAILED', 'RUNNING', 'CANCELLED', 'PENDING']
  const ids: string[] = []
  for (let at = 0; at < 10; at++) {
    const { body } = await execute(at < 6 ? first : second, { teamId: team.teamId }, team.cookie)
    ids.push(body.executionId)
    const ended = states[at % 5] !== 'RUNNING' && states[at % 5] !== 'PENDING'
    await sql`update executions set status = ${states[at % 5]}, created_at = ${`2026-01-${10 + at}T00:00:00Z`},
      started_at = ${`2026-01-${10 + at}T00:00:01Z`}, error_message = ${at === 1 ? 'broke' : null},
      completed_at = case when ${ended} then ${`2026-01-${10 + at}T00:00:02.5Z`}::timestamptz end
      where id = ${body.executionId}`.execute(service.store.db)
  }
  const list = async (path: string) => (await service.call('GET', path, team.cookie)).body
  const seen = (page: Body) => page.content.map((item: Body) => ids.indexOf(item.id))
  const base = `/api/executions/team/${team.teamId}`

  const all = await list(base)
  expect(seen(all)).toEqual([9, 8, 7, 6, 5, 4, 3, 2, 1, 0])
  expect({ ...all, content: [] }).toEqual({
    content: [],
    totalElements: 10,
    totalPages: 1,
    number: 0,
    size: 20,
  })
  expect(all.content[8]).toEqual({
    id: ids[1],
    workflowId: first,
    workflowName: expect.any(String),
    status: 'FAILED',
    startedAt: '2026-01-11T00:00:01.000Z',
    finishedAt: '2026-01-11T00:00:02.500Z',
    durationMs: 1_500,
    triggerType: 'MANUAL',
    nodeCount: 2,
    errorMessage: 'broke',
    retriedFrom: null,
  })
  for (const [query, expected] of [
    ['?status=FAILED', [6, 1]],
    ['?status=PENDING', [9, 4]],
    [`?workflowId=${second}`, [9, 8, 7, 6]],
    [`?workflowId=${first}&status=SUCCESS`, [5, 0]],
    ['?from=2026-01-17T00:00:00Z', [9, 8, 7]],
    ['?to=2026-01-12T00:00:00Z', [1, 0]],
    ['?from=2026-01-12&to=2026-01-14', [3, 2]],
    ['?from=2026-01-12T02:00:00%2B02:00&to=2026-01-12T00:00:00.001Z', [2]],
    ['?from=2026-01-12T02:00:00+02:00&to=2026-01-12T00:00:00.001', [2]],
    ['?from=2026-01-12T00:00:00Z&to=2026-01-12T00:00:00Z', []],
    ['?from=2026-01-12&status=RUNNING', [7, 2]],
    [`?workflowId=${NOBODY}`, []],
  ] as const) {
    const page = await list(base + query)
    expect(seen(page), query).toEqual(expected)
    expect(page.totalElements, query).toBe(expected.length)
  }
  const page = await list(`${base}?page=1&size=3`)
  expect(seen(page)).toEqual([6, 5, 4])
  expect(page).toMatchObject({ totalElements: 10, totalPages: 4, number: 1, size: 3 })
  expect(await list(`${base}?page=50&size=3`)).toMatchObject({ content: [], totalElements: 10, number: 50 })
  expect(seen(await list(`/api/executions?workflowId=${second}&status=RUNNING`))).toEqual([7])

  const foreign = await create()
  await start(foreign)
  expect((await list(`${base}?workflowId=${foreign}`)).totalElements).toBe(0)
})

test.each([
  'status=DONE',
  'status=success',
  'workflowId=x',
  'page=-1',
  'size=101',
  'size=0',
  'from=yesterday',
  'from=2026-02-30',
  'from=2026-13-01',
  'from=1767225600',
  'to=2026-01-01T25:00:00Z',
  'from=2026-01-02&to=2026-01-01',
])('the lists refuse %s', async (query) => {
  const { status, body } = await service.call(
    'GET',
    `/api/executions/team/${service.teamId}?${query}`,
    viewer,
  )
  expect(status).toBe(400)
  expect(body.errors).toEqual([{ path: query.split('=')[0], message: expect.any(String) }])
})
