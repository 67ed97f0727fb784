import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readReply, sumUp } from '../../support/chat/replies.ts'
import { type Installation, startInstallation } from '../../support/engine/installation.ts'
import { startOpenAi } from '../../support/servers/models/openai.ts'

let host: Installation
let vendor: Awaited<ReturnType<typeof startOpenAi>>
let workflowId: string

beforeAll(async () => {
  vendor = await startOpenAi({ text: 'Hello.' })
  host = await startInstallation()
  const { id: credentialId } = await host.ask<{ id: string }>('POST', '/api/credentials', {
    teamId: host.teamId,
    name: 'vendor',
    type: 'OPENAI_COMPATIBLE',
    data: { baseUrl: vendor.url, apiKey: 'sk-secret-of-the-vendor' },
  })
  workflowId = await host.create({
    nodes: [
      { id: 'chat', type: 'CHAT_TRIGGER', config: {} },
      { id: 'reply', type: 'LLM', config: { credentialId, model: 'm', prompt: 'p', output: 'text' } },
    ],
    edges: [{ source: 'chat', target: 'reply' }],
  } as Parameters<typeof host.create>[0])
  await host.ask('PUT', `/api/workflows/${workflowId}`, { active: true })
}, 180_000)
afterAll(async () => {
  await host?.stop()
  await vendor?.stop()
}, 60_000)

async function post(query = '') {
  const { id } = await host.ask<{ id: string }>('POST', '/api/agent-chat/sessions', {
    workflowId,
    teamId: host.teamId,
  })
  const path = `/api/agent-chat/sessions/${id}/messages`
  const response = await host.post(path + query, { content: 'Hello?' })
  expect(response.status).toBe(200)
  const { content } = await host.ask<{ content: { id: string }[] }>('GET', path)
  return { stream: readReply(response), path: `${path}/${content[0]!.id}/stream`, messages: path }
}

/** Holds the vendor up before an event until it is released. */
function gate(at: number) {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { before: (event: number) => (event === at ? promise : undefined), release: resolve }
}

const SAVED = (path: string) =>
  host.ask<{ content: { status: string; content: string }[] }>('GET', path).then(({ content }) => content[0])

test('PostgreSQL is killed in mid-text: who reads goes on reading, who comes later gets the whole text at the end', async () => {
  const held = gate(3)
  vendor.say({ text: ['One ', 'two ', 'three ', 'four'], before: held.before })
  const { stream, path, messages } = await post()
  await stream.until('One two ')
  const postgres = await host.hold('postgres')
  held.release()
  await stream.until('three four')
  await postgres.release()
  const late = readReply(await host.get(path))
  expect(sumUp(await stream.all())).toMatchObject({ text: '', resets: 0, last: { type: 'done' } })
  expect(sumUp(await late.all())).toMatchObject({
    text: 'One two three four',
    resets: 0,
    last: { type: 'done' },
  })
  expect(await SAVED(messages)).toMatchObject({ status: 'COMPLETE', content: 'One two three four' })
}, 120_000)

test('the whole service is killed in mid-text: who comes back is told that the text is begun anew', {
  tags: 'long',
  timeout: 120_000,
}, async () => {
  const held = gate(3)
  vendor.say({ text: ['One ', 'two ', 'three'], before: held.before })
  const { stream, path, messages } = await post()
  const { id } = await stream.until('One two ')
  const rest = stream.all().catch(() => [])
  const was = host.kill('service')
  expect(await rest).toEqual([])
  vendor.say({ text: ['Another ', 'text'] })
  await host.recovered('service', was)
  const headers = { 'last-event-id': id! }
  const [back, plain] = await Promise.all([host.get(`${path}?resets=1`, headers), host.get(path, headers)])
  const events = await readReply(back).all()
  expect(events[0]).toMatchObject({ type: 'reset' })
  expect(sumUp(events)).toMatchObject({ text: 'Another text', last: { type: 'done' } })
  expect(await readReply(plain).all()).toMatchObject([{ type: 'error' }])
  held.release()
  expect(await SAVED(messages)).toMatchObject({ status: 'COMPLETE', content: 'Another text' })
})

test('PostgreSQL is away for longer than a node may take: the answer that is paid for is kept', {
  tags: 'long',
  timeout: 120_000,
}, async () => {
  const { id: credentialId } = await host.ask<{ id: string }>('POST', '/api/credentials', {
    teamId: host.teamId,
    name: 'again',
    type: 'OPENAI_COMPATIBLE',
    data: { baseUrl: vendor.url, apiKey: 'sk-secret-of-the-vendor' },
  })
  const id = await host.create({
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
      { id: 'llm', type: 'LLM', timeoutMs: 3_000, config: { credentialId, model: 'm', prompt: 'p' } },
    ],
    edges: [{ source: 'start', target: 'llm' }],
  } as Parameters<typeof host.create>[0])
  const held = gate(3)
  const before = vendor.calls.length
  vendor.say({ text: ['One ', 'two ', 'three'], before: held.before })
  const { executionId } = await host.ask<{ executionId: string }>('POST', `/api/workflows/${id}/execute`, {
    teamId: host.teamId,
  })
  await vendor.until(before + 1)
  const postgres = await host.hold('postgres')
  held.release()
  await vendor.calls.at(-1)!.ended
  // The limit of the node passes meanwhile.
  await new Promise((resolve) => setTimeout(resolve, 5_000))
  await postgres.release()
  const path = `/api/executions/${executionId}?waitMs=30000`
  const run = await host.ask<{ status: string; nodeExecutions: object[] }>('GET', path)
  expect(run, JSON.stringify(run)).toMatchObject({ status: 'SUCCESS' })
  expect(run.nodeExecutions.at(-1)).toMatchObject({ outputData: { text: 'One two three' }, retryCount: 0 })
  expect(vendor.calls.length - before).toBe(1)
})

test('npm start is stopped in mid-text: who reads gets the rest and the end, and the reply is saved', {
  tags: 'long',
  timeout: 120_000,
}, async () => {
  const held = gate(3)
  vendor.say({ text: ['One ', 'two ', 'three'], before: held.before })
  const { stream, messages } = await post()
  await stream.until('One two ')
  const again = host.stopAndBoot()
  await sleep(1_500)
  held.release()
  expect(sumUp(await stream.all())).toMatchObject({ text: 'three', resets: 0, last: { type: 'done' } })
  await again
  expect(await SAVED(messages)).toMatchObject({ status: 'COMPLETE', content: 'One two three' })
})

test('npm start is stopped at once in mid-text: the stream ends, and who comes back is told that the text is begun anew', {
  tags: 'long',
  timeout: 120_000,
}, async () => {
  const held = gate(3)
  vendor.say({ text: ['One ', 'two ', 'three'], before: held.before })
  const { stream, path, messages } = await post()
  const { id } = await stream.until('One two ')
  const again = host.stopAndBoot('SIGINT')
  // It is no error of the connection, and no end that could be taken for the whole.
  expect(await stream.all()).toEqual([])
  vendor.say({ text: ['Another ', 'text'] })
  await again
  held.release()
  const events = await readReply(await host.get(`${path}?resets=1`, { 'last-event-id': id! })).all()
  expect(events[0]).toMatchObject({ type: 'reset' })
  expect(sumUp(events)).toMatchObject({ text: 'Another text', last: { type: 'done' } })
  expect(await SAVED(messages)).toMatchObject({ status: 'COMPLETE', content: 'Another text' })
})
