import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { findFree } from '../../worker/ports.ts'
import { createClient, nodeOf, type Send } from '../client.ts'
import { cloneDatabase } from '../database.ts'
import { edges } from '../graphs.ts'
import { startTarget, type Target } from '../target.ts'
import { callsOf, checkRuns, loadGraph, send } from './load.ts'
import { type Launched, launch } from './process.ts'

const SIGN_IN = { email: 'ada@example.com', password: 'correct horse battery staple' }

type Api = Launched & { post: Post; client: ReturnType<typeof createClient> }
type Post = (path: string, json?: unknown, headers?: Record<string, string>) => Promise<Response>

let target: Target
let database: Awaited<ReturnType<typeof cloneDatabase>>
let env: Record<string, string>
let apis: [Api, Api]
let workers: Launched[]
/** Everything that was started, so that nothing is left where a test fails. */
const launched: Launched[] = []
let teamId: string

function start(script: string, more: Record<string, string> = {}): Launched {
  const process = launch([script], { ...env, ...more })
  launched.push(process)
  return process
}

/** One API process, signed in by the session that the first one made. */
async function startApi(cookie: { text: string }): Promise<Api> {
  const port = await findFree()
  const url = `http://127.0.0.1:${port}`
  const process = start('worker/api.ts', { PORT: String(port) })
  await process.until(async () => (await fetch(`${url}/healthz`)).ok)
  const call = (path: string, method: string, json?: unknown, headers: Record<string, string> = {}) =>
    fetch(url + path, {
      method,
      headers: { cookie: cookie.text, 'content-type': 'application/json', ...headers },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    })
  const post: Post = (path, json, headers) => call(path, 'POST', json, headers)
  if (!cookie.text) {
    const answer = await post('/api/auth/login', SIGN_IN)
    cookie.text = answer.headers.getSetCookie()[0]!.split(';')[0]!
    teamId = ((await answer.json()) as { teams: { teamId: string }[] }).teams[0]!.teamId
  }
  const sendTo: Send = (path, { method, json, headers }) => call(path, method, json, headers)
  return { ...process, post, client: createClient({ send: sendTo, teamId }) }
}

async function startWorker(): Promise<Launched> {
  const process = start('worker/worker.ts')
  await process.until(() => process.output().includes('the worker polls'))
  return process
}

beforeAll(async () => {
  target = await startTarget()
  database = await cloneDatabase()
  env = {
    DATABASE_URL: database.url,
    TEMPORAL_ADDRESS: inject('temporalAddress'),
    TASK_QUEUE: `scale-${randomBytes(4).toString('hex')}`,
    PERDURE_KEYS: `k1:${randomBytes(32).toString('base64')}`,
    ADMIN_EMAIL: SIGN_IN.email,
    ADMIN_PASSWORD: SIGN_IN.password,
    EGRESS_ALLOW: '127.0.0.0/8',
  }
  expect(await launch(['worker/cli.ts', 'migrate'], env).ended).toBe(0)
  const cookie = { text: '' }
  const first = await startApi(cookie)
  const [second, ...both] = await Promise.all([startApi(cookie), startWorker(), startWorker()])
  apis = [first, second]
  workers = both
}, 120_000)

afterAll(async () => {
  for (const process of launched) {
    process.kill('SIGCONT')
    process.kill('SIGTERM')
  }
  for (const process of launched) await process.ended
  await database?.drop()
  await target?.stop()
}, 60_000)

describe('two API and two worker processes', { timeout: 120_000 }, () => {
  test('60 runs through both APIs, and 50 under a limit of 3, one worker killed amid them: none lost, none twice', async ({
    annotate,
  }) => {
    const workflowId = await apis[0].client.create(loadGraph(target.url))
    const to = { workflowId, teamId }
    const sendAll = (from: number, count: number) =>
      Promise.all(Array.from({ length: count }, (_, at) => send(apis[at % 2]!.post, to, from + at)))
    const early = await sendAll(1, 30)
    await target.until(() => early.filter((run) => callsOf(target, run.id, 'after').length > 0).length >= 5)
    const gated = await startGated(50)
    await gated.look(3)
    const middle = await sendAll(31, 20)
    const isCalled = (id: string) => callsOf(target, id, 'once').some((call) => !call.answered)
    await target.until(() => middle.filter((run) => isCalled(run.id)).length >= 10)
    const late = sendAll(51, 10)
    const brokenAt = Date.now()
    const victim = workers.shift()!
    victim.kill('SIGKILL')
    const gatedLeft = 50 - gated.done()
    expect(await victim.ended).toBe('SIGKILL')
    expect(gatedLeft).toBeGreaterThan(0)

    const [most, sent] = await Promise.all([
      gated.look(50),
      late.then((last) => [...early, ...middle, ...last]),
    ])
    // A busy machine may never be seen with all three at once.
    expect(most).toBeGreaterThan(1)
    expect(most).toBeLessThanOrEqual(3)
    const { ended, repeated } = await checkRuns(apis[0].client, target, sent, brokenAt)
    for (const run of ended) expect(await apis[1].client.read(run.id)).toEqual(run)
    const lists = await Promise.all(
      apis.map(({ client }) =>
        client.ask<{ totalElements: number; content: unknown[] }>(
          'GET',
          `/api/executions?workflowId=${workflowId}&size=100`,
        ),
      ),
    )
    expect(lists[0]!.totalElements).toBe(60)
    expect(lists[1]).toEqual(lists[0])
    for (const id of gated.ids) expect((await apis[1].client.ended(id)).status).toBe('SUCCESS')
    const endedAfter = Math.max(...ended.map((run) => Date.parse(run.completedAt!))) - brokenAt
    await annotate(
      `the last of 60 runs ended ${endedAfter} ms after the kill; ${repeated} calls made twice; ` +
        `${gatedLeft} of 50 by threes had not been answered`,
    )
    workers.push(await startWorker())
  })

  /** Starts as many runs at once over both APIs, of a workflow that lets three run. `look` waits until so many were answered and tells the most at once. */
  async function startGated(count: number) {
    const url = `${target.url}/slow?ms=200`
    const workflowId = await apis[0].client.create({
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
        { id: 'gated', type: 'HTTP_REQUEST', config: { method: 'POST', url } },
      ],
      edges: edges('start -> gated'),
      settings: { concurrency: { limit: 3 } },
    })
    const ids = await Promise.all(
      Array.from({ length: count }, (_, at) => apis[at % 2]!.client.execute(workflowId)),
    )
    const calls = () => ids.map((id) => callsOf(target, id, 'gated'))
    const done = () => calls().filter((made) => made.some((call) => call.answered)).length
    // A run holds its place from its first call until one was answered: the killed worker's is made again.
    let most = 0
    async function look(until: number): Promise<number> {
      await target.until(() => {
        most = Math.max(most, calls().filter((made) => made.length > 0).length - done())
        return done() >= until
      })
      return most
    }
    return { ids, done, look }
  }

  test('one key sent to both APIs at once begins one run', async () => {
    const workflowId = await apis[0].client.create({
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
        { id: 'call', type: 'HTTP_REQUEST', config: { method: 'POST', url: `${target.url}/ok` } },
      ],
      edges: edges('start -> call'),
    })
    const both = await Promise.all(
      Array.from({ length: 10 }, (_, at) => send(apis[at % 2]!.post, { workflowId, teamId }, 1)),
    )
    const [id = '', ...others] = new Set(both.map((run) => run.id))
    expect(others).toEqual([])
    expect((await apis[1].client.ended(id)).status).toBe('SUCCESS')
    expect(callsOf(target, id, 'call')).toHaveLength(1)
    const path = `/api/executions?workflowId=${workflowId}`
    expect(await apis[1].client.ask('GET', path)).toMatchObject({ totalElements: 1 })
  })

  test('a worker that freezes and comes back when others have done its work changes nothing', async () => {
    const workflowId = await apis[0].client.create(loadGraph(target.url))
    const sendTen = (from: number) =>
      Promise.all(
        Array.from({ length: 10 }, (_, at) => send(apis[0].post, { workflowId, teamId }, from + at)),
      )
    const runs = await sendTen(1)
    await target.until(() => runs.every((run) => callsOf(target, run.id, 'once').length > 0))
    const brokenAt = Date.now()
    workers[0]!.kill('SIGSTOP')
    const { ended } = await checkRuns(apis[0].client, target, runs, brokenAt)
    workers[0]!.kill('SIGCONT')
    await checkRuns(apis[0].client, target, await sendTen(11), Date.now())
    for (const run of ended) expect(await apis[1].client.read(run.id)).toEqual(run)
  })

  test('a worker stopped by SIGTERM finishes calls of 3 s and leaves longer ones to another', async ({
    annotate,
  }) => {
    const workflowId = await apis[0].client.create({
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
        {
          id: 'call',
          type: 'HTTP_REQUEST',
          retry: { maxAttempts: 1 },
          config: { method: 'POST', url: `${target.url}/slow?ms={{ $input.ms }}` },
        },
      ],
      edges: edges('start -> call'),
    })
    const execute = (ms: number) => apis[0].client.execute(workflowId, { ms })
    const short = await Promise.all([1, 2, 3, 4].map(() => execute(3_000)))
    const long = await Promise.all([1, 2, 3, 4].map(() => execute(8_000)))
    await target.until(() => [...short, ...long].every((id) => callsOf(target, id, 'call').length > 0))
    const began = Date.now()
    const stopped = workers.shift()!
    stopped.kill('SIGTERM')
    expect(await stopped.ended).toBe(0)
    await annotate(`stopped after ${Date.now() - began} ms`)
    for (const id of [...short, ...long]) {
      const run = await apis[1].client.ended(id, 60_000)
      expect(run).toMatchObject({ status: 'SUCCESS', errorMessage: null })
      const { retryCount } = nodeOf(run, 'call')
      expect(callsOf(target, id, 'call')).toHaveLength(retryCount + 1)
      expect(retryCount).toBeLessThanOrEqual(short.includes(id) ? 0 : 1)
    }
  })
})
