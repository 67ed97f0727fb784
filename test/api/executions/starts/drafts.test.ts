import { sql } from 'kysely'
import { pino } from 'pino'
import { afterAll, expect, test } from 'vitest'
import { createApp } from '../../../../api/app.ts'
import { openDatabase } from '../../../../db/connection.ts'
import { startErrorWorkflow } from '../../../../db/executions/starts/errorworkflow.ts'
import { listSampleable } from '../../../../db/monitoring/shifts/driftsamples.ts'
import { IS_WATCHED } from '../../../../db/monitoring/usage/calls.ts'
import { keep } from '../../../support/keep.ts'
import { shareRunning } from '../../../support/running.ts'
import type { Ask, Body } from '../../../support/service.ts'

const host = await keep(shareRunning())
const { teamId, admin, store } = host
// A second API on the same database, with its own connections and its own cache of versions.
const { db, close } = openDatabase(host.database.url, { max: 5, name: 'test 2' })
afterAll(close)
const app = createApp({
  store: { ...store, db },
  bus: host.bus,
  log: pino({ level: 'silent' }),
  publicUrl: 'http://127.0.0.1:3000',
  isReady: async () => ({ database: true, temporal: true, worker: true }),
  carryOut: (errand) => host.engine.carryOut(errand),
})

type Via = (path: string, init?: Ask) => Promise<Response>
const first: Via = (path, init) => host.request(path, { as: admin, ...init })
const second: Via = async (path, { as: _, json, ...init } = {}) =>
  app.request(path, {
    ...init,
    headers: { cookie: admin, 'content-type': 'application/json' },
    body: json === undefined ? null : JSON.stringify(json),
  })
async function ask(via: Via, method: string, path: string, json?: object): Promise<Body> {
  const response = await via(path, { method, json })
  const text = await response.text()
  expect(response.ok, `${method} ${path}: ${text}`).toBe(true)
  return JSON.parse(text)
}

const trigger = { id: 'hook', type: 'WEBHOOK_TRIGGER', config: { path: 'in' } }
const graph = (a: unknown) => ({
  nodes: [trigger, { id: 'set', type: 'SET', config: { values: { a } } }],
  edges: [{ source: 'hook', target: 'set' }],
})

test('under steady calls an active workflow is edited, tried and published: no call runs a draft, and none is lost', async () => {
  const id = await host.create(graph(1))
  const path = `/api/workflows/${id}`
  await ask(first, 'PUT', path, { active: true })
  const published = new Map([[1, 1]])
  const calls: Body[] = []
  const tries: Body[] = []
  let goesOn = true
  const callSteadily = async (via: Via) => {
    while (goesOn) calls.push(await ask(via, 'POST', `/hooks/${id}/in`, {}))
  }
  const callers = [callSteadily(first), callSteadily(second)]
  for (const [round, via] of [first, second, first, second].entries()) {
    const other = via === first ? second : first
    const a = 10 + round
    const { draftVersion } = await ask(via, 'PUT', path, { ...graph(a), draft: true })
    expect((await ask(other, 'GET', path)).publishedVersion).toBe(Math.max(...published.keys()))
    tries.push([a, await ask(other, 'POST', `${path}/execute`, { teamId, version: 'draft' })])
    if (round === 1) continue
    published.set(draftVersion, a)
    expect((await ask(other, 'POST', `${path}/publish`, { note: `round ${round}` })).version).toBe(
      draftVersion,
    )
  }
  goesOn = false
  await Promise.all(callers)
  expect(calls.length).toBeGreaterThan(10)
  const seen = new Set<number>()
  for (const { executionId } of calls) {
    const run: Body = await host.ended(executionId)
    expect(run).toMatchObject({ status: 'SUCCESS', draft: false })
    expect(run.outputData).toEqual({ a: published.get(run.workflowVersion) })
    seen.add(run.workflowVersion)
  }
  expect(seen.size).toBeGreaterThan(1)
  for (const [a, { executionId }] of tries)
    expect(await host.ended(executionId)).toMatchObject({ status: 'SUCCESS', draft: true, outputData: { a } })
})

test('a draft starts no error workflow, is not judged or counted, and what it starts is part of the test', async () => {
  const errors = await host.create({ nodes: [{ id: 'in', type: 'ERROR_TRIGGER', config: {} }], edges: [] })
  const child = await host.create({
    nodes: [
      { id: 'in', type: 'SUB_WORKFLOW_TRIGGER', config: {} },
      { id: 'stop', type: 'STOP_AND_ERROR', config: { message: 'no' } },
    ],
    edges: [{ source: 'in', target: 'stop' }],
  })
  const settings = { errorWorkflowId: errors }
  await ask(first, 'PUT', `/api/workflows/${child}`, { settings })
  const id = await host.create({ ...graph(1), settings })
  const path = `/api/workflows/${id}`
  const rate = { enabled: true, samplingRate: 100 }
  await store.db
    .insertInto('evalConfigs')
    .values({ id: crypto.randomUUID(), teamId, workflowId: id, ...rate })
    .execute()
  const call = { id: 'set', type: 'SUB_WORKFLOW', config: { workflowId: child, input: {} } }
  await ask(first, 'PUT', path, { nodes: [trigger, call], draft: true })
  const execute = async (version?: unknown) => {
    const { executionId } = await ask(first, 'POST', `${path}/execute`, { teamId, version })
    return host.ended(executionId)
  }
  const failed = await execute('draft')
  expect(failed).toMatchObject({ status: 'FAILED', draft: true })
  const { content } = await ask(first, 'GET', `/api/executions?workflowId=${child}`)
  expect(content).toEqual([expect.objectContaining({ status: 'FAILED', draft: true })])
  await ask(first, 'PUT', path, { ...graph(2), draft: true })
  const tried = await execute('draft')
  const live = await execute()
  expect([tried.status, live.status]).toEqual(['SUCCESS', 'SUCCESS'])

  const ids = [failed.id, tried.id, live.id, content[0].id]
  const counted = await sql<{ id: string }>`select id from executions e
    where id = any(${ids}::uuid[]) and is_counted(e)`.execute(store.db)
  expect(counted.rows.map((row) => row.id)).toEqual([live.id])
  const judged = await sql<{ id: string }>`select execution_id as id from evaluations`.execute(store.db)
  expect(judged.rows.map((row) => row.id)).toEqual([live.id])
  const span = { teamId, from: new Date(Date.now() - 3_600_000), to: new Date(Date.now() + 1_000) }
  const sampled = (await listSampleable(store, span)).map((one) => one.id)
  expect(ids.filter((one) => sampled.includes(one))).toEqual([live.id])
  const watched = await sql<{ id: string }>`select c.id as id from (
    select id, id as execution_id, 'set' as node_id, 'set' as activity_id from executions where id = any(${ids}::uuid[])) c
    where ${IS_WATCHED}`.execute(store.db)
  expect(watched.rows.map((row) => row.id)).toEqual([live.id])
  expect(await startErrorWorkflow(store, failed.id)).toEqual({ started: null, reason: null })
  expect((await ask(first, 'GET', `/api/executions?workflowId=${errors}`)).content).toEqual([])
  // The list of workflows tells how what is published goes.
  const { content: listed } = await ask(first, 'GET', `/api/workflows?teamId=${teamId}&size=100`)
  expect(listed.find((one: Body) => one.id === child).lastExecutionStatus).toBeNull()
})

test('a test of a draft takes no place of what is published, and has a limit of its own', async () => {
  const concurrency = { limit: 1, policy: 'replace' }
  const waiting = { id: 'set', type: 'WAIT', config: { durationMs: 3_600_000 } }
  const id = await host.create({
    nodes: [trigger, waiting],
    edges: graph(1).edges,
    settings: { concurrency },
  })
  const path = `/api/workflows/${id}`
  await ask(first, 'PUT', path, { nodes: [trigger, waiting, { id: 'x', type: 'NO_OP' }], draft: true })
  const execute = async (version?: unknown): Promise<string> =>
    (await ask(first, 'POST', `${path}/execute`, { teamId, version })).executionId
  const live = await execute()
  const tests = [await execute('draft'), await execute('draft')]
  expect((await host.ended(tests[0]!)).errorMessage).toMatch(/took its place/)
  expect((await host.read(live)).status).toBe('RUNNING')
  for (const one of [live, tests[1]])
    await host.request(`/api/executions/${one}/cancel`, { method: 'POST', as: admin })
})
