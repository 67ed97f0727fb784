import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { type ExecutionBody, nodeOf } from '../../support/client.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'
import { startWorld } from '../../support/servers/world.ts'
import { until } from '../../support/until.ts'

const JSON_TYPE = { 'content-type': 'application/json' }

type Seen = {
  method: string
  path: string
  query: Record<string, string>
  headers: Record<string, unknown>
} & {
  body: string
}
let seen: Seen[] = []
const host = await shareRunning()
const away = await keep(
  startWorld({ '/next': (call: Call) => answer(call, { items: [9], next: null }) } as never),
)
const counts = new Map<string, number>()

type Call = {
  request: import('node:http').IncomingMessage
  body: string
  response: import('node:http').ServerResponse
}

function note({ request, body }: Call): Seen {
  const { pathname, searchParams } = new URL(request.url!, 'http://a')
  const { method = '', headers } = request
  const one = { method, path: pathname, query: Object.fromEntries(searchParams), headers, body }
  seen.push(one)
  return one
}

function answer(call: Call, value: unknown, status = 200, headers: object = {}) {
  note(call)
  call.response.writeHead(status, { ...JSON_TYPE, ...headers }).end(JSON.stringify(value))
}

/** A list of `last` pages by number: the faulty ones answer so once. */
const numbered =
  (last: number, faults: Record<number, [number, object?]> = {}) =>
  (call: Call) => {
    const page = Number(new URL(call.request.url!, 'http://a').searchParams.get('page') ?? 1)
    const key = `${call.request.url}`
    counts.set(key, (counts.get(key) ?? 0) + 1)
    const [status, headers] = counts.get(key) === 1 ? (faults[page] ?? []) : []
    if (status) answer(call, { fault: status }, status, headers)
    else answer(call, { page, items: page > last ? [] : [page * 10, page * 10 + 1] })
  }

const world = await keep(
  startWorld({
    '/numbered': numbered(3),
    '/short': numbered(20_000),
    '/busy': numbered(4, { 2: [429, { 'retry-after': '1' }], 3: [500] }),
    '/linked': (call: Call) => {
      const at = Number(new URL(call.request.url!, 'http://a').searchParams.get('at') ?? 0)
      answer(call, { items: [at], next: at < 2 ? `/linked?at=${at + 1}` : null })
    },
    '/foreign': (call: Call) => answer(call, { items: [1], next: `${away.url}/next?token=x` }),
    '/round': (call: Call) => {
      const at = Number(new URL(call.request.url!, 'http://a').searchParams.get('at') ?? 0)
      answer(call, { items: [at], next: `/round?at=${(at + 1) % 2}` })
    },
    '/cursor': (call: Call) => {
      const { cursor = 0 } = JSON.parse(call.body)
      answer(call, { items: [cursor], cursor: cursor < 3 ? cursor + 1 : null })
    },
    '/status': (call: Call) => {
      const page = Number(new URL(call.request.url!, 'http://a').searchParams.get('page'))
      if (page > 2) answer(call, { over: true }, 404)
      else answer(call, [page])
    },
    '/slow': (call: Call) => void setTimeout(() => answer(call, { at: seen.length, next: '/slow' }), 100),
    '/wide': (call: Call) => answer(call, { items: ['x'.repeat(100_000)], at: Math.random() }),
    '/same': (call: Call) => answer(call, { state: 'waiting' }),
  } as never),
)

async function start(
  config: object,
  { settings, ...more }: { settings?: object } & object = {},
): Promise<string> {
  const work = { id: 'work', type: 'HTTP_REQUEST', config, ...more }
  const workflow = await host.create({
    nodes: [{ id: 'start', type: 'MANUAL_TRIGGER', config: {} }, work],
    edges: edges('start -> work'),
    ...(settings ? { settings } : {}),
  } as never)
  seen = []
  return host.execute(workflow)
}

async function run(config: object, more: object = {}) {
  return nodeOf((await host.ended(await start(config, more), 60_000)) as ExecutionBody, 'work')
}

const NEXT = '{{ $response.body.next }}'
const ITEMS = '{{ $response.body.items }}'
const NUMBER = { name: 'page', value: '{{ $pageCount + 1 }}' }

test('pages by link, by number and by a cursor in the body become one list', async () => {
  const linked = await run({ url: `${world.url}/linked`, pagination: { url: NEXT, items: ITEMS } })
  expect(linked.outputData).toEqual({ items: [0, 1, 2], pages: 3, more: false })
  expect(linked.warnings ?? []).toEqual([])
  const byNumber = await run({
    url: `${world.url}/numbered`,
    query: { size: 2, page: 7 },
    pagination: { parameters: [NUMBER], items: ITEMS, untilEmpty: true },
  })
  expect(byNumber.outputData).toEqual({ items: [10, 11, 20, 21, 30, 31], pages: 4, more: false })
  expect(seen.map(({ query }) => query)).toEqual([1, 2, 3, 4].map((page) => ({ size: '2', page: `${page}` })))
  const byCursor = await run({
    ...{ url: `${world.url}/cursor`, method: 'POST', body: { size: 1 } },
    pagination: {
      parameters: [{ in: 'body', name: 'cursor', value: '{{ $response.body.cursor }}' }],
      until: '{{ $response.body.cursor = null }}',
    },
  })
  expect((byCursor.outputData as { items: object[] }).items).toHaveLength(4)
  expect(seen.map(({ body }) => JSON.parse(body))).toEqual([
    { size: 1, cursor: null },
    ...[1, 2, 3].map((cursor) => ({ size: 1, cursor })),
  ])
  // Each page is a request of its own for a server that knows the key.
  expect(new Set(seen.map(({ headers }) => headers['idempotency-key'])).size).toBe(4)
})

test('a status may end them, or as many pages as wanted; more than the bound is a failure', async () => {
  const pages = { parameters: [NUMBER], items: '{{ $response.body }}' }
  const config = { url: `${world.url}/status`, pagination: { ...pages, endStatus: [404] } }
  expect((await run(config)).outputData).toEqual({ items: [1, 2], pages: 2, more: false })
  const stopped = { url: `${world.url}/short`, pagination: { ...pages, maxPages: 2, whenMore: 'stop' } }
  expect((await run(stopped)).outputData).toMatchObject({ pages: 2, more: true })
  const failed = { url: `${world.url}/short`, pagination: { ...pages, maxPages: '{{ 1 + 1 }}' } }
  expect(await run(failed)).toMatchObject({
    status: 'FAILED',
    errorMessage: expect.stringContaining('more than 2 pages'),
  })
  expect(seen).toHaveLength(2)
})

test('after 429 and 500 only the page that is missing is asked for again', async () => {
  const config = {
    url: `${world.url}/busy`,
    pagination: { parameters: [NUMBER], items: ITEMS, untilEmpty: true },
  }
  const done = await run(config, { retry: { maxAttempts: 3, initialIntervalMs: 1 } })
  expect(done).toMatchObject({ status: 'SUCCESS', retryCount: 2 })
  expect(done.outputData).toMatchObject({ items: [10, 11, 20, 21, 30, 31, 40, 41], pages: 5 })
  expect(seen.map(({ query }) => query.page)).toEqual(['1', '2', '2', '3', '3', '4', '5'])
})

test('a circle ends with its name, as do five same answers, and bytes beyond the bound', async () => {
  const round = await run({ url: `${world.url}/round`, pagination: { url: NEXT } })
  expect(round).toMatchObject({ status: 'FAILED', errorMessage: expect.stringContaining('come round again') })
  // The first address is `/round`, the third one `/round?at=0`.
  expect(seen).toHaveLength(3)
  const same = await run({
    url: `${world.url}/same`,
    pagination: {
      parameters: [{ name: 'a', value: 1 }],
      until: '{{ $response.body.state = "done" }}',
      repeats: true,
    },
  })
  expect(same).toMatchObject({ status: 'FAILED', errorMessage: expect.stringContaining('identical 5x') })
  expect(seen).toHaveLength(5)
  const wide = await run({
    url: `${world.url}/wide`,
    pagination: { parameters: [NUMBER], maxPages: 50, maxBytes: 250_000 },
  })
  expect(wide).toMatchObject({ status: 'FAILED', errorMessage: expect.stringContaining('250000 bytes') })
})

test('nothing of the sign-in goes to another origin, whatever an answer says', async () => {
  const body = { teamId: host.teamId, name: 'pages', type: 'HTTP_BEARER' }
  const data = { token: 'canary-of-pages' }
  const { id } = await host.ask<{ id: string }>('POST', '/api/credentials', { ...body, data })
  const config = {
    ...{ url: `${world.url}/foreign`, credentialId: id },
    headers: { 'X-Secret': '{{ "of-the-" & "author" }}', 'X-Plain': 'a' },
    query: { api_key: '{{ "in-the-" & "query" }}', size: 5 },
    pagination: { url: NEXT, items: ITEMS },
  }
  expect((await run(config)).outputData).toEqual({ items: [1, 9], pages: 2, more: false })
  const [first, second] = seen
  expect(first!.headers).toMatchObject({
    authorization: 'Bearer canary-of-pages',
    'x-secret': 'of-the-author',
  })
  expect(second!.headers).toMatchObject({ 'x-plain': 'a' })
  expect(JSON.stringify(second)).not.toMatch(/canary|of-the-author|in-the-query/)
  expect(second!.query).toEqual({ token: 'x', size: '5' })
})

test('the record has a line for each page, and says how many there were beyond', async () => {
  const id = await start({
    url: `${world.url}/short`,
    pagination: { parameters: [NUMBER], items: '{{ $response.body.page }}', maxPages: 130, whenMore: 'stop' },
  })
  const ended = await host.ended(id, 60_000)
  const node = nodeOf(ended as ExecutionBody, 'work') as { id: string; console?: unknown }
  expect(JSON.stringify(node)).toContain('130 pages were read')
  const lines = async () => {
    const page = await host.ask<object>('GET', `/api/executions/${id}/nodes/${node.id}/requests`)
    return JSON.stringify(page)
  }
  await until(async () => (await lines()).includes('"totalElements":100'))
  const { rows } = await sql<{ n: number }>`select count(*)::int as n from request_pages
    where execution_id = ${id}`.execute(host.store.db)
  expect(rows[0]!.n).toBe(130)
  await host.ask('DELETE', `/api/executions/${id}`)
  const left = await sql`select 1 from request_pages where execution_id = ${id}`.execute(host.store.db)
  expect(left.rows).toEqual([])
})

test('an execution that keeps no outputs keeps no pages', async () => {
  const config = { url: `${world.url}/linked`, pagination: { url: NEXT } }
  const id = await start(config, { settings: { saveData: { inputs: true, outputs: false } } })
  await host.ended(id)
  const left = await sql`select 1 from request_pages where execution_id = ${id}`.execute(host.store.db)
  expect(left.rows).toEqual([])
})

test('a long pause keeps no slot, and a cancelled execution asks for no more pages', async () => {
  const rested = await run({
    url: `${world.url}/linked`,
    pagination: { url: NEXT, items: ITEMS, pauseMs: 2_200 },
  })
  expect(rested).toMatchObject({ status: 'SUCCESS', retryCount: 0, outputData: { items: [0, 1, 2] } })
  expect(seen).toHaveLength(3)
  const id = await start({
    url: `${world.url}/slow`,
    pagination: { url: NEXT, repeats: true, until: 'false' },
  })
  await until(() => seen.length >= 2)
  await host.ask('POST', `/api/executions/${id}/cancel`)
  await host.ended(id)
  // Its worker learns of that with one of the next heartbeats.
  let length = 0
  await until(async () => {
    length = seen.length
    await new Promise((resolve) => setTimeout(resolve, 500))
    return seen.length === length
  })
  expect(length).toBeLessThan(100)
})

test('settings that cannot work are refused, all at once', async () => {
  const node = (config: object) => ({
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
      { id: 'work', type: 'HTTP_REQUEST', config: { url: `${world.url}/x`, ...config } },
    ],
    edges: edges('start -> work'),
    ...{ teamId: host.teamId, name: 'refused' },
  })
  const faults = async (config: object) => {
    const json = node(config)
    const response = await host.request('/api/workflows', { method: 'POST', as: host.admin, json })
    expect(response.status).toBe(400)
    const { errors } = (await response.json()) as { errors: { path: string; message: string }[] }
    return errors.map(({ path, message }) => `${path} ${message}`).join('\n')
  }
  expect(await faults({ pagination: {} })).toMatch(
    /pagination\.url is required[\s\S]*pagination\.until is required/,
  )
  expect(await faults({ body: '{{ $response.body }}' })).toContain('unknown variable $response')
  expect(await faults({ pagination: { url: '{{ $nothing.a }}' } })).toContain('unknown variable $nothing')
  expect(await faults({ responseType: 'file', pagination: { url: NEXT } })).toContain('become files')
  expect(await faults({ pagination: { url: NEXT, maxPages: 10_001 } })).toContain('10000')
})

test('10,000 pages are read to the end', { tags: 'long', timeout: 300_000 }, async () => {
  const config = {
    url: `${world.url}/short`,
    pagination: {
      parameters: [NUMBER],
      items: '{{ $response.body.page }}',
      maxPages: 10_000,
      whenMore: 'stop',
    },
  }
  const id = await start(config)
  const done = nodeOf((await host.ended(id, 280_000)) as ExecutionBody, 'work')
  expect(done.outputData).toMatchObject({ pages: 10_000, more: true })
  expect((done.outputData as { items: number[] }).items).toEqual(
    Array.from({ length: 10_000 }, (_, i) => i + 1),
  )
  expect(seen).toHaveLength(10_000)
})
