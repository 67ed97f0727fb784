import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { hashSeen, takeUnseen } from '../../../db/workflows/kept/seenvalues.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { nodeOf, shareRunning } from '../../support/running.ts'

const host = await keep(shareRunning())

const create = (...configs: object[]) =>
  host.create({
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
      ...configs.map((config, at) => ({
        ...{ id: `seen${at}`, type: 'SKIP_SEEN', retry: { maxAttempts: 1 } },
        config: { items: '{{ $nodes.start.items }}', ...config },
      })),
    ],
    edges: edges(...configs.map((_, at) => `start -> seen${at}`)),
  } as never)

/** What each node of the workflow lets through. */
async function pass(workflowId: string, items: unknown[]): Promise<unknown[]> {
  const run = await host.ended(await host.execute(workflowId, { items } as never))
  expect(run.errorMessage).toBeNull()
  const nodes = run.nodeExecutions.filter(({ nodeId }) => nodeId.startsWith('seen'))
  return nodes
    .sort((a, b) => (a.nodeId < b.nodeId ? -1 : 1))
    .map(({ outputData }) => (outputData as { items: unknown[] }).items)
}

test('what an earlier execution has seen is left out, each node for itself or for all of a name', async () => {
  const id = await create({ by: 'id' }, {}, { by: ['a.b', 'id'] }, { by: '{{ $item.id & "" }}', shared: 'x' })
  const [one, two] = [{ id: 1 }, { id: 2, a: { b: 1 } }]
  expect(await pass(id, [two, one, two])).toEqual([
    ...[
      [two, one, two],
      [two, one, two],
      [two, one, two],
    ],
    [two, one, two],
  ])
  const again = { id: 1, more: true }
  const other = { id: 2, a: { b: 2 } }
  expect(await pass(id, [again, other, { id: 3 }])).toEqual([
    [{ id: 3 }],
    [again, other, { id: 3 }],
    [other, { id: 3 }],
    [{ id: 3 }],
  ])
  // What a node has seen is known to another version of the workflow, and to no other workflow.
  const copy = await create({ by: 'id' })
  expect(await pass(copy, [one])).toEqual([[one]])
})

test('a number and its text are different values, and so are true, null within an item, and lists', async () => {
  const id = await create({ by: 'v' })
  const values = [1, '1', true, 'true', [1], '[1]', { a: 1, b: 2 }, '', 0, 1.0, '\ud800', '\0[1]']
  const items = values.map((v) => ({ v }))
  expect(await pass(id, items)).toEqual([items])
  expect(await pass(id, [...items, { v: { b: 2, a: 1 } }, { v: '1 ' }])).toEqual([[{ v: '1 ' }]])
})

test('an item without a value fails the node, which names all of them, and nothing counts as seen', async () => {
  const id = await create({ by: 'id' })
  const run = await host.ended(await host.execute(id, { items: [{ id: 1 }, {}, { id: null }] } as never))
  expect(run.status).toBe('FAILED')
  expect(nodeOf(run, 'seen0').errorMessage).toBe('items[1], items[2]: has no value to compare')
  expect(await pass(id, [{ id: 1 }])).toEqual([[{ id: 1 }]])
  const wrong = await host.call('POST', '/api/workflows', host.user.cookie, {
    ...{ teamId: host.teamId, name: 'wrong', edges: [] },
    nodes: [{ id: 'a', type: 'SKIP_SEEN', config: { by: 5, history: 0, shared: '{{ 1 }}' } }],
  })
  expect(wrong).toMatchObject({ status: 400 })
  const { errors } = wrong.body as { errors: { path: string }[] }
  expect(errors.map(({ path }) => path)).toEqual(
    expect.arrayContaining(['nodes[0].config.by', 'nodes[0].config.history', 'nodes[0].config.shared']),
  )
})

test('of executions at once each item gets through one', async () => {
  const id = await create({ by: 'id' })
  const items = Array.from({ length: 40 }, (_, at) => ({ id: at }))
  const passed = await Promise.all(
    Array.from({ length: 8 }, (_, at) => pass(id, items.slice(at * 4).concat(items.slice(0, at * 4)))),
  )
  const ids = passed.flatMap(([list]) => (list as { id: number }[]).map((item) => item.id))
  expect(ids.sort((a, b) => a - b)).toEqual(items.map((item) => item.id))
})

test('an attempt that comes again is answered as the first, and the oldest values are forgotten', async () => {
  const workflowId = await create({})
  const { store } = host
  const place = { workflowId, name: 'node x' }
  const hashes = (...texts: string[]) => texts.map(hashSeen)
  const take = (callKey: string, ...texts: string[]) =>
    takeUnseen(store, place, hashes(...texts), { callKey, keep: 3 })
  expect(await take('1', 'a', 'b')).toEqual([true, true])
  expect(await take('2', 'b', 'c', 'c')).toEqual([false, true, true])
  expect(await take('1', 'a', 'b')).toEqual([true, true])
  expect(await take('2', 'b', 'c')).toEqual([false, true])
  // One that brings more than is kept keeps its own for its further attempts.
  expect(await take('3', 'd', 'e', 'f', 'g')).toEqual([true, true, true, true])
  expect(await take('3', 'd', 'e', 'f', 'g')).toEqual([true, true, true, true])
  expect(await take('4', 'a', 'g')).toEqual([true, false])
  const count = async () => {
    const { rows } = await sql<{ count: number }>`select count(*)::int as count from seen_values
      where workflow_id = ${workflowId}`.execute(store.db)
    return rows[0]!.count
  }
  expect(await count()).toBe(3)
  await host.ask('DELETE', `/api/workflows/${workflowId}`)
  expect(await count()).toBe(0)
  expect(await take('5', 'g')).toEqual([true])
  expect(await count()).toBe(0)
})
