import { v7 as uuid } from 'uuid'
import { expect, test } from 'vitest'
import { keep } from '../../../support/keep.ts'
import type { Body } from '../../../support/service.ts'
import { startWorkerless } from '../../../support/workerless.ts'

const service = await keep(startWorkerless())
const { builder, operator, viewer, create, execute, start, read, errandsOf, withTemporal } = service
const other = await service.otherTeam()

const trigger = { id: 'start', type: 'MANUAL_TRIGGER' }
const NOBODY = '00000000-0000-4000-8000-000000000000'
const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

test('while Temporal is not reachable, a start is accepted as PENDING and its START is queued', async () => {
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
    startedBy: null,
    retriedFrom: null,
    retriedBy: null,
    recovery: null,
    retries: [],
    onlyNode: null,
    until: null,
    draft: false,
    callback: null,
    usage: null,
    hidden: false,
    createdAt: body.startedAt,
    parentExecutionId: null,
    parentNodeId: null,
    queuedAt: null,
    startedAt: null,
    temporal: null,
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

test('an execution that Temporal took is RUNNING', async () => {
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

test('`trigger` says how the execution was started; lists call it `triggerType`', async () => {
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
      draft: false,
      errorMessage: null,
      startedBy: null,
      retriedFrom: null,
      retriedBy: null,
    },
  ])
})

test('an execution keeps the version and the name that its workflow had when it was started', async () => {
  const id = await create({ name: `before ${uuid()}` })
  const first = await start(id)
  await service.call('PUT', `/api/workflows/${id}`, builder, {
    name: `after ${id}`,
    nodes: [trigger],
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

test('a start sees at once what another process has changed, and that the workflow was deleted', async () => {
  const id = await create({ name: `before ${uuid()}` })
  await start(id)
  await start(id)
  const { db } = service.store
  await db
    .updateTable('workflows')
    .set({ name: `after ${id}` })
    .where('id', '=', id)
    .execute()
  expect(await read(await start(id))).toMatchObject({ workflowName: `after ${id}` })
  await db.deleteFrom('workflows').where('id', '=', id).execute()
  expect((await execute(id, { teamId: service.teamId })).status).toBe(404)
})

test('an execution starts at the manual trigger, else at the first; without any it is refused', async () => {
  const hook = { id: 'hook', type: 'WEBHOOK_TRIGGER', config: { path: 'in' } }
  const at = async (id: string) =>
    (
      await service.store.db
        .selectFrom('executions')
        .select('triggerNodeId')
        .where('workflowId', '=', id)
        .executeTakeFirst()
    )?.triggerNodeId
  const both = await create({ nodes: [hook, trigger], edges: [] })
  await start(both)
  expect(await at(both)).toBe('start')
  const one = await create({ nodes: [hook], edges: [] })
  await start(one)
  expect(await at(one)).toBe('hook')
  const none = await execute(await create({ nodes: [{ id: 'set', type: 'NO_OP' }], edges: [] }))
  expect(none.status).toBe(409)
  expect(none.body.message).toBe('The workflow has no trigger to start at')
})

test('a start with bad input is refused', async () => {
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
    { path: 'teamId', message: 'must be a string, not a number' },
    { path: 'data', message: 'must be an object, not a number' },
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

test('data keeps everything that JSON can express: NUL, lone surrogates, the key `constructor`', async () => {
  const data = { constructor: { prototype: 1 }, nul: 'a\0b', lone: '\ud800', deep: [[{ ü: 1e300 }]] }
  const { status, body } = await execute(await create(), { teamId: service.teamId, data })
  expect(status).toBe(202)
  expect((await read(body.executionId)).inputData).toEqual(data)
})

test('requests with the same Idempotency-Key and body start one execution', async () => {
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

test('fifty concurrent requests with one Idempotency-Key start one execution', async () => {
  const id = await create()
  const headers = { 'idempotency-key': 'race' }
  const calls = Array.from({ length: 50 }, (_, at) =>
    execute(id, { teamId: service.teamId, data: { n: at % 10 === 9 ? 2 : 1 } }, operator, headers),
  )
  const answers = await Promise.all(calls)
  const taken = answers.filter(({ status }) => status === 202)
  expect(new Set(taken.map(({ body }) => body.executionId)).size).toBe(1)
  // Whichever body came first, the requests with the other body are refused.
  expect([45, 5]).toContain(taken.length)
  expect(answers.filter(({ status }) => status === 409)).toHaveLength(50 - taken.length)
  expect((await service.call('GET', `/api/executions?workflowId=${id}`, viewer)).body.totalElements).toBe(1)
  expect(await errandsOf(taken[0]!.body.executionId)).toEqual(['START'])
})

test('keys of the body that a start does not know are warnings of its response', async () => {
  const id = await create()
  const body = { teamId: service.teamId, input: { n: 1 }, pined: {}, zzz: 1 }
  const { status, body: started } = await execute(id, body)
  expect(status).toBe(202)
  expect(started.warnings).toEqual([
    { path: 'input', message: '"input" is unknown here and was not read; did you mean "data"?' },
    { path: 'pined', message: '"pined" is unknown here and was not read; did you mean "pinned"?' },
    {
      path: 'zzz',
      message:
        '"zzz" is unknown here and was not read; known are teamId, data, request, trigger, until, reuseFrom, pinned, version, callbackUrl, callbackSecret',
    },
  ])
  expect((await read(started.executionId)).inputData).toEqual({})
  const without = await execute(id, { teamId: service.teamId, data: {} })
  expect(without.body).not.toHaveProperty('warnings')
})
