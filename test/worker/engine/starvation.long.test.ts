import { sql } from 'kysely'
import { expect, inject, test } from 'vitest'
import { createClient, ENDED } from '../../support/client.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { startRunning } from '../../support/running.ts'
import { until } from '../../support/until.ts'

const RUNS_AT_ONCE = 24
const IN_FLIGHT = 200
const ALL = 400

const host = await keep(startRunning({ runsAtOnce: RUNS_AT_ONCE }))

const graph = {
  nodes: [
    { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
    { id: 'sum', type: 'SET', config: { values: { sum: '{{ 1 + 1 }}' } } },
  ],
  edges: edges('start -> sum'),
}

type Client = ReturnType<typeof createClient>

/** When each execution of a workflow was accepted and when its first node began, in the order of acceptance. */
async function readBeginnings(
  workflowId: string,
): Promise<{ id: string; accepted: number; began: number }[]> {
  const { rows } = await sql<{ id: string; accepted: Date; began: Date }>`
    select e.id, e.created_at as accepted, n.started_at as began
    from executions e join node_executions n on n.execution_id = e.id and n.node_id = 'start'
    where e.workflow_id = ${workflowId} order by e.created_at, e.id`.execute(host.store.db)
  return rows.map(({ id, accepted, began }) => ({ id, accepted: +accepted, began: +began }))
}

async function hasEnded(id: string): Promise<boolean> {
  const { rows } = await sql<{ status: string }>`select status from executions where id = ${id}`.execute(
    host.store.db,
  )
  return ENDED.includes(rows[0]!.status)
}

/** Executes a workflow `all` times, `atOnce` of them in flight. `begun` is called after each acceptance. */
async function flood(client: Client, workflowId: string, begun: (count: number) => void): Promise<void> {
  let count = 0
  const one = async () => {
    while (count < ALL) {
      begun(++count)
      const id = await client.execute(workflowId)
      await until(() => hasEnded(id), { withinMs: 120_000 })
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, one))
}

// A server named by TEST_TEMPORAL_ADDRESS may not have fairness enabled.
test.skipIf(inject('temporalCli') === '')(
  'while more runs are in flight than a worker has slots, none is starved, and another team is served in turn',
  { tags: 'long', timeout: 240_000 },
  async () => {
    const { cookie, teamId } = await host.otherTeam()
    const other = createClient({ teamId, send: (path, init) => host.request(path, { as: cookie, ...init }) })
    const [many, single] = [await host.create(graph), await other.create(graph)]
    let inTheMiddle: Promise<string> | undefined
    await flood(host, many, (count) => {
      if (count > ALL / 2) inTheMiddle ??= other.execute(single)
    })
    await other.ended(await inTheMiddle!)

    const runs = await readBeginnings(many)
    expect(runs).toHaveLength(ALL)
    const overtaken = runs.map(
      (run) => runs.filter(({ accepted, began }) => accepted > run.accepted && began < run.began).length,
    )
    // Until a task is seen to be late, others that start eagerly may go before it. With all starts eager, the slots
    // are taken as soon as they are free: some are overtaken by 100 to 200 others.
    expect(overtaken.filter((others) => others > 60).length).toBeLessThan(10)
    const [own] = await readBeginnings(single)
    const before = runs.filter(({ began }) => began > own!.accepted && began < own!.began).length
    // Its turn comes long before that of all who wait already.
    expect(before).toBeLessThan(IN_FLIGHT / 2)
  },
)
