import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { createMetrics, labelFailure, type Metrics } from '../../../activities/metrics.ts'
import { openDatabase } from '../../../db/connection.ts'
import type { Engine } from '../../../worker/engine/engine.ts'
import { findFree } from '../../../worker/local/ports.ts'
import { watchProcess } from '../../../worker/service/gauges.ts'
import { FAILURE_TYPES } from '../../../workflows/nodes/failures.ts'
import { WORKER_LOST } from '../../../workflows/run/records.ts'
import { edges } from '../../support/engine/graphs.ts'
import { launch } from '../../support/engine/process.ts'
import { type Running, startRunning } from '../../support/running.ts'
import { startTarget, type Target } from '../../support/servers/target.ts'
import { type Service, startService } from '../../support/service.ts'

/** The values of a scrape by their series, `name{a="b",...}`, with the labels sorted. */
function readSamples(text: string): Map<string, number> {
  const samples = new Map<string, number>()
  for (const line of text.split('\n')) {
    const found = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line)
    if (!found) continue
    const labels = (found[2] ?? '').match(/\w+="(?:[^"\\]|\\.)*"/g) ?? []
    samples.set(`${found[1]}{${labels.sort().join(',')}}`, Number(found[3]))
  }
  return samples
}

const scrape = async (metrics: Metrics) => readSamples(await metrics.registry.metrics())
const UUID = /[\da-f]{8}-[\da-f]{4}-/

describe('over HTTP', () => {
  let service: Service
  let url: string
  beforeAll(async () => {
    service = await startService()
    url = await service.listen()
  })
  afterAll(() => service.stop())

  test('requests are counted by the pattern of their route, never by their path', async () => {
    for (let i = 0; i < 3; i++) {
      await service.request(`/api/executions/${crypto.randomUUID()}`, { as: service.admin })
      await service.request(`/no/${randomBytes(8).toString('hex')}`)
    }
    await service.request('/api/workflows', { as: service.admin })
    await service.request('/api/workflows')
    await service.request('/healthz', { method: 'HEAD' })
    await service.request(`/hooks/${crypto.randomUUID()}/some-path`, { method: 'POST', json: {} })
    await service.app.request('/healthz', { method: 'BREW' })
    const response = await fetch(`${url}/metrics`)
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/)
    const text = await response.text()
    const samples = readSamples(text)
    const count = (method: string, route: string, status: number) =>
      samples.get(
        `perdure_http_request_duration_seconds_count{method="${method}",route="${route}",status="${status}"}`,
      )
    expect(count('GET', '/api/executions/:id', 404)).toBe(3)
    expect(count('GET', 'none', 404)).toBe(3)
    expect(count('GET', '/api/workflows', 400)).toBe(1)
    expect(count('GET', '/api/workflows', 401)).toBe(1)
    expect(count('HEAD', '/healthz', 200)).toBe(1)
    expect(count('POST', '/hooks/:workflowId/:path', 404)).toBe(1)
    expect(count('OTHER', 'none', 405)).toBe(1)
    expect(text).not.toMatch(UUID)
    expect(text).not.toContain('some-path')
  })

  test('without METRICS_TOKEN only this machine may read the metrics, and not through a proxy', async () => {
    expect((await fetch(`${url}/metrics`)).status).toBe(200)
    for (const name of [
      'x-forwarded-for',
      'x-forwarded-host',
      'X-Forwarded-Proto',
      'forwarded',
      'x-real-ip',
      'via',
    ]) {
      const response = await fetch(`${url}/metrics`, { headers: { [name]: '203.0.113.7' } })
      expect([name, response.status]).toEqual([name, 403])
      expect(((await response.json()) as { message: string }).message).toContain('METRICS_TOKEN')
    }
    expect((await service.request('/metrics', { as: service.admin })).status).toBe(403)
    const incoming = { socket: { remoteAddress: '203.0.113.7' } }
    expect((await service.app.request('/metrics', {}, { incoming })).status).toBe(403)
  })

  test('with METRICS_TOKEN anybody who sends it may read the metrics, from anywhere', async () => {
    const metricsToken = randomBytes(24).toString('base64')
    const guarded = await startService({ metricsToken })
    try {
      const at = await guarded.listen()
      const ask = (authorization?: string) =>
        fetch(`${at}/metrics`, {
          headers: { 'x-forwarded-for': '203.0.113.7', ...(authorization ? { authorization } : {}) },
        })
      expect((await ask(`Bearer ${metricsToken}`)).status).toBe(200)
      for (const wrong of [undefined, 'Bearer', `Bearer ${metricsToken}x`, `Basic ${metricsToken}`]) {
        const response = await ask(wrong)
        expect([wrong, response.status]).toEqual([wrong, 401])
        expect(response.headers.get('www-authenticate')).toBe('Bearer')
      }
      expect((await fetch(`${at}/metrics`)).status).toBe(401)
      expect((await guarded.request('/metrics', { as: guarded.admin })).status).toBe(401)
    } finally {
      await guarded.stop()
    }
  })

  test('two applications in one process count separately', async () => {
    const [one, two] = [createMetrics(), createMetrics()]
    const other = await startService({ metrics: two })
    try {
      await other.request('/healthz')
      const key = 'perdure_http_request_duration_seconds_count{method="GET",route="/healthz",status="200"}'
      expect((await scrape(two)).get(key)).toBe(1)
      expect((await scrape(one)).get(key)).toBe(undefined)
    } finally {
      await other.stop()
    }
  })
})

describe('runs', () => {
  let target: Target
  let host: Running
  let other: Engine
  const first = createMetrics()
  const second = createMetrics()
  beforeAll(async () => {
    target = await startTarget()
    const lost = { checks: 1, everyMs: 0, forMs: 0, many: 10 }
    host = await startRunning({ metrics: first, lost })
    other = await host.addEngine({ metrics: second })
  })
  afterAll(async () => {
    await other.stop()
    await host.stop()
    await target.stop()
  })

  const sum = async (key: string) =>
    ((await scrape(first)).get(key) ?? 0) + ((await scrape(second)).get(key) ?? 0)
  const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }

  test('are counted once each, although two workers project every one', { tags: 'long' }, async () => {
    const good = await host.create({
      nodes: [start, { id: 'call', type: 'HTTP_REQUEST', config: { url: `${target.url}/ok` } }],
      edges: edges('start -> call'),
    })
    const bad = await host.create({
      nodes: [
        start,
        {
          id: 'flaky',
          type: 'HTTP_REQUEST',
          retry: { maxAttempts: 3, initialIntervalMs: 10 },
          config: { url: `${target.url}/flaky?key={{ $execution.id }}` },
        },
        { id: 'stop', type: 'STOP_AND_ERROR', config: { message: 'a word of the user' } },
      ],
      edges: edges('start -> flaky', 'flaky -> stop'),
    })
    const ids = await Promise.all(
      Array.from({ length: 20 }, (_, i) => host.execute(i % 4 === 0 ? bad : good)),
    )
    // Both workers project every run, several times, while it ends.
    const { engine } = host
    await Promise.all(
      ids.map(async (id) => {
        await Promise.all([engine.projector.refresh(id), other.projector.refresh(id)])
        await host.ended(id)
        await other.projector.refresh(id)
      }),
    )
    // The rows are committed a moment before their writer counts them.
    await expect.poll(() => sum('perdure_runs_started_total{trigger="MANUAL"}')).toBe(20)
    await expect.poll(() => sum('perdure_projection_lag_seconds_count{}')).toBe(20)
    expect(await sum('perdure_runs_ended_total{status="SUCCESS",trigger="MANUAL"}')).toBe(15)
    expect(await sum('perdure_runs_ended_total{status="FAILED",trigger="MANUAL"}')).toBe(5)
    expect(await sum('perdure_runs_ended_total{status="CANCELLED",trigger="MANUAL"}')).toBe(0)
    expect(await sum('perdure_run_duration_seconds_count{status="SUCCESS"}')).toBe(15)
    expect(await sum('perdure_node_errors_total{error_type="Http503",node_type="HTTP_REQUEST"}')).toBe(10)
    expect(await sum('perdure_node_errors_total{error_type="StopAndError",node_type="STOP_AND_ERROR"}')).toBe(
      5,
    )
    expect(await sum('perdure_node_duration_seconds_count{node_type="HTTP_REQUEST",outcome="SUCCESS"}')).toBe(
      20,
    )
    expect(
      await sum('perdure_node_duration_seconds_count{node_type="MANUAL_TRIGGER",outcome="SUCCESS"}'),
    ).toBe(20)
    // 15 calls in successful runs, and 3 attempts in each of 5 failed ones.
    expect(await sum('perdure_activity_schedule_to_start_seconds_count{}')).toBe(30)
    for (const metrics of [first, second]) {
      const text = await metrics.registry.metrics()
      expect(text).not.toMatch(UUID)
      expect(text).not.toContain('flaky')
      expect(text).not.toContain('word of the user')
    }
  })

  test('a cancelled run counts as CANCELLED; an execution cancelled while PENDING is in neither total', async () => {
    const id = await host.create({
      nodes: [start, { id: 'slow', type: 'HTTP_REQUEST', config: { url: `${target.url}/hang` } }],
      edges: edges('start -> slow'),
    })
    const before = await sum('perdure_runs_started_total{trigger="MANUAL"}')
    const run = await host.execute(id)
    await host.until(run, ({ nodeExecutions }) => nodeExecutions.some(({ nodeId }) => nodeId === 'slow'))
    await host.ask('POST', `/api/executions/${run}/cancel`)
    await host.ended(run)
    host.use(undefined)
    const waiting = await host.execute(id)
    await host.ask('POST', `/api/executions/${waiting}/cancel`)
    host.use(host.engine)
    expect((await host.read(waiting)).status).toBe('CANCELLED')
    expect(await sum('perdure_runs_started_total{trigger="MANUAL"}')).toBe(before + 1)
    await expect.poll(() => sum('perdure_runs_ended_total{status="CANCELLED",trigger="MANUAL"}')).toBe(1)
    // A heartbeat tells the attempt that it is cancelled.
    const cancelled = 'perdure_node_duration_seconds_count{node_type="HTTP_REQUEST",outcome="CANCELLED"}'
    await expect.poll(() => sum(cancelled)).toBe(1)
  })

  test('a run that Temporal has lost counts as FAILED, once', async () => {
    const id = await host.create({ nodes: [start], edges: [] })
    const run = await host.execute(id)
    await host.ended(run)
    const key = 'perdure_runs_ended_total{status="FAILED",trigger="MANUAL"}'
    const before = await sum(key)
    const lost = sql`update executions set status = 'RUNNING', id = ${crypto.randomUUID()}, run_position = 0,
      checked_at = now() - interval '1 hour' where id = ${run}`
    await host.store.db.deleteFrom('nodeExecutions').where('executionId', '=', run).execute()
    await lost.execute(host.store.db)
    await host.engine.sweep()
    await host.engine.sweep()
    expect(await sum(key)).toBe(before + 1)
  })

  test('a failed node is counted under the error type that its record shows', async () => {
    const id = await host.create({
      nodes: [start, { id: 'read', type: 'JSON', config: { operation: 'parse', value: 'no JSON' } }],
      edges: edges('start -> read'),
    })
    await host.ended(await host.execute(id))
    expect(await sum('perdure_node_errors_total{error_type="InvalidInput",node_type="JSON"}')).toBe(1)
  })
})

test('only known failure types become labels', () => {
  expect(FAILURE_TYPES.map(labelFailure)).toEqual(FAILURE_TYPES)
  expect(FAILURE_TYPES).toContain(WORKER_LOST.type)
  expect(['Http404', 'Http418', 'Http599', 'Http5', 'a word of the user'].map(labelFailure)).toEqual([
    'Http404',
    'Http4xx',
    'Http5xx',
    'Other',
    'Other',
  ])
})

test('the counts of runs begin at zero for every trigger', async () => {
  const samples = await scrape(createMetrics())
  for (const trigger of ['MANUAL', 'API', 'WEBHOOK', 'SCHEDULE', 'SUB_WORKFLOW', 'ERROR']) {
    expect([trigger, samples.get(`perdure_runs_started_total{trigger="${trigger}"}`)]).toEqual([trigger, 0])
    for (const status of ['SUCCESS', 'FAILED', 'CANCELLED']) {
      const key = `perdure_runs_ended_total{status="${status}",trigger="${trigger}"}`
      expect([key, samples.get(key)]).toEqual([key, 0])
    }
  }
})

describe('gauges', () => {
  test('show how many errands are due, by kind, and how long the oldest has waited', async () => {
    const service = await startService()
    const { db } = service.store
    const metrics = createMetrics()
    const pool = { totalCount: 7, idleCount: 4, waitingCount: 2 }
    watchProcess(metrics, { store: service.store, pool, poolSize: 9 })
    try {
      const { id } = (await (
        await service.request('/api/workflows', {
          method: 'POST',
          as: service.admin,
          json: {
            name: 'w',
            teamId: service.teamId,
            nodes: [{ id: 'start', type: 'MANUAL_TRIGGER', config: {} }],
            edges: [],
          },
        })
      ).json()) as { id: string }
      for (let i = 0; i < 3; i++) {
        const json = { teamId: service.teamId }
        await service.request(`/api/workflows/${id}/execute`, { method: 'POST', as: service.admin, json })
      }
      await sql`insert into mails (id, kind, user_id, email, created_at, settled_at)
        select gen_random_uuid(), 'CONFIRM', id, email, now() - interval '90 seconds', settled_at
        from users, (values (null::timestamptz), (now())) mail (settled_at)`.execute(db)
      await sql`update outbox set created_at = now() - interval '90 seconds'
        where id = (select min(id) from outbox)`.execute(db)
      await sql`insert into outbox (kind, subject_id, due_at) values
        ('CANCEL', gen_random_uuid(), now() + interval '60 seconds'), ('CANCEL', gen_random_uuid(), now())`.execute(
        db,
      )
      await sql`update executions set status = 'RUNNING', error_message = 'The execution cannot go on'
        where id = (select max(subject_id::text)::uuid from outbox where kind = 'START')`.execute(db)
      const samples = await scrape(metrics)
      expect(samples.get('perdure_errands_waiting{kind="START"}')).toBe(3)
      expect(samples.get('perdure_errands_waiting{kind="CANCEL"}')).toBe(1)
      expect(samples.get('perdure_errands_waiting{kind="DELETE"}')).toBe(0)
      for (const kind of ['SIGNAL', 'SCHEDULE', 'ERROR']) {
        expect([kind, samples.get(`perdure_errands_waiting{kind="${kind}"}`)]).toEqual([kind, 0])
        expect([kind, samples.get(`perdure_errands_oldest_seconds{kind="${kind}"}`)]).toEqual([kind, 0])
      }
      expect(samples.get('perdure_errands_oldest_seconds{kind="START"}')).toBeGreaterThanOrEqual(90)
      expect(samples.get('perdure_errands_oldest_seconds{kind="START"}')).toBeLessThan(150)
      expect(samples.get('perdure_runs_stuck{}')).toBe(1)
      expect(samples.get('perdure_audit_chains_broken{}')).toBe(0)
      expect(samples.get('perdure_mails_waiting{}')).toBe(1)
      expect(samples.get('perdure_mails_oldest_seconds{}')).toBeGreaterThanOrEqual(90)
      expect(samples.get('perdure_database_up{}')).toBe(1)
      expect(samples.get('perdure_database_connections{state="in_use"}')).toBe(3)
      expect(samples.get('perdure_database_connections{state="idle"}')).toBe(4)
      expect(samples.get('perdure_database_connections{state="waiting"}')).toBe(2)
      expect(samples.get('perdure_database_connections_max{}')).toBe(9)
    } finally {
      await service.stop()
    }
  })

  test('while PostgreSQL is unreachable a scrape still works, without the gauges that need it', async () => {
    const metrics = createMetrics({ ofProcess: true })
    const { db, pool, close } = openDatabase('postgres://postgres@127.0.0.1:1/nowhere', {
      max: 1,
      name: 'test',
    })
    watchProcess(metrics, { store: { db, keys: { current: 'k', byId: new Map() } }, pool, poolSize: 1 })
    const samples = await scrape(metrics)
    expect(samples.get('perdure_database_up{}')).toBe(0)
    const names = [...samples.keys()].join('\n')
    expect(names).not.toMatch(/perdure_errands|perdure_mails|perdure_runs_(stuck|missing)/)
    expect(names).toMatch(/nodejs_eventloop_lag_seconds/)
    expect(names).toMatch(/process_resident_memory_bytes/)
    await close()
  })
})

test('a process that is only a worker serves metrics on its own port', { tags: 'long' }, async () => {
  const service = await startService()
  const port = await findFree()
  const key = service.store.keys.byId.get('k1')!
  const worker = launch(['worker/worker.ts'], {
    DATABASE_URL: service.database.url,
    TEMPORAL_ADDRESS: inject('temporalAddress'),
    PERDURE_KEYS: `k1:${key.toString('base64')}`,
    TASK_QUEUE: `test-${randomBytes(4).toString('hex')}`,
    WORKER_METRICS_PORT: String(port),
  })
  try {
    const at = `http://127.0.0.1:${port}`
    await worker.until(async () => (await fetch(`${at}/readyz`)).ok)
    const response = await fetch(`${at}/metrics`)
    expect(response.status).toBe(200)
    const samples = readSamples(await response.text())
    expect(samples.get('perdure_worker_polling{}')).toBe(1)
    expect(samples.get('perdure_worker_slots{kind="node"}')).toBeGreaterThan(0)
    for (const kind of ['node', 'model']) {
      expect(samples.get(`perdure_worker_slots_used{kind="${kind}"}`)).toBe(0)
      expect(samples.get(`perdure_tasks_waiting{kind="${kind}"}`)).toBe(0)
      expect(samples.get(`perdure_tasks_oldest_seconds{kind="${kind}"}`)).toBe(0)
    }
    expect(samples.get('perdure_worker_slots{kind="model"}')).toBe(200)
    expect(samples.get('perdure_budget_bytes{state="limit"}')).toBeGreaterThanOrEqual(32 * 1_048_576)
    expect(samples.get('perdure_budget_bytes{state="held"}')).toBe(0)
    expect(samples.get('perdure_budget_waiting{}')).toBe(0)
    expect(samples.get('perdure_database_up{}')).toBe(1)
    expect(samples.get('perdure_runs_ended_total{status="SUCCESS",trigger="API"}')).toBe(0)
    expect(samples.get('process_cpu_seconds_total{}')).toBeGreaterThan(0)
    expect((await fetch(`${at}/healthz`)).status).toBe(200)
    expect((await fetch(`${at}/api/workflows`)).status).toBe(404)
    worker.kill('SIGTERM')
    expect(await worker.ended).toBe(0)
  } finally {
    worker.kill('SIGKILL')
    await worker.ended
    await service.stop()
  }
})
