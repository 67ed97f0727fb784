import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, expect, inject, onTestFinished, test } from 'vitest'
import { findFree } from '../../../worker/local/ports.ts'
import { createChatting } from '../../support/chat/chatting.ts'
import { readReply, sumUp } from '../../support/chat/replies.ts'
import { nodeOf } from '../../support/client.ts'
import { callsOf } from '../../support/engine/load.ts'
import { addModelCalls, modelCallGraph } from '../../support/engine/models/calls.ts'
import { launch } from '../../support/engine/process.ts'
import { keep } from '../../support/keep.ts'
import { startRunning } from '../../support/running.ts'
import { startOpenAi } from '../../support/servers/models/openai.ts'
import { startTarget } from '../../support/servers/target.ts'

// What a call to a model costs that must not be paid twice, when the process that makes it is stopped or killed.

afterAll(addModelCalls())
const target = await keep(startTarget())
const host = await keep(startRunning())
// It goes on with runs, and makes no calls to models.
await host.engine.stopModels()

const { current, byId } = host.store.keys
const env = {
  DATABASE_URL: host.database.url,
  TEMPORAL_ADDRESS: inject('temporalAddress'),
  TASK_QUEUE: host.taskQueue,
  PERDURE_KEYS: `${current}:${byId.get(current)!.toString('base64')}`,
  EGRESS_ALLOW: '127.0.0.0/8',
  STOP_GRACE_SECONDS: '1',
}

async function startWorker(modelStopGraceSeconds: number) {
  const port = await findFree()
  const url = `http://127.0.0.1:${port}`
  const worker = launch(['test/support/engine/models/worker.ts'], {
    ...env,
    WORKER_METRICS_PORT: String(port),
    MODEL_STOP_GRACE_SECONDS: String(modelStopGraceSeconds),
  })
  onTestFinished(async () => {
    worker.kill('SIGKILL')
    await worker.ended
  })
  await worker.until(async () => (await fetch(`${url}/readyz`)).ok)
  return { ...worker, url }
}

const callsTo = (id: string) => callsOf(target, id, 'call')

/** Begins an execution with a call, and waits until it is made. */
async function begin(path: string): Promise<string> {
  const id = await host.execute(await host.create(modelCallGraph(target.url + path)))
  await target.until(() => callsTo(id).length > 0)
  return id
}

/** Another worker, which takes calls from now on. */
async function addOther() {
  const other = await host.addEngine()
  onTestFinished(() => other.stop())
}

/** Waits until a hanging call has been made again, answers that, and checks that the node has not failed. */
async function madeAgain(id: string): Promise<void> {
  await target.until(() => callsTo(id).length === 2)
  while ((await host.read(id)).status === 'RUNNING') {
    for (const response of target.hanging) response.end('{}')
    await sleep(25)
  }
  const run = await host.ended(id)
  expect([run.status, run.errorMessage, nodeOf(run, 'call').retryCount]).toEqual(['SUCCESS', null, 1])
  expect(callsTo(id)).toHaveLength(2)
}

test('after SIGTERM a call goes on for longer than others may, and no other begins; metrics tell of it until then', async () => {
  const worker = await startWorker(60)
  const id = await begin('/slow?ms=8000')
  const asked = Date.now()
  worker.kill('SIGTERM')
  await sleep(1_000)
  const late = await host.execute(await host.create(modelCallGraph(`${target.url}/ok`)))
  const metrics = await (await fetch(`${worker.url}/metrics`)).text()
  expect(metrics).toMatch(/^perdure_worker_slots_used\{kind="model"\} 1$/m)
  expect((await fetch(`${worker.url}/readyz`)).status).toBe(503)
  expect(await worker.ended).toBe(0)
  // It ended with the call, and not with the time that it had.
  expect(Date.now() - asked).toBeLessThan(20_000)
  const run = await host.ended(id)
  expect([run.status, nodeOf(run, 'call').retryCount]).toEqual(['SUCCESS', 0])
  expect(callsTo(id)).toHaveLength(1)
  expect(callsTo(late)).toHaveLength(0)
  await addOther()
  expect((await host.ended(late)).status).toBe('SUCCESS')
})

test('a reply that a worker gets while it stops is read over an API of another process, and saved', {
  tags: 'long',
}, async () => {
  const { promise: held, resolve: release } = Promise.withResolvers<void>()
  const before = (event: number) => (event === 3 ? held : undefined)
  const vendor = await startOpenAi({ text: ['One ', 'two ', 'three'], before })
  onTestFinished(() => vendor.stop())
  const chat = createChatting(host)
  const credentialId = await chat.credential('OPENAI_COMPATIBLE', { baseUrl: vendor.url, apiKey: 'none' })
  const session = await chat.open(await chat.simpleAgent({ credentialId, model: 'm' }))
  const worker = await startWorker(60)
  const stream = readReply(await chat.post(session, 'How many?'))
  await stream.until('One two ')
  worker.kill('SIGTERM')
  await worker.until(async () => (await fetch(`${worker.url}/readyz`)).status === 503)
  // As long as others have, and longer than the process takes to stop what it does besides.
  await sleep(3_000)
  release()
  expect(sumUp(await stream.all())).toMatchObject({ text: 'three', resets: 0, last: { type: 'done' } })
  expect(await worker.ended).toBe(0)
  const { content } = await host.ask<{ content: object[] }>('GET', `${chat.SESSIONS}/${session}/messages`)
  expect(content[0]).toMatchObject({ role: 'assistant', status: 'COMPLETE', content: 'One two three' })
  expect(vendor.calls).toHaveLength(1)
})

test('a reply that is stopped after its worker was killed is saved as its readers have it', {
  tags: 'long',
}, async () => {
  const vendor = await startOpenAi({ text: Array.from({ length: 400 }, (_, n) => `${n} `), paceMs: 15 })
  onTestFinished(() => vendor.stop())
  const chat = createChatting(host)
  const credentialId = await chat.credential('OPENAI_COMPATIBLE', { baseUrl: vendor.url, apiKey: 'none' })
  const session = await chat.open(await chat.simpleAgent({ credentialId, model: 'm' }))
  const worker = await startWorker(60)
  const stream = readReply(await chat.post(session, 'How many?'))
  let text = (await stream.next())!.content as string
  while (text.length < 100) text += (await stream.next())!.content
  worker.kill('SIGKILL')
  await worker.ended
  await host.ask('POST', `${chat.SESSIONS}/${session}/stop`)
  await addOther()
  const rest = sumUp(await stream.all())
  expect(rest).toMatchObject({ resets: 0, last: { type: 'done' } })
  const { content } = await host.ask<{ content: object[] }>('GET', `${chat.SESSIONS}/${session}/messages`)
  expect(content[0]).toMatchObject({ status: 'STOPPED', content: text + rest.text })
})

test('one that takes too long even for that is put down, and made again by another worker', {
  tags: 'long',
}, async () => {
  const worker = await startWorker(3)
  const id = await begin('/hang')
  await addOther()
  const asked = Date.now()
  worker.kill('SIGTERM')
  expect(await worker.ended).toBe(0)
  expect(Date.now() - asked).toBeGreaterThan(2_900)
  await madeAgain(id)
})

test('a second SIGTERM puts it down at once, but not one that is the same, passed on', {
  tags: 'long',
}, async () => {
  const worker = await startWorker(600)
  const id = await begin('/hang')
  await addOther()
  worker.kill('SIGTERM')
  await sleep(300)
  worker.kill('SIGTERM')
  await sleep(4_000)
  expect(target.hanging.size).toBe(1)
  const asked = Date.now()
  worker.kill('SIGTERM')
  expect(await worker.ended).toBe(0)
  expect(Date.now() - asked).toBeLessThan(10_000)
  await madeAgain(id)
})

test('after Ctrl-C a call has no more time than others', { tags: 'long' }, async () => {
  const worker = await startWorker(600)
  const id = await begin('/hang')
  await addOther()
  const asked = Date.now()
  worker.kill('SIGINT')
  expect(await worker.ended).toBe(0)
  expect(Date.now() - asked).toBeLessThan(10_000)
  await madeAgain(id)
})

test('after a kill -9 another worker makes the call within 15 s, and within its one attempt', {
  tags: 'long',
}, async ({ annotate }) => {
  const worker = await startWorker(60)
  const id = await begin('/hang')
  await addOther()
  await sleep(1_000)
  const killed = Date.now()
  worker.kill('SIGKILL')
  await target.until(() => callsTo(id).length === 2)
  const after = callsTo(id)[1]!.at - killed
  await annotate(`the call was made again ${after} ms after the kill`)
  await madeAgain(id)
  expect(after).toBeLessThan(15_000)
})
