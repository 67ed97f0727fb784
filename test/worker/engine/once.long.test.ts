import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { nodeOf } from '../../support/client.ts'
import { edges } from '../../support/engine/graphs.ts'
import { startInstallation } from '../../support/engine/installation.ts'
import { callsOf } from '../../support/engine/load.ts'
import { keep } from '../../support/keep.ts'
import { startOpenAi } from '../../support/servers/models/openai.ts'
import { startTarget } from '../../support/servers/target.ts'
import { until } from '../../support/until.ts'

// What a POST costs that must not be made twice, in a whole installation with its own PostgreSQL and Temporal.

const GRACE_SECONDS = 15

const target = await keep(startTarget())
const host = await keep(startInstallation({ STOP_GRACE_SECONDS: String(GRACE_SECONDS) }))

/** Begins an execution with a POST that takes so long, and waits until that is sent. */
async function post(ms: number, more: object): Promise<string> {
  const config = { method: 'POST', url: `${target.url}/slow?ms=${ms}`, timeoutMs: 180_000 }
  const id = await host.execute(
    await host.create({
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
        { id: 'call', type: 'HTTP_REQUEST', config, timeoutMs: 180_000, ...more },
      ],
      edges: edges('start -> call'),
    }),
  )
  await target.until(() => callsOf(target, id, 'call').length > 0)
  return id
}

test('a call is made once although Temporal stands still for longer than it waits for a heartbeat', {
  tags: 'long',
}, async ({ annotate }) => {
  const id = await post(80_000, { retry: { maxAttempts: 1 } })
  const answered = await post(30_000, { retry: { maxAttempts: 1 } })
  await sleep(2_000)
  host.kill('temporal', 'SIGSTOP')
  await sleep(66_000)
  host.kill('temporal', 'SIGCONT')
  for (const one of [answered, id]) {
    const run = await host.ended(one, 60_000)
    expect([run.status, run.errorMessage]).toEqual(['SUCCESS', null])
    expect(callsOf(target, one, 'call')).toHaveLength(1)
    await annotate(`${nodeOf(run, 'call').retryCount} attempts took the call over`)
  }
})

/** When a worker of the service began to poll, of each start, in epoch ms. */
const startsOfWorker = () =>
  host
    .log('service')
    .split('\n')
    .filter((line) => line.includes('"the worker polls Temporal"'))
    .map((line) => Date.parse((JSON.parse(line) as { time: string }).time))

test('after a kill -9 of the service its calls go on once it is back, whatever pause their nodes have', {
  tags: 'long',
}, async ({ annotate }) => {
  const retry = { maxAttempts: 2, initialIntervalMs: 45_000, maxIntervalMs: 45_000 }
  const id = await post(3_000, { retry })
  await sleep(1_000)
  const before = startsOfWorker().length
  const killed = Date.now()
  const was = host.kill('service')
  await target.until(() => callsOf(target, id, 'call').length === 2)
  const { at } = callsOf(target, id, 'call')[1]!
  await host.recovered('service', was)
  const starts = startsOfWorker().slice(before)
  expect(starts).toHaveLength(1)
  // How long a process takes to start is the machine's affair. It knows that the one before it on its data folder is gone.
  const after = at - starts[0]!
  await annotate(`made again ${after} ms after the worker was back, which took ${starts[0]! - killed} ms`)
  expect(after).toBeLessThan(5_000)
  const run = await host.ended(id)
  expect([run.status, nodeOf(run, 'call').retryCount]).toEqual(['SUCCESS', 1])
  // A lost worker is no failure of the node: one that has a single attempt goes on too.
  const once = await post(2_000, { retry: { maxAttempts: 1 } })
  const again = host.kill('service')
  await host.recovered('service', again)
  expect((await host.ended(once)).status).toBe('SUCCESS')
})

test(`a stop lets calls end that take less than the ${GRACE_SECONDS} s that are set`, {
  tags: 'long',
}, async () => {
  const id = await post(11_000, { retry: { maxAttempts: 1 } })
  await host.stopAndBoot()
  const run = await host.ended(id)
  expect([run.status, nodeOf(run, 'call').retryCount]).toEqual(['SUCCESS', 0])
  expect(callsOf(target, id, 'call')).toHaveLength(1)
})

test('a stop by SIGTERM lets a call to a model end that takes longer than that, and the API answers meanwhile', {
  tags: 'long',
}, async () => {
  // It sends seven events: the role, three of the text, the reason for the end, the usage, and [DONE].
  const paceMs = ((GRACE_SECONDS + 10) * 1_000) / 7
  const vendor = await startOpenAi({ text: ['It ', 'is ', '42.'], paceMs })
  onTestFinished(() => vendor.stop())
  const data = { baseUrl: vendor.url, apiKey: 'none' }
  const credential = { teamId: host.teamId, name: 'slow', type: 'OPENAI_COMPATIBLE', data }
  const { id: credentialId } = await host.ask<{ id: string }>('POST', '/api/credentials', credential)
  const id = await host.execute(
    await host.create({
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
        { id: 'ask', type: 'LLM', config: { credentialId, model: 'm', prompt: 'How much?' } },
      ],
      edges: edges('start -> ask'),
    }),
  )
  await until(() => vendor.calls.length === 1)
  const asked = Date.now()
  const back = host.stopAndBoot()
  await sleep(5_000)
  expect((await host.get(`/api/executions/${id}`)).status).toBe(200)
  await back
  expect(Date.now() - asked).toBeGreaterThan(GRACE_SECONDS * 1_000)
  const run = await host.ended(id)
  expect([run.status, run.outputData, nodeOf(run, 'ask').retryCount]).toEqual([
    'SUCCESS',
    { text: 'It is 42.' },
    0,
  ])
  expect(vendor.calls).toHaveLength(1)
})
