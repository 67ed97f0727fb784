import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { findFree } from '../../../worker/local/ports.ts'
import { readReply, sumUp } from '../../support/chat/replies.ts'
import { createClient } from '../../support/client.ts'
import { cloneDatabase } from '../../support/database.ts'
import { type Launched, launch } from '../../support/engine/process.ts'
import { startOpenAi } from '../../support/servers/models/openai.ts'

const SIGN_IN = { email: 'ada@example.com', password: 'correct horse battery staple' }
const KEY = 'sk-secret-of-the-vendor'

type Api = Launched & { url: string; send: (path: string, init?: RequestInit) => Promise<Response> }
type Message = { id: string; role: string; status: string; content: string; tokenUsage?: unknown }

const launched: Launched[] = []
let vendor: Awaited<ReturnType<typeof startOpenAi>>
let database: Awaited<ReturnType<typeof cloneDatabase>>
let env: Record<string, string>
let apis: [Api, Api]
let worker: Launched
let cookie = ''
let teamId = ''
let workflowId = ''
let agentId = ''

function start(script: string, more: Record<string, string> = {}): Launched {
  const process = launch([script], { ...env, ...more })
  launched.push(process)
  return process
}

async function startApi(): Promise<Api> {
  const port = await findFree()
  const url = `http://127.0.0.1:${port}`
  const process = start('worker/api.ts', { PORT: String(port) })
  await process.until(async () => (await fetch(`${url}/healthz`)).ok)
  const send = (path: string, init: RequestInit = {}) =>
    fetch(url + path, {
      ...init,
      headers: { cookie, 'content-type': 'application/json', ...(init.headers as Record<string, string>) },
    })
  return { ...process, url, send }
}

async function startWorker(): Promise<Launched> {
  const process = start('worker/worker.ts')
  await process.until(() => process.output().includes('the worker polls'))
  return process
}

beforeAll(async () => {
  vendor = await startOpenAi({ text: 'Hello.' })
  database = await cloneDatabase()
  env = {
    DATABASE_URL: database.url,
    TEMPORAL_ADDRESS: inject('temporalAddress'),
    TASK_QUEUE: `replies-${randomBytes(4).toString('hex')}`,
    PERDURE_KEYS: `k1:${randomBytes(32).toString('base64')}`,
    ADMIN_EMAIL: SIGN_IN.email,
    ADMIN_PASSWORD: SIGN_IN.password,
    EGRESS_ALLOW: '127.0.0.0/8',
  }
  expect(await launch(['worker/cli.ts', 'migrate'], env).ended).toBe(0)
  const first = await startApi()
  const signedIn = await first.send('/api/auth/login', { method: 'POST', body: JSON.stringify(SIGN_IN) })
  cookie = signedIn.headers.getSetCookie()[0]!.split(';')[0]!
  teamId = ((await signedIn.json()) as { teams: { teamId: string }[] }).teams[0]!.teamId
  const [second, one] = await Promise.all([startApi(), startWorker()])
  apis = [first, second]
  worker = one
  const { ask, create } = createClient({
    send: (path, { method, json }) =>
      first.send(path, { method, ...(json === undefined ? {} : { body: JSON.stringify(json) }) }),
    teamId,
  })
  const { id: credentialId } = await ask<{ id: string }>('POST', '/api/credentials', {
    teamId,
    name: 'vendor',
    type: 'OPENAI_COMPATIBLE',
    data: { baseUrl: vendor.url, apiKey: KEY },
  })
  const activate = async (type: string, config: object) => {
    const reply = { id: 'reply', type, config: { credentialId, model: 'm', ...config } }
    const graph = {
      nodes: [{ id: 'chat', type: 'CHAT_TRIGGER', config: {} }, reply],
      edges: [{ source: 'chat', target: 'reply' }],
    }
    const id = await create(graph as Parameters<typeof create>[0])
    await ask('PUT', `/api/workflows/${id}`, { active: true })
    return id
  }
  workflowId = await activate('LLM', { prompt: '{{ $input.message }}', output: 'text' })
  agentId = await activate('AI_AGENT', {
    instructions: 'Help.',
    prompt: '{{ $trigger.message }}',
    maxSteps: 10,
    tools: [
      {
        type: 'CODE',
        name: 'add',
        description: 'adds one',
        parameters: { type: 'object', properties: { n: { type: 'number' } } },
        code: 'return $args.n + 1',
      },
    ],
  })
}, 120_000)

afterAll(async () => {
  for (const process of launched) process.kill('SIGTERM')
  for (const process of launched) await process.ended
  await database?.drop()
  await vendor?.stop()
}, 60_000)

/** A new session; posts a message to it over one API, and finds the path of the reply's stream. */
async function post(api: Api, query = '', workflow = workflowId) {
  const made = await api.send('/api/agent-chat/sessions', {
    method: 'POST',
    body: JSON.stringify({ workflowId: workflow, teamId }),
  })
  expect(made.status).toBe(201)
  const { id } = (await made.json()) as { id: string }
  const path = `/api/agent-chat/sessions/${id}`
  const response = await api.send(`${path}/messages${query}`, {
    method: 'POST',
    body: JSON.stringify({ content: 'Hello?' }),
  })
  expect(response.status).toBe(200)
  const read = async () =>
    ((await (await apis[1].send(`${path}/messages`)).json()) as { content: Message[] }).content
  const replyId = (await read())[0]!.id
  return {
    path,
    stream: readReply(response),
    follow: async (from: Api, more = '', headers: Record<string, string> = {}) =>
      readReply(await from.send(`${path}/messages/${replyId}/stream${more}`, { headers })),
    read,
    reply: async () => (await (await apis[1].send(`${path}/messages/${replyId}`)).json()) as Message,
  }
}

/** Holds the vendor up before an event until it is released. */
function gate(at: number) {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { before: (event: number) => (event === at ? promise : undefined), release: resolve }
}

test('what a worker of its own gets from the model is read at once over two APIs, and is what is saved', async () => {
  // The vendor tells its key, in pieces.
  const held = gate(3)
  vendor.say({
    text: ['Grüß ', 'dich, ', '😀 sk-sec', 'ret-of-the', '-vendor ', 'is mine.'],
    before: held.before,
  })
  const { stream, follow, reply } = await post(apis[0])
  const other = await follow(apis[1])
  for (const one of [stream, other]) await one.until('Grüß dich, ')
  held.release()
  for (const one of [stream, other]) {
    const rest = await one.all()
    expect(sumUp(rest)).toMatchObject({
      text: '😀 [redacted] is mine.',
      last: { type: 'done', tokenUsage: { input: 100, output: 20 } },
    })
  }
  expect(await reply()).toMatchObject({
    status: 'COMPLETE',
    content: 'Grüß dich, 😀 [redacted] is mine.',
    tokenUsage: { input: 100, output: 20 },
  })
})

test('the reply of an agent is the text of all its turns, in their order, whoever makes them', {
  tags: 'long',
}, async () => {
  const more = await startWorker()
  const begun = vendor.calls.length
  vendor.say((_, number) => {
    const turn = number - begun + 1
    const tools = [1, 2].map((n) => ({ id: `call${turn}${n}`, name: 'add', args: { n } }))
    return turn < 4
      ? { text: [`Turn ${turn}`, ': I add. '], tools, paceMs: 20 }
      : { text: ['That', ' is', ' it.'], paceMs: 20 }
  })
  const { stream, follow, reply } = await post(apis[0], '', agentId)
  const other = await follow(apis[1])
  const text = 'Turn 1: I add. Turn 2: I add. Turn 3: I add. That is it.'
  for (const one of [stream, other])
    expect(sumUp(await one.all())).toMatchObject({ text, resets: 0, last: { type: 'done' } })
  expect(await reply()).toMatchObject({ status: 'COMPLETE', content: text })
  more.kill('SIGTERM')
  await more.ended
})

test('a client whose API is killed goes on over the other one, and misses nothing', {
  tags: 'long',
}, async () => {
  const held = gate(3)
  vendor.say({ text: ['One ', 'two ', 'three ', 'four'], before: held.before })
  const doomed = await startApi()
  const { stream, follow } = await post(doomed)
  const { id } = await stream.until('One two ')
  doomed.kill('SIGKILL')
  await expect(stream.all()).rejects.toThrow()
  const again = await follow(apis[1], '', { 'last-event-id': id! })
  held.release()
  expect(sumUp(await again.all())).toMatchObject({ text: 'three four', resets: 0, last: { type: 'done' } })
})

test('a worker that is killed in mid-text: the text is begun anew', {
  tags: 'long',
  timeout: 60_000,
}, async () => {
  const held = gate(3)
  const begun = vendor.calls.length
  vendor.say({ text: ['One ', 'two ', 'three'], before: held.before })
  const { stream, follow, reply } = await post(apis[0], '?resets=1')
  const [other, plain] = [await follow(apis[1], '?resets=1'), await follow(apis[1])]
  const ids: string[] = []
  for (const one of [stream, other, plain]) ids.push((await one.until('One two ')).id!)
  worker.kill('SIGKILL')
  await worker.ended
  vendor.say({ text: ['Another ', 'text'] })
  worker = await startWorker()
  for (const one of [stream, other]) {
    const events = await one.all()
    expect(events[0]).toMatchObject({ type: 'reset' })
    expect(sumUp(events)).toMatchObject({ text: 'Another text', resets: 1, last: { type: 'done' } })
  }
  expect(await plain.all()).toMatchObject([{ type: 'error' }])
  held.release()
  expect(vendor.calls.length).toBe(begun + 2)
  expect(await reply()).toMatchObject({ status: 'COMPLETE', content: 'Another text' })
  // Whoever comes back later with what they had.
  const late = await follow(apis[0], '?resets=1', { 'last-event-id': ids[0]! })
  expect(sumUp(await late.all())).toMatchObject({ text: 'Another text', resets: 1 })
})

test('a vendor that breaks off: the text is begun anew; one that refuses: an error', async () => {
  const begun = vendor.calls.length
  vendor.say((_, number) =>
    number === begun ? { text: ['One ', 'two'], cutAfter: 2 } : { text: ['Whole ', 'text'] },
  )
  const cut = await post(apis[0], '?resets=1')
  expect(sumUp(await cut.stream.all())).toMatchObject({ text: 'Whole text', last: { type: 'done' } })
  vendor.say({ status: 401 })
  const refused = await post(apis[1])
  expect(await refused.stream.all()).toMatchObject([
    { type: 'error', message: expect.stringContaining('401') },
  ])
  expect((await refused.read())[0]).toMatchObject({ role: 'user', status: 'FAILED' })
}, 60_000)

test('a client that goes away does not end the reply; who stops it gets what is saved', async () => {
  const held = gate(4)
  vendor.say({ text: ['One ', 'two ', 'three ', 'four'], before: held.before })
  const left = await post(apis[0])
  await left.stream.until('One two three ')
  await left.stream.cancel()
  const stopped = await post(apis[0])
  const other = await stopped.follow(apis[1])
  for (const one of [stopped.stream, other]) await one.until('One two three ')
  const answer = await apis[1].send(`${stopped.path}/stop`, { method: 'POST' })
  expect(answer.status).toBe(200)
  for (const one of [stopped.stream, other])
    expect((await one.all()).map(({ type }) => type)).toEqual(['done'])
  expect(await stopped.reply()).toMatchObject({ status: 'STOPPED', content: 'One two three ' })
  held.release()
  const late = await left.follow(apis[1])
  expect(sumUp(await late.all())).toMatchObject({ text: 'One two three four', last: { type: 'done' } })
})
