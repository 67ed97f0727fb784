import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { readSeal } from '../../../db/seal.ts'
import { type ExecutionBody, nodeOf } from '../../support/client.ts'
import { edges } from '../../support/engine/graphs.ts'
import { readEvents } from '../../support/events.ts'
import { keep } from '../../support/keep.ts'
import { startRunning } from '../../support/running.ts'
import { startWorld } from '../../support/servers/world.ts'
import { until } from '../../support/until.ts'

const SECRET = 'Zx81-tango-foxtrot-9'
const JSON_TYPE = { 'content-type': 'application/json' }

const host = await keep(startRunning())
const world = await keep(
  startWorld({
    '/flaky': ({ response, count }) => {
      const status = [503, 500][count - 1] ?? 200
      const body = status === 200 ? { fine: true } : { fault: status }
      response.writeHead(status, JSON_TYPE).end(JSON.stringify(body))
    },
    '/busy': ({ response }) => response.writeHead(503, { 'retry-after': '3' }).end('come again'),
    '/hang': () => {},
    '/cut': ({ request }) => request.socket.destroy(),
    '/half': ({ response }) => {
      response.writeHead(200, { ...JSON_TYPE, 'content-length': '100' }).write('{"half":')
    },
    '/first': ({ response }) => response.writeHead(302, { location: '/second?token=hop-secret-1' }).end(),
    '/second': ({ response }) => response.writeHead(307, { location: '/last' }).end(),
    '/last': ({ request, response }) => response.writeHead(200, { 'x-method': request.method! }).end('there'),
    '/echo': ({ request, body, response }) => {
      response.writeHead(200, {
        ...JSON_TYPE,
        'set-cookie': ['sid=abcdef; Path=/', 'two=ghijkl'],
        'x-seen': request.url!,
      })
      response.end(JSON.stringify({ headers: request.headers, url: request.url, body }))
    },
    '/picture': ({ response }) =>
      response.writeHead(200, { 'content-type': 'image/png' }).end(Buffer.from([0x89, 0x50, 0, 0xff, 0xfe])),
    '/huge': ({ response }) =>
      response.writeHead(200, { 'content-type': 'text/plain' }).end('é'.repeat(150_000)),
    '/ok': ({ response }) => response.writeHead(200, JSON_TYPE).end('{"ok":true}'),
  }),
)

type Request = {
  attempt: number
  startedAt: string
  durationMs: number | null
  method: string
  url: string
  headers: Record<string, string>
  body: string | null
  bodyBytes: number
  bodyCut: boolean
  redirects: { status: number; method: string; url: string }[]
  response: Pick<Request, 'headers' | 'body' | 'bodyBytes' | 'bodyCut'> & {
    status: number
    statusText: string
  }
  error: string | null
}
type Page = { content: Request[]; totalElements: number; size: number }

const graph = (path: string, config: object = {}, more: object = {}) => ({
  nodes: [
    { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
    {
      id: 'call',
      type: 'HTTP_REQUEST',
      retry: { maxAttempts: 1 },
      ...more,
      config: { url: world.url + path, ...config },
    },
  ],
  edges: edges('start -> call'),
})

const list = (run: ExecutionBody, recordId = nodeOf(run, 'call').id, query = '') =>
  host.ask<Page>('GET', `/api/executions/${run.id}/nodes/${recordId}/requests${query}`)

/** The requests of a record, once there are so many that have ended. */
async function requestsOf(run: ExecutionBody, count = 1, recordId?: string): Promise<Request[]> {
  const holds = ({ content }: Page) =>
    content.length >= count && content.every(({ durationMs }) => durationMs !== null)
  return (await until(() => list(run, recordId), { holds, withinMs: 10_000 })).content
}

test('while a node retries, its record says why, which attempt, and when the next one comes', {
  tags: 'long',
}, async () => {
  const retry = { maxAttempts: 3, initialIntervalMs: 1_500, backoffCoefficient: 1 }
  const id = await host.execute(await host.create(graph('/flaky', {}, { retry })))
  const events = readEvents(await host.request(`/api/executions/${id}/events`, { as: host.admin })).all()
  for (const [at, status] of [503, 500].entries()) {
    const before = Date.now()
    const run = await host.until(id, ({ nodeExecutions }) =>
      nodeExecutions.some(({ nextAttemptAt, retryCount }) => nextAttemptAt !== null && retryCount === at),
    )
    const node = nodeOf(run, 'call')
    expect(node).toMatchObject({ status: 'RUNNING', retryCount: at, completedAt: null })
    expect(node.errorMessage).toContain(`responded with ${status}`)
    expect(Date.parse(node.nextAttemptAt!)).toBeGreaterThan(before)
    expect(Date.parse(node.nextAttemptAt!)).toBeLessThan(Date.now() + 1_500)
  }
  const run = await host.ended(id)
  expect(nodeOf(run, 'call')).toMatchObject({
    ...{ status: 'SUCCESS', retryCount: 2, errorMessage: null, nextAttemptAt: null },
  })
  const told = (await events).filter(({ data }) => data.nodeId === 'call').map(({ data }) => data)
  expect(told).toContainEqual(
    expect.objectContaining({
      status: 'RUNNING',
      errorMessage: expect.stringContaining('503'),
      nextAttemptAt: expect.stringMatching(/Z$/),
    }),
  )
  expect(told.at(-1)).toMatchObject({ status: 'SUCCESS', errorMessage: null, nextAttemptAt: null })

  const [first, second, third] = await requestsOf(run, 3)
  expect(
    [first, second, third].map((one) => [one!.attempt, one!.response.status, one!.response.body]),
  ).toEqual([
    [1, 503, '{"fault":503}'],
    [2, 500, '{"fault":500}'],
    [3, 200, '{"fine":true}'],
  ])
  expect(first).toMatchObject({
    ...{ method: 'GET', url: `${world.url}/flaky`, body: null, bodyBytes: 0, bodyCut: false, error: null },
    ...{ redirects: [], headers: { accept: '*/*', 'user-agent': 'Perdure' } },
    response: { statusText: 'Service Unavailable', bodyBytes: 13, bodyCut: false },
  })
  expect(Date.parse(second!.startedAt) - Date.parse(first!.startedAt)).toBeGreaterThanOrEqual(1_400)
})

test('the pause is the one that the server asks for, and a cancelled execution has neither it nor the error', async () => {
  const retry = { maxAttempts: 5, initialIntervalMs: 100 }
  const id = await host.execute(await host.create(graph('/busy', {}, { retry })))
  const paused = await host.until(id, (run) =>
    run.nodeExecutions.some(({ nextAttemptAt }) => nextAttemptAt !== null),
  )
  const left = Date.parse(nodeOf(paused, 'call').nextAttemptAt!) - Date.now()
  expect(left).toBeGreaterThan(1_000)
  await host.ask('POST', `/api/executions/${id}/cancel`)
  const run = await host.ended(id)
  expect(nodeOf(run, 'call')).toMatchObject({
    ...{ status: 'CANCELLED', errorMessage: null, nextAttemptAt: null, retryCount: 0 },
  })
})

test('the last of several failures is the error of the record, and every attempt has its request', async () => {
  const retry = { maxAttempts: 2, initialIntervalMs: 100 }
  const run = await host.run(graph('/cut', { method: 'POST', body: { a: 1 } }, { retry }))
  expect(nodeOf(run, 'call')).toMatchObject({ status: 'FAILED', retryCount: 1, nextAttemptAt: null })
  const requests = await requestsOf(run, 2)
  const key = `${run.id}:call`
  expect(requests.map(({ attempt, headers }) => [attempt, headers['idempotency-key']])).toEqual([
    [1, key],
    [2, key],
  ])
  expect(requests[1]).toMatchObject({
    ...{ method: 'POST', body: '{"a":1}', bodyBytes: 7, response: null },
    error: expect.stringContaining('connection'),
  })
})

test('redirects are shown, with what was sent at last', async () => {
  const run = await host.run(graph('/first', { method: 'POST', body: { a: 1 } }))
  const [request] = await requestsOf(run)
  expect(request).toMatchObject({
    ...{ method: 'POST', url: `${world.url}/first`, body: '{"a":1}' },
    redirects: [
      { status: 302, method: 'GET', url: `${world.url}/second?token=[redacted]` },
      { status: 307, method: 'GET', url: `${world.url}/last` },
    ],
    response: { status: 200, body: 'there', headers: { 'x-method': 'GET' } },
  })
})

test('no secret is kept: of the headers, the URL and the body, nor where the server echoes them', async () => {
  const [header, cookie, token, word, basic] = ['h', 'c', 't', 'p', 'b'].map((one) => one + SECRET)
  const run = await host.run(
    graph('/echo?access_token={{ $input.token }}&page=2', {
      method: 'POST',
      headers: {
        'X-Api-Key': '{{ $input.header }}',
        Cookie: 'session={{ $input.cookie }}',
        'Proxy-Authorization': 'Basic {{ $input.basic }}',
        Authorization: 'Bearer {{ $input.key }}',
        'X-Plain': 'plain',
      },
      body: { password: word, card: '4111 1111 1111 1111', note: 'visible' },
    }),
    { token, header, cookie, basic: btoa(`ada:${basic}`), key: 'sk_live_0123456789abcdefABCDEF' },
  )
  expect(run.status).toBe('SUCCESS')
  const [request] = await requestsOf(run)
  const text = JSON.stringify(request)
  for (const secret of [header, cookie, token, word, basic, 'sk_live_', '4111', 'abcdef; Path'])
    expect(text).not.toContain(secret)
  expect(text).not.toContain(SECRET)
  expect(text).not.toContain(btoa(`ada:${basic}`).slice(4, 20))
  // They are sealed in the database.
  const { rows } = await sql<{ sealed: Buffer }>`
    select sealed from node_requests where execution_id = ${run.id}`.execute(host.store.db)
  expect(rows.map(({ sealed }) => readSeal(sealed))).toEqual([{ version: 1, keyId: expect.any(String) }])
  expect(request).toMatchObject({
    url: `${world.url}/echo?access_token=[redacted]&page=2`,
    headers: {
      'x-api-key': '[redacted]',
      cookie: '[redacted]',
      authorization: '[redacted]',
      'x-plain': 'plain',
    },
    response: { headers: { 'set-cookie': ['[redacted]', '[redacted]'] } },
  })
  expect(JSON.parse(request!.body!)).toEqual({ password: '[redacted]', card: '[redacted]', note: 'visible' })
  expect(request!.response.body).toContain('visible')
})

test("the instance's own patterns are masked too", async () => {
  const patterns = [{ name: 'EMPLOYEE', pattern: 'EMP-[0-9]{6}' }]
  await host.ask('PUT', '/api/admin/masking', { patterns })
  try {
    const run = await host.run(graph('/echo', { method: 'POST', body: { who: 'EMP-123456' } }))
    const [request] = await requestsOf(run)
    expect(request!.body).toBe('{"who":"[EMPLOYEE]"}')
  } finally {
    await host.ask('PUT', '/api/admin/masking', { patterns: [] })
  }
})

test('a body that is not text is left out, and a long one is cut at 32 KB', async () => {
  const picture = await host.run(graph('/picture'))
  expect((await requestsOf(picture))[0]!.response).toMatchObject({ body: null, bodyBytes: 5, bodyCut: false })

  const text = `${'x'.repeat(32_700)} password=${SECRET} ${'y'.repeat(200_000)}`
  const run = await host.run(graph('/huge', { method: 'POST', body: text, bodyType: 'text' }))
  const [request] = await requestsOf(run)
  expect(request).toMatchObject({ bodyBytes: text.length, bodyCut: true })
  expect(request!.body!.length).toBeLessThanOrEqual(32_768)
  expect(request!.body).toContain('password=[redacted]')
  expect(request!.body).not.toContain(SECRET)
  const { body, bodyBytes, bodyCut } = request!.response
  expect([bodyBytes, bodyCut, /^é+$/.test(body!)]).toEqual([300_000, true, true])
  expect(Buffer.byteLength(body!)).toBeLessThanOrEqual(32_768)
  expect(Buffer.byteLength(body!)).toBeGreaterThan(20_000)
})

test('a secret that the end of what is kept cuts in two is not kept in part', async () => {
  for (const before of [36_840, 36_855]) {
    const text = `${'x'.repeat(before)} ghp_${'Q'.repeat(36)} ${'y'.repeat(5_000)}`
    const run = await host.run(graph('/ok', { method: 'POST', body: text, bodyType: 'text' }))
    expect(JSON.stringify(await requestsOf(run))).not.toContain('Q')
  }
})

test('a timeout, a half response and a cancelled call are kept, with what is known of them', async () => {
  const late = await host.run(graph('/hang', { timeoutMs: 300 }))
  expect((await requestsOf(late))[0]).toMatchObject({
    ...{ response: null, error: expect.stringMatching(/no complete response .* within 300 ms/) },
  })
  const limited = await host.run(graph('/hang', {}, { timeoutMs: 1_000 }))
  expect((await requestsOf(limited))[0]).toMatchObject({
    ...{ response: null, error: 'The node took longer than its limit of 1000 ms' },
  })
  const half = await host.run(graph('/half', { timeoutMs: 300 }))
  expect((await requestsOf(half))[0]).toMatchObject({
    response: { status: 200, body: null },
    error: expect.stringContaining('within 300 ms'),
  })
  const id = await host.execute(await host.create(graph('/hang', { method: 'POST', body: [1] })))
  const open = await host.until(id, (run) => run.nodeExecutions.some(({ nodeId }) => nodeId === 'call'))
  // It is shown while it is under way.
  const under = await until(() => list(open), { holds: ({ content }) => content.length > 0 })
  expect(under.content[0]).toMatchObject({ body: '[1]', durationMs: null, response: null, error: null })
  await host.ask('POST', `/api/executions/${id}/cancel`)
  const run = await host.ended(id)
  const [cancelled] = await requestsOf(run)
  expect(cancelled).toMatchObject({ body: '[1]', response: null, error: expect.stringContaining('Nobody') })
})

test('each iteration of a loop has its own requests, by pages', async () => {
  const nodes = [
    { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
    { id: 'each', type: 'FOR_EACH', config: { items: '{{ [1, 2, 3] }}' } },
    {
      ...{ id: 'call', parentId: 'each', type: 'HTTP_REQUEST' },
      config: { url: `${world.url}/ok?n={{ $item }}` },
    },
  ]
  const run = await host.run({ nodes, edges: edges('start -> each') })
  for (const { id, iteration } of run.nodeExecutions.filter(({ nodeId }) => nodeId === 'call')) {
    const requests = await requestsOf(run, 1, id)
    expect(requests.map(({ url }) => url)).toEqual([`${world.url}/ok?n=${Number(iteration) + 1}`])
  }
  // No other node has any.
  expect(await list(run, nodeOf(run, 'each').id)).toMatchObject({ content: [], totalElements: 0, size: 10 })

  const retry = { maxAttempts: 4, initialIntervalMs: 100, backoffCoefficient: 1 }
  const many = await host.run(graph('/none/408', {}, { retry }))
  expect(many.status).toBe('FAILED')
  const cuts = await host.run(graph('/cut', {}, { retry }))
  await requestsOf(cuts, 4)
  const pages = await Promise.all([0, 1].map((page) => list(cuts, undefined, `?size=3&page=${page}`)))
  expect(pages.map(({ content }) => content.map(({ attempt }) => attempt))).toEqual([[1, 2, 3], [4]])
  expect(pages[0]).toMatchObject({ totalElements: 4, size: 3 })
})

test('they are not in the execution, and go with it', async () => {
  const run = await host.run(graph('/echo', { method: 'POST', body: { word: 'outgoing' } }))
  await requestsOf(run)
  expect(Object.keys(nodeOf(await host.read(run.id), 'call'))).not.toContain('requests')
  await sql`delete from executions where id = ${run.id}`.execute(host.store.db)
  const { rows } = await sql`select from node_requests where execution_id = ${run.id}`.execute(host.store.db)
  expect(rows).toEqual([])
})

test('an execution that does not keep its data keeps no requests', async () => {
  for (const kept of [
    { inputs: false, outputs: true },
    { inputs: true, outputs: false },
  ]) {
    const run = await host.run({ ...graph('/ok'), settings: { saveData: kept } })
    // Those of a later execution are there.
    await requestsOf(await host.run(graph('/ok')))
    expect(await list(run)).toMatchObject({ content: [], totalElements: 0 })
  }
})

test('they are for those who may read the execution; others get 404 or 400', async () => {
  const run = await host.run(graph('/ok'))
  const { id } = nodeOf(run, 'call')
  const ask = async (path: string, as: string) => (await host.request(path, { as })).status
  const path = `/api/executions/${run.id}/nodes/${id}/requests`
  expect(await ask(path, host.admin)).toBe(200)
  expect(await ask(`${path}?size=21`, host.admin)).toBe(400)
  expect(await ask(path.replace(id, 'call'), host.admin)).toBe(400)
  expect(await ask(path.replace(id, run.id), host.admin)).toBe(404)
  const other = await host.run(graph('/ok'))
  expect(await ask(path.replace(run.id, other.id), host.admin)).toBe(404)
  expect((await host.request(path)).status).toBe(401)
})
