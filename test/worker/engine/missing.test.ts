import { sql } from 'kysely'
import { pino } from 'pino'
import { beforeEach, expect, test } from 'vitest'
import { createMetrics } from '../../../activities/metrics.ts'
import { watchProcess } from '../../../worker/service/gauges.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { startRunning } from '../../support/running.ts'
import { until } from '../../support/until.ts'

const lines: { msg: string; level: number }[] = []
const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
const lost = { checks: 3, everyMs: 100, forMs: 200, many: 2 }
const metrics = createMetrics()
// The sweeper looks only when a test says so: two rounds at once would share the executions.
const host = await keep(startRunning({ lost, log, sweepEveryMs: 3_600_000 }))
const { store, engine } = host
const { db } = store
watchProcess(metrics, { store, pool: { totalCount: 0, idleCount: 0, waitingCount: 0 }, poolSize: 1 })

const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
const short = await host.create({ nodes: [start], edges: [] })

beforeEach(async () => {
  await sql`delete from executions`.execute(db)
  lines.length = 0
})

/** Records would keep the ids of their executions from being changed. */
const forgetRecords = () => sql`delete from node_executions`.execute(db)

/** An ended execution, which Temporal knows. */
async function addEnded(): Promise<string> {
  const id = await host.execute(short)
  await host.ended(id)
  return id
}

/** An execution that is RUNNING by its row, but whose run Temporal does not know. */
async function addMissing(): Promise<string> {
  const ended = await addEnded()
  const id = crypto.randomUUID()
  await forgetRecords()
  // Its last check lies ahead, so that only the test's own checks find it.
  await sql`update executions set id = ${id}, status = 'RUNNING', completed_at = null,
    checked_at = now() + interval '1 hour' where id = ${ended}`.execute(db)
  return id
}

/** Checks the executions `times` in a row, as often as the sweeper does in minutes. */
async function check(ids: string[], times: number): Promise<void> {
  for (let n = 0; n < times; n++) {
    await sql`update executions set checked_at = now() - interval '1 hour',
      missing_since = missing_since - interval '100 milliseconds' where id = any(${ids}::uuid[])`.execute(db)
    await engine.sweep()
  }
}

test('an execution whose run Temporal does not know is FAILED after several sightings, not after one', {
  tags: 'long',
}, async () => {
  await addEnded()
  const id = await addMissing()
  await check([id], 2)
  expect((await host.read(id)).status).toBe('RUNNING')
  expect(await metrics.registry.metrics()).toMatch(/^perdure_runs_missing 1$/m)
  await check([id], 3)
  expect(await host.read(id)).toMatchObject({
    status: 'FAILED',
    errorMessage: 'Temporal no longer knows this execution',
  })
  // Scrapes within a second share a reading.
  await expect
    .poll(() => metrics.registry.metrics(), { timeout: 20_000 })
    .toMatch(/^perdure_runs_missing 0$/m)
})

test('while many are missing at once none is FAILED, and only those are ended that somebody cancels', async () => {
  await addEnded()
  const ids = [await addMissing(), await addMissing(), await addMissing()]
  await check(ids, 6)
  for (const id of ids) expect((await host.read(id)).status).toBe('RUNNING')
  expect(lines.filter(({ msg }) => msg.includes('more than 2 at once'))).toHaveLength(1)
  await host.ask('POST', `/api/executions/${ids[0]}/cancel`)
  await check(ids, 1)
  expect((await host.read(ids[0]!)).status).toBe('CANCELLED')
  // Now there are no longer many: with an older one that Temporal knows, these are really lost.
  await check(ids, 1)
  for (const id of ids.slice(1)) expect((await host.read(id)).status).toBe('FAILED')
})

test('no execution is FAILED by a Temporal that does not know the older ones either', async () => {
  const older = await addEnded()
  await forgetRecords()
  await sql`update executions set id = ${crypto.randomUUID()} where id = ${older}`.execute(db)
  const id = await addMissing()
  await check([id], 6)
  expect((await host.read(id)).status).toBe('RUNNING')
  // Its run is known again once the service talks to the right Temporal.
  const right = await addEnded()
  await sql`delete from executions where id = ${right}`.execute(db)
  await forgetRecords()
  await sql`update executions set id = ${right}, run_position = 0, last_event_id = 0 where id = ${id}`.execute(
    db,
  )
  await check([right], 1)
  expect((await host.ended(right)).status).toBe('SUCCESS')
})

test('checks run at once; one that fails neither skips the others nor delays its own execution for long', async () => {
  const closed = await Promise.all(Array.from({ length: 20 }, addEnded))
  const bad = closed[10]!
  await forgetRecords()
  await sql`update executions set status = 'RUNNING', completed_at = null, run_position = 0, last_event_id = 0,
    checked_at = now() - interval '1 hour'`.execute(db)
  const { workflow } = engine.client
  const { getHandle } = workflow
  let inFlight = 0
  let most = 0
  workflow.getHandle = ((id: string, ...more: []) => {
    const handle = getHandle.call(workflow, id, ...more)
    const describe = async () => {
      most = Math.max(most, ++inFlight)
      try {
        if (id === bad) throw new Error('busy')
        return await handle.describe()
      } finally {
        inFlight--
      }
    }
    return { ...handle, describe }
  }) as typeof getHandle
  try {
    await engine.sweep()
    for (const id of closed) if (id !== bad) await host.ended(id)
  } finally {
    workflow.getHandle = getHandle
  }
  // They are asked for at once, but not without a limit.
  expect(most).toBeGreaterThan(4)
  expect(most).toBeLessThanOrEqual(16)
  const { rows } = await sql<{ wait: number }>`
    select extract(epoch from checked_at + interval '20 seconds' - now())::float8 as wait
    from executions where id = ${bad}`.execute(db)
  expect(rows[0]!.wait).toBeLessThan(11)
  await check([bad], 1)
  await host.ended(bad)
})

test('a run that only waits is asked about ever more rarely, up to every eleven minutes', async () => {
  const wait = { id: 'wait', type: 'WAIT', config: { durationMs: 3_600_000 } }
  const id = await host.execute(await host.create({ nodes: [start, wait], edges: edges('start -> wait') }))
  await host.until(id, ({ nodeExecutions }) => nodeExecutions.some(({ nodeId }) => nodeId === 'wait'))
  const waits: number[] = []
  const next = async () => {
    const { rows } = await sql<{ wait: number }>`
      select extract(epoch from checked_at + interval '20 seconds' - now())::float8 as wait
      from executions where id = ${id}`.execute(db)
    return rows[0]!.wait
  }
  await until(
    async () => {
      await check([id], 1)
      return next()
    },
    { holds: (seconds) => seconds > 30 },
  )
  for (let n = 0; n < 6; n++) {
    waits.push(Math.round((await next()) / 20))
    await check([id], 1)
  }
  expect(waits).toEqual([2, 4, 8, 16, 32, 32])
  await host.ask('POST', `/api/executions/${id}/cancel`)
  await host.ended(id)
})
