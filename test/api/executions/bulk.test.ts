import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

const service = await keep(startService({ rateLimits: false }))
const operator = await service.token('OPERATOR')

type Answer = {
  matched: number
  cancelled?: number
  retried?: number
  executions?: { executionId: string; retriedFrom: string }[]
  skipped: { id: string; reason: string }[]
  remaining: number
}

const UNKNOWN = '019aa1b2-3c4d-7e5f-8a6b-7c8d9e0f1a2b'

async function call<T = Answer>(verb: 'cancel' | 'retry', json: unknown, as = operator) {
  const path = `/api/executions/team/${service.teamId}/${verb}`
  const answer = await service.request(path, { method: 'POST', as, json })
  return { status: answer.status, body: (await answer.json()) as T }
}

async function create(settings?: unknown): Promise<string> {
  const nodes = [
    { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
    { id: 'end', type: 'NO_OP', config: {} },
  ]
  const json = {
    teamId: service.teamId,
    name: `w ${crypto.randomUUID()}`,
    nodes,
    edges: edges('start -> end'),
    settings,
  }
  const answer = await service.request('/api/workflows', { method: 'POST', as: service.admin, json })
  return ((await answer.json()) as { id: string }).id
}

async function execute(workflowId: string): Promise<string> {
  const json = { teamId: service.teamId, data: { n: 1 } }
  const answer = await service.request(`/api/workflows/${workflowId}/execute`, {
    method: 'POST',
    as: operator,
    json,
  })
  return ((await answer.json()) as { executionId: string }).executionId
}

/**
 * Copies an execution `count` times with another status, and optionally another creation time. Returns the
 * ids.
 */
async function copy(
  id: string,
  status: string,
  count = 1,
  createdAt = sql`null::timestamptz`,
): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`insert into executions (id, team_id, workflow_id, workflow_name,
      workflow_version, node_count, trigger, trigger_node_id, input_data, input_bytes, started_by_kind, status,
      created_at, completed_at)
    select gen_random_uuid(), team_id, workflow_id, workflow_name, workflow_version, node_count, trigger,
      trigger_node_id, input_data, input_bytes, started_by_kind, ${status}, coalesce(${createdAt}, now()),
      case when ${status} not in ('PENDING', 'RUNNING') then now() end
    from executions, generate_series(1, ${count}) where id = ${id} returning id`.execute(service.store.db)
  return rows.map((row) => row.id)
}

async function statuses(ids: string[]): Promise<string[]> {
  const rows = await service.store.db
    .selectFrom('executions')
    .select(['id', 'status'])
    .where('id', 'in', ids)
    .execute()
  return ids.map((id) => rows.find((row) => row.id === id)!.status)
}

/** The errands that are queued for these executions; `later` if they are not due yet. */
async function errands(ids: string[]): Promise<string[]> {
  const { rows } = await sql<{ kind: string; due: boolean }>`
    select kind, due_at <= now() as due from outbox where subject_id = any(${ids}::uuid[]) order by 1`.execute(
    service.store.db,
  )
  return rows.map(({ kind, due }) => (due ? kind : `${kind} later`))
}

async function entries(action: string) {
  const rows = await service.store.db
    .selectFrom('auditEntries')
    .select('details')
    .where('action', '=', action)
    .orderBy('seq')
    .execute()
  return rows.map((row) => row.details as Record<string, unknown>)
}

test('all problems of a filter are reported at once', async () => {
  const wrong = {
    status: 'SUCCESS',
    workflowId: 'x',
    from: 'yesterday',
    ids: ['x', UNKNOWN],
  }
  const paths = async (verb: 'cancel' | 'retry', json: unknown) => {
    const { status, body } = await call<{ errors: { path: string }[] }>(verb, json)
    expect(status).toBe(400)
    return body.errors.map(({ path }) => path)
  }
  expect(await paths('cancel', { filter: wrong })).toEqual([
    'filter.status',
    'filter.workflowId',
    'filter.from',
    'filter.ids[0]',
  ])
  expect(await paths('retry', { filter: { status: 'RUNNING' }, version: 'newest' })).toEqual([
    'filter.status',
    'version',
  ])
  expect(await paths('cancel', {})).toEqual(['filter'])
  expect(await paths('cancel', { filter: {} })).toEqual(['filter'])
  expect(await paths('cancel', { filter: { from: '2026-02-01', to: '2026-01-01' } })).toEqual(['filter.from'])
  const many = Array.from({ length: 1_001 }, () => crypto.randomUUID())
  expect(await paths('cancel', { filter: { ids: many } })).toEqual(['filter.ids'])
})

test('cancels open executions that match, reports the others, and audits what was done', async () => {
  const id = await create()
  const waiting = [await execute(id), await execute(id)]
  const running = await copy(waiting[0]!, 'RUNNING', 2)
  const [ended, elsewhere] = [await copy(waiting[0]!, 'FAILED'), await execute(await create())]
  const other = await service.otherTeam()
  const stranger = await copy(waiting[0]!, 'RUNNING')
  await service.store.db
    .updateTable('executions')
    .set({ teamId: other.teamId })
    .where('id', 'in', stranger)
    .execute()
  const ids = [...waiting, ...running, ...ended, ...stranger, UNKNOWN, elsewhere]
  const { status, body } = await call('cancel', { filter: { workflowId: id, ids } })
  expect(status).toBe(200)
  expect(body).toMatchObject({ matched: 4, cancelled: 4, remaining: 0 })
  expect(Object.fromEntries(body.skipped.map((one) => [one.id, one.reason]))).toEqual({
    [ended[0]!]: 'The execution does not match the filter: FAILED',
    [stranger[0]!]: 'There is no such execution',
    [UNKNOWN]: 'There is no such execution',
    [elsewhere]: 'The execution does not match the filter: PENDING',
  })
  expect(await statuses(waiting)).toEqual(['CANCELLED', 'CANCELLED'])
  expect(await statuses([...running, ...ended, ...stranger, elsewhere])).toEqual([
    ...['RUNNING', 'RUNNING', 'FAILED', 'RUNNING', 'PENDING'],
  ])
  // The CANCEL errands are due at once, and the START errands of PENDING executions are gone.
  expect(await errands([...waiting, ...running])).toEqual(['CANCEL', 'CANCEL', 'CANCEL', 'CANCEL'])
  expect(await entries('EXECUTIONS_CANCELLED')).toEqual([
    { filter: { workflowId: id, ids }, matched: 4, cancelled: 2 },
    { filter: { workflowId: id, ids }, matched: 4, cancelled: 2 },
  ])
  // Executions that are already being cancelled do not match.
  expect((await call('cancel', { filter: { workflowId: id } })).body).toMatchObject({
    matched: 0,
    cancelled: 0,
  })
})

test('cancels ten thousand in one request, while another request does the same', async () => {
  const id = await create()
  const first = await execute(id)
  const yesterday = sql`now() - interval '1 day'`
  await copy(first, 'RUNNING', 10_000, yesterday)
  await copy(first, 'PENDING', 50, yesterday)
  const filter = { workflowId: id, to: new Date(Date.now() - 3_600_000).toISOString() }
  const answers = await Promise.all([1, 2].map(async () => (await call('cancel', { filter })).body))
  expect(answers.map((answer) => answer.matched)).toEqual([10_050, 10_050])
  // Both requests take the same 10,000; each of these is cancelled by one of the two.
  expect(answers.reduce((sum, answer) => sum + answer.cancelled!, 0)).toBe(10_000)
  expect(answers.map((answer) => answer.remaining)).toEqual([50, 50])
  const last = await call('cancel', { filter })
  expect(last.body).toMatchObject({ matched: 50, cancelled: 50, remaining: 0 })
  const list = await service.request(`/api/executions?workflowId=${id}&status=CANCELLED`, { as: operator })
  expect(await list.json()).toMatchObject({ totalElements: 50 })
  expect(await statuses([first])).toEqual(['PENDING'])
  await sql`delete from outbox`.execute(service.store.db)
})

test('of six requests at once each execution is cancelled and audited by one, which of them tell the others', async () => {
  const id = await create()
  const first = await execute(id)
  await copy(first, 'RUNNING', 30)
  const before = (await entries('EXECUTIONS_CANCELLED')).length
  const filter = { workflowId: id }
  const answers = await Promise.all(Array.from({ length: 6 }, () => call('cancel', { filter })))
  expect(answers.map(({ status }) => status)).toEqual(Array(6).fill(200))
  const sum = (counts: unknown[]) => (counts as number[]).reduce((total, count) => total + count, 0)
  expect(sum(answers.map(({ body }) => body.cancelled))).toBe(31)
  for (const { body } of answers) {
    expect(body.skipped).toHaveLength(body.matched - body.cancelled!)
    for (const { reason } of body.skipped) expect(reason).toContain('was cancelled in the meantime')
  }
  const audited = (await entries('EXECUTIONS_CANCELLED')).slice(before)
  expect(sum(audited.map(({ cancelled }) => cancelled))).toBe(31)
  expect(audited.every(({ cancelled }) => cancelled !== 0)).toBe(true)
})

test('executions queued at a limit do not start when they are cancelled together with others', async () => {
  const id = await create({ concurrency: { limit: 2 } })
  const ids: string[] = []
  for (let n = 0; n < 6; n++) ids.push(await execute(id))
  expect(await errands(ids)).toEqual(['START later', 'START later'])
  expect((await call('cancel', { filter: { workflowId: id } })).body).toMatchObject({ cancelled: 6 })
  expect(new Set(await statuses(ids))).toEqual(new Set(['CANCELLED']))
  expect(new Set(await errands(ids))).toEqual(new Set(['CANCEL']))
})

test('retries each failed execution once, however many requests come at the same time', async () => {
  const id = await create()
  const first = await execute(id)
  const failed = [...(await copy(first, 'FAILED', 20)), ...(await copy(first, 'CANCELLED'))]
  const [lost] = await copy(first, 'FAILED')
  await service.store.db
    .updateTable('executions')
    .set({ keepInputs: false })
    .where('id', '=', lost!)
    .execute()
  const filter = { workflowId: id }
  const answers = await Promise.all([1, 2, 3].map(() => call('retry', { filter, version: 'current' })))
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
  const made = answers.flatMap(({ body }) => body.executions!)
  expect(made.map((one) => one.retriedFrom).sort()).toEqual([...failed].sort())
  for (const { body } of answers) {
    expect(body.skipped).toContainEqual({
      id: lost,
      reason: 'The input of the execution was not kept',
    })
  }
  const runs = made.map((one) => one.executionId)
  expect(await errands(runs)).toEqual(runs.map(() => 'START'))
  const read = await service.request(`/api/executions/${runs[0]}`, { as: operator })
  expect(await read.json()).toMatchObject({
    recovery: 'RETRY',
    inputData: { n: 1 },
    trigger: 'API',
    status: 'PENDING',
  })
  expect(await entries('EXECUTIONS_RETRIED')).toHaveLength(3)
  const again = await call('retry', { filter })
  expect(again.body).toMatchObject({ matched: 1, retried: 0, executions: [], remaining: 0 })
  expect((await entries('EXECUTIONS_RETRIED'))[3]).toEqual({
    filter: { workflowId: id, version: 'same' },
    matched: 1,
  })
  const named = await call('retry', { filter: { ids: [failed[0], first] } })
  expect(named.body.skipped.map(({ reason }) => reason).sort()).toEqual([
    'The execution does not match the filter: FAILED, retried already',
    'The execution does not match the filter: PENDING',
  ])
})

test('nothing is cancelled or retried if the audit entry cannot be written', async () => {
  const id = await create()
  const open = await execute(id)
  await copy(open, 'FAILED', 3)
  const { db } = service.store
  await sql`create function refuse() returns trigger language plpgsql as
    $$ begin raise exception 'no more entries'; end $$`.execute(db)
  await sql`create trigger refuse before insert on audit_entries for each row execute function refuse()`.execute(
    db,
  )
  const filter = { workflowId: id }
  expect((await call('cancel', { filter })).status).toBe(500)
  expect((await call('retry', { filter })).status).toBe(500)
  await sql`drop function refuse cascade`.execute(db)
  expect(await statuses([open])).toEqual(['PENDING'])
  expect((await call('retry', { filter })).body).toMatchObject({ matched: 3, retried: 3, skipped: [] })
  expect((await call('cancel', { filter: { workflowId: id, status: 'PENDING' } })).body.cancelled).toBe(4)
})
