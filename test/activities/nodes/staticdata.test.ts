import { expect, test } from 'vitest'
import { keepStaticData, readStaticData, rotateStaticData } from '../../../db/workflows/kept/staticdata.ts'
import { nodeOf } from '../../support/client.ts'
import { edges } from '../../support/engine/graphs.ts'
import { shareRunning } from '../../support/running.ts'

const host = await shareRunning()

const STYLE = { language: 'javascript', style: 'code', mode: 'all', staticData: true }
const COUNT = `const kept = $getWorkflowStaticData('global')
kept.count = (kept.count ?? 0) + 1
return [{ json: { count: kept.count } }]`

const code = (id: string, text: string, more: object = {}) => ({
  ...{ id, type: 'CODE', allItems: true },
  config: { ...STYLE, code: text, ...more },
})

const create = (nodes: { id: string }[]) =>
  host.create({
    nodes: [{ id: 'start', type: 'MANUAL_TRIGGER', config: {} }, ...nodes],
    edges: edges(...nodes.map(({ id }, at) => `${nodes[at - 1]?.id ?? 'start'} -> ${id}`)),
  } as never)

// biome-ignore lint/suspicious/noExplicitAny: outputs are read field by field
const execute = async (workflowId: string, data: object = {}): Promise<any> =>
  host.ended(await host.execute(workflowId, data as never))

const itemsOf = (execution: unknown, id = 'work') =>
  nodeOf(execution as never, id).outputData as { items: object[] }

test('what code keeps is there in the next execution, for the workflow and for each node', async () => {
  const own = `const [all, mine] = [$getWorkflowStaticData('global'), getWorkflowStaticData('node')]
all.seen = [...(all.seen ?? []), $json.n]
mine.last = [mine.last?.[1], $json.n]
return [{ json: { n: $json.n, seen: all.seen, last: mine.last } }]`
  const id = await create([code('work', own), code('next', own)])
  await execute(id, { n: 1 })
  const second = await execute(id, { n: 2 })
  expect(itemsOf(second).items).toEqual([{ n: 2, seen: [1, 1, 2], last: [1, 2] }])
  expect(itemsOf(second, 'next').items).toEqual([{ n: 2, seen: [1, 1, 2, 2], last: [1, 2] }])
  const rows = () => host.store.db.selectFrom('staticData').selectAll().where('workflowId', '=', id).execute()
  expect((await rows()).map(({ nodeId }) => nodeId).sort()).toEqual(['', 'next', 'work'])
  expect((await rows()).some(({ sealed }) => sealed.includes('seen'))).toBe(false)
  // Sealed with the current key already.
  expect(await rotateStaticData(host.store)).toBe(0)
  await host.ask('DELETE', `/api/workflows/${id}`)
  expect(await rows()).toEqual([])
})

test('no change of executions at the same time is lost', async () => {
  const id = await create([code('work', COUNT)])
  const counts = await Promise.all(
    Array.from({ length: 12 }, async () => itemsOf(await execute(id)).items[0] as { count: number }),
  )
  expect(counts.map(({ count }) => count).sort((a, b) => a - b)).toEqual(
    Array.from({ length: 12 }, (_, i) => i + 1),
  )
})

test('code that runs for each item sees what it kept for those before', async () => {
  const each = `const kept = $getWorkflowStaticData('node')
kept.sum = (kept.sum ?? 0) + $json.n
return { json: { sum: kept.sum } }`
  const list = code('list', 'return [1, 2, 3].map((n) => ({ json: { n } }))', { staticData: false })
  const id = await create([list, code('work', each, { mode: 'each' })])
  expect(itemsOf(await execute(id)).items).toEqual([{ sum: 1 }, { sum: 3 }, { sum: 6 }])
  expect(itemsOf(await execute(id)).items.at(-1)).toEqual({ sum: 12 })
})

test('nothing is kept of code that fails, of more than 256 KB, and of a draft, which is told so', async () => {
  const text = `${COUNT.split('\n').slice(0, 2).join('\n')}
if ($json.fails) throw new Error('no')
if ($json.large) kept.large = 'x'.repeat(300_000)
return [{ json: { count: kept.count } }]`
  const id = await create([code('work', text)])
  const failed = nodeOf(await execute(id, { fails: true }), 'work')
  expect([failed.status, failed.errorMessage]).toEqual(['FAILED', 'no [line 3]'])
  expect(nodeOf(await execute(id, { large: true }), 'work')).toMatchObject({
    status: 'FAILED',
    errorMessage: 'the static data may have at most 256 KB',
  })
  const workflow = await host.ask<{ nodes: object[]; edges: object[] }>('GET', `/api/workflows/${id}`)
  await host.ask('PUT', `/api/workflows/${id}`, { active: true })
  const [start] = workflow.nodes
  const draft = { nodes: [start, code('work', text, { timeoutMs: 900 })], edges: workflow.edges, draft: true }
  await host.ask('PUT', `/api/workflows/${id}`, draft)
  const started = await host.ask<{ executionId: string }>('POST', `/api/workflows/${id}/execute`, {
    ...{ teamId: host.teamId, version: 'draft' },
  })
  const ofDraft = await host.ended(started.executionId)
  const tried = nodeOf(ofDraft as never, 'work')
  expect(tried).toMatchObject({ status: 'SUCCESS', outputData: { items: [{ count: 1 }] } })
  expect(tried.warnings).toMatchObject([
    { path: 'config.code', message: expect.stringContaining('of a draft') },
  ])
  expect(itemsOf(await execute(id)).items).toEqual([{ count: 1 }])
})

test('an attempt that comes again outputs what the first did, and keeps nothing twice', async () => {
  const id = await create([code('work', COUNT)])
  const { id: executionId } = await execute(id)
  const place = { workflowId: id, nodeId: 'work' }
  const message = { executionId, activity: 'again' }
  const read = await readStaticData(host.store, place, message)
  if (!('data' in read)) throw new Error('nothing is noted yet')
  const change = {
    ...{ before: read.data, after: { ...read.data, global: '{"count":2}' } },
    ...{ changes: read.changes, output: { items: [{ count: 2 }] } },
  }
  expect(await keepStaticData(host.store, place, message, change)).toBe('kept')
  expect(await keepStaticData(host.store, place, message, change)).toBe('stale')
  expect(await readStaticData(host.store, place, message)).toEqual({ noted: change.output })
  expect(itemsOf(await execute(id)).items).toEqual([{ count: 3 }])
})
