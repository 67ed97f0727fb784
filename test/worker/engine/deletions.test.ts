import { sql } from 'kysely'
import { expect, test } from 'vitest'
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

test('a sub-workflow ends while thousands of executions of its team are still being deleted', async () => {
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
