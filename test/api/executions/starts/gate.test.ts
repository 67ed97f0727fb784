import { sql } from 'kysely'
import { pino } from 'pino'
import { afterAll, expect, test } from 'vitest'
import { createApp } from '../../../../api/app.ts'
import { openDatabase } from '../../../../db/connection.ts'
import type { Projection } from '../../../../db/executions/records/projection.ts'
import { saveProjection } from '../../../../db/executions/records/save.ts'
import { addExecution } from '../../../../db/executions/starts/add.ts'
import type { Start } from '../../../../db/executions/starts/origins.ts'
import { readStartable } from '../../../../db/executions/starts/startable.ts'
import { abandonLoopPauses } from '../../../../db/executions/waits/pauses.ts'
import { edges } from '../../../support/engine/graphs.ts'
import { keep } from '../../../support/keep.ts'
import { startService } from '../../../support/service.ts'

const service = await keep(startService())
const operator = (await service.signUp('OPERATOR')).cookie
// A second API on the same database, with its own connections.
const { db, close } = openDatabase(service.database.url, { max: 10, name: 'test 2' })
const app = createApp({
  store: { ...service.store, db },
  bus: service.bus,
  log: pino({ level: 'silent' }),
  publicUrl: 'http://127.0.0.1:3000',
  isReady: async () => ({ database: true, temporal: true, worker: true }),
  carryOut: async () => false,
})
const other: typeof service.request = async (path, { as, json, ...init } = {}) =>
  app.request(path, {
    ...init,
    headers: { cookie: as!, 'content-type': 'application/json' },
    body: JSON.stringify(json),
  })
afterAll(close)

const nodes = [
  { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
  { id: 'hook', type: 'WEBHOOK_TRIGGER', config: { path: 'in' } },
  { id: 'end', type: 'NO_OP', config: {} },
]

// biome-ignore lint/suspicious/noExplicitAny: responses are read field by field
type Body = any
async function call(method: string, path: string, json?: unknown, as = service.admin, via = service.request) {
  const answer = await via(path, { method, json, as })
  const text = await answer.text()
  const body: Body = text === '' ? null : JSON.parse(text)
  return { status: answer.status, body }
}

let count = 0
async function create(settings?: object): Promise<string> {
  const json = {
    teamId: service.teamId,
    name: `gated ${++count}`,
    nodes,
    edges: edges('start hook -> end'),
    settings,
  }
  const { status, body } = await call('POST', '/api/workflows', json)
  expect(status, JSON.stringify(body)).toBe(201)
  return body.id
}

const execute = (id: string, data: object = {}, via = service.request) =>
  call('POST', `/api/workflows/${id}/execute`, { teamId: service.teamId, data }, operator, via)
const start = async (id: string, data?: object): Promise<string> => {
  const { status, body } = await execute(id, data)
  expect(status, JSON.stringify(body)).toBe(202)
  return body.executionId
}

const change = async (id: string, settings: object) =>
  expect((await call('PUT', `/api/workflows/${id}`, { settings })).status).toBe(200)
const read = async (id: string): Promise<Body> => (await call('GET', `/api/executions/${id}`)).body
const cancel = async (id: string) => (await call('POST', `/api/executions/${id}/cancel`)).status

/** Sets the final status, as the projection of an ended run does. */
const end = (id: string, status = 'SUCCESS') =>
  sql`update executions set status = ${status}, completed_at = now() where id = ${id}`.execute(
    service.store.db,
  )
const run = (id: string) =>
  sql`with done as (delete from outbox where subject_id = ${id})
    update executions set status = 'RUNNING', started_at = now() where id = ${id}`.execute(service.store.db)
async function errandsOf(id: string): Promise<string[]> {
  const { rows } = await sql<{ kind: string }>`
    select kind from outbox where subject_id = ${id} order by kind`.execute(service.store.db)
  return rows.map(({ kind }) => kind)
}

async function waiting(id: string): Promise<boolean> {
  const { status, queuedAt } = await read(id)
  expect(status).toBe('PENDING')
  expect(await errandsOf(id)).toEqual(queuedAt ? [] : ['START'])
  return queuedAt !== null
}

test('settings are stored with their defaults, and each can be replaced alone', async () => {
  const id = await create({
    concurrency: { limit: 2, nonsense: 1 },
    retention: { days: 30 },
    saveData: { inputs: false },
    timezone: 'Europe/Berlin',
    nonsense: true,
  })
  const settings = {
    timeoutMs: null,
    concurrency: { limit: 2, key: null, policy: 'queue' },
    errorWorkflowId: null,
    timezone: 'Europe/Berlin',
    retention: { days: 30, count: null },
    saveData: { inputs: false, outputs: true },
    strict: false,
    chatHistoryTokens: 8_000,
    notes: [],
  }
  expect((await call('GET', `/api/workflows/${id}`)).body.settings).toEqual(settings)
  await change(id, { retention: null, concurrency: { limit: 1, policy: 'reject' } })
  expect((await call('GET', `/api/workflows/${id}`)).body.settings).toEqual({
    ...settings,
    retention: null,
    concurrency: { limit: 1, key: null, policy: 'reject' },
  })
})

test('all problems of the settings are reported at once', async () => {
  const settings = {
    timeoutMs: 0,
    concurrency: { limit: 1_001, key: '{{ $lowercase($trigger.a) }}', policy: 'wait' },
    errorWorkflowId: 'x',
    timezone: 'Mars/Olympus',
    retention: { days: 0, count: 1_000_001 },
    saveData: { inputs: 'no' },
  }
  const { status, body } = await call('POST', '/api/workflows', {
    teamId: service.teamId,
    name: 'bad',
    settings,
  })
  expect(status).toBe(400)
  expect(body.errors.map(({ path }: Body) => path)).toEqual([
    'settings.timeoutMs',
    'settings.concurrency.limit',
    'settings.concurrency.key',
    'settings.concurrency.policy',
    'settings.errorWorkflowId',
    'settings.timezone',
    'settings.retention.days',
    'settings.retention.count',
    'settings.saveData.inputs',
  ])
  for (const key of ['{{ $nodes.a.b }}', '{{ $trigger.a', 'x {{ $trigger[0] }}', '$nodes.a', '', 'a\0b', 5]) {
    const bad = { teamId: service.teamId, name: 'bad', settings: { concurrency: { limit: 1, key } } }
    expect((await call('POST', '/api/workflows', bad)).status, String(key)).toBe(400)
  }
})

test('an error workflow must belong to the team and have an ERROR_TRIGGER', async () => {
  const stranger = await service.otherTeam()
  const plain = await create()
  const errors = { nodes: [{ id: 'e', type: 'ERROR_TRIGGER', config: {} }] }
  const make = async (teamId: string, as: string, more: object) =>
    (await call('POST', '/api/workflows', { teamId, name: `errors ${++count}`, ...more }, as)).body.id
  const theirs = await make(stranger.teamId, stranger.cookie, errors)
  const ours = await make(service.teamId, service.admin, errors)
  for (const errorWorkflowId of [plain, theirs, crypto.randomUUID()]) {
    const json = { teamId: service.teamId, name: `x ${++count}`, settings: { errorWorkflowId } }
    for (const [method, path] of [
      ['POST', '/api/workflows'],
      ['PUT', `/api/workflows/${plain}`],
    ] as const) {
      const { status, body } = await call(method, path, json)
      expect(status).toBe(400)
      expect(body.errors[0].path).toBe('settings.errorWorkflowId')
    }
  }
  await change(plain, { errorWorkflowId: ours })
  // A workflow can be its own error workflow: the graph of the same request counts.
  const own = { ...errors, edges: [], settings: { errorWorkflowId: plain } }
  expect((await call('PUT', `/api/workflows/${plain}`, own)).status).toBe(200)
  // A deleted error workflow is accepted if it is unchanged, so that a read workflow can be sent back.
  await change(plain, { errorWorkflowId: ours })
  await call('DELETE', `/api/workflows/${ours}`)
  await change(plain, { errorWorkflowId: ours, timeoutMs: 5_000 })
})

test('a queued execution has no START, and the end of another starts the one that came first', async () => {
  const id = await create({ concurrency: { limit: 2 } })
  const runs: string[] = []
  for (let i = 0; i < 6; i++) runs.push(await start(id))
  expect(await Promise.all(runs.map(waiting))).toEqual([false, false, true, true, true, true])
  await run(runs[1]!)
  await end(runs[1]!, 'FAILED')
  expect(await errandsOf(runs[2]!)).toEqual(['START'])
  expect(await Promise.all(runs.slice(2).map(waiting))).toEqual([false, true, true, true])
  // Cancelling a queued execution frees no place; cancelling one that has a place but has not begun does.
  expect(await cancel(runs[4]!)).toBe(200)
  expect(await read(runs[4]!)).toMatchObject({ status: 'CANCELLED', queuedAt: null, startedAt: null })
  expect(await waiting(runs[3]!)).toBe(true)
  expect(await cancel(runs[0]!)).toBe(200)
  expect(await waiting(runs[3]!)).toBe(false)
  expect(await waiting(runs[5]!)).toBe(true)
  await end(runs[2]!)
  await end(runs[3]!)
  expect(await waiting(runs[5]!)).toBe(false)
})

test('a higher limit starts as many as fit, no limit starts all, a lower limit starts none', async () => {
  const id = await create({ concurrency: { limit: 1 } })
  const runs: string[] = []
  for (let i = 0; i < 6; i++) runs.push(await start(id))
  await change(id, { concurrency: { limit: 3 } })
  expect(await Promise.all(runs.map(waiting))).toEqual([false, false, false, true, true, true])
  await change(id, { concurrency: { limit: 2 } })
  await end(runs[0]!)
  expect(await waiting(runs[3]!)).toBe(true)
  await end(runs[1]!)
  expect(await waiting(runs[3]!)).toBe(false)
  await change(id, { concurrency: null })
  expect(await Promise.all(runs.slice(3).map(waiting))).toEqual([false, false, false])
  expect(await waiting(await start(id))).toBe(false)
})

test('the limit counts for each key, whatever its value; a missing value is a key too', async () => {
  const id = await create({ concurrency: { limit: 1, key: 'c {{ $trigger.body.customer }}' } })
  const sees = async (data: object) => waiting(await start(id, data))
  const long = 'x'.repeat(100_000)
  for (const customer of ['a', 'b', long, `${long}y`, '\0', 17, { deep: [1] }]) {
    expect(await sees({ body: { customer } })).toBe(false)
    expect(await sees({ body: { customer } })).toBe(true)
  }
  expect(await sees({})).toBe(false)
  for (const data of [{ body: null }, { body: [{ customer: 'z' }] }, { body: { customer: '' } }])
    expect(await sees(data)).toBe(true)
  // The key is read from a webhook's body in the same way.
  const hook = async (customer: string) =>
    call('POST', `/hooks/${id}/in`, { customer }).then(({ body }) => waiting(body.executionId))
  await call('PUT', `/api/workflows/${id}`, { active: true })
  expect(await hook('a')).toBe(true)
  expect(await hook('new')).toBe(false)
  // A path without braces is read as an expression, not as a constant that all executions share.
  await change(id, { concurrency: { limit: 1, key: '$trigger.region' } })
  for (const region of ['eu', 'us']) expect(await sees({ region })).toBe(false)
  expect(await sees({ region: 'eu' })).toBe(true)
})

test('reject responds 409, to webhooks too; without a caller, an execution says why', async () => {
  const id = await create({ concurrency: { limit: 1, policy: 'reject' } })
  await call('PUT', `/api/workflows/${id}`, { active: true })
  const first = await start(id)
  const message = 'The workflow has as many executions under way as its settings allow: 1'
  expect(await execute(id)).toMatchObject({ status: 409, body: { message } })
  expect(await call('POST', `/hooks/${id}/in`, {})).toMatchObject({ status: 409, body: { message } })
  const workflow = (await readStartable(service.store, id, () => true))!
  const firing: Start = {
    origin: 'SCHEDULE',
    id: crypto.randomUUID(),
    node: workflow.graph.nodes[0]!,
    trigger: 'SCHEDULE',
    data: {},
    by: { kind: 'SYSTEM', id: null, name: 'schedule' },
  }
  const fired = await addExecution(service.store, workflow, firing)
  expect(fired).toMatchObject({ status: 'CANCELLED', fresh: true, queued: false })
  expect(await read(fired.executionId)).toMatchObject({ status: 'CANCELLED', errorMessage: message })
  expect(await errandsOf(fired.executionId)).toEqual([])
  expect(await addExecution(service.store, workflow, firing)).toMatchObject({ fresh: false })
  await end(first)
  expect((await execute(id)).status).toBe(202)
})

test('a repeated Idempotency-Key finds its execution again and takes no second place', async () => {
  const id = await create({ concurrency: { limit: 1, policy: 'replace' } })
  const json = { teamId: service.teamId, data: { n: 1 } }
  const again = (n = 1) =>
    service.request(`/api/workflows/${id}/execute`, {
      method: 'POST',
      as: operator,
      json: { ...json, data: { n } },
      headers: { 'idempotency-key': 'once' },
    })
  const answers = await Promise.all(Array.from({ length: 10 }, () => again()))
  const ids = new Set(await Promise.all(answers.map(async (a) => ((await a.json()) as Body).executionId)))
  expect(ids.size).toBe(1)
  expect((await again(2)).status).toBe(409)
  expect((await read([...ids][0]!)).status).toBe('PENDING')
})

test('replace ends the queued execution, cancels the oldest, and starts when that has ended', async () => {
  const id = await create({ concurrency: { limit: 2, policy: 'replace' } })
  const [a, b] = [await start(id), await start(id)]
  await run(a)
  await run(b)
  const c = await start(id)
  expect(await waiting(c)).toBe(true)
  expect(await errandsOf(a)).toEqual(['CANCEL'])
  expect(await errandsOf(b)).toEqual([])
  const d = await start(id)
  expect(await read(c)).toMatchObject({
    status: 'CANCELLED',
    errorMessage: 'A newer execution took its place',
  })
  expect(await errandsOf(b)).toEqual([])
  await end(a, 'CANCELLED')
  expect(await waiting(d)).toBe(false)
  // An execution that has not begun is ended at once, and its place is free at once.
  await end(b)
  const [e, f] = [await start(id), await start(id)]
  expect((await read(d)).status).toBe('CANCELLED')
  expect([await waiting(e), await waiting(f)]).toEqual([false, false])
})

test('the limit holds for fifty concurrent starts over two APIs, and while replacing', async () => {
  const id = await create({ concurrency: { limit: 3 } })
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, n) => execute(id, {}, n % 2 ? other : service.request)),
  )
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]))
  const count = async () => {
    const { rows } = await sql<{ placed: number; queued: number }>`
      select count(*) filter (where queued_at is null) as placed, count(queued_at) as queued
      from executions where workflow_id = ${id} and status in ('PENDING', 'RUNNING')`.execute(
      service.store.db,
    )
    return rows[0]
  }
  expect(await count()).toEqual({ placed: 3, queued: 47 })
  await change(id, { concurrency: { limit: 3, policy: 'replace' } })
  const { rows } = await sql<{ id: string }>`
    select id from executions where workflow_id = ${id} and queued_at is null`.execute(service.store.db)
  for (const row of rows) await run(row.id)
  const racing = await Promise.all([
    ...rows.map((row) => end(row.id).then(() => 202)),
    ...Array.from({ length: 20 }, (_, n) =>
      execute(id, {}, n % 2 ? other : service.request).then(({ status }) => status),
    ),
    ...rows.map((row) => cancel(row.id).then(() => 202)),
  ])
  expect(new Set(racing)).toEqual(new Set([202]))
  // An execution is only queued while all places are taken.
  const { placed, queued } = (await count())!
  expect(placed).toBeLessThanOrEqual(3)
  if (queued > 0) expect(placed).toBe(3)
})

async function gateIsAwaited(): Promise<void> {
  const blocked = sql<{ n: number }>`select count(*) as n from pg_locks
    where locktype = 'advisory' and not granted
      and database = (select oid from pg_database where datname = current_database())`
  await expect.poll(async () => (await blocked.execute(service.store.db)).rows[0]!.n).toBe(1)
}

test('the end of an execution is saved although it deadlocks with the holder of the gate', async () => {
  const id = await create({ concurrency: { limit: 1 } })
  const [first, second] = [await start(id), await start(id)]
  await run(first)
  const done = { status: 'SUCCESS', startedAt: 0, completedAt: 1, errorMessage: null, nodes: [] } as const
  const projection = {
    ...done,
    position: 0,
    began: true,
    runId: 'r',
    lastEventId: 1,
  } as unknown as Projection
  let saved: Promise<unknown> | undefined
  await service.store.db.transaction().execute(async (tx) => {
    // PostgreSQL aborts the transaction that looks for a deadlock first. This makes it the projection's.
    await sql`set local deadlock_timeout = '60s'`.execute(tx)
    await sql`select hold_gate(gate_id) from executions where id = ${first}`.execute(tx)
    saved = saveProjection(service.store, first, projection, { values: true })
    await gateIsAwaited()
    await sql`update executions set checked_at = now() where id = ${first}`.execute(tx)
  })
  expect(await saved).toMatchObject({ status: 'SUCCESS' })
  expect(await waiting(second)).toBe(false)
})

test('the pauses of a loop are abandoned although that deadlocks with the holder of a gate', async () => {
  const parent = await start(await create())
  await run(parent)
  const workflow = (await readStartable(
    service.store,
    await create({ concurrency: { limit: 1 } }),
    () => true,
  ))!
  const addChild = (iteration: number) =>
    addExecution(service.store, workflow, {
      origin: 'PARENT',
      id: crypto.randomUUID(),
      node: workflow.graph.nodes[0]!,
      trigger: 'SUB_WORKFLOW',
      data: {},
      by: { kind: 'SYSTEM', id: null, name: 'parent' },
      parent: { executionId: parent, key: `sub#${iteration}`, depth: 1 },
    })
  const children = [(await addChild(0)).executionId, (await addChild(1)).executionId] as const
  let ended: Promise<void> | undefined
  await service.store.db.transaction().execute(async (tx) => {
    // PostgreSQL aborts the transaction that looks for a deadlock first. This makes it the other one.
    await sql`set local deadlock_timeout = '60s'`.execute(tx)
    await sql`select hold_gate(gate_id) from executions where id = ${children[0]}`.execute(tx)
    ended = abandonLoopPauses(service.store, parent, ['sub'], '', false)
    ended.catch(() => {})
    await gateIsAwaited()
    await sql`update executions set checked_at = now() where id = ${children[0]}`.execute(tx)
  })
  await ended
  for (const id of children) expect(await read(id)).toMatchObject({ status: 'CANCELLED' })
})

test('a child execution does not queue behind the parent that waits for it', async () => {
  const id = await create({ concurrency: { limit: 1 } })
  const workflow = (await readStartable(service.store, id, () => true))!
  const parent = await start(id)
  const child: Start & { origin: 'PARENT' } = {
    origin: 'PARENT',
    id: crypto.randomUUID(),
    node: workflow.graph.nodes[0]!,
    trigger: 'SUB_WORKFLOW',
    data: {},
    by: { kind: 'SYSTEM', id: null, name: 'parent' },
    parent: { executionId: parent, key: 'sub#', depth: 1 },
  }
  await expect(addExecution(service.store, workflow, child)).rejects.toMatchObject({ code: 'CONFLICT' })
  const detached = { ...child, parent: { ...child.parent, detached: true } }
  expect(await addExecution(service.store, workflow, detached)).toMatchObject({ queued: true })
})
