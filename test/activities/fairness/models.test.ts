import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, expect, test } from 'vitest'
import { createMetrics } from '../../../activities/metrics.ts'
import { createClient, nodeOf } from '../../support/client.ts'
import { edges } from '../../support/engine/graphs.ts'
import { callsOf } from '../../support/engine/load.ts'
import { addModelCalls, MODEL_CALL, modelCallGraph } from '../../support/engine/models/calls.ts'
import { keep } from '../../support/keep.ts'
import { startRunning } from '../../support/running.ts'
import { startTarget } from '../../support/servers/target.ts'
import { until } from '../../support/until.ts'

afterAll(addModelCalls())
const metrics = createMetrics()
const target = await keep(startTarget())
const host = await keep(startRunning({ nodesAtOnce: 4, modelCallsAtOnce: 4, metrics }))
const { client } = host.engine

/** The task queue on which each activity of a run waited, by its id. */
async function readQueues(id: string): Promise<Record<string, string>> {
  const { events } = await client.workflow.getHandle(id).fetchHistory()
  return Object.fromEntries(
    (events ?? []).flatMap(({ activityTaskScheduledEventAttributes: task }) =>
      task ? [[task.activityId!, task.taskQueue!.name!]] : [],
    ),
  )
}

async function joinOther() {
  const { cookie, teamId } = await host.otherTeam()
  return createClient({ teamId, send: (path, init) => host.request(path, { as: cookie, ...init }) })
}

const slots = () => host.engine.readSlots()

/** Ends all calls that hang, again and again, until the executions have ended. */
async function release(ids: string[]) {
  return until(
    async () => {
      for (const response of target.hanging) response.end('{}')
      return Promise.all(ids.map(host.read))
    },
    { holds: (runs) => runs.every(({ status }) => status === 'SUCCESS') },
  )
}

test('attempts of its nodes wait in a queue of their own, in loops and per item too; all others where they did', async () => {
  const call = { type: MODEL_CALL, config: { method: 'POST', url: `${target.url}/ok` } }
  const run = await host.run({
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
      { id: 'http', type: 'HTTP_REQUEST', config: { url: `${target.url}/ok` } },
      { id: 'model', ...call },
      { id: 'each', type: 'FOR_EACH', config: { items: [1, 2] } },
      { id: 'inner', parentId: 'each', ...call },
      { id: 'off', ...call, disabled: true },
    ],
    edges: edges('start -> http', 'http -> model', 'model -> each', 'each -> off'),
  })
  expect([run.status, run.errorMessage]).toEqual(['SUCCESS', null])
  const models = `${host.taskQueue}-models`
  expect(await readQueues(run.id)).toEqual({
    http: host.taskQueue,
    model: models,
    'inner#0': models,
    'inner#1': models,
  })
  const { raw } = await client.workflow.getHandle(run.id).describe()
  expect(raw.workflowExecutionInfo?.priority?.fairnessKey).toBe(host.teamId)
})

test('calls to models take none of the places of other calls, nor the other way round, and a team has half of each', async () => {
  const hang = `${target.url}/hang`
  const model = await host.create(modelCallGraph(hang))
  const runs = await Promise.all(Array.from({ length: 8 }, () => host.execute(model)))
  await target.until(() => target.hanging.size === 2)
  const turnedAway = async () => {
    const { values } = await metrics.turnedAway.get()
    return Object.fromEntries(values.map(({ labels, value }) => [labels.kind, value]))
  }
  await until(async () => (await turnedAway()).model! >= 6)
  expect((await turnedAway()).node).toBe(0)
  expect(target.hanging.size).toBe(2)
  expect(slots().model).toEqual([2, 4])
  expect(slots().node).toEqual([0, 4])

  // The same team's other calls go on, and another team's calls to models.
  const http = { id: 'http', type: 'HTTP_REQUEST', config: { url: `${target.url}/ok` } }
  const own = await host.run({
    nodes: [{ id: 'start', type: 'MANUAL_TRIGGER', config: {} }, http],
    edges: edges('start -> http'),
  })
  expect(own.status).toBe('SUCCESS')
  const other = await joinOther()
  const theirs = await other.ended(
    await other.execute(await other.create(modelCallGraph(`${target.url}/ok`))),
  )
  expect(theirs.status).toBe('SUCCESS')
  expect(nodeOf(theirs, 'call').retryCount).toBe(0)
  expect(target.hanging.size).toBe(2)

  for (const run of await release(runs))
    expect(nodeOf(run, 'call')).toMatchObject({ status: 'SUCCESS', retryCount: 0, errorMessage: null })
  // What was turned away has called nobody.
  for (const id of runs) expect(callsOf(target, id, 'call')).toHaveLength(1)
})

test('a worker that stops lets its calls to models end, and takes no others', { tags: 'long' }, async () => {
  const stopping = await host.addEngine({ stopGraceMs: 1_000, modelStopGraceMs: 60_000 })
  await host.engine.stopModels()
  const id = await host.execute(
    await host.create(modelCallGraph(`${target.url}/slow?ms=5000`, { onError: 'FAIL' })),
  )
  await target.until(() => callsOf(target, id, 'call').length === 1)
  const began = Date.now()
  const stopped = stopping.stop()
  const late = await host.execute(await host.create(modelCallGraph(`${target.url}/ok`)))
  await stopped
  expect(Date.now() - began).toBeGreaterThan(2_000)
  const run = await host.ended(id)
  expect([run.status, nodeOf(run, 'call').retryCount]).toEqual(['SUCCESS', 0])
  expect(callsOf(target, id, 'call')).toHaveLength(1)
  // It waits in Temporal, which says so.
  const waiting = async () => (await host.engine.readWaiting()).model
  await until(waiting, { holds: (model) => model.waiting === 1 && model.oldest > 1 })
  expect((await host.engine.readWaiting()).node).toEqual({ waiting: 0, oldest: 0 })
  expect(callsOf(target, late, 'call')).toHaveLength(0)
  const next = await host.addEngine()
  try {
    expect((await host.ended(late)).status).toBe('SUCCESS')
  } finally {
    await next.stop()
  }
})

test('one that must stop at once puts them down, for another worker to make them again at once', async () => {
  const stopping = await host.addEngine({ stopGraceMs: 60_000, modelStopGraceMs: 60_000 })
  const hurry = new AbortController()
  // Also if the test before, which is a long one, has not stopped them.
  await host.engine.stopModels()
  const id = await host.execute(await host.create(modelCallGraph(`${target.url}/hang`)))
  await target.until(() => target.hanging.size === 1)
  const next = await host.addEngine()
  try {
    const stopped = stopping.stop(hurry.signal)
    await sleep(500)
    expect(target.hanging.size).toBe(1)
    const began = Date.now()
    hurry.abort()
    await stopped
    expect(Date.now() - began).toBeLessThan(5_000)
    await target.until(() => callsOf(target, id, 'call').length === 2 && target.hanging.size === 1)
    expect(Date.now() - began).toBeLessThan(10_000)
    const [run] = await release([id])
    expect(nodeOf(run!, 'call')).toMatchObject({ status: 'SUCCESS', retryCount: 1 })
  } finally {
    await next.stop()
  }
})
