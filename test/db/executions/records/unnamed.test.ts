import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { rebuildExecution } from '../../../../activities/temporal/rebuild.ts'
import { packOutput } from '../../../../db/executions/records/outputs.ts'
import { removeUnnamed } from '../../../../db/executions/records/unnamed.ts'
import { edges } from '../../../support/engine/graphs.ts'
import { keep } from '../../../support/keep.ts'
import { shareRunning } from '../../../support/running.ts'
import { startTarget } from '../../../support/servers/target.ts'

const target = await keep(startTarget())
const host = await keep(shareRunning())
const { store } = host
const { db } = store

const text = (kb: number) => `{{ $join($map([1..${kb}], function($n) { $pad($string($n), 1000, 'x') })) }}`
// Six pages of items, so that there is a page of pages; results of iterations in chunks; an output that travels as a reference.
const graph = {
  nodes: [
    { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
    { id: 'big', type: 'SET', config: { values: { text: text(50) } } },
    {
      id: 'each',
      type: 'FOR_EACH',
      config: { items: `{{ [1..60].{"n": $, "text": $pad("", 7000, "y")} }}` },
    },
    {
      id: 'pass',
      parentId: 'each',
      type: 'SET',
      config: { values: { n: '{{ $item.n }}', t: '{{ $item.text }}' } },
    },
    { id: 'call', type: 'HTTP_REQUEST', config: { url: `${target.url}/ok` } },
    { id: 'last', type: 'SET', config: { values: { again: '{{ $nodes.big.text }}' } } },
    { id: 'stop', type: 'STOP_AND_ERROR', config: { message: 'on purpose' } },
  ],
  edges: edges('start -> big', 'big -> each', 'each -> call', 'call -> last', 'last -> stop'),
}

const listHashes = async (id: string) => {
  const { rows } = await sql<{ hash: string }>`select hash from blobs where execution_id = ${id}`.execute(db)
  return rows.map(({ hash }) => hash).toSorted()
}
const age = (id: string, hours: number) =>
  sql`update executions set started_at = started_at - ${hours} * interval '1 hour',
    completed_at = completed_at - ${hours} * interval '1 hour' where id = ${id}`.execute(db)
const show = async (id: string) => {
  const { nodeExecutions, outputData } = await host.read(id)
  return { nodeExecutions, outputData }
}
const plant = async (id: string) => {
  const envelope = await packOutput(store, id, { left: crypto.randomUUID().repeat(2_000) }, 100)
  return (envelope as { ref: string }).ref
}

test('what no record or preset names goes an hour after the end, and everything else stays as it was', {
  tags: 'long',
}, async () => {
  const run = await host.run(graph)
  expect(run.status).toBe('FAILED')
  const { id } = run
  const before = await show(id)
  const left = await plant(id)
  // Not yet: an attempt that was cut off may be storing its output.
  expect(await removeUnnamed(store)).toBe(0)
  await age(id, 2)
  const hashes = await listHashes(id)
  expect(await removeUnnamed(store)).toBeGreaterThan(0)
  const kept = await listHashes(id)
  expect(kept).not.toContain(left)
  expect(kept.length).toBeGreaterThan(6)
  expect(kept.every((hash) => hashes.includes(hash))).toBe(true)
  expect(await show(id)).toEqual(before)
  // Each is looked for once.
  expect(await removeUnnamed(store)).toBe(0)
  const { client, sealer } = host.engine
  expect(await rebuildExecution({ store, client, sealer }, id)).toBe('FAILED')
  expect(await show(id)).toEqual(before)

  // A retry has copies of its own, which its presets name.
  const { executionId } = await host.ask<{ executionId: string }>('POST', `/api/executions/${id}/retry`)
  await host.ended(executionId)
  await sql`delete from node_executions where execution_id = ${executionId} and node_id = 'big'`.execute(db)
  await age(executionId, 2)
  const copies = await listHashes(executionId)
  expect(copies.length).toBeGreaterThan(0)
  await removeUnnamed(store)
  expect(await listHashes(executionId)).toEqual(copies)
})

test('nothing goes while an execution is open, or while its records may lack values that its history has', async () => {
  const wait = { id: 'wait', type: 'WAIT', config: { durationMs: 3_600_000 } }
  const nodes = [...graph.nodes.slice(0, 2), wait]
  const open = await host.execute(await host.create({ nodes, edges: edges('start -> big', 'big -> wait') }))
  await host.until(open, ({ nodeExecutions }) => nodeExecutions.some(({ nodeId }) => nodeId === 'wait'))
  const planted = await plant(open)
  await removeUnnamed(store)
  expect(await listHashes(open)).toContain(planted)
  await host.ask('POST', `/api/executions/${open}/cancel`)
  await host.ended(open)
  // As after three projections that could not be stored.
  await sql`update node_executions set output = null where execution_id = ${open} and node_id = 'big'`.execute(
    db,
  )
  await age(open, 2)
  await removeUnnamed(store)
  expect(await listHashes(open)).toContain(planted)
})
