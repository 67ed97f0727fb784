import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { carryOutErrand } from '../../../activities/temporal/outbox.ts'
import { keep } from '../../support/keep.ts'
import type { Body } from '../../support/service.ts'
import { startWorkerless } from '../../support/workerless.ts'

const service = await keep(startWorkerless())
const { builder, operator, viewer, carrier, create, execute, start, read, errandsOf, withTemporal } = service
const other = await service.otherTeam()

const NOBODY = '00000000-0000-4000-8000-000000000000'
const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
test('a PENDING execution is cancelled without Temporal, and is not started later', async () => {
  const id = await start(await create())
  const { status, text } = await service.call('POST', `/api/executions/${id}/cancel`, operator)
  expect(status).toBe(200)
  expect(text).toBe('')
  const cancelled = await read(id)
  expect(cancelled).toMatchObject({ status: 'CANCELLED', startedAt: null, completedAt: TIME, durationMs: 0 })
  expect(cancelled.errorMessage).toBe('The execution was cancelled before it started')
  expect(await errandsOf(id)).toEqual(['CANCEL'])
  expect(await carryOutErrand(carrier, { kind: 'START', subjectId: id, key: '' })).toBe(true)
  await expect(carrier.client.workflow.getHandle(id).describe()).rejects.toThrow(/not found/i)
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

test('who polls an execution and names the tag of the last response gets 304 until something has changed', async () => {
  const id = await start(await create())
  const ask = (tag: string, as = viewer) =>
    service.call('GET', `/api/executions/${id}`, as, undefined, { 'If-None-Match': tag })
  const first = await ask('"another"')
  const tag = first.headers.get('etag')!
  expect(first).toMatchObject({ status: 200, body: { id, status: 'PENDING' } })
  for (const known of [tag, tag.replace('W/', ''), `"another", ${tag}`, '*']) {
    const { status, text, headers } = await ask(known)
    expect({ status, text, tag: headers.get('etag') }).toEqual({ status: 304, text: '', tag })
    expect(headers.get('x-ratelimit-remaining')).not.toBeNull()
  }
  // Those who may not read it learn nothing by its tag.
  expect((await ask(tag, other.cookie)).status).toBe(403)
  expect((await ask(tag, 'sdk_unknown')).status).toBe(401)
  await service.call('POST', `/api/executions/${id}/cancel`, operator)
  const changed = await ask(tag)
  expect(changed).toMatchObject({ status: 200, body: { status: 'CANCELLED' } })
  expect(changed.headers.get('etag')).not.toBe(tag)
})

test('a RUNNING execution is cancelled through Temporal', async () => {
  const workflowId = await create()
  const { id, status, text } = await withTemporal(async () => {
    const id = await start(workflowId)
    return { id, ...(await service.call('POST', `/api/executions/${id}/cancel`, operator)) }
  })
  expect(status).toBe(200)
  expect(text).toBe('')
  const { history } = await carrier.client.workflowService.getWorkflowExecutionHistory({
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
  await carrier.client.workflow.getHandle(id).terminate()
})

test('a process of the release before 0017, which still calls cancel_run, cancels too', async () => {
  const pending = await start(await create())
  const running = await withTemporal(async () => start(await create()))
  for (const id of [pending, running])
    await sql`select cancel_run(${id}, 'Its loop has ended')`.execute(service.store.db)
  expect(await read(pending)).toMatchObject({ status: 'CANCELLED', errorMessage: 'Its loop has ended' })
  expect((await read(running)).status).toBe('RUNNING')
  expect(await errandsOf(running)).toEqual(['CANCEL'])
  await carrier.client.workflow.getHandle(running).terminate()
})

test('while Temporal is not reachable, the cancel of a RUNNING execution stays queued', async () => {
  const workflowId = await create()
  const id = await withTemporal(() => start(workflowId))
  expect((await service.call('POST', `/api/executions/${id}/cancel`, operator)).status).toBe(200)
  expect(await errandsOf(id)).toEqual(['CANCEL'])
  await carrier.client.workflow.getHandle(id).terminate()
})

test('an ended execution cannot be cancelled', async () => {
  for (const status of ['SUCCESS', 'FAILED', 'CANCELLED']) {
    const id = await start(await create())
    await service.store.db.updateTable('executions').set({ status }).where('id', '=', id).execute()
    const answer = await service.call('POST', `/api/executions/${id}/cancel`, operator)
    expect(answer.status).toBe(409)
    expect(answer.body.message).toBe(`The execution has already ended: ${status}`)
  }
})

const actsOn = async (id: string) => {
  const rows = await service.store.db
    .selectFrom('auditEntries')
    .select(['action', 'details'])
    .where('resourceId', '=', id)
    .execute()
  return rows.map(({ action, details }) => [action, details])
}

test('asking again to cancel a RUNNING execution is fine, but no second act', async () => {
  const workflowId = await create()
  const id = await start(workflowId)
  await service.store.db.updateTable('executions').set({ status: 'RUNNING' }).where('id', '=', id).execute()
  const cancel = () => service.call('POST', `/api/executions/${id}/cancel`, operator)
  const answers = [await cancel(), ...(await Promise.all([cancel(), cancel(), cancel()]))]
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  expect(await actsOn(id)).toEqual([['EXECUTION_CANCELLED', { workflowId, status: 'RUNNING' }]])
})

test('a retry and a rerun are audited once, with the execution that they start', async () => {
  const workflowId = await create()
  const id = await start(workflowId)
  await service.store.db.updateTable('executions').set({ status: 'FAILED' }).where('id', '=', id).execute()
  const path = `/api/executions/${id}`
  const key = { 'Idempotency-Key': crypto.randomUUID() }
  const retry = () => service.call('POST', `${path}/retry`, operator, {}, key)
  const answers = [await retry(), await retry(), ...(await Promise.all([retry(), retry()]))]
  const made = new Set(answers.map(({ body }) => body.executionId))
  expect(made.size).toBe(1)
  const details = { workflowId, version: 1, retriedFrom: id }
  expect(await actsOn([...made][0])).toEqual([['EXECUTION_RETRIED', details]])
  const rerun = await service.call('POST', `${path}/rerun`, operator, {})
  expect(rerun.status).toBe(202)
  expect(await actsOn(rerun.body.executionId)).toEqual([['EXECUTION_RERUN', details]])
})

test('one of many concurrent cancels succeeds, the others respond 409', async () => {
  const id = await start(await create())
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => service.call('POST', `/api/executions/${id}/cancel`, operator)),
  )
  expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(9).fill(409)])
})

test('responds 401 without credentials, 403 to lower roles and other teams, 404 if missing', async () => {
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

test('lists filter by status, workflow and time, count what matches, and page newest first', async () => {
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
    draft: false,
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
    retriedBy: null,
    startedBy: { kind: 'USER', id: expect.any(String), name: 'Ada Byron' },
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

test('who or what started an execution stands in the list and in it', async () => {
  const workflowId = await create({ name: 'Started' })
  const put = (id: string, values: object) =>
    service.store.db.updateTable('executions').set(values).where('id', '=', id).execute()
  const starter = async (id: string, as = operator) => {
    const one = (await service.call('GET', `/api/executions/${id}`, as)).body.startedBy
    const { body } = await service.call('GET', `/api/executions?workflowId=${workflowId}&size=100`, as)
    const listed = body.content.find((item: Body) => item.id === id).startedBy
    expect(listed).toEqual(one)
    return one
  }
  const person = await service.signUp('OPERATOR')
  const token = await service.token('OPERATOR')
  const { body: me } = await service.call('GET', '/api/auth/me', person.cookie)
  const executeAs = async (as: string): Promise<string> =>
    (await execute(workflowId, { teamId: service.teamId }, as)).body.executionId
  const byPerson = await executeAs(person.cookie)
  const name = `${me.firstName} ${me.lastName}`
  expect(await starter(byPerson)).toEqual({ kind: 'USER', id: me.id, name })
  expect(await starter(byPerson, viewer)).toBeNull()
  const byToken = await executeAs(token)
  const { startedById } = await service.store.db
    .selectFrom('executions')
    .select('startedById')
    .where('id', '=', byToken)
    .executeTakeFirstOrThrow()
  const { name: tokenName } = await service.store.db
    .selectFrom('sdkTokens')
    .select('name')
    .where('id', '=', startedById)
    .executeTakeFirstOrThrow()
  expect(await starter(byToken)).toEqual({ kind: 'SDK_TOKEN', id: startedById, name: tokenName })
  const child = await executeAs(token)
  await put(child, { parentId: byPerson, parentKey: 'sub', trigger: 'SUB_WORKFLOW' })
  expect(await starter(child)).toEqual({ kind: 'EXECUTION', id: byPerson, name: 'Started' })
  const system = { startedByKind: 'SYSTEM', startedById: null }
  for (const [trigger, kind] of [
    ['SCHEDULE', 'SCHEDULE'],
    ['WEBHOOK', 'WEBHOOK'],
    ['ERROR', 'FAILURE'],
    ['PLAYBOOK', 'PLAYBOOK'],
    ['EVALUATION', 'EVALUATION'],
    ['CHAT', 'VISITOR'],
  ] as const) {
    await put(byToken, { ...system, trigger })
    expect(await starter(byToken, service.admin), trigger).toEqual({ kind, id: null, name: null })
  }
  // A chat of somebody else does not tell whose it is.
  expect(await starter(byToken)).toBeNull()
  await put(byToken, { trigger: 'SCHEDULE', status: 'FAILED' })
  const { body: rerun } = await service.call('POST', `/api/executions/${byToken}/rerun`, person.cookie, {})
  expect(await starter(rerun.executionId)).toEqual({ kind: 'USER', id: me.id, name })
  // Of somebody who has been deleted, the id is left.
  const gone = crypto.randomUUID()
  await put(byPerson, { startedById: gone })
  expect(await starter(byPerson)).toEqual({ kind: 'USER', id: gone, name: null })
})
