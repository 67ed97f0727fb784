import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createFold } from '../../../../db/executions/projection/fold.ts'
import type { HistoryEvent, RunHistory } from '../../../../db/executions/projection/history.ts'
import { saveProjection } from '../../../../db/executions/records/save.ts'
import { compilePlan } from '../../../../workflows/graph/compile.ts'
import type { NodeRecord } from '../../../../workflows/run/records.ts'
import { atOnce } from '../../../support/atonce.ts'
import { type Service, startService } from '../../../support/service.ts'

const graph = {
  nodes: ['start', 'a'].map((id, at) => ({
    id,
    type: at === 0 ? 'MANUAL_TRIGGER' : 'NO_OP',
    name: id,
    config: {},
    onError: 'FAIL' as const,
  })),
  edges: [{ source: 'start', target: 'a', sourceHandle: null }],
}

/** A run from `1_000` to `2_000` by Temporal's clock, with the records in an event at `1_500`. */
function history(id: string, records: NodeRecord[], ended = true): RunHistory {
  const plan = atOnce(compilePlan(graph, { workflowId: id, version: 1, triggerNodeId: 'start' }))
  const context = { id, workflowId: id, workflowName: 'w', version: 1, trigger: 'MANUAL', timezone: 'UTC' }
  const input = { plan, context, input: { v: {}, bytes: 2 }, timeoutMs: null }
  const events: HistoryEvent[] = [
    { id: 1, time: 1_000, kind: 'started', input, continuedFrom: null },
    { id: 2, time: 1_500, kind: 'records', records },
  ]
  if (ended) events.push({ id: 3, time: 2_000, kind: 'closed', how: 'COMPLETED', message: null, type: null })
  return { runId: id, events }
}

const record = (nodeId: string, startedAt: number, completedAt: number): NodeRecord => ({
  nodeId,
  iteration: '',
  status: 'SUCCESS',
  handle: null,
  output: { v: nodeId, bytes: 9 },
  startedAt,
  completedAt,
})

function project(id: string, history: RunHistory) {
  const fold = createFold(id)
  fold.read(history)
  return fold.project()
}

test("a node's times lie within its run, even if the worker's clock is fast or slow", () => {
  const id = crypto.randomUUID()
  const { nodes } = project(id, history(id, [record('start', 400, 420), record('a', 1_400, 7_000)]))
  expect(nodes.map(({ startedAt, completedAt }) => [startedAt, completedAt])).toEqual([
    [1_000, 1_000],
    [1_400, 1_500],
  ])
})

describe('a projection that is written again', () => {
  let service: Service
  beforeAll(async () => {
    service = await startService()
  })
  afterAll(() => service.stop())

  test('never replaces a newer one', async () => {
    const { admin, request, store, teamId } = service
    const ask = async (path: string, json: object) =>
      (await request(path, { method: 'POST', as: admin, json })).json() as Promise<Record<string, string>>
    const workflow = await ask('/api/workflows', { teamId, name: 'again', ...graph })
    const started = await ask(`/api/workflows/${workflow.id}/execute`, { teamId, data: {} })
    const id = started.executionId!
    const all = [record('start', 1_000, 1_000), record('a', 1_400, 1_500)]
    const waiting = { ...all[0]!, status: 'WAITING', until: 2_000 } as NodeRecord
    const older = project(id, history(id, [waiting], false))
    const newer = project(id, history(id, all))
    const records = () =>
      store.db
        .selectFrom('nodeExecutions')
        .select(['nodeId', 'status', 'settled'])
        .where('executionId', '=', id)
        .orderBy('nodeId')
        .execute()

    expect(await saveProjection(store, id, older, { values: true })).toMatchObject({ status: 'RUNNING' })
    expect(await records()).toEqual([{ nodeId: 'start', status: 'RUNNING', settled: false }])
    expect(await saveProjection(store, id, newer, { values: true })).toMatchObject({ status: 'SUCCESS' })
    const right = [
      { nodeId: 'a', status: 'SUCCESS', settled: true },
      { nodeId: 'start', status: 'SUCCESS', settled: true },
    ]
    expect(await records()).toEqual(right)
    expect(await saveProjection(store, id, older, { values: true, again: true })).toBeNull()
    expect(await records()).toEqual(right)

    await store.db.deleteFrom('nodeExecutions').where('executionId', '=', id).execute()
    expect(await saveProjection(store, id, newer, { values: true })).toBeNull()
    expect(await records()).toEqual([])
    await saveProjection(store, id, newer, { values: true, again: true })
    expect(await records()).toEqual(right)
  })
})
