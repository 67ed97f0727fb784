import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { sql } from 'kysely'
import { pino } from 'pino'
import { afterEach, expect, test } from 'vitest'
import { createOutsides } from '../../../../activities/egress/outside.ts'
import { createAskModel } from '../../../../activities/guardrails/model/ask.ts'
import { foldModelCalls } from '../../../../db/monitoring/usage/hours.ts'
import { keep } from '../../../support/keep.ts'
import { openMeter } from '../../../support/monitoring/usage/calls.ts'
import { LOCAL } from '../../../support/servers/loopback.ts'
import { startAnthropic } from '../../../support/servers/models/anthropic.ts'
import { startGoogle } from '../../../support/servers/models/google.ts'
import { verdict } from '../../../support/servers/models/judge.ts'
import { startOpenAi } from '../../../support/servers/models/openai.ts'
import type { VendorScript } from '../../../support/servers/models/vendor.ts'
import { type Body, startService } from '../../../support/service.ts'

const outside = createOutsides(LOCAL)
const service = await keep(startService({ outside, rateLimits: false }))
const { store, teamId, admin } = service
const deps = { store, outside, log: pino({ level: 'silent' }) }
const askModel = createAskModel(deps)

const open: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of open.splice(0)) await close()
})

async function setUp(type: string, data: object, more: object = {}) {
  const json = { teamId, name: crypto.randomUUID(), type, data }
  const { body } = await service.call('POST', '/api/credentials', admin, json)
  const prices = [{ model: '*', inputPerMillion: 2, outputPerMillion: 2 }]
  await service.call('PUT', `/api/teams/${teamId}/model-prices`, admin, { prices })
  const settings = { credentialId: body.id, model: 'judge', monthlyCostCap: 5, ...more }
  const set = await service.call('PUT', `/api/guardrails/settings?teamId=${teamId}`, admin, settings)
  expect(set.status, set.text).toBe(200)
}

const compatible = async (script: VendorScript, more: object = {}) => {
  const server = await startOpenAi(script)
  open.push(server.stop)
  await setUp('OPENAI_COMPATIBLE', { baseUrl: server.url, apiKey: 'a-long-secret-key' }, more)
  return server
}

const readSpent = async (): Promise<number> =>
  (await service.call('GET', `/api/guardrails/settings?teamId=${teamId}`, admin)).body.spentThisMonth

const question = { team: teamId, purpose: 'rule', instruction: 'What is bad', text: 'bad' } as const

test('a team without settings is told so', async () => {
  expect(await askModel(question)).toEqual({ error: 'The team has set up no model for guardrails' })
})

test('a process that reaches nothing outside says so', async () => {
  await compatible((call) => verdict(call, true))
  expect(await createAskModel({ ...deps, outside: undefined })(question)).toEqual({
    error: 'This process asks no models',
  })
})

const VENDORS = {
  OPENAI: [startOpenAi, 'url', 'baseUrl'],
  ANTHROPIC: [startAnthropic, 'url', 'baseUrl'],
  GOOGLE_AI: [startGoogle, 'url', 'baseUrl'],
  AZURE_OPENAI: [startOpenAi, 'origin', 'endpoint'],
} as const

test.each(Object.entries(VENDORS))('%s judges by its own protocol', async (type, [start, from, key]) => {
  let code = ''
  const server = await start((call) => {
    code = /code is \\?"(\w+)\\?"/.exec(JSON.stringify(call.body))![1]!
    return { text: JSON.stringify({ code, flagged: true, confidence: 0.75 }) }
  })
  open.push(server.stop)
  await setUp(type, { [key]: server[from], apiKey: 'a-long-secret-key' })
  expect(await askModel(question)).toEqual({ flagged: true, confidence: 0.75 })
  expect(server.calls).toHaveLength(1)
})

test('an answer in a fence of Markdown is one', async () => {
  await compatible((call) => {
    const { text } = verdict(call, false, 0.5) as { text: string }
    return { text: `\`\`\`json\n${text}\n\`\`\`` }
  })
  expect(await askModel(question)).toEqual({ flagged: false, confidence: 0.5 })
})

test('an attempt that asks has the call in the usage of its execution, and the cap counts it too', async () => {
  await compatible((call) => verdict(call, true))
  const before = await readSpent()
  const executionId = crypto.randomUUID()
  const place = { executionId, workflowId: crypto.randomUUID(), activityId: 'guard' }
  const meter = openMeter(service, place)
  expect(await askModel({ ...question, meter })).toEqual({ flagged: true, confidence: 0.9 })
  const { rows } =
    await sql<Body>`select node_id, cost from model_calls where execution_id = ${executionId}`.execute(
      store.db,
    )
  expect(rows).toMatchObject([{ nodeId: 'guard' }])
  expect((await readSpent()) - before).toBeCloseTo(Number(rows[0].cost), 9)
})

test('who does not wait any more ends the call', async () => {
  const server = await compatible(() => new Promise(() => {}))
  const leaving = new AbortController()
  const said = askModel({ ...question, signal: leaving.signal })
  await server.until(1)
  leaving.abort()
  expect(await said).toEqual({ error: 'Nobody waits for the answer any more' })
  await server.calls[0]!.ended
})

test('the limit is kept, also by an answer that comes word by word without end', async () => {
  await compatible({ text: Array(1_000).fill('so '), paceMs: 20 })
  const began = performance.now()
  const said = await createAskModel({ ...deps, limitMs: 500 })(question)
  expect(said).toEqual({ error: 'The model did not answer within 0.5 s' })
  expect(performance.now() - began).toBeLessThan(5_000)
})

test('a process that is killed in the middle of a call leaves it in the usage, and what it can cost under the cap', async () => {
  const server = await compatible(() => new Promise(() => {}), { monthlyCostCap: 5 })
  await sql`delete from guardrail_spending`.execute(store.db)
  const program = fileURLToPath(new URL('./asker.ts', import.meta.url))
  const key = Buffer.from(store.keys.byId.get('k1')!).toString('hex')
  const child = spawn(process.execPath, [program, service.database.url, key, teamId], { stdio: 'inherit' })
  await server.until(1)
  child.kill('SIGKILL')
  await once(child, 'exit')
  const spent = await readSpent()
  expect(spent).toBeGreaterThan(0.002)
  const { rows } =
    await sql<Body>`select status from model_calls where team_id = ${teamId} and status = 'OPEN'`.execute(
      store.db,
    )
  expect(rows).toHaveLength(1)
  // Nobody knows what it cost, and that is what the totals say.
  const { body } = await service.call('GET', `/api/monitoring/teams/${teamId}/token-usage`, admin)
  expect(body.unpricedCalls).toBeGreaterThanOrEqual(1)
  // The cap holds for what it may have cost.
  const path = `/api/guardrails/settings?teamId=${teamId}`
  const { body: settings } = await service.call('GET', path, admin)
  await service.call('PUT', path, admin, { ...settings, monthlyCostCap: Number((spent + 0.001).toFixed(10)) })
  expect(await askModel(question)).toEqual({ error: 'The monthly cap for models of guardrails is reached' })
})

test('folded into hours, calls of guardrails are in the totals and count for no execution', async () => {
  await compatible((call) => verdict(call, true))
  const executionId = crypto.randomUUID()
  const place = { executionId, workflowId: crypto.randomUUID(), activityId: 'guard' }
  await askModel({ ...question, meter: openMeter(service, place) })
  await askModel(question)
  const read = async () => {
    const totals = await service.call('GET', `/api/monitoring/teams/${teamId}/token-usage`, admin)
    const models = await service.call('GET', `/api/monitoring/teams/${teamId}/token-usage/by-model`, admin)
    const { period: _, ...rest } = totals.body
    return { ...rest, models: models.body.models ?? models.body.content ?? models.body }
  }
  await sql`update model_calls set created_at = now() - interval '3 hours'`.execute(store.db)
  const before = await read()
  expect(before.calls).toBeGreaterThan(before.executionCount)
  expect(await foldModelCalls(store)).toBeGreaterThan(0)
  const strip = ({ models, ...rest }: Body) => rest
  expect(strip(await read())).toEqual(strip(before))
})
