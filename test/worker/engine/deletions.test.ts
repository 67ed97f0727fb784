import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { rebuildExecution } from '../../../activities/temporal/rebuild.ts'
import { claimErrands } from '../../../db/outbox.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { startRunning } from '../../support/running.ts'

const host = await keep(startRunning())
const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }

test('thousands of deletions do not stand before the starts and signals of their own team', async () => {
  const rollback = new Error('roll back')
  await expect(
    host.store.db.transaction().execute(async (tx) => {
      const store = { ...host.store, db: tx }
      const team = crypto.randomUUID()
      const insert = (kind: string, count: number, ago: string) =>
        sql`insert into outbox (kind, subject_id, team_id, due_at)
          select ${kind}, gen_random_uuid(), ${team}, now() - ${ago}::interval
          from generate_series(1, ${count}) n`.execute(tx)
      await insert('DELETE', 2_000, '1 hour')
      await insert('SIGNAL', 3, '2 seconds')
      await insert('START', 3, '1 second')
      const urgent = await claimErrands(store, 'urgent', 50, 60_000)
      expect(urgent.map(({ kind }) => kind).toSorted()).toEqual([
        ...Array(3).fill('SIGNAL'),
        ...Array(3).fill('START'),
      ])
      const deletes = await claimErrands(store, 'deletes', 10, 60_000)
      expect(deletes.map(({ kind }) => kind)).toEqual(Array(10).fill('DELETE'))
      throw rollback
    }),
  ).rejects.toBe(rollback)
})

test('a deleted execution does not come back, also if the process dies before Temporal is told', async () => {
  const id = await host.execute(await host.create({ nodes: [start], edges: [] }))
  await host.ended(id)
  // As a process that is killed right after its commit: nobody carries the errand out.
  host.use(undefined)
  const said = await host.ask('DELETE', `/api/executions/${id}`).finally(() => host.use(host.engine))
  expect(said).toMatchObject({ message: 'Execution deleted' })
  const { client, sealer } = host.engine
  const describe = () => client.workflow.getHandle(id).describe()
  expect((await describe()).status.name).toBe('COMPLETED')
  const left = async () => {
    const { rows } = await sql<{ n: number }>`
      select (select count(*) from executions where id = ${id}) + (select count(*) from node_executions
        where execution_id = ${id}) + (select count(*) from blobs where execution_id = ${id}) as n`.execute(
      host.store.db,
    )
    return rows[0]!.n
  }
  const rebuild = () => rebuildExecution({ store: host.store, client, sealer }, id)
  expect([await left(), await rebuild(), await left()]).toEqual([0, null, 0])
  const later = sql`update outbox set due_at = now() - interval '1 second' where subject_id = ${id}`
  // The second pass is for a start that may have been under way.
  for (let pass = 0; pass < 2; pass++) {
    await later.execute(host.store.db)
    await host.engine.sweep()
    await expect.poll(() => describe().catch(String), { timeout: 10_000 }).toMatch(/not ?found/i)
  }
  const errands = host.store.db.selectFrom('outbox').select('kind').where('subjectId', '=', id)
  expect(await errands.execute()).toEqual([])
  expect([await left(), await rebuild(), await left()]).toEqual([0, null, 0])
})

test('a sub-workflow ends while thousands of executions of its team are still being deleted', {
  tags: 'long',
}, async () => {
  const deleted = await host.create({ nodes: [start], edges: [] })
  const first = await host.execute(deleted)
  await host.ended(first)
  await sql`
    insert into executions (id, team_id, workflow_id, workflow_name, workflow_version, node_count, trigger,
      trigger_node_id, input_data, input_bytes, started_by_kind, status, completed_at)
    select gen_random_uuid(), team_id, workflow_id, workflow_name, workflow_version, node_count, trigger,
      trigger_node_id, input_data, input_bytes, started_by_kind, 'SUCCESS', now()
    from executions, generate_series(1, 5000) where id = ${first}`.execute(host.store.db)
  const child = await host.create({
    nodes: [{ id: 'start', type: 'SUB_WORKFLOW_TRIGGER', config: {} }],
    edges: [],
  })
  const parent = await host.create({
    nodes: [start, { id: 'sub', type: 'SUB_WORKFLOW', config: { workflowId: child, input: {} } }],
    edges: edges('start -> sub'),
  })
  await host.ask('DELETE', `/api/workflows/${deleted}`)
  // As five seconds later, when the sweeper takes them.
  await sql`update outbox set due_at = now() - interval '1 minute' where kind = 'DELETE'`.execute(
    host.store.db,
  )
  void host.engine.sweep()
  const run = await host.ended(await host.execute(parent))
  expect(run.status).toBe('SUCCESS')
  const { rows } = await sql<{ left: number }>`
    select count(*) as left from outbox where kind = 'DELETE' and due_at < now()`.execute(host.store.db)
  expect(rows[0]!.left).toBeGreaterThan(0)
})
