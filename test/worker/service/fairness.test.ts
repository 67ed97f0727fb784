import { sql } from 'kysely'
import { expect, inject, test } from 'vitest'
import { claimErrands } from '../../../db/outbox.ts'
import { createClient } from '../../support/client.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { startRunning } from '../../support/running.ts'
import { startTarget } from '../../support/servers/target.ts'

const target = await keep(startTarget())
const host = await keep(startRunning({ nodesAtOnce: 2 }))

const graph = (path: string) => ({
  nodes: [
    { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
    { id: 'call', type: 'HTTP_REQUEST', config: { url: target.url + path } },
  ],
  edges: edges('start -> call'),
})

async function joinOther() {
  const { cookie, teamId } = await host.otherTeam()
  return createClient({ teamId, send: (path, init) => host.request(path, { as: cookie, ...init }) })
}

/** Inserts PENDING copies of an execution, with the errands from which the sweeper starts them. */
async function flood(id: string, count: number): Promise<void> {
  await sql`
    with added as (
      insert into executions (id, team_id, workflow_id, workflow_name, workflow_version, node_count, trigger,
        trigger_node_id, input_data, input_bytes, started_by_kind)
      select gen_random_uuid(), team_id, workflow_id, workflow_name, workflow_version, node_count, trigger,
        trigger_node_id, input_data, input_bytes, started_by_kind
      from executions, generate_series(1, ${count}) where id = ${id} returning id, team_id)
    insert into outbox (kind, subject_id, team_id, due_at) select 'START', id, team_id, now() from added`.execute(
    host.store.db,
  )
}

test('errands are claimed from the teams in turn, and within a team in their order', async () => {
  const [many, few, one] = [crypto.randomUUID(), crypto.randomUUID(), crypto.randomUUID()]
  // All of this happens in a transaction that is rolled back, so that the sweeper does not find the errands.
  const rollback = new Error('roll back')
  await expect(
    host.store.db.transaction().execute(async (tx) => {
      const store = { ...host.store, db: tx }
      const insert = async (team: string, count: number, ago: string) => {
        const { rows } = await sql<{ subjectId: string }>`
          insert into outbox (kind, subject_id, team_id, due_at)
          select 'TEST', gen_random_uuid(), ${team}, now() - ${ago}::interval + n * interval '1 millisecond'
          from generate_series(1, ${count}) n returning subject_id`.execute(tx)
        return rows.map((row) => row.subjectId)
      }
      const [a, b, c] = [
        await insert(many, 10_000, '1 hour'),
        await insert(few, 30, '1 minute'),
        await insert(one, 1, '10 seconds'),
      ]
      const take = async () => (await claimErrands(store, 50, 60_000)).map((errand) => errand.subjectId)
      const first = new Set(await take())
      expect(first).toEqual(new Set([...a.slice(0, 25), ...b.slice(0, 24), ...c]))
      expect(new Set(await take())).toEqual(new Set([...a.slice(25, 69), ...b.slice(24)]))
      const began = performance.now()
      for (let n = 0; n < 10; n++) expect(await take()).toHaveLength(50)
      expect(performance.now() - began).toBeLessThan(2_000)
      throw rollback
    }),
  ).rejects.toBe(rollback)
})

// A server named by TEST_TEMPORAL_ADDRESS may not have fairness enabled.
test.skipIf(inject('temporalCli') === '')(
  'a team with very many queued executions does not delay the single execution of another team',
  async () => {
    const id = await host.create(graph('/slow?ms=100'))
    const first = await host.execute(id)
    await host.ended(first)
    const { raw } = await host.engine.client.workflow.getHandle(first).describe()
    expect(raw.workflowExecutionInfo?.priority?.fairnessKey).toBe(host.teamId)
    await flood(first, 400)
    void host.engine.sweep()
    const open = async () => {
      const { rows } = await sql<{ id: string }>`select id from executions where status = 'RUNNING'`.execute(
        host.store.db,
      )
      return rows.map((row) => row.id)
    }
    // Some wait in Temporal for one of the worker's two slots, the others in the outbox for their start.
    while ((await open()).length < 150) await new Promise((resolve) => setTimeout(resolve, 25))
    const other = await joinOther()
    const own = await other.create(graph('/ok'))
    const before = target.calls.length
    // The sweeper starts it, after the others, as it does for an execution whose process died.
    await flood(await other.execute(own), 1)
    const answered = () => target.calls.filter(({ path }) => path === '/ok').length
    const between = () => target.calls.length - before
    await target.until(() => answered() === 2 || between() > 60)
    const left = await open()
    await sql`delete from outbox`.execute(host.store.db)
    const { workflow } = host.engine.client
    await Promise.allSettled(left.map((run) => workflow.getHandle(run).terminate('the test is over')))
    expect(left.length).toBeGreaterThan(80)
    expect(between()).toBeLessThan(60)
  },
)
