import { Client } from '@temporalio/client'
import { expect, inject, test } from 'vitest'
import { createDataConverter } from '../../../activities/temporal/codec.ts'
import { rebuildExecution } from '../../../activities/temporal/rebuild.ts'
import type { Config } from '../../../worker/config.ts'
import { connectClient } from '../../../worker/temporal.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'
import { until } from '../../support/until.ts'

const ITEMS = 10_000
const running = await keep(shareRunning())
const { store } = running

const readRow = (id: string) =>
  store.db
    .selectFrom('executions')
    .select(['status', 'recordCount', 'runPosition', 'lastEventId'])
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
const readNodes = (id: string) =>
  store.db
    .selectFrom('nodeExecutions')
    .select(['id', 'status', 'startedAt', 'completedAt', 'position', 'output', 'settled'])
    .where('executionId', '=', id)
    .orderBy('id')
    .execute()

/** The client of the commands, whose gRPC is not the worker's. */
function connect() {
  const temporal = { address: inject('temporalAddress'), namespace: 'default' }
  const connection = connectClient({ temporal } as Config)
  return new Client({ connection, dataConverter: createDataConverter(running.engine.sealer) })
}

test('a run of 10,000 items whose histories have more than 4 MB is rebuilt', {
  tags: 'long',
  timeout: 300_000,
}, async () => {
  const id = await running.execute(
    await running.create({
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
        { id: 'each', type: 'FOR_EACH', config: { items: `{{ [1..${ITEMS}] }}` } },
        { id: 'set', parentId: 'each', type: 'SET', config: { values: { text: 'x'.repeat(700) } } },
      ],
      edges: edges('start -> each'),
    }),
  )
  const ended = await until(() => readRow(id), {
    holds: ({ status }) => status !== 'PENDING' && status !== 'RUNNING',
    withinMs: 200_000,
  })
  expect(ended).toMatchObject({ status: 'SUCCESS', recordCount: ITEMS + 2 })
  const nodes = await readNodes(id)
  expect(nodes.filter(({ status, settled }) => status === 'SUCCESS' && settled)).toHaveLength(ITEMS + 2)

  const client = connect()
  const deps = { store, client, sealer: running.engine.sealer }
  expect(await rebuildExecution(deps, id)).toBe('SUCCESS')
  expect(await readNodes(id)).toEqual(nodes)
  await store.db.deleteFrom('nodeExecutions').where('executionId', '=', id).execute()
  expect(await rebuildExecution(deps, id)).toBe('SUCCESS')
  expect(await readNodes(id)).toEqual(nodes)
  expect(await readRow(id)).toEqual(ended)
  await client.connection.close()
})

test('an execution whose rows know more than its history is not called rebuilt', async () => {
  const { id } = await running.run({
    nodes: [{ id: 'start', type: 'MANUAL_TRIGGER', config: {} }],
    edges: [],
  })
  await store.db.updateTable('executions').set({ lastEventId: 1_000 }).where('id', '=', id).execute()
  const { client, sealer } = running.engine
  await expect(rebuildExecution({ store, client, sealer }, id)).rejects.toThrow('know more than its history')
})
