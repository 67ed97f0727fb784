import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { noteModelCall } from '../../../db/monitoring/usage/calls.ts'
import { createRuns } from '../../support/engine/runs.ts'
import { keep } from '../../support/keep.ts'
import { answered, GPT_4O, LOST, openMeter, REFUSED } from '../../support/monitoring/usage/calls.ts'
import { startService } from '../../support/service.ts'
import { until } from '../../support/until.ts'

const service = await keep(startService())
const runs = createRuns(service)
const { db } = service.store

const listCalls = (executionId: string) =>
  db
    .selectFrom('modelCalls')
    .select(['activityId', 'attempt', 'call', 'nodeId', 'iteration', 'step', 'provider', 'model', 'status'])
    .select(['inputTokens', 'outputTokens', 'cachedTokens', 'cacheWriteTokens', 'reasoningTokens'])
    .select(['cost', 'price', 'firstMs', 'latencyMs', 'teamId', 'credentialId'])
    .where('executionId', '=', executionId)
    .orderBy('caller')
    .orderBy('call')
    .execute()

const newAttempt = async (activityId: string, attempt = 1) => {
  const executionId = await runs.addRun()
  return { executionId, workflowId: crypto.randomUUID(), activityId, attempt }
}

test('a call has a row before it is sent, and its tokens, cost and price when it has ended', async () => {
  const at = await newAttempt('agent#3.0!7', 2)
  const meter = openMeter(service, at)
  const call = await meter.begin(GPT_4O)
  const key = { activityId: 'agent#3.0!7', nodeId: 'agent', iteration: '3.0', step: 7, attempt: 2, call: 1 }
  const about = { ...key, provider: 'OPENAI', model: 'gpt-4o', teamId: service.teamId }
  expect(await listCalls(at.executionId)).toEqual([
    {
      ...about,
      credentialId: GPT_4O.credentialId,
      status: 'OPEN',
      inputTokens: null,
      outputTokens: null,
      cachedTokens: null,
      cacheWriteTokens: null,
      reasoningTokens: null,
      cost: null,
      price: null,
      firstMs: null,
      latencyMs: null,
    },
  ])
  expect(await call.end(answered({ input: 1_000, cached: 200, output: 50, reasoning: 20 }))).toBe(0.00275)
  expect(await listCalls(at.executionId)).toMatchObject([
    {
      ...about,
      status: 'SUCCESS',
      inputTokens: 1_000,
      outputTokens: 50,
      cachedTokens: 200,
      cacheWriteTokens: 0,
      reasoningTokens: 20,
      cost: '0.0027500000',
      price: { source: 'list', model: 'gpt-4o', input_mtok: 2.5 },
      firstMs: 12,
      latencyMs: 100,
    },
  ])
})

test('calls of one attempt have numbers, at once or one after the other', async () => {
  const at = await newAttempt('llm')
  const meter = openMeter(service, at)
  const calls = await Promise.all([meter.begin(GPT_4O), meter.begin(GPT_4O), meter.begin(GPT_4O)])
  expect(await Promise.all(calls.map((call, n) => call.end(answered({ input: n * 1_000_000 }))))).toEqual([
    0, 2.5, 5,
  ])
  const rows = await listCalls(at.executionId)
  expect(rows.map(({ call, step }) => [call, step])).toEqual([
    [1, null],
    [2, null],
    [3, null],
  ])
})

test('a refused call costs nothing; of a lost one, and of one without a report, nobody knows', async () => {
  const at = await newAttempt('llm')
  const meter = openMeter(service, at)
  expect(await (await meter.begin(GPT_4O)).end(REFUSED)).toBe(0)
  // Some vendors report the input first: a cut stream has cost more than that.
  const half = { ...LOST, usage: { input: 9, output: 0, cached: 0, cacheWrite: 0, reasoning: 0 } }
  expect(await (await meter.begin(GPT_4O)).end(half)).toBeNull()
  expect(await (await meter.begin(GPT_4O)).end(answered(null))).toBeNull()
  const unknown = { ...GPT_4O, model: 'of tomorrow' }
  expect(await (await meter.begin(unknown)).end(answered({ input: 5, output: 1 }))).toBeNull()
  const rows = await listCalls(at.executionId)
  expect(rows.map(({ status, inputTokens, cost }) => [status, inputTokens, cost])).toEqual([
    ['REFUSED', 0, '0.0000000000'],
    ['LOST', null, null],
    ['SUCCESS', null, null],
    ['SUCCESS', 5, null],
  ])
})

test('what cannot be a number of tokens is no report', async () => {
  const at = await newAttempt('llm')
  const meter = openMeter(service, at)
  for (const input of [-1, 1.5, Number.NaN, 1e300, '7' as unknown as number])
    expect(await (await meter.begin(GPT_4O)).end(answered({ input }))).toBeNull()
  expect((await listCalls(at.executionId)).every(({ inputTokens }) => inputTokens === null)).toBe(true)
})

test('whatever a model is called, its call is noted', async () => {
  const at = await newAttempt('llm')
  const meter = openMeter(service, at)
  const model = `a\0b\ud800${'x'.repeat(500)}`
  const call = await meter.begin({ provider: 'OPENAI_COMPATIBLE', model, credentialId: 'not an id' })
  expect(await call.end(answered({ input: 1 }))).toBeNull()
  const [row] = await listCalls(at.executionId)
  expect(row).toMatchObject({ credentialId: null, status: 'SUCCESS' })
  expect(row!.model).toHaveLength(200)
})

test('the next attempt takes what its predecessor left open for lost, unless that still hears of its end', async () => {
  const at = await newAttempt('llm')
  const first = openMeter(service, at)
  await (await first.begin(GPT_4O)).end(answered({ input: 1 }))
  const late = await first.begin(GPT_4O)
  const other = await openMeter(service, { ...at, activityId: 'llm#1' }).begin(GPT_4O)
  // After a pause an activity comes again as its first attempt.
  const again = await openMeter(service, at).begin(GPT_4O)
  const statuses = async () => (await listCalls(at.executionId)).map(({ status }) => status).sort()
  expect(await statuses()).toEqual(['LOST', 'OPEN', 'OPEN', 'SUCCESS'])
  await again.end(answered({ input: 1 }))
  await other.end(answered({ input: 1 }))
  expect(await late.end(answered({ input: 2_000_000 }))).toBe(5)
  expect(await statuses()).toEqual(['SUCCESS', 'SUCCESS', 'SUCCESS', 'SUCCESS'])
})

test('an attempt that is over before its call is sent sends nothing, and has nothing to pay', async () => {
  const at = await newAttempt('llm')
  const over = new AbortController()
  over.abort(new Error('cancelled'))
  await expect(openMeter(service, { ...at, signal: over.signal }).begin(GPT_4O)).rejects.toThrow('cancelled')
  expect(await listCalls(at.executionId)).toMatchObject([{ status: 'REFUSED', cost: '0.0000000000' }])
})

/** Ends the connection of whoever waits for the table's lock, as an outage of PostgreSQL does, once it waits. */
async function breakOff(): Promise<void> {
  await until(async () => {
    const { rows } = await sql`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like '%model_calls%'`.execute(
      db,
    )
    return rows.length > 0
  })
}

test('a call that cannot be noted is not sent: the meter waits while PostgreSQL is away', async () => {
  const at = await newAttempt('llm')
  const meter = openMeter(service, at)
  const locked = async <T>(work: () => Promise<T>): Promise<T> => {
    const tx = await db.startTransaction().execute()
    await sql`lock table model_calls in access exclusive mode`.execute(tx)
    let done = false
    const working = work().finally(() => {
      done = true
    })
    await breakOff()
    await breakOff()
    expect(done).toBe(false)
    await tx.rollback().execute()
    return working
  }
  const call = await locked(() => meter.begin(GPT_4O))
  expect((await listCalls(at.executionId)).map(({ status }) => status)).toEqual(['OPEN'])
  expect(await locked(() => call.end(answered({ input: 2_000_000 })))).toBe(5)
  expect(await listCalls(at.executionId)).toMatchObject([{ status: 'SUCCESS', cost: '5.0000000000' }])
})

test('a row that was written although nobody heard of it is not written twice', async () => {
  const { executionId, workflowId } = await newAttempt('llm')
  const place = { executionId, activityId: 'llm', attempt: 1, nodeId: 'llm', iteration: '', step: null }
  const by = { ...place, caller: crypto.randomUUID(), teamId: service.teamId, workflowId }
  for (let time = 0; time < 2; time++) await noteModelCall(service.store, by, 1, GPT_4O)
  expect(await listCalls(executionId)).toHaveLength(1)
})

test('its two statements find the row by its key, however many there are', async () => {
  const at = await newAttempt('llm')
  await sql`insert into model_calls (execution_id, activity_id, attempt, caller, call, team_id, workflow_id, node_id,
      iteration, provider, model, status)
    select gen_random_uuid(), 'llm', 1, gen_random_uuid(), 1, ${service.teamId}, gen_random_uuid(), 'llm', '', 'OPENAI',
      'gpt-4o', 'OPEN' from generate_series(1, 5000)`.execute(db)
  await sql`analyze model_calls`.execute(db)
  const { rows } = await sql<Record<string, string>>`
    explain update model_calls set status = 'LOST' where execution_id = ${at.executionId} and activity_id = 'llm'
      and status = 'OPEN' and caller <> ${crypto.randomUUID()}`.execute(db)
  const plan = rows.flatMap((row) => Object.values(row)).join('\n')
  expect(plan).toContain('model_calls_pkey')
  expect(plan).not.toContain('Seq Scan')
})
