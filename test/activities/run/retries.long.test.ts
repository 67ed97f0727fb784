import { Client, Connection } from '@temporalio/client'
import { expect, onTestFinished, test } from 'vitest'
import { CLIENT_OPTIONS } from '../../../worker/temporal.ts'
import { nodeOf } from '../../support/client.ts'
import { edges } from '../../support/engine/graphs.ts'
import { startInstallation } from '../../support/engine/installation.ts'
import { keep } from '../../support/keep.ts'
import { startWorld } from '../../support/servers/world.ts'
import { until } from '../../support/until.ts'

const began = Date.now()
const host = await keep(startInstallation())

/** A pause in which the service can be killed and come back: the first start, of all its servers, takes longer. */
const PAUSE_MS = Math.min(60_000, 15_000 + 2 * (Date.now() - began))

type Request = { attempt: number; durationMs: number | null; error: string | null; body: string | null } & {
  response: { status: number; body: string } | null
}

type Attempt = { status: string; startedAt: string; endedAt: string | null; counted: boolean } & {
  error: { type: string } | null
}

/** Whether Temporal knows that an attempt of the execution has failed. */
async function knowsFailure(id: string): Promise<boolean> {
  const connection = await Connection.connect({
    ...CLIENT_OPTIONS,
    address: host.holder().addresses.temporalAddress,
  })
  const run = await new Client({ connection }).workflow.getHandle(id).describe()
  await connection.close()
  return (run.raw.pendingActivities ?? []).some(({ lastFailure }) => lastFailure)
}

test('kill -9 in the pause and in the next attempt: the record stays true, and no request is missing', {
  tags: 'long',
  timeout: 240_000,
}, async () => {
  const world = await startWorld({
    '/late': ({ response, count }) => {
      // The second attempt hangs until its process is killed.
      if (count !== 2) response.writeHead(count === 1 ? 503 : 200).end(`answer ${count}`)
    },
  })
  onTestFinished(world.stop)
  const id = await host.execute(
    await host.create({
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
        {
          id: 'call',
          type: 'HTTP_REQUEST',
          retry: { maxAttempts: 3, initialIntervalMs: PAUSE_MS, maxIntervalMs: PAUSE_MS },
          config: { method: 'POST', url: `${world.url}/late`, body: { order: 7 } },
        },
      ],
      edges: edges('start -> call'),
    }),
  )
  const paused = await host.until(id, (run) =>
    run.nodeExecutions.some(({ nextAttemptAt }) => nextAttemptAt !== null),
  )
  const { nextAttemptAt } = nodeOf(paused, 'call')
  // The record is written right before Temporal is told of the failure.
  await until(() => knowsFailure(id))
  await host.recovered('service', host.kill('service'))
  expect(Date.now()).toBeLessThan(Date.parse(nextAttemptAt!))
  expect(nodeOf(await host.read(id), 'call')).toMatchObject({
    ...{ status: 'RUNNING', retryCount: 0, nextAttemptAt },
    errorMessage: expect.stringContaining('responded with 503'),
  })

  await until(() => world.countOf('/late') === 2)
  expect(Math.abs(Date.now() - Date.parse(nextAttemptAt!))).toBeLessThan(3_000)
  const path = `/api/executions/${id}/nodes/${nodeOf(paused, 'call').id}/requests`
  const list = async () => (await host.ask<{ content: Request[] }>('GET', path)).content
  const under = await until(list, { holds: (requests) => requests.length === 2 })
  expect(under[1]).toMatchObject({ attempt: 2, durationMs: null, error: null, response: null })
  expect(nodeOf(await host.read(id), 'call')).toMatchObject({
    ...{ status: 'RUNNING', retryCount: 1, nextAttemptAt: null },
    errorMessage: expect.stringContaining('responded with 503'),
  })
  await host.recovered('service', host.kill('service'))

  const run = await host.ended(id, 60_000)
  expect(nodeOf(run, 'call')).toMatchObject({
    ...{ status: 'SUCCESS', retryCount: 2, errorMessage: null, nextAttemptAt: null },
  })
  const requests = await until(list, { holds: (found) => found.at(-1)?.durationMs !== null })
  expect(
    requests.map(({ attempt, response, error, body }) => [attempt, response?.body, error, body]),
  ).toEqual([
    [1, 'answer 1', null, '{"order":7}'],
    [2, undefined, expect.stringContaining('worker was lost'), '{"order":7}'],
    [3, 'answer 3', null, '{"order":7}'],
  ])
  // The second attempt did not count: three do.
  const { content } = await host.ask<{ content: Attempt[] }>('GET', path.replace('requests', 'attempts'))
  expect(
    content.map(({ status, error, counted, endedAt }) => [status, error?.type, counted, endedAt]),
  ).toEqual([
    ['FAILED', 'Http503', true, expect.any(String)],
    ['LOST', undefined, false, null],
    ['SUCCESS', undefined, false, nodeOf(run, 'call').completedAt],
  ])
  expect(Math.abs(Date.parse(content[1]!.startedAt!) - Date.parse(nextAttemptAt!))).toBeLessThan(3_000)
})
