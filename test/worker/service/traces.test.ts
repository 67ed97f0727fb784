import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { pino } from 'pino'
import { afterAll, describe, expect, inject, test } from 'vitest'
import { startTracing } from '../../../activities/tracing.ts'
import { findFree } from '../../../worker/local/ports.ts'
import { edges } from '../../support/engine/graphs.ts'
import { launch } from '../../support/engine/process.ts'
import { keep } from '../../support/keep.ts'
import { nodeOf, startRunning } from '../../support/running.ts'
import { type Received, startCollector } from '../../support/servers/collector.ts'
import { startTarget } from '../../support/servers/target.ts'
import { startService } from '../../support/service.ts'

const log = pino({ level: 'silent' })
const options = { sampler: 'parentbased_always_on', ratio: 1, everyMs: 50 } as const
const SERVER = 2
const CLIENT = 3
const ERROR = 2

const target = await keep(startTarget())
const collector = await keep(startCollector())
const tracing = await startTracing({ ...options, url: collector.url }, log)
const host = await keep(startRunning({ tracing }))
afterAll(() => tracing.stop())

const graph = () => ({
  nodes: [
    { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
    { id: 'secret-free', type: 'SET', config: { values: { word: 'swordfish', all: '{{ $execution }}' } } },
    {
      id: 'flaky',
      type: 'HTTP_REQUEST',
      retry: { maxAttempts: 3, initialIntervalMs: 10 },
      config: { url: `${target.url}/flaky?key={{ $execution.id }}` },
    },
    { id: 'after', type: 'NO_OP', config: {} },
  ],
  edges: edges('start -> secret-free', 'secret-free -> flaky', 'flaky -> after'),
})

const randomTrace = (flags = '01') => {
  const traceId = randomBytes(16).toString('hex')
  const spanId = randomBytes(8).toString('hex')
  return { traceId, spanId, traceparent: `00-${traceId}-${spanId}-${flags}` }
}

/** Executes with a caller's trace context; returns the response's body and its `traceresponse` header. */
async function executeTraced(workflowId: string, traceparent: string, tracestate?: string) {
  const response = await host.request(`/api/workflows/${workflowId}/execute`, {
    method: 'POST',
    as: host.admin,
    json: { teamId: host.teamId, data: { word: 'swordfish' } },
    headers: { traceparent, ...(tracestate === undefined ? {} : { tracestate }) },
  })
  expect(response.status).toBe(202)
  const body = (await response.json()) as { executionId: string; status: string }
  return { ...body, traceresponse: response.headers.get('traceresponse') }
}

const named = (spans: Received[], name: string) => spans.filter((span) => span.name === name)
const only = (spans: Received[], name: string) => {
  const found = named(spans, name)
  expect(found.map((span) => span.name)).toEqual([name])
  return found[0]!
}

const isWhole = (spans: Received[]) => named(spans, 'run').length > 0 && named(spans, 'NO_OP').length > 0

/** Checks the whole trace of one execution of `graph()`: every span must have the right parent. */
function checkRun(spans: Received[], executionId: string, caller: { traceId: string; spanId: string }) {
  const server = only(spans, 'POST /api/workflows/:id/execute')
  expect(server).toMatchObject({ parentId: caller.spanId, kind: SERVER, service: 'perdure' })
  const started = named(spans, 'start run')
  expect(started.length).toBeGreaterThan(0)
  for (const span of started) expect(span.parentId).toBe(server.spanId)
  const run = only(spans, 'run')
  expect(run.parentId).toBe(server.spanId)
  expect(run.attributes).toEqual({
    'perdure.execution.id': executionId,
    'perdure.run.trigger': 'MANUAL',
    'perdure.run.status': 'SUCCESS',
  })
  const nodes = spans.filter((span) => span.parentId === run.spanId)
  expect(nodes.map((span) => span.name).sort()).toEqual([
    'HTTP_REQUEST',
    'HTTP_REQUEST',
    'HTTP_REQUEST',
    'MANUAL_TRIGGER',
    'NO_OP',
    'SET',
  ])
  const attempts = named(nodes, 'HTTP_REQUEST').sort((a, b) => a.startedAt - b.startedAt)
  const name = { 'perdure.execution.id': executionId, 'perdure.node.id': 'flaky' }
  expect(attempts.map(({ attributes, status }) => [attributes, status])).toEqual([
    [
      { ...name, 'perdure.node.attempt': 1, 'perdure.node.outcome': 'FAILED', 'error.type': 'Http503' },
      ERROR,
    ],
    [
      { ...name, 'perdure.node.attempt': 2, 'perdure.node.outcome': 'FAILED', 'error.type': 'Http503' },
      ERROR,
    ],
    [{ ...name, 'perdure.node.attempt': 3, 'perdure.node.outcome': 'SUCCESS' }, 0],
  ])
  for (const span of nodes) {
    expect(span.startedAt).toBeGreaterThanOrEqual(run.startedAt)
    expect(span.endedAt).toBeLessThanOrEqual(run.endedAt + 5)
  }
  return { server, run, attempts }
}

describe('one request is one trace', () => {
  test('it leads from the caller through the API and the run to each node and each outgoing call', async () => {
    const caller = randomTrace()
    const workflowId = await host.create(graph())
    const { executionId, traceresponse } = await executeTraced(workflowId, caller.traceparent)
    await host.ended(executionId)
    const spans = await collector.until(caller.traceId, isWhole)
    const { server, attempts } = checkRun(spans, executionId, caller)
    expect(traceresponse).toBe(`00-${caller.traceId}-${server.spanId}-01`)
    expect(server.attributes).toEqual({
      'http.request.method': 'POST',
      'http.route': '/api/workflows/:id/execute',
      'http.response.status_code': 202,
    })
    const calls = target.calls.filter((call) => call.traceparent?.includes(caller.traceId))
    expect(calls.length).toBe(3)
    const clients = named(spans, 'GET').sort((a, b) => a.startedAt - b.startedAt)
    expect(clients.map((span) => span.parentId)).toEqual(attempts.map((span) => span.spanId))
    expect(clients.map((span) => span.attributes['http.response.status_code'])).toEqual([503, 503, 200])
    for (const span of clients) expect(span.kind).toBe(CLIENT)
    expect(calls.map((call) => call.traceparent)).toEqual(
      clients.map((span) => `00-${caller.traceId}-${span.spanId}-01`),
    )
    expect(JSON.stringify(spans)).not.toContain('swordfish')
    expect(JSON.stringify(spans)).not.toContain(target.url)
    expect(collector.faults).toEqual([])
  })

  test('also if Temporal could not be reached when the request was accepted', async () => {
    const caller = randomTrace()
    const workflowId = await host.create(graph())
    host.use(undefined)
    const { executionId, status } = await executeTraced(workflowId, caller.traceparent)
    expect(status).toBe('PENDING')
    host.use(host.engine)
    const errand = sql`update outbox set due_at = now() where subject_id = ${executionId}`
    await errand.execute(host.store.db)
    await host.engine.sweep()
    await host.ended(executionId)
    const spans = await collector.until(caller.traceId, isWhole)
    const { server } = checkRun(spans, executionId, caller)
    const [start] = named(spans, 'start run')
    expect(start!.startedAt).toBeGreaterThanOrEqual(server.endedAt)
    expect(start!.attributes).toEqual({ 'perdure.execution.id': executionId, 'perdure.errand.attempt': 2 })
  })

  test('also for a request to a webhook', async () => {
    const caller = randomTrace()
    const id = await host.create({
      nodes: [
        { id: 'hook', type: 'WEBHOOK_TRIGGER', config: { path: 'in' } },
        { id: 'call', type: 'HTTP_REQUEST', config: { url: `${target.url}/ok` } },
        { id: 'after', type: 'NO_OP', config: {} },
      ],
      edges: edges('hook -> call', 'call -> after'),
    })
    await host.ask('PUT', `/api/workflows/${id}`, { active: true })
    const { traceparent } = caller
    const response = await host.request(`/hooks/${id}/in`, {
      method: 'POST',
      json: {},
      headers: { traceparent, tracestate: 'a=1' },
    })
    expect(response.status).toBe(202)
    const spans = await collector.until(caller.traceId, isWhole)
    const run = only(spans, 'run')
    expect(run.parentId).toBe(only(spans, 'POST /hooks/:workflowId/:path').spanId)
    expect(only(spans, 'NO_OP').parentId).toBe(run.spanId)
    const [called] = target.calls.filter((call) => call.traceparent?.includes(caller.traceId))
    expect(called!.tracestate).toBe('a=1')
  })
})

describe('the caller decides', () => {
  test('if it does not sample the trace, no span is sent, and outgoing calls carry the same flag', async () => {
    const caller = randomTrace('00')
    const { executionId } = await executeTraced(await host.create(graph()), caller.traceparent)
    await host.ended(executionId)
    const calls = target.calls.filter((call) => call.traceparent?.includes(caller.traceId))
    expect(calls.length).toBe(3)
    for (const call of calls) expect(call.traceparent).toMatch(/-00$/)
    // Once this span has arrived, all spans that ended before it have been sent too.
    const later = randomTrace()
    await host.request('/api/auth/me', { headers: { traceparent: later.traceparent } })
    await collector.until(later.traceId, (spans) => spans.length > 0)
    expect(collector.spans.filter((span) => span.traceId === caller.traceId)).toEqual([])
  })

  test.each([
    'nonsense',
    `00-${'0'.repeat(32)}-${'1'.repeat(16)}-01`,
    `ff-${'1'.repeat(32)}-${'1'.repeat(16)}-01`,
  ])('a request with an invalid traceparent starts a new trace: %s', async (traceparent) => {
    const response = await host.request('/api/nothing-here', { headers: { traceparent } })
    const [, traceId, spanId] = response.headers.get('traceresponse')!.split('-')
    expect(traceparent).not.toContain(traceId)
    const [span] = await collector.until(traceId!, (spans) => spans.length > 0)
    expect(span).toMatchObject({ spanId, parentId: '', name: 'GET none' })
  })

  test('a traceparent header that a node sets itself is sent unchanged', async () => {
    const own = randomTrace().traceparent
    const caller = randomTrace()
    const id = await host.create({
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
        {
          id: 'call',
          type: 'HTTP_REQUEST',
          config: { url: `${target.url}/ok?key=own`, headers: { Traceparent: own } },
        },
      ],
      edges: edges('start -> call'),
    })
    const { executionId } = await executeTraced(id, caller.traceparent, 'vendor=opaque')
    expect((await host.ended(executionId)).status).toBe('SUCCESS')
    // The caller's tracestate belongs to another traceparent.
    expect(target.calls.filter((call) => call.traceparent === own)).toMatchObject([{ tracestate: undefined }])
  })

  test('the tracestate goes with the trace: to each outgoing call, also of sub-workflows and reruns', async () => {
    const call = (key: string) => ({
      id: 'call',
      type: 'HTTP_REQUEST',
      config: { url: `${target.url}/ok?key=${key}` },
    })
    const child = await host.create({
      nodes: [{ id: 'sub', type: 'SUB_WORKFLOW_TRIGGER', config: {} }, call('child')],
      edges: edges('sub -> call'),
    })
    const parent = await host.create({
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
        call('parent'),
        { id: 'child', type: 'SUB_WORKFLOW', config: { workflowId: child } },
        { id: 'shown', type: 'SET', config: { values: { all: '{{ $execution }}' } } },
      ],
      edges: edges('start -> call', 'call -> child', 'child -> shown'),
    })
    const caller = randomTrace()
    const state = 'congo=t61rcWkgMzE,rojo=00f067aa0ba902b7'
    const { executionId } = await executeTraced(parent, caller.traceparent, state)
    const run = await host.ended(executionId)
    expect(run.status).toBe('SUCCESS')
    expect(JSON.stringify(run)).not.toContain('congo')
    const statesOf = ({ traceId }: { traceId: string }) =>
      target.calls.filter((one) => one.traceparent?.includes(traceId)).map(({ tracestate }) => tracestate)
    expect(statesOf(caller)).toEqual([state, state])

    const again = randomTrace()
    const rerun = await host.request(`/api/executions/${executionId}/rerun`, {
      method: 'POST',
      as: host.admin,
      json: {},
      headers: { traceparent: again.traceparent, tracestate: 'a=1' },
    })
    expect(rerun.status).toBe(202)
    await host.ended(((await rerun.json()) as { executionId: string }).executionId)
    expect(statesOf(again)).toEqual(['a=1', 'a=1'])
  })

  test.each([
    ['is not one', 'no state', undefined],
    ['has members that are not valid', 'a=1, B!=2,c=3', 'a=1,c=3'],
    ['is too long', `a=${'x'.repeat(600)}`, undefined],
    ['has too many members', Array.from({ length: 40 }, (_, n) => `k${n}=1`).join(), /^(k\d+=1,){31}k\d+=1$/],
  ])('of a tracestate that %s goes on what is valid', async (_, sent, kept) => {
    const caller = randomTrace()
    const { executionId } = await executeTraced(await host.create(graph()), caller.traceparent, sent)
    expect((await host.ended(executionId)).status).toBe('SUCCESS')
    const [first] = target.calls.filter((call) => call.traceparent?.includes(caller.traceId))
    if (kept instanceof RegExp) expect(first!.tracestate).toMatch(kept)
    else expect(first!.tracestate).toBe(kept)
    // Without a valid traceparent there is no trace that it could belong to.
    const lost = await executeTraced(await host.create(graph()), 'nonsense', 'a=1')
    const row = await host.store.db
      .selectFrom('executions')
      .select('tracestate')
      .where('id', '=', lost.executionId)
      .executeTakeFirst()
    expect(row).toEqual({ tracestate: null })
  })
})

test('the logs of a request name its trace and span; without spans of their own, the trace of the caller', {
  tags: 'long',
}, async () => {
  const caller = randomTrace()
  const read = async (traced: typeof tracing | undefined, headers: Record<string, string>) => {
    const lines: Record<string, unknown>[] = []
    const heard = pino({ level: 'debug' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
    const service = await startService({ log: heard, tracing: traced })
    try {
      const response = await service.request('/api/auth/me', { as: service.admin, headers })
      const requestId = response.headers.get('x-request-id')
      const line = lines.find((one) => one.requestId === requestId && one.msg === 'request')!
      return { traceId: line.traceId, spanId: line.spanId, answer: response.headers.get('traceresponse') }
    } finally {
      await service.stop()
    }
  }
  const own = await read(tracing, { traceparent: caller.traceparent })
  expect(own.traceId).toBe(caller.traceId)
  expect(own.answer).toBe(`00-${caller.traceId}-${own.spanId}-01`)
  const fresh = await read(tracing, {})
  expect(fresh.answer).toBe(`00-${fresh.traceId}-${fresh.spanId}-01`)
  const given = await read(undefined, { traceparent: caller.traceparent })
  expect(given).toEqual({ traceId: caller.traceId, spanId: undefined, answer: null })
  expect(await read(undefined, { traceparent: 'nonsense' })).toMatchObject({ traceId: undefined })
})

test('health checks are not traced, and expressions cannot see the trace of their execution', async () => {
  expect((await host.request('/healthz')).headers.has('traceresponse')).toBe(false)
  const caller = randomTrace()
  const { executionId } = await executeTraced(await host.create(graph()), caller.traceparent)
  const run = await host.ended(executionId)
  const shown = nodeOf(run, 'secret-free').outputData?.all as object
  expect(Object.keys(shown).sort()).toEqual([
    'id',
    'startedAt',
    'timezone',
    'trigger',
    'version',
    'workflowId',
    'workflowName',
  ])
})

test('the spans of a failed execution have the type of the error, but not its message', async () => {
  const caller = randomTrace()
  const id = await host.create({
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
      { id: 'stop', type: 'STOP_AND_ERROR', config: { message: 'swordfish' } },
    ],
    edges: edges('start -> stop'),
  })
  const { executionId } = await executeTraced(id, caller.traceparent)
  expect((await host.ended(executionId)).status).toBe('FAILED')
  const spans = await collector.until(caller.traceId, (all) => named(all, 'run').length > 0)
  expect(only(spans, 'run')).toMatchObject({ status: ERROR, attributes: { 'perdure.run.status': 'FAILED' } })
  expect(only(spans, 'STOP_AND_ERROR').attributes['error.type']).toBe('StopAndError')
  expect(JSON.stringify(spans)).not.toContain('swordfish')
})

test('a process takes the collector from its environment, and sends the remaining spans when it stops', async () => {
  const port = await findFree()
  const api = launch(['worker/api.ts'], {
    PORT: String(port),
    DATABASE_URL: host.database.url,
    TEMPORAL_ADDRESS: inject('temporalAddress'),
    PERDURE_KEYS: `k1:${host.store.keys.byId.get('k1')!.toString('base64')}`,
    OTEL_EXPORTER_OTLP_ENDPOINT: new URL(collector.url).origin,
    OTEL_SERVICE_NAME: 'front',
  })
  try {
    const at = `http://127.0.0.1:${port}`
    await api.until(async () => (await fetch(`${at}/healthz`)).ok)
    const caller = randomTrace()
    const response = await fetch(`${at}/api/workflows`, { headers: { traceparent: caller.traceparent } })
    expect(response.status).toBe(401)
    expect(response.headers.get('traceresponse')).toContain(caller.traceId)
    const text = await (await fetch(`${at}/metrics`)).text()
    expect(text).toContain('route="/api/workflows",status="401"')
    expect(text).not.toContain('perdure_worker_')
    api.kill('SIGTERM')
    expect(await api.ended).toBe(0)
    const spans = await collector.until(caller.traceId, (all) => all.length > 0)
    expect(spans).toMatchObject([{ name: 'GET /api/workflows', service: 'front', parentId: caller.spanId }])
  } finally {
    api.kill('SIGKILL')
    await api.ended
  }
})

describe('without a collector', () => {
  test('nothing is traced, no trace header is sent, and no traceparent is stored', async () => {
    const quiet = await startRunning()
    try {
      const before = collector.spans.length
      const caller = randomTrace()
      const response = await quiet.request(`/api/workflows/${await quiet.create(graph())}/execute`, {
        method: 'POST',
        as: quiet.admin,
        json: { teamId: quiet.teamId },
        headers: { traceparent: caller.traceparent },
      })
      const { executionId } = (await response.json()) as { executionId: string }
      expect((await quiet.ended(executionId)).status).toBe('SUCCESS')
      expect(response.headers.has('traceresponse')).toBe(false)
      const row = await quiet.store.db
        .selectFrom('executions')
        .select('traceparent')
        .where('id', '=', executionId)
        .executeTakeFirstOrThrow()
      expect(row.traceparent).toBe(null)
      expect(target.calls.at(-1)).toMatchObject({ path: '/flaky', traceparent: undefined })
      expect(collector.spans.length).toBe(before)
    } finally {
      await quiet.stop()
    }
  })

  test('a collector that cannot be reached does not delay the stop', async () => {
    const away = await startTracing({ ...options, url: 'http://127.0.0.1:1/v1/traces' }, log)
    away.begin('nobody hears', { kind: 'internal' }).end()
    const began = performance.now()
    await away.stop()
    expect(performance.now() - began).toBeLessThan(5_000)
  })

  test('a collector that refuses all batches causes a single warning', async () => {
    const said: string[] = []
    const loud = pino({ level: 'warn' }, { write: (line: string) => void said.push(line) })
    const refused = await startTracing({ ...options, url: `${target.url}/v1/traces` }, loud)
    const batches = () => target.calls.filter((call) => call.path === '/v1/traces' && call.answered).length
    for (const n of [1, 2]) {
      refused.begin('nobody takes it', { kind: 'internal' }).end()
      await target.until(() => batches() === n)
    }
    await refused.stop()
    expect(said.length).toBe(1)
    expect(said[0]).toContain('the collector did not take the spans')
  })
})
