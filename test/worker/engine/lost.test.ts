import { sql } from 'kysely'
import { expect, test, vi } from 'vitest'
import { failLostAttempts } from '../../../activities/temporal/attempts.ts'
import { noteMemoryEnd } from '../../../db/operation/memoryends.ts'
import { nodeOf } from '../../support/client.ts'
import { sealFor } from '../../support/engine/forger.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { startRunning } from '../../support/running.ts'
import { startTarget } from '../../support/servers/target.ts'
import { until } from '../../support/until.ts'

const target = await keep(startTarget())
const host = await keep(startRunning({ nodesAtOnce: 1 }))
const { client } = host.engine

const graph = (path: string, more: object = {}) => ({
  nodes: [
    { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
    { id: 'call', type: 'HTTP_REQUEST', ...more, config: { url: target.url + path } },
  ],
  edges: edges('start -> call'),
})

/** Takes the next attempt of a node from Temporal as a worker does, and then is that worker's end. */
async function loseAttempt(notes?: object): Promise<{ id: string; attempt: number }> {
  const { workflowService: temporal, options } = client
  const { namespace } = options
  const task = await temporal.pollActivityTaskQueue({ namespace, taskQueue: { name: host.taskQueue } })
  const { taskToken } = task
  if (notes) {
    const sealed = await sealFor(host.engine.sealer, task.workflowExecution!.workflowId!, notes)
    await temporal.recordActivityTaskHeartbeat({ namespace, taskToken, details: { payloads: [sealed] } })
  }
  // As a worker that is stopped; one that is killed says nothing, and Temporal finds that out after a while.
  const applicationFailureInfo = { type: 'WorkerShutdown', nextRetryDelay: { nanos: 1_000_000 } }
  const failure = { message: 'lost', applicationFailureInfo }
  await temporal.respondActivityTaskFailed({ namespace, taskToken, failure })
  return { id: task.workflowExecution!.workflowId!, attempt: task.attempt! }
}

/** Takes the next attempt of a node as a process does that has a lease, and then runs out of memory. */
async function runOut(process: string, notes: object): Promise<string> {
  const { workflowService: temporal, options } = client
  const { namespace } = options
  const taskQueue = { name: host.taskQueue }
  await sql`insert into worker_leases (process) values (${process})`.execute(host.store.db)
  const task = await temporal.pollActivityTaskQueue({ namespace, taskQueue, identity: `1@lost ${process}` })
  const id = task.workflowExecution!.workflowId!
  const details = { payloads: [await sealFor(host.engine.sealer, id, { ...notes, process })] }
  await temporal.recordActivityTaskHeartbeat({ namespace, taskToken: task.taskToken, details })
  await noteMemoryEnd(host.store, process)
  return id
}

/** While `work` is done, a hanging call holds the only slot of the worker. */
async function withoutWorker(work: () => Promise<void>): Promise<void> {
  const hanging = await host.execute(await host.create(graph('/hang')))
  await target.until(() => target.hanging.size === 1)
  try {
    await work()
  } finally {
    await host.ask('POST', `/api/executions/${hanging}/cancel`)
  }
}

// The first test of this file: later there are other lost processes for which Temporal is asked.
test('a run about which Temporal says nothing is asked about again a few times, and the others are not', {
  tags: 'long',
}, async () => {
  const waiting = {
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
      { id: 'wait', type: 'WAIT', config: { durationMs: 3_600_000 } },
    ],
    edges: edges('start -> wait'),
  }
  const workflowId = await host.create(waiting)
  const silent = await host.execute(workflowId)
  const others = await Promise.all([1, 2, 3].map(() => host.execute(workflowId)))
  const asked: string[] = []
  const getHandle = client.workflow.getHandle.bind(client.workflow)
  const getting = vi.spyOn(client.workflow, 'getHandle').mockImplementation((id, ...more) => {
    const handle = getHandle(id, ...more)
    const describe = async () => {
      asked.push(id)
      if (id === silent) throw new Error('Temporal says nothing')
      return handle.describe()
    }
    return { ...handle, describe }
  })
  const count = (id: string) => asked.filter((one) => one === id).length
  try {
    await sql`insert into worker_leases (process, renewed_at)
      values (${crypto.randomUUID()}, now() - interval '1 minute')`.execute(host.store.db)
    await until(() => count(silent) >= 3)
    expect([silent, ...others].map(count)).toEqual([3, 1, 1, 1])
  } finally {
    getting.mockRestore()
    for (const id of [silent, ...others]) await host.ask('POST', `/api/executions/${id}/cancel`)
  }
})

test('30 workers that are lost in a row fail no execution, not even one whose node has a single attempt', {
  tags: 'long',
}, async () => {
  const attempts: number[] = []
  let id = ''
  await withoutWorker(async () => {
    id = await host.execute(await host.create(graph('/ok', { retry: { maxAttempts: 1 } })))
    for (let n = 0; n < 30; n++) attempts.push((await loseAttempt()).attempt)
  })
  expect(attempts).toEqual(Array.from({ length: 30 }, (_, at) => at + 1))
  const run = await host.ended(id)
  expect([run.status, nodeOf(run, 'call').retryCount]).toEqual(['SUCCESS', 30])
})

const [ranOut, killed] = [crypto.randomUUID(), crypto.randomUUID()]

test.each([
  [
    'the third that runs out of memory',
    { failures: 0, returned: 0, memoryEnds: 2, process: ranOut },
    'FAILED',
  ],
  [
    'the second that runs out of memory',
    { failures: 0, returned: 0, memoryEnds: 1, process: ranOut },
    'SUCCESS',
  ],
  ['one that is killed after two', { failures: 0, returned: 0, memoryEnds: 2, process: killed }, 'SUCCESS'],
  ['one that an attempt had left before', { failures: 2, returned: 0, memoryEnds: 2 }, 'SUCCESS'],
  ['one of the release before', { failures: 2 }, 'SUCCESS'],
])('of the workers that a node loses, %s: %j, %s', async (_which, notes, status) => {
  await noteMemoryEnd(host.store, ranOut)
  const calls = target.calls.length
  let id = ''
  await withoutWorker(async () => {
    id = await host.execute(await host.create(graph('/ok')))
    await loseAttempt(notes)
  })
  const run = await host.ended(id)
  const why = '3 workers ran out of memory while they carried out this node'
  expect([run.status, run.errorMessage?.includes(why)]).toEqual([status, status === 'FAILED' || undefined])
  // The call that hangs, and that of the node: one that fails so has sent nothing.
  expect(target.calls.length - calls).toBe(status === 'FAILED' ? 1 : 2)
})

test('each end is counted once, and a failure of the node keeps the count', async () => {
  const first = crypto.randomUUID()
  await noteMemoryEnd(host.store, first)
  let id = ''
  await withoutWorker(async () => {
    const retry = { maxAttempts: 3, initialIntervalMs: 1 }
    id = await host.execute(await host.create(graph('/flaky?key=counted', { retry })))
    await loseAttempt({ failures: 0, returned: 0, memoryEnds: 1, process: first })
  })
  // The attempts after it fail twice: were the end counted at each of them, it would have been three.
  const run = await host.ended(id)
  expect([run.status, nodeOf(run, 'call').retryCount]).toEqual(['SUCCESS', 3])
})

test('the third that runs out of memory fails the node also if its attempt was failed by another process', {
  tags: 'long',
}, async () => {
  let id = ''
  await withoutWorker(async () => {
    const retry = { maxAttempts: 3, initialIntervalMs: 45_000, maxIntervalMs: 45_000 }
    await host.execute(await host.create(graph('/ok', { retry })))
    id = await runOut(crypto.randomUUID(), { failures: 0, returned: 0, memoryEnds: 2 })
  })
  const run = await host.ended(id)
  const why = '3 workers ran out of memory while they carried out this node'
  expect([run.status, run.errorMessage?.includes(why)]).toEqual(['FAILED', true])
})

test('of the attempts of a lost process, one that has begun elsewhere meanwhile is not failed', async () => {
  const { workflowService: temporal, options } = client
  const { namespace } = options
  const taskQueue = { name: host.taskQueue }
  const gone = crypto.randomUUID()
  await withoutWorker(async () => {
    const call = { type: 'HTTP_REQUEST', config: { url: `${target.url}/ok` } }
    const nodes = [
      { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
      { id: 'a', ...call },
      { id: 'b', ...call },
    ]
    const id = await host.execute(await host.create({ nodes, edges: edges('start -> a', 'start -> b') }))
    const pollBoth = async (identity: string) => {
      for (let n = 0; n < 2; n++) await temporal.pollActivityTaskQueue({ namespace, taskQueue, identity })
    }
    await pollBoth(`1@lost ${gone}`)
    const fail = client.activity.fail.bind(client.activity)
    const failing = vi.spyOn(client.activity, 'fail').mockImplementation(async (place, error) => {
      for (const activityId of ['a', 'b'])
        await fail({ ...(place as { workflowId: string; runId: string }), activityId }, error)
      // Temporal refuses polls with a deadline as short as that of the failure.
      await client.withDeadline(Date.now() + 30_000, () => pollBoth(`1@elsewhere ${crypto.randomUUID()}`))
    })
    try {
      expect(await failLostAttempts(client, id, gone)).toBe(1)
      expect(failing).toHaveBeenCalledTimes(1)
    } finally {
      failing.mockRestore()
      await host.ask('POST', `/api/executions/${id}/cancel`)
    }
  })
})
