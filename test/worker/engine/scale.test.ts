import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { findFree } from '../../../worker/local/ports.ts'
import { createClient, nodeOf, type Send } from '../../support/client.ts'
import { cloneDatabase } from '../../support/database.ts'
import { edges } from '../../support/engine/graphs.ts'
import { callsOf, checkRuns, loadGraph, send } from '../../support/engine/load.ts'
import { type Launched, launch } from '../../support/engine/process.ts'
import { startTarget, type Target } from '../../support/servers/target.ts'

const SIGN_IN = { email: 'ada@example.com', password: 'correct horse battery staple' }

type Api = Launched & { post: Post; client: ReturnType<typeof createClient> }
type Post = (path: string, json?: unknown, headers?: Record<string, string>) => Promise<Response>

let target: Target
let database: Awaited<ReturnType<typeof cloneDatabase>>
let env: Record<string, string>
let apis: [Api, Api]
let workers: Launched[]
/** All processes that were started, so that they can be stopped even if a test fails. */
const launched: Launched[] = []
let teamId: string

function start(script: string, more: Record<string, string> = {}): Launched {
  const process = launch([script], { ...env, ...more })
  launched.push(process)
  return process
}

/** Starts an API process. The first one signs in and sets `cookie.text`; the others use that session. */
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
    const response = await post('/api/auth/login', SIGN_IN)
    cookie.text = response.headers.getSetCookie()[0]!.split(';')[0]!
    teamId = ((await response.json()) as { teams: { teamId: string }[] }).teams[0]!.teamId
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

describe('two API and two worker processes', () => {
  test('when a worker is killed, no execution is lost or duplicated, and a concurrency limit still holds', {
    tags: 'long',
  }, async ({ annotate }) => {
    const workflowId = await apis[0].client.create(loadGraph(target.url))
    const to = { workflowId, teamId }
    const sendAll = (from: number, count: number) =>
      Promise.all(Array.from({ length: count }, (_, at) => send(apis[at % 2]!.post, to, from + at)))
    const early = await sendAll(1, 30)
    await target.until(() => early.filter((run) => callsOf(target, run.id, 'after').length > 0).length >= 5)
    const gated = await startGated(50)
    await gated.answered(3)
    const middle = await sendAll(31, 20)
    const isCalled = (id: string) => callsOf(target, id, 'once').some((call) => !call.answered)
    await target.until(() => middle.filter((run) => isCalled(run.id)).length >= 10)
    const late = sendAll(51, 10)
    const brokenAt = Date.now()
    const victim = workers.shift()!
    victim.kill('SIGKILL')
    const gatedLeft = 50 - gated.done()
    expect(await victim.ended).toBe('SIGKILL')
    // At once, so that a failure here leaves the next tests their two workers.
    workers.push(await startWorker())
    expect(gatedLeft).toBeGreaterThan(0)

    await gated.answered(50)
    const sent = [...early, ...middle, ...(await late)]
    // How many are under way together depends on how busy the machine is; never are more than the limit.
    expect(gated.most()).toBeLessThanOrEqual(3)
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
      `the last of 60 executions ended ${endedAfter} ms after the kill; ${repeated} calls were made twice; ` +
        `${gatedLeft} of the 50 under the limit of 3 were still open at the kill; ` +
        `at most ${gated.most()} of them were in progress together`,
    )
  })

  /**
   * Starts `count` executions through both APIs, of a workflow with a concurrency limit of 3. `answered(n)`
   * resolves once `n` of their calls were answered, and `most` says how many were in progress together.
   */
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
    // An execution is in progress from its first call until a
    // call was answered: a killed worker's call is made again.
    const spans = () =>
      ids.flatMap((id) => {
        const calls = callsOf(target, id, 'gated')
        if (!calls[0]) return []
        return { from: calls[0].at, to: calls.find((call) => call.answered)?.answeredAt ?? Infinity }
      })
    const done = () => spans().filter(({ to }) => to !== Infinity).length
    const most = () => {
      const all = spans()
      return Math.max(
        ...all.map(({ from: moment }) => all.filter(({ from, to }) => from <= moment && moment < to).length),
      )
    }
    return { ids, done, most, answered: (until: number) => target.until(() => done() >= until) }
  }

  test('one Idempotency-Key sent to both APIs at the same time starts one execution', async () => {
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

  test('a frozen worker that resumes after others have done its work changes nothing', async () => {
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

  test('after a kill -9 of a worker another one makes its calls within 15 s, whatever pause their nodes have', {
    tags: 'long',
  }, async ({ annotate }) => {
    const workflowId = await apis[0].client.create({
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
        {
          id: 'call',
          type: 'HTTP_REQUEST',
          retry: { maxAttempts: 2, initialIntervalMs: 45_000, maxIntervalMs: 45_000 },
          config: { method: 'POST', url: `${target.url}/slow?ms=4000` },
        },
      ],
      edges: edges('start -> call'),
    })
    const ids = await Promise.all(Array.from({ length: 8 }, () => apis[0].client.execute(workflowId)))
    await target.until(() => ids.every((id) => callsOf(target, id, 'call').length > 0))
    const killed = Date.now()
    workers.shift()!.kill('SIGKILL')
    workers.push(await startWorker())
    const after: number[] = []
    for (const id of ids) {
      const run = await apis[1].client.ended(id)
      expect([run.status, run.errorMessage]).toEqual(['SUCCESS', null])
      const calls = callsOf(target, id, 'call')
      expect(calls).toHaveLength(nodeOf(run, 'call').retryCount + 1)
      if (calls[1]) after.push(calls[1].at - killed)
    }
    expect(after.length).toBeGreaterThan(0)
    expect(Math.max(...after)).toBeLessThan(15_000)
    await annotate(`${after.length} of 8 calls were made again, after ${after} ms`)
  })

  test('a worker that gets SIGTERM finishes calls of 3 s and leaves calls of 8 s to another worker', {
    tags: 'long',
  }, async ({ annotate }) => {
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
