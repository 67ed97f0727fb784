import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createGroupWriter } from '../../../../activities/temporal/groupwriter.ts'
import { createFold, type ProjectionFold } from '../../../../db/executions/projection/fold.ts'
import type { HistoryEvent } from '../../../../db/executions/projection/history.ts'
import { cutPieces } from '../../../../db/executions/projection/pieces.ts'
import type { Projection } from '../../../../db/executions/records/projection.ts'
import { readPosition, saveProjection, saveSettled } from '../../../../db/executions/records/save.ts'
import { compilePlan } from '../../../../workflows/graph/compile.ts'
import type { NodeRecord } from '../../../../workflows/run/records.ts'
import { atOnce } from '../../../support/atonce.ts'
import { type Service, startService } from '../../../support/service.ts'

const graph = {
  nodes: [
    { id: 'start', type: 'MANUAL_TRIGGER' },
    { id: 'each', type: 'FOR_EACH', config: { items: [1] } },
    { id: 'set', parentId: 'each', type: 'SET', config: { values: {} } },
  ].map((node) => ({ name: node.id, config: {}, onError: 'FAIL' as const, ...node })),
  edges: [{ source: 'start', target: 'each', sourceHandle: null }],
}
const plan = atOnce(compilePlan(graph, { workflowId: 'w', version: 1, triggerNodeId: 'start' }))
const times = { handle: null, startedAt: 1_000, completedAt: 1_001 }
const loop = { count: 100_000, pages: [] }
const opened: NodeRecord = { nodeId: 'each', iteration: '', status: 'LOOPING', loop, ...times }
const item = (at: number, size: number): NodeRecord => ({
  nodeId: 'set',
  iteration: String(at),
  status: 'SUCCESS',
  output: { v: 'x'.repeat(size), bytes: size + 2 },
  ...times,
})

/** A run with one loop, whose segments settle `each` iterations an event. */
function* tell(count: number, { each = 250, size = 10, closed = true } = {}): Generator<HistoryEvent> {
  const input = { plan, context: {}, input: { v: {}, bytes: 2 }, timeoutMs: null }
  yield { id: 1, time: 1_000, kind: 'started', input: input as never, continuedFrom: null }
  yield { id: 2, time: 1_000, kind: 'records', records: [opened] }
  let id = 3
  for (let at = 0; at < count; at += each) {
    const records = Array.from({ length: Math.min(each, count - at) }, (_, n) => item(at + n, size))
    yield { id: id++, time: 2_000, kind: 'records', records }
  }
  if (closed) yield { id, time: 3_000, kind: 'closed', how: 'COMPLETED', message: null, type: null }
}

function foldOf(id: string, events: Iterable<HistoryEvent>): ProjectionFold {
  const fold = createFold(id)
  for (const event of events) fold.read({ runId: 'r', events: [event] })
  return fold
}

const project = (id: string, events: Iterable<HistoryEvent>): Projection => foldOf(id, events).project()

test('a statement has at most 1,000 records and about 4 MB of values', () => {
  const cut = (count: number, size: number) =>
    [...cutPieces('e', project(crypto.randomUUID(), tell(count, { size })).nodes, true)].map((piece) => ({
      rows: piece.length,
      chars: piece.reduce((sum, { output }) => sum + (output?.length ?? 0), 0),
    }))
  expect(cut(2_999, 10).map(({ rows }) => rows)).toEqual([1_000, 1_000, 1_000])
  const large = cut(2_000, 6_500)
  expect(large.reduce((sum, { rows }) => sum + rows, 0)).toBe(2_001)
  for (const { chars } of large) expect(chars).toBeLessThan(4_000_000)
})

test('a fold lets settled records go, and says when there is enough to store', () => {
  const fold = createFold(crypto.randomUUID())
  let parts = 0
  for (const event of tell(100_000, { size: 6_500, closed: false })) {
    fold.read({ runId: 'r', events: [event] })
    if (!fold.isFull()) continue
    parts++
    expect(fold.project().nodes.length).toBeLessThanOrEqual(1_000)
    fold.confirm()
    // The values alone would be 650 MB.
    expect(fold.bytes()).toBeLessThan(20_000_000)
  }
  expect(parts).toBe(200)
  expect(fold.project().recordCount).toBe(100_001)
})

describe('a projection', () => {
  let service: Service
  let workflow: string
  let id: string
  beforeAll(async () => {
    service = await startService()
    workflow = (
      (await ask('/api/workflows', { teamId: service.teamId, name: 'w', ...graph })) as { id: string }
    ).id
  })
  beforeEach(async () => {
    id = await start()
  })
  afterAll(() => service.stop())

  const ask = async (path: string, json: object) =>
    (await service.request(path, { method: 'POST', as: service.admin, json })).json()
  const start = async (): Promise<string> =>
    (
      (await ask(`/api/workflows/${workflow}/execute`, { teamId: service.teamId, data: {} })) as {
        executionId: string
      }
    ).executionId
  const count = async (where = sql`true`) =>
    (
      await sql<{
        n: number
      }>`select count(*) as n from node_executions where execution_id = ${id} and ${where}`.execute(
        service.store.db,
      )
    ).rows[0]!.n
  const save = (projection: Projection, more = {}) =>
    saveProjection(service.store, id, projection, { values: true, ...more })

  test('of 20,000 records is stored whole, in one call or in parts', async () => {
    const { status } = (await save(project(id, tell(20_000)))) ?? {}
    expect([status, await count(), await count(sql`settled`)]).toEqual(['SUCCESS', 20_001, 20_001])
    const { recordCount } = await service.store.db
      .selectFrom('executions')
      .select('recordCount')
      .where('id', '=', id)
      .executeTakeFirstOrThrow()
    expect(recordCount).toBe(20_001)
  })

  test('is not written again where nothing changes', async () => {
    const projection = project(id, tell(3_000))
    await save(projection)
    const versions = () =>
      sql`select id, xmin::text from node_executions where execution_id = ${id} order by id`.execute(
        service.store.db,
      )
    const before = await versions()
    await sql`update node_executions set output = '{"v":1}' where id = ${projection.nodes[7]!.id}`.execute(
      service.store.db,
    )
    expect(await save(projection, { again: true })).not.toBeNull()
    const after = await versions()
    const changed = after.rows.filter((row, at) => JSON.stringify(row) !== JSON.stringify(before.rows[at]))
    expect(changed).toMatchObject([{ id: projection.nodes[7]!.id }])
  })

  test('that is older does no harm, however much of it was written before it was refused', async () => {
    const older = project(id, tell(2_500, { closed: false }))
    const newer = project(id, tell(3_000))
    expect(older.nodes[0]).toMatchObject({ nodeId: 'each', status: 'RUNNING' })
    await save(newer)
    expect(await save(older)).toBeNull()
    expect(await save(older, { again: true })).toBeNull()
    await saveSettled(service.store, id, older, { values: true })
    expect([await count(), await count(sql`status = 'SUCCESS' and settled`)]).toEqual([3_001, 3_000])
    expect(await count(sql`status = 'CANCELLED' and node_id = 'each'`)).toBe(1)
  })

  test('goes on from what a crash between its parts has left', async () => {
    const events = [...tell(3_000)]
    const fold = createFold(id)
    for (const event of events.slice(0, 6)) {
      fold.read({ runId: 'r', events: [event] })
      if (!fold.isFull()) continue
      await save(fold.project())
      fold.confirm()
    }
    expect([await count(), (await readPosition(service.store, id))!.status]).toEqual([1_001, 'RUNNING'])
    expect((await save(project(id, events)))!.status).toBe('SUCCESS')
    expect(await count()).toBe(3_001)
  })

  test('that lacks what the rows have lost since is refused', async () => {
    const fold = foldOf(id, tell(1_000, { closed: false }))
    await save(fold.project())
    fold.confirm()
    await service.store.db.deleteFrom('nodeExecutions').where('executionId', '=', id).execute()
    await service.store.db.updateTable('executions').set({ lastEventId: 3 }).where('id', '=', id).execute()
    fold.read({ runId: 'r', events: [...tell(1_000)] })
    expect(await save(fold.project())).toBeNull()
    expect((await save(project(id, tell(1_000))))!.status).toBe('SUCCESS')
    expect(await count()).toBe(1_001)
  })

  test('of an execution that is deleted meanwhile stores nothing', async () => {
    const projection = project(id, tell(3_000))
    await service.store.db.deleteFrom('executions').where('id', '=', id).execute()
    expect(await save(projection)).toBeNull()
    expect(await saveSettled(service.store, id, projection, { values: true })).toBe(false)
    expect(await count()).toBe(0)
  })

  test('of an execution that was cancelled before it began stores nothing', async () => {
    await service.request(`/api/executions/${id}/cancel`, { method: 'POST', as: service.admin })
    const [began] = tell(0)
    const closed = { id: 2, time: 1_100, kind: 'closed', how: 'CANCELED', message: null, type: null } as const
    expect(await save(project(id, [began!, closed]))).toBeNull()
    expect([await count(), (await readPosition(service.store, id))!.status]).toEqual([0, 'CANCELLED'])
  })

  test('races with others of the same execution, and each is then right', async () => {
    const events = [...tell(4_000)]
    const run = async (step: number) => {
      const fold = createFold(id)
      for (let at = 0; at < events.length; at += step) {
        fold.read({ runId: 'r', events: events.slice(at, at + step) })
        const projection = fold.project()
        const saved = await save(projection)
        const row = (await readPosition(service.store, id))!
        if (saved || row.lastEventId >= projection.lastEventId) fold.confirm()
      }
    }
    await Promise.all([run(1), run(2), run(3), run(5), run(18)])
    expect([await count(), await count(sql`settled`)]).toEqual([4_001, 4_001])
  })

  test('that comes with others is stored with them, and a bad one harms only itself', async () => {
    const others = await Promise.all(Array.from({ length: 40 }, start))
    const writer = createGroupWriter(service.store)
    const statements = async () =>
      (
        await sql<{
          n: number
        }>`select count(distinct xmin::text) as n from executions where id = any(${others}::uuid[])`.execute(
          service.store.db,
        )
      ).rows[0]!.n
    const saved = await Promise.allSettled(
      others.map((one, at) => {
        const projection = project(one, tell(at % 20))
        // No timestamp of PostgreSQL: the statement fails.
        if (at === 5) projection.runId = '\0'
        return saveProjection(service.store, one, projection, { values: true }, writer)
      }),
    )
    expect(saved.map(({ status }) => status)).toEqual(
      others.map((_, at) => (at === 5 ? 'rejected' : 'fulfilled')),
    )
    const fine = saved.flatMap((one) => (one.status === 'fulfilled' ? [one.value?.status] : []))
    expect(new Set(fine)).toEqual(new Set(['SUCCESS']))

    const again = others.map((one) => ({ ...project(one, tell(3)), lastEventId: 9 }))
    await Promise.all(
      again.map((projection, at) =>
        saveProjection(service.store, others[at]!, projection, { values: true }, writer),
      ),
    )
    expect(await statements()).toBeLessThan(10)
    id = others[39]!
    expect(await count()).toBe(20)
  })

  test('that comes with one whose row another transaction holds is stored before that', async () => {
    const others = await Promise.all(Array.from({ length: 20 }, start))
    const writer = createGroupWriter(service.store)
    const end = (one: string) =>
      saveProjection(service.store, one, project(one, tell(3)), { values: true }, writer)
    const held = await service.store.db.transaction().execute(async (tx) => {
      await sql`select from executions where id = ${others[7]!} for update`.execute(tx)
      const saved = others.map(end)
      const free = await Promise.all(saved.filter((_, at) => at !== 7))
      expect(new Set(free.map((one) => one?.status))).toEqual(new Set(['SUCCESS']))
      return { saving: saved[7]! }
    })
    expect((await held.saving)?.status).toBe('SUCCESS')
  })
})
