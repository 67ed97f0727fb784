import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { nodeOf } from '../../support/client.ts'
import { edges } from '../../support/engine/graphs.ts'
import { type Installation, startInstallation } from '../../support/engine/installation.ts'
import { startTarget, type Target } from '../../support/servers/target.ts'

/**
 * The API waits one second for Temporal, where gRPC's own
 * limit is 10 s or more. The rest is for a busy machine.
 */
const PROMPT_MS = 5_000

const RUNNING = 'WORKFLOW_EXECUTION_STATUS_RUNNING'

const run = promisify(execFile)

let host: Installation
let target: Target
let quick: string
let calling: string
let waiting: string
let hanging: string

beforeAll(async () => {
  target = await startTarget()
  host = await startInstallation()
  const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
  const call = (path: string) => ({
    nodes: [start, { id: 'call', type: 'HTTP_REQUEST', config: { method: 'POST', url: target.url + path } }],
    edges: edges('start -> call'),
  })
  quick = await host.create(call('/ok'))
  calling = await host.create(call('/slow?ms=700&bytes=100000'))
  hanging = await host.create(call('/hang'))
  waiting = await host.create({
    nodes: [start, { id: 'wait', type: 'WAIT', config: { durationMs: 600_000 } }],
    edges: edges('start -> wait'),
  })
}, 180_000)
afterAll(async () => {
  await host?.stop()
  await target?.stop()
}, 60_000)

async function timed<T>(work: () => Promise<T>): Promise<T> {
  const began = Date.now()
  const result = await work()
  expect(Date.now() - began).toBeLessThan(PROMPT_MS)
  return result
}

async function execute(workflowId: string) {
  const response = await timed(() =>
    host.post(`/api/workflows/${workflowId}/execute`, { teamId: host.teamId, data: {} }),
  )
  expect(response.status).toBe(202)
  return (await response.json()) as { executionId: string; status: string; startedAt: string }
}

const callsOf = (id: string) => target.calls.filter((call) => call.key === `${id}:call`)

const temporal = (...args: string[]) =>
  run(host.temporalCli, [...args, '--address', host.holder().addresses.temporalAddress])

/** The status of a run in Temporal; null if Temporal does not know it. */
async function describeRun(id: string): Promise<string | null> {
  try {
    const shown = await temporal('workflow', 'describe', '--workflow-id', id, '--output', 'json')
    const { workflowExecutionInfo } = JSON.parse(shown.stdout) as {
      workflowExecutionInfo: { status: string }
    }
    return workflowExecutionInfo.status
  } catch (error) {
    if (/not found/i.test((error as Error).message)) return null
    throw error
  }
}

/** Freezes Temporal: it still accepts connections, but responds to nothing. */
async function freeze() {
  host.kill('temporal', 'SIGSTOP')
  return {
    async release() {
      host.kill('temporal', 'SIGCONT')
      await expect.poll(host.isReady, { timeout: 60_000 }).toBe(true)
    },
  }
}

describe('without Temporal', () => {
  describe.each([
    { how: 'killed', strike: () => host.hold('temporal'), tags: [] },
    { how: 'frozen', strike: freeze, tags: ['long'] },
  ])('$how', ({ strike, tags }) => {
    test('executions are accepted, can be cancelled, and are carried out after its return', { tags }, async ({
      annotate,
    }) => {
      const before = await host.execute(hanging)
      await target.until(() => target.hanging.size === 1)
      const inside = await host.execute(calling)
      await target.until(() => callsOf(inside).length === 1)
      const outage = await strike()

      const accepted = [await execute(quick), await execute(quick), await execute(quick)]
      for (const { executionId, status, startedAt } of accepted) {
        expect(status).toBe('PENDING')
        expect(Math.abs(Date.now() - Date.parse(startedAt))).toBeLessThan(30_000)
        const seen = await timed(() => host.read(executionId))
        expect(seen).toMatchObject({ status: 'PENDING', startedAt: null, nodeExecutions: [] })
      }

      const [first, second, third] = accepted.map(({ executionId }) => executionId) as [
        string,
        string,
        string,
      ]
      const cancel = await timed(() => host.post(`/api/executions/${second}/cancel`))
      expect(cancel.status).toBe(200)
      expect(await cancel.text()).toBe('')
      const cancelled = await host.read(second)
      expect(cancelled).toMatchObject({ status: 'CANCELLED', startedAt: null, nodeExecutions: [] })
      expect((await host.post(`/api/executions/${second}/cancel`)).status).toBe(409)
      // The cancel of an execution that is RUNNING is accepted,
      // and takes effect once Temporal can be reached.
      expect((await timed(() => host.post(`/api/executions/${before}/cancel`))).status).toBe(200)

      expect((await timed(() => host.get('/healthz'))).status).toBe(200)
      const ready = await timed(() => host.get('/readyz'))
      expect(ready.status).toBe(503)
      expect(await ready.json()).toMatchObject({ database: true, temporal: false })

      await outage.release()
      for (const id of [first, third]) {
        const ended = await host.ended(id, 60_000)
        expect(ended).toMatchObject({ status: 'SUCCESS', errorMessage: null })
        expect(callsOf(id)).toHaveLength(1)
      }
      expect((await host.ended(before, 60_000)).status).toBe('CANCELLED')
      await target.until(() => target.hanging.size === 0)
      // The result of the call that ended meanwhile was reported
      // later, or the call was made again as a new attempt.
      const across = await host.ended(inside, 60_000)
      expect(across).toMatchObject({ status: 'SUCCESS', errorMessage: null })
      expect(callsOf(inside).length).toBeLessThanOrEqual(nodeOf(across, 'call').retryCount + 1)
      await annotate(`the call in progress was made ${callsOf(inside).length} times`)
      // Its start may have been sent already, so Temporal may know it; but it calls nothing there, and ends.
      await expect.poll(() => describeRun(second), { timeout: 30_000 }).not.toBe(RUNNING)
      expect(callsOf(second)).toHaveLength(0)
      expect(await host.read(second)).toEqual(cancelled)
    })
  })
})

describe('without PostgreSQL', () => {
  test('the API responds with 503, and a node whose result could not be stored is not executed again', async () => {
    const id = await host.execute(calling)
    await target.until(() => callsOf(id).length === 1)
    const outage = await host.hold('postgres')
    await target.until(() => callsOf(id)[0]!.answered)

    for (const request of [
      () => host.get(`/api/executions/${id}`),
      () => host.get(`/api/executions?workflowId=${calling}`),
      () => host.post(`/api/workflows/${quick}/execute`, { teamId: host.teamId, data: {} }),
      () => host.post(`/api/executions/${id}/cancel`),
    ]) {
      const response = await timed(request)
      expect(response.status).toBe(503)
      expect(Number(response.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
      expect(await response.json()).toMatchObject({ status: 503, error: 'Service Unavailable' })
    }
    expect((await timed(() => host.get('/healthz'))).status).toBe(200)
    const ready = await timed(() => host.get('/readyz'))
    expect(ready.status).toBe(503)
    expect(await ready.json()).toMatchObject({ database: false, temporal: true, worker: true })

    await outage.release()
    const ended = await host.ended(id, 60_000)
    expect(ended).toMatchObject({ status: 'SUCCESS', errorMessage: null })
    expect(nodeOf(ended, 'call').retryCount).toBe(0)
    expect(nodeOf(ended, 'call').outputData).toMatchObject({ body: { text: 'x'.repeat(100_000) } })
    expect(callsOf(id)).toHaveLength(1)
  })
})

describe("after a run was ended with Temporal's own CLI", () => {
  test('the execution of a terminated run is CANCELLED within seconds, with the reason', async ({
    annotate,
  }) => {
    const id = await host.execute(waiting)
    await host.until(id, (seen) => seen.nodeExecutions.some((node) => node.nodeId === 'wait'))
    const began = Date.now()
    await temporal('workflow', 'terminate', '--workflow-id', id, '--reason', 'by the night shift')
    const ended = await host.ended(id, 15_000)
    await annotate(`CANCELLED after ${Date.now() - began} ms`)
    expect(ended.status).toBe('CANCELLED')
    expect(ended.errorMessage).toBe('The execution was terminated in Temporal: by the night shift')
    expect(nodeOf(ended, 'wait').status).toBe('CANCELLED')
  })

  test('the execution of a run that timed out is CANCELLED within seconds, with the reason', async ({
    annotate,
  }) => {
    const id = await host.execute(waiting)
    await host.until(id, (seen) => seen.nodeExecutions.some((node) => node.nodeId === 'wait'))
    // Our runs have no timeout in Temporal, so this one is
    // replaced by a run with a timeout and the same input.
    const shown = await temporal('workflow', 'show', '--workflow-id', id, '--output', 'json')
    const events = (JSON.parse(shown.stdout) as { events: Started[] }).events
    const attributes = events[0]!.workflowExecutionStartedEventAttributes
    const [payload] = attributes.input.payloads
    await temporal(
      'workflow',
      'start',
      '--workflow-id',
      id,
      '--type',
      'runGraph',
      '--execution-timeout',
      '1s',
      '--task-queue',
      attributes.taskQueue.name,
      '--id-conflict-policy',
      'TerminateExisting',
      '--input-base64',
      '--input',
      payload!.data,
      '--input-meta',
      `encoding=${Buffer.from(payload!.metadata.encoding, 'base64')}`,
    )
    const began = Date.now()
    const ended = await host.ended(id, 20_000)
    await annotate(`CANCELLED after ${Date.now() - began} ms, of which the timeout is 1 s`)
    expect(ended.status).toBe('CANCELLED')
    expect(ended.errorMessage).toBe('The execution timed out in Temporal')
    expect(nodeOf(ended, 'wait').status).toBe('CANCELLED')
  })
})

type Started = {
  workflowExecutionStartedEventAttributes: {
    taskQueue: { name: string }
    input: { payloads: { metadata: { encoding: string }; data: string }[] }
  }
}
