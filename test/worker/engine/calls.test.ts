import { ApplicationFailure } from '@temporalio/common'
import { sql } from 'kysely'
import { expect, inject, test } from 'vitest'
import type { Engine } from '../../../worker/engine/engine.ts'
import { nodeOf } from '../../support/client.ts'
import { onServer } from '../../support/database.ts'
import { edges } from '../../support/engine/graphs.ts'
import { callsOf } from '../../support/engine/load.ts'
import { keep } from '../../support/keep.ts'
import { startRunning } from '../../support/running.ts'
import { startTarget } from '../../support/servers/target.ts'
import { until } from '../../support/until.ts'

const target = await keep(startTarget())
/** With a single slot, so that a test can fill it. */
const host = await keep(startRunning({ nodesAtOnce: 1 }))
const { client } = host.engine

async function post(path: string, more: object = {}): Promise<string> {
  const id = await host.execute(
    await host.create({
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
        {
          id: 'call',
          type: 'HTTP_REQUEST',
          retry: { maxAttempts: 1 },
          ...more,
          config: { method: 'POST', url: target.url + path },
        },
      ],
      edges: edges('start -> call'),
    }),
  )
  await target.until(() => callsOf(target, id, 'call').length > 0)
  return id
}

/** Has Temporal believe that the attempt under way is lost, as after a time in which no heartbeat came through. */
async function loseSight(id: string, nextRetryDelay: number): Promise<void> {
  // An attempt says after a while which process is at it.
  await until(async () => {
    const { raw } = await client.workflow.getHandle(id).describe()
    return raw.pendingActivities?.some(({ heartbeatDetails }) => heartbeatDetails)
  })
  const lost = ApplicationFailure.create({ message: 'lost', type: 'WorkerLost', nextRetryDelay })
  await client.activity.fail({ workflowId: id, activityId: 'call' }, lost)
}

test('a new attempt in the same process takes the call over', { tags: 'long' }, async () => {
  const id = await post('/slow?ms=4000')
  await loseSight(id, 1)
  const run = await host.ended(id)
  expect([run.status, run.errorMessage]).toEqual(['SUCCESS', null])
  expect(nodeOf(run, 'call').retryCount).toBe(1)
  expect(callsOf(target, id, 'call')).toHaveLength(1)
})

test('a new attempt gets what a call has ended with before it came', { tags: 'long' }, async () => {
  const id = await post('/slow?ms=2000')
  await loseSight(id, 4_000)
  expect((await host.ended(id)).status).toBe('SUCCESS')
  expect(callsOf(target, id, 'call')).toHaveLength(1)
})

test('a failure of the node that Temporal has not heard of is told again, and counted once', {
  tags: 'long',
}, async () => {
  const id = await post('/slow?ms=2000&status=500')
  await loseSight(id, 4_000)
  const run = await host.ended(id)
  expect(run.status).toBe('FAILED')
  expect(run.errorMessage).toContain('500')
  expect(callsOf(target, id, 'call')).toHaveLength(1)
})

test.each([
  ['cancelled', (id: string) => host.ask('POST', `/api/executions/${id}/cancel`)],
  ['terminated', (id: string) => client.workflow.getHandle(id).terminate('by hand')],
])('a call that Temporal has lost sight of is broken off when its run is %s', async (_how, end) => {
  const id = await post('/hang')
  await loseSight(id, 60_000)
  // The next heartbeat tells the worker that the attempt is over, and the next minute nobody takes the call over.
  await new Promise((resolve) => setTimeout(resolve, 3_000))
  expect(target.hanging.size).toBe(1)
  const began = Date.now()
  await end(id)
  await target.until(() => target.hanging.size === 0)
  expect(Date.now() - began).toBeLessThan(6_000)
  expect((await host.ended(id)).status).toBe('CANCELLED')
})

test('while a process is alive, no other one makes its calls again', { tags: 'long' }, async () => {
  const id = await post('/slow?ms=6000')
  // The other process has room, the first one has none until it learns that its attempt is over.
  const other = await host.addEngine({ nodesAtOnce: 4 })
  try {
    await loseSight(id, 1)
    const run = await host.ended(id)
    expect([run.status, nodeOf(run, 'call').retryCount]).toEqual(['SUCCESS', 1])
    expect(callsOf(target, id, 'call')).toHaveLength(1)
  } finally {
    await other.stop()
  }
})

test('a process that is gone has no attempts 15 s later, whatever pause its node has after failures', {
  tags: 'long',
}, async () => {
  const { workflowService: temporal, options } = client
  const { namespace } = options
  const hanging = await post('/hang')
  const gone = crypto.randomUUID()
  await sql`insert into worker_leases (process) values (${gone})`.execute(host.store.db)
  const id = await host.execute(
    await host.create({
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
        {
          id: 'call',
          type: 'HTTP_REQUEST',
          retry: { maxAttempts: 2, initialIntervalMs: 45_000, maxIntervalMs: 45_000 },
          config: { url: `${target.url}/ok` },
        },
      ],
      edges: edges('start -> call'),
    }),
  )
  const identity = `1@elsewhere ${gone}`
  const taskQueue = { name: host.taskQueue }
  const task = await temporal.pollActivityTaskQueue({ namespace, taskQueue, identity })
  expect(task.workflowExecution?.workflowId).toBe(id)
  const began = Date.now()
  await sql`update worker_leases set renewed_at = now() where process = ${gone}`.execute(host.store.db)
  await host.ask('POST', `/api/executions/${hanging}/cancel`)
  const run = await host.ended(id)
  expect([run.status, nodeOf(run, 'call').retryCount]).toEqual(['SUCCESS', 1])
  expect(Date.now() - began).toBeLessThan(20_000)
})

/** Meanwhile the database is read-only for all sessions, as a standby is after a failover. */
async function withoutWriting(work: () => Promise<unknown>): Promise<void> {
  const found = await sql<{ name: string }>`select current_database() as name`.execute(host.store.db)
  const { name } = found.rows[0]!
  const server = new URL(inject('databaseUrl'))
  server.pathname = '/postgres'
  const set = async (to: string) => {
    await onServer(server.href, `alter database ${name} ${to}`)
    await onServer(
      server.href,
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`,
    )
  }
  await set('set default_transaction_read_only = on')
  try {
    await work()
  } finally {
    await set('reset default_transaction_read_only')
  }
}

/** Executes a POST whose answer must be stored, and stops all writing before it is answered. */
async function answerWithoutWriting(meanwhile: (id: string) => Promise<unknown>): Promise<string> {
  const id = await post('/slow?ms=3000&bytes=100000')
  await withoutWriting(async () => {
    await target.until(() => callsOf(target, id, 'call')[0]!.answered)
    await meanwhile(id)
  })
  return id
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

test('a call that is answered while PostgreSQL is read-only is not made again', async () => {
  const id = await answerWithoutWriting(() => pause(12_000))
  const run = await host.ended(id)
  expect([run.status, run.errorMessage]).toEqual(['SUCCESS', null])
  expect(nodeOf(run, 'call').outputData).toMatchObject({ body: { text: 'x'.repeat(100_000) } })
  expect(callsOf(target, id, 'call')).toHaveLength(1)
  expect(nodeOf(run, 'call').retryCount).toBe(0)
})

test('nor if its worker stops meanwhile: the answer goes to the next attempt, sealed', {
  tags: 'long',
}, async () => {
  // Beside the host's own engine, which has to take the call over.
  const hanging = await post('/hang')
  const stopping: Engine = await host.addEngine({ stopGraceMs: 1_000 })
  let stopped: Promise<void> | undefined
  const id = await answerWithoutWriting(async (calling) => {
    stopped = stopping.stop()
    await until(async () => {
      const { raw } = await client.workflow.getHandle(calling).describe()
      const details = raw.pendingActivities?.[0]?.heartbeatDetails?.payloads?.[0]?.data
      return (details?.length ?? 0) > 100_000 && !Buffer.from(details!).includes('xxxxxxxx')
    })
  })
  await stopped
  await host.ask('POST', `/api/executions/${hanging}/cancel`)
  const run = await host.ended(id)
  expect([run.status, run.errorMessage]).toEqual(['SUCCESS', null])
  expect(nodeOf(run, 'call').outputData).toMatchObject({ body: { text: 'x'.repeat(100_000) } })
  expect(callsOf(target, id, 'call')).toHaveLength(1)
})

test('as many as its execution may carry, and the other calls are made again', { tags: 'long' }, async () => {
  const calls = 16
  const bytes = 200_000
  const hanging = await post('/hang')
  const stopping: Engine = await host.addEngine({ stopGraceMs: 1_000, nodesAtOnce: 4 * calls })
  const config = { items: Array.from({ length: calls }, (_, n) => n), concurrency: calls }
  const url = `${target.url}/slow?ms=6000&bytes=${bytes}`
  const id = await host.execute(
    await host.create({
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
        { id: 'each', type: 'FOR_EACH', config },
        { id: 'call', parentId: 'each', type: 'HTTP_REQUEST', config: { method: 'POST', url } },
      ],
      edges: edges('start -> each'),
    }),
  )
  const made = () => target.calls.filter(({ key }) => key?.startsWith(`${id}:`))
  await target.until(() => made().length === calls)
  let carried = 0
  await withoutWriting(async () => {
    await target.until(() => made().every(({ answered }) => answered))
    await stopping.stop()
    const { raw } = await client.workflow.getHandle(id).describe()
    const sizes = (raw.pendingActivities ?? []).map(
      ({ heartbeatDetails }) => heartbeatDetails?.payloads?.[0]?.data?.length ?? 0,
    )
    carried = sizes.filter((size) => size > bytes).length
    // Some of them, but all together with what else the attempts say of themselves not much more than 2 MB.
    expect(carried).toBeGreaterThan(0)
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(2.2 * 1024 * 1024)
  })
  await host.ask('POST', `/api/executions/${hanging}/cancel`)
  const next = await host.addEngine({ nodesAtOnce: 4 * calls })
  try {
    const run = await host.ended(id)
    expect([run.status, run.errorMessage]).toEqual(['SUCCESS', null])
    expect(made()).toHaveLength(2 * calls - carried)
  } finally {
    await next.stop()
  }
})
