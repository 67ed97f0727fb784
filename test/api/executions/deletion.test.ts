import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { keep } from '../../support/keep.ts'
import { startWorkerless } from '../../support/workerless.ts'

const service = await keep(startWorkerless())
const { builder, operator, viewer, create, start, errandsOf, teamId } = service

const put = (id: string, values: object) =>
  service.store.db.updateTable('executions').set(values).where('id', '=', id).execute()

/** An execution of a new workflow that has ended. */
async function ended(status = 'SUCCESS', workflowId?: string): Promise<string> {
  const id = await start(workflowId ?? (await create()))
  await put(id, { status, completedAt: new Date() })
  return id
}

const remove = (id: string, as = builder) => service.call('DELETE', `/api/executions/${id}`, as)
const removeMany = (filter: object, as = builder) =>
  service.call('POST', `/api/executions/team/${teamId}/delete`, as, { filter })
const status = async (id: string) => (await service.call('GET', `/api/executions/${id}`, viewer)).status
const total = async (workflowId: string) =>
  (await service.call('GET', `/api/executions?workflowId=${workflowId}`, viewer)).body.totalElements

async function entries(action: string) {
  const rows = await service.store.db
    .selectFrom('auditEntries')
    .select(['resourceId', 'details'])
    .where('action', '=', action)
    .orderBy('seq')
    .execute()
  return rows.map(({ resourceId, details }) => ({ resourceId, ...(details as object) }))
}

test('an ended execution is deleted by a BUILDER, with an audit entry', async () => {
  const workflowId = await create({ name: 'Deleted from' })
  const id = await ended('FAILED', workflowId)
  const again = (await service.call('POST', `/api/executions/${id}/rerun`, operator, {})).body.executionId
  expect((await remove(id, operator)).status).toBe(403)
  const { status: answered, body } = await remove(id)
  expect([answered, body]).toEqual([200, { message: 'Execution deleted' }])
  expect(await status(id)).toBe(404)
  expect((await remove(id)).status).toBe(404)
  expect(await total(workflowId)).toBe(1)
  expect(await errandsOf(id)).toEqual(['DELETE'])
  // What repeats it stays, and can itself be repeated.
  expect(await service.read(again)).toMatchObject({ retriedFrom: id, status: 'PENDING' })
  expect(await entries('EXECUTION_DELETED')).toEqual([
    {
      resourceId: id,
      workflowId,
      workflowName: 'Deleted from',
      status: 'FAILED',
      trigger: 'MANUAL',
      createdAt: expect.any(String),
    },
  ])
})

test('an execution that is open, or that something still needs, is not deleted', async () => {
  const open = await start(await create())
  expect((await remove(open)).body.message).toBe('The execution has not ended: PENDING. Cancel it first')
  const child = await ended()
  await put(child, { parentId: open, parentKey: 'sub' })
  const failed = await ended('FAILED')
  await sql`insert into outbox (kind, subject_id) values ('ERROR', ${failed})`.execute(service.store.db)
  for (const id of [open, child, failed]) {
    expect((await remove(id)).status).toBe(409)
    expect(await status(id)).toBe(200)
  }
  const { body } = await removeMany({ ids: [open, child, failed] })
  expect(body).toMatchObject({ matched: 2, deleted: 0, remaining: 0 })
  expect(new Map(body.skipped.map((one: { id: string; reason: string }) => [one.id, one.reason]))).toEqual(
    new Map([
      [open, 'The execution does not match the filter: PENDING'],
      [child, expect.stringContaining('has yet to read')],
      [failed, expect.stringContaining('has yet to read')],
    ]),
  )
  await put(open, { status: 'CANCELLED', completedAt: new Date() })
  expect((await remove(child)).status).toBe(200)
})

test('the execution of a private chat is not for others to delete', async () => {
  const id = await ended()
  await put(id, { trigger: 'CHAT' })
  const { status: answered, body } = await remove(id)
  expect([answered, body.message]).toEqual([403, expect.stringContaining('private chat')])
  const many = await removeMany({ ids: [id] })
  expect(many.body).toMatchObject({
    deleted: 0,
    skipped: [{ id, reason: expect.stringContaining('private chat') }],
  })
  expect((await remove(id, service.admin)).status).toBe(200)
})

test('many are deleted by a filter, which counts what it has done', async () => {
  const workflowId = await create()
  const one = await ended('SUCCESS', workflowId)
  await sql`insert into executions (id, team_id, workflow_id, workflow_name, workflow_version, node_count, trigger,
      trigger_node_id, input_data, input_bytes, started_by_kind, status, created_at, completed_at)
    select gen_random_uuid(), team_id, workflow_id, workflow_name, 1, 2, 'API', 'start', '{}', 2, 'USER',
      case when n % 2 = 0 then 'SUCCESS' else 'FAILED' end, now() - n * interval '1 hour', now() - n * interval '1 hour'
    from executions, generate_series(1, 900) n where id = ${one}`.execute(service.store.db)
  const open = await start(workflowId)
  const wrong = await removeMany({ status: 'RUNNING' })
  expect(wrong.body.errors).toEqual([{ path: 'filter.status', message: expect.any(String) }])
  expect((await removeMany({ workflowId }, operator)).status).toBe(403)
  const to = new Date(Date.now() - 60_000).toISOString()
  const { body } = await removeMany({ workflowId, status: 'SUCCESS', to })
  expect(body).toEqual({ matched: 450, deleted: 450, skipped: [], remaining: 0 })
  expect(await total(workflowId)).toBe(452)
  expect((await removeMany({ workflowId })).body).toMatchObject({ matched: 451, deleted: 451, remaining: 0 })
  expect(await total(workflowId)).toBe(1)
  expect(await status(open)).toBe(200)
  const done = await entries('EXECUTIONS_DELETED')
  expect(done.slice(0, 3)).toEqual(
    [200, 200, 50].map((deleted) => ({
      resourceId: null,
      filter: { workflowId, status: 'SUCCESS', to },
      matched: 450,
      deleted,
    })),
  )
  // Temporal has only what ended in the last 31 days.
  const { rows } = await sql<{ n: number }>`
    select count(*)::int as n from outbox where kind = 'DELETE' and subject_id not in (select id from executions)
      and team_id = ${teamId}`.execute(service.store.db)
  expect(rows[0]!.n).toBeGreaterThan(700)
  expect(rows[0]!.n).toBeLessThan(901)
})
