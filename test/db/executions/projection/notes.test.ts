import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { createFold } from '../../../../db/executions/projection/fold.ts'
import type { HistoryEvent } from '../../../../db/executions/projection/history.ts'
import { saveProjection } from '../../../../db/executions/records/save.ts'
import { compilePlan } from '../../../../workflows/graph/compile.ts'
import { mergeNodeNotes, readNodeNotes } from '../../../../workflows/notes.ts'
import type { NodeNotes, NodeRecord } from '../../../../workflows/run/records.ts'
import { atOnce } from '../../../support/atonce.ts'
import { keep } from '../../../support/keep.ts'
import { type Body, shareService } from '../../../support/service.ts'

const service = await keep(shareService())

const node = (id: string, type: string, more: object = {}) => ({
  id,
  type,
  name: id,
  config: {},
  onError: 'CONTINUE' as const,
  ...more,
})
const graph = {
  nodes: [
    node('start', 'MANUAL_TRIGGER'),
    node('step', 'SET', { config: { values: {} } }),
    node('call', 'SET', { config: { values: {} }, timeoutMs: 1_000 }),
    node('broken', 'SET', { config: { values: {} }, timeoutMs: 1_000 }),
    node('wait', 'WAIT', { config: { durationMs: 1 } }),
    node('repeat', 'REPEAT', { config: { until: 'true', maxIterations: 2 } }),
    node('body', 'NO_OP', { parentId: 'repeat' }),
  ],
  edges: ['step', 'call', 'broken', 'wait', 'repeat'].map((target) => ({
    source: 'start',
    target,
    sourceHandle: null,
  })),
}

const warning = (message: string): NodeNotes => ({ warnings: [{ path: 'config.x', message }] })
const lines: NodeNotes = { console: [{ level: 'log', text: 'a \u0000 b \ud800' }] }
const both = { ...warning('w'), ...lines }

const times = { handle: null, startedAt: 1_000, completedAt: 1_001 }
const head = { iteration: '', ...times }
const records: NodeRecord[] = [
  { nodeId: 'start', status: 'SUCCESS', output: { v: {}, bytes: 2 }, ...head },
  { nodeId: 'step', status: 'SUCCESS', output: { v: {}, bytes: 2 }, ...head, notes: both },
  {
    nodeId: 'wait',
    status: 'WAITING',
    until: 5_000,
    output: { v: {}, bytes: 2 },
    ...head,
    notes: warning('u'),
  },
  { nodeId: 'repeat', status: 'LOOPING', loop: { count: 2, pages: [] }, ...head, notes: warning('first') },
  { nodeId: 'repeat', status: 'TURNED', over: false, ...head, notes: warning('tested') },
  { nodeId: 'repeat', status: 'TURNED', over: true, ...head, notes: warning('tested') },
]

function listEvents(workflowId: string): HistoryEvent[] {
  const plan = atOnce(compilePlan(graph, { workflowId, version: 1, triggerNodeId: 'start' }))
  const input = { plan, context: {}, input: { v: {}, bytes: 2 }, timeoutMs: null } as never
  const at = (id: number, time: number) => ({ id, time })
  return [
    { ...at(1, 1_000), kind: 'started', input, continuedFrom: null },
    { ...at(2, 2_000), kind: 'records', records },
    { ...at(3, 2_001), kind: 'timer', timerId: 't', key: 'wait#' },
    { ...at(4, 2_002), kind: 'scheduled', activityId: 'call' },
    { ...at(5, 2_003), kind: 'scheduled', activityId: 'broken' },
    {
      ...at(6, 2_004),
      kind: 'completed',
      scheduledId: 4,
      result: { output: { v: {}, bytes: 2 }, handle: null, notes: lines },
    },
    { ...at(7, 2_005), kind: 'failed', scheduledId: 5, error: { message: 'm', type: 'Error' }, notes: both },
    { ...at(8, 2_006), kind: 'fired', timerId: 't' },
    {
      ...at(9, 2_007),
      kind: 'records',
      records: [{ nodeId: 'repeat', status: 'SUCCESS', output: { v: {}, bytes: 2 }, ...head }],
    },
    { ...at(10, 3_000), kind: 'closed', how: 'COMPLETED', message: null, type: null },
  ]
}

/** Stores an execution whose history has notes, `parts` events at a time, and returns its nodes as the API shows them. */
async function show(parts: number, saveData = { inputs: true, outputs: true }): Promise<Body[]> {
  const name = `notes ${crypto.randomUUID()}`
  const { teamId } = service
  const json = { teamId, name, nodes: graph.nodes, edges: graph.edges, settings: { saveData } }
  const { body } = await service.call('POST', '/api/workflows', service.admin, json)
  const path = `/api/workflows/${body.id}/execute`
  const { executionId } = (await service.call('POST', path, service.admin, { teamId })).body
  const fold = createFold(executionId)
  const events = listEvents(body.id)
  for (let from = 0; from < events.length; from += parts) {
    fold.read({ runId: 'r', events: events.slice(from, from + parts) })
    expect(await saveProjection(service.store, executionId, fold.project(), { values: true })).not.toBeNull()
    fold.confirm()
  }
  const shown = await service.call('GET', `/api/executions/${executionId}`, service.admin)
  expect(shown.status).toBe(200)
  return shown.body.nodeExecutions
}

test('what a node has noted is in its record, however many parts its history is read in', async () => {
  for (const parts of [100, 1]) {
    const shown = await show(parts)
    const notes = Object.fromEntries(
      shown.map((row) => [row.nodeId, { warnings: row.warnings, console: row.console }]),
    )
    expect(notes).toEqual({
      start: {},
      step: both,
      call: lines,
      broken: both,
      wait: warning('u'),
      repeat: { warnings: ['first', 'tested'].flatMap((text) => warning(text).warnings!) },
    })
    // Left out, rather than empty.
    for (const row of shown.filter(({ nodeId }) => nodeId === 'start')) {
      expect(row).not.toHaveProperty('warnings')
      expect(row).not.toHaveProperty('console')
    }
  }
})

test('a workflow that does not keep outputs keeps no notes either: they have values in them', async () => {
  for (const parts of [100, 1])
    for (const row of await show(parts, { inputs: true, outputs: false })) {
      expect(row).not.toHaveProperty('warnings')
      expect(row).not.toHaveProperty('console')
    }
  const { rows } = await sql<{ n: number }>`select count(*)::int as n from node_executions n
    join executions e on e.id = n.execution_id where not e.keep_outputs and notes is not null`.execute(
    service.store.db,
  )
  expect(rows).toEqual([{ n: 0 }])
})

test('notes have at most 16 KB, the last says that there were more, and a warning is there once', () => {
  const many = {
    warnings: Array.from({ length: 1_000 }, (_, n) => ({ path: `config.x${n}`, message: 'é'.repeat(100) })),
    console: Array.from({ length: 1_000 }, (_, n) => ({
      level: 'log',
      text: `line ${n} ${'x'.repeat(9_000)}`,
    })),
  }
  let notes = mergeNodeNotes(undefined, many)!
  for (let again = 0; again < 3; again++) {
    expect(Buffer.byteLength(JSON.stringify(notes))).toBeLessThan(16_384)
    expect(notes.warnings!.length).toBeGreaterThan(20)
    expect(notes.warnings!.at(-1)!.message).toMatch(/more warnings/)
    expect(notes.console!.at(-1)!.text).toMatch(/more lines/)
    notes = mergeNodeNotes(notes, many)!
  }
  expect(mergeNodeNotes(warning('w'), warning('w'))).toEqual(warning('w'))
  expect(mergeNodeNotes(undefined, {})).toBeUndefined()
  expect(readNodeNotes(both)).toEqual(both)
  for (const bad of [null, 1, 'x', { warnings: 1 }, { console: [{ level: 1, text: '' }] }, {}])
    expect(readNodeNotes(bad)).toBeUndefined()
})
