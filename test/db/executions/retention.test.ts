import { sql } from 'kysely'
import pg from 'pg'
import { pino } from 'pino'
import { beforeEach, expect, test } from 'vitest'
import { pruneExecutions } from '../../../db/executions/retention.ts'
import { startHousekeeping } from '../../../worker/service/housekeeping.ts'
import { createChats } from '../../support/chat/replies.ts'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

const service = await keep(startService())

// Otherwise the executions of one test would be pruned in the next.
beforeEach(() => sql`delete from workflows`.execute(service.store.db))

let count = 0
async function create(retention: object | null): Promise<string> {
  const json = {
    teamId: service.teamId,
    name: `kept ${++count}`,
    nodes: [{ id: 'start', type: 'MANUAL_TRIGGER', config: {} }],
    settings: { retention },
  }
  const answer = await service.request('/api/workflows', { method: 'POST', as: service.admin, json })
  expect(answer.status).toBe(201)
  return ((await answer.json()) as { id: string }).id
}

/** Adds executions, one per hour back from now, ten minutes long, each with three node records and a blob. */
async function seed(workflowId: string, runs: number, status = 'SUCCESS'): Promise<void> {
  await sql`
    with seeded as (
      insert into executions (id, team_id, workflow_id, workflow_name, workflow_version, node_count, status, trigger,
        trigger_node_id, input_data, input_bytes, started_by_kind, created_at, started_at, completed_at)
      select gen_random_uuid(), ${service.teamId}, ${workflowId}, 'w', 1, 1, ${status}, 'API', 'start',
        json_build_object('n', n), 9, 'SYSTEM', at, at,
        case when ${status} not in ('PENDING', 'RUNNING') then at + interval '10 minutes' end
      from (select n, now() - n * interval '1 hour' as at from generate_series(1, ${runs}::int) n) s
      returning id),
    recorded as (
      insert into node_executions (id, execution_id, node_id, node_name, node_type, status, started_at)
      select gen_random_uuid(), id, 'n' || i, 'n', 'SET', 'SUCCESS', now() from seeded, generate_series(1, 3) i)
    insert into blobs (execution_id, hash, bytes, sealed) select id, 'h', 1, '\\x00' from seeded`.execute(
    service.store.db,
  )
}

async function read(workflowId: string) {
  const { rows } = await sql<{ runs: number; records: number; blobs: number; counted: number }>`
    select (select count(*) from executions where workflow_id = ${workflowId}) as runs,
      (select count(*) from node_executions n join executions e on e.id = n.execution_id
        where workflow_id = ${workflowId}) as records,
      (select count(*) from blobs b join executions e on e.id = b.execution_id
        where workflow_id = ${workflowId}) as blobs,
      (select sum(n) from execution_counts where workflow_id = ${workflowId})::int as counted`.execute(
    service.store.db,
  )
  return rows[0]!
}

const list = async (workflowId: string, query = '') => {
  const path = `/api/executions?workflowId=${workflowId}&size=100${query}`
  const answer = await service.request(path, { as: service.admin })
  return (await answer.json()) as { totalElements: number; content: { startedAt: string }[] }
}

test('executions are pruned by age and by count; open ones and those of other workflows stay', async () => {
  const [byDays, byCount, both, none] = [
    await create({ days: 2 }),
    await create({ count: 30 }),
    await create({ days: 1, count: 40 }),
    await create(null),
  ]
  for (const id of [byDays, byCount, both, none]) {
    await seed(id, 100)
    await seed(id, 2, 'RUNNING')
  }
  // The oldest execution has only just ended, so it stays.
  await sql`update executions set completed_at = now() where id = (
    select id from executions where workflow_id = ${byDays} order by created_at limit 1)`.execute(
    service.store.db,
  )
  const pruned = await pruneExecutions(service.store)
  const left = await Promise.all([byDays, byCount, both, none].map(read))
  expect(left.map(({ runs }) => runs)).toEqual([48 + 1 + 2, 30, 24 + 2, 102])
  expect(pruned).toBe(4 * 102 - left.reduce((sum, { runs }) => sum + runs, 0))
  for (const { runs, counted, records, blobs } of left) {
    expect(counted).toBe(runs)
    expect(records).toBe(3 * runs)
    expect(blobs).toBe(runs)
  }
  const running = await list(both, '&status=RUNNING')
  expect(running.totalElements).toBe(2)
  const kept = (await list(byCount)).content.map(({ startedAt }) => startedAt)
  expect(Date.now() - Date.parse(kept.at(-1)!)).toBeLessThan(29 * 3_600_000)
  expect(await pruneExecutions(service.store)).toBe(0)
})

test('pruned executions that Temporal may still know are removed from it, a few at a time', async () => {
  const id = await create({ days: 10 })
  await seed(id, 50 * 24)
  const before = await sql<{ id: string }>`select id from executions where workflow_id = ${id}`.execute(
    service.store.db,
  )
  const ids = before.rows.map((row) => row.id)
  // Errands of pruned executions are dropped, but an execution whose error workflow has yet to start stays.
  await sql`insert into outbox (kind, subject_id) select 'SIGNAL', id from executions where workflow_id = ${id}`.execute(
    service.store.db,
  )
  await sql`insert into outbox (kind, subject_id) select 'ERROR', id from executions where workflow_id = ${id}
    order by created_at limit 1`.execute(service.store.db)
  // By PostgreSQL's clock, from before it begins: on a busy machine a while passes until the errands are read.
  const begun = await sql<{ at: Date }>`select now() as at`.execute(service.store.db)
  const pruned = await pruneExecutions(service.store)
  expect(pruned).toBe(40 * 24 - 1)
  const errands = await sql<{ kind: string; n: number; span: number; soon: number }>`
    select kind, count(*) as n, extract(epoch from max(due_at) - min(due_at))::float8 as span,
      extract(epoch from min(due_at) - ${begun.rows[0]!.at})::float8 as soon
    from outbox where subject_id = any(${ids}::uuid[]) group by kind order by kind`.execute(service.store.db)
  const [deletes, error, signals] = errands.rows
  expect(deletes).toMatchObject({ kind: 'DELETE', n: 21 * 24 })
  expect(deletes!.soon).toBeGreaterThan(2)
  expect(deletes!.span).toBeGreaterThan(3)
  expect(error).toMatchObject({ kind: 'ERROR', n: 1 })
  expect(signals).toMatchObject({ kind: 'SIGNAL', n: 50 * 24 - pruned })
})

test('a child stays until its parent has ended, unless it is detached', async () => {
  const id = await create({ count: 1 })
  await seed(id, 2)
  await seed(id, 1, 'RUNNING')
  const tie = (detached: boolean) =>
    sql`update executions c set parent_id = p.id, parent_key = 'sub#', detached = ${detached} from executions p
      where c.workflow_id = ${id} and p.workflow_id = ${id} and c.status = 'SUCCESS' and p.status = 'RUNNING'`.execute(
      service.store.db,
    )
  await tie(false)
  expect(await pruneExecutions(service.store)).toBe(0)
  await tie(true)
  expect(await pruneExecutions(service.store)).toBe(2)
})

test('two processes can prune thousands at once beside an old snapshot; lists stay complete', {
  tags: 'long',
}, async ({ annotate }) => {
  const id = await create({ count: 10 })
  await seed(id, 6_000)
  const reader = new pg.Client({ connectionString: service.database.url })
  const holder = new pg.Client({ connectionString: service.database.url })
  await Promise.all([reader.connect(), holder.connect()])
  try {
    await reader.query('begin isolation level repeatable read')
    const seen = 'select count(*)::int as n from executions where workflow_id = $1'
    expect((await reader.query(seen, [id])).rows[0].n).toBe(6_000)
    // A locked row is skipped, not waited for.
    await holder.query('begin')
    await holder.query(
      `select from executions where workflow_id = $1 order by created_at limit 1 for key share`,
      [id],
    )

    const began = Date.now()
    let done = false
    const pruning = Promise.all([pruneExecutions(service.store), pruneExecutions(service.store)]).finally(
      () => {
        done = true
      },
    )
    let slowest = 0
    let reads = 0
    while (!done) {
      const from = Date.now()
      const page = await list(id)
      // The total and the rows are read one after the other, so they may differ; ten stay in any case.
      expect(Math.min(page.content.length, page.totalElements)).toBeGreaterThanOrEqual(10)
      slowest = Math.max(slowest, Date.now() - from)
      reads++
    }
    const removed = await pruning
    const ms = Date.now() - began
    expect(removed[0]! + removed[1]!).toBe(5_989)
    expect((await reader.query(seen, [id])).rows[0].n).toBe(6_000)
    await holder.query('rollback')
    await reader.query('commit')
    expect(await pruneExecutions(service.store)).toBe(1)
    expect(await read(id)).toEqual({ runs: 10, records: 30, blobs: 10, counted: 10 })
    await annotate(
      `5,989 executions with 3 records and a blob each in ${ms} ms: ${Math.round((5_989_000 * 5) / ms)} rows/s; ` +
        `${reads} lists beside it, the slowest ${slowest} ms`,
    )
  } finally {
    await Promise.all([reader.end(), holder.end()])
  }
})

test('the housekeeping prunes on its schedule, and stops between two batches', { tags: 'long' }, async () => {
  const id = await create({ count: 5 })
  await seed(id, 2_000)
  const end = startHousekeeping(service.store, pino({ level: 'silent' }), { at: '* * * * * *' })
  await expect.poll(async () => (await read(id)).runs).toBeLessThan(2_000)
  await end()
  const { runs } = await read(id)
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect((await read(id)).runs).toBe(runs)
  await pruneExecutions(service.store)
  expect((await read(id)).runs).toBe(5)
})

test('an execution of which the reply in a chat is not saved yet stays until it is', async () => {
  const { db } = service.store
  const chats = createChats(service)
  const { executionId, replyId } = await chats.addReply()
  const ago = sql<Date>`now() - interval '2 days'`
  const { workflowId } = await db
    .updateTable('executions')
    .set({ status: 'SUCCESS', createdAt: ago, startedAt: ago, completedAt: ago })
    .where('id', '=', executionId)
    .returning('workflowId')
    .executeTakeFirstOrThrow()
  await sql`update workflows set settings = '{"retention":{"days":1}}' where id = ${workflowId}`.execute(db)
  expect(await pruneExecutions(service.store)).toBe(0)
  await chats.save(replyId, 'Hello!')
  expect(await pruneExecutions(service.store)).toBe(1)
})
