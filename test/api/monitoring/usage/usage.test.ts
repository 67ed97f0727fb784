import { sql } from 'kysely'
import { expect, test } from 'vitest'
import type { ModelUsage } from '../../../../activities/models/model.ts'
import { nodeExecutionId } from '../../../../db/executions/records/projection.ts'
import { createRuns } from '../../../support/engine/runs.ts'
import { keep } from '../../../support/keep.ts'
import { answered, GPT_4O, LOST, openMeter, REFUSED } from '../../../support/monitoring/usage/calls.ts'
import { type Service, startService } from '../../../support/service.ts'

const service = await keep(startService({ rateLimits: false }))
const { db } = service.store
const DAY_MS = 86_400_000

type Team = Awaited<ReturnType<Service['otherTeam']>>

/** A team of its own, with its executions. */
async function openTeam() {
  const team = await service.otherTeam()
  const runs = createRuns({ store: service.store, teamId: team.teamId, user: team } as unknown as Service)
  const ask = async (path = '', query = '', as = team.cookie) => {
    const answer = await service.call('GET', `${pathOf(team)}${path}${query}`, as)
    return answer
  }
  return { ...team, runs, ask }
}

const pathOf = ({ teamId }: Pick<Team, 'teamId'>) => `/api/monitoring/teams/${teamId}/token-usage`

/** Makes a call of an execution, and moves it to a time. */
async function makeCall(
  team: { teamId: string },
  executionId: string,
  {
    usage = { input: 1_000, output: 100 },
    at,
    activityId = 'llm',
    ...called
  }: Partial<typeof GPT_4O> & { usage?: Partial<ModelUsage> | null; at?: string; activityId?: string } = {},
): Promise<void> {
  const row = await db
    .selectFrom('executions')
    .select('workflowId')
    .where('id', '=', executionId)
    .executeTakeFirstOrThrow()
  const meter = openMeter(service, { ...row, executionId, activityId, teamId: team.teamId })
  await (await meter.begin({ ...GPT_4O, ...called })).end(answered(usage))
  if (at === undefined) return
  await sql`update model_calls set created_at = ${at} where created_at =
    (select max(created_at) from model_calls where execution_id = ${executionId})
    and execution_id = ${executionId}`.execute(db)
}

const zeros = {
  inputTokens: 0,
  outputTokens: 0,
  cost: 0,
  cachedTokens: 0,
  reasoningTokens: 0,
  calls: 0,
  unpricedCalls: 0,
  executionCount: 0,
}

test('without calls there is nothing to pay, in the last 30 days', async () => {
  const team = await openTeam()
  const before = Date.now()
  const { status, body } = await team.ask()
  expect(status).toBe(200)
  expect(body).toEqual({
    totalInputTokens: 0,
    totalOutputTokens: 0,
    totalCost: 0,
    totalCachedTokens: 0,
    totalReasoningTokens: 0,
    calls: 0,
    unpricedCalls: 0,
    executionCount: 0,
    period: { from: expect.any(String), to: expect.any(String) },
  })
  const [from, to] = [Date.parse(body.period.from), Date.parse(body.period.to)]
  expect(to).toBeGreaterThanOrEqual(before)
  expect(Math.abs(to - from - 30 * DAY_MS)).toBeLessThan(1_000)
  const daily = (await team.ask('/daily')).body
  expect(daily.timezone).toBe('UTC')
  expect(daily.days).toHaveLength(31)
  expect(daily.days[0]).toEqual({ date: daily.period.from.slice(0, 10), ...zeros })
  expect(daily.days.at(-1)).toEqual({ date: daily.period.to.slice(0, 10), ...zeros })
  expect((await team.ask('/by-model')).body).toEqual({ models: [], period: expect.anything() })
})

test('totals sum what every call took, in full precision', async () => {
  const team = await openTeam()
  const [first, second] = [await team.runs.addRun(), await team.runs.addRun()]
  await makeCall(team, first, { usage: { input: 1_000, output: 100, cached: 500, reasoning: 60 } })
  // A token of this model costs 0.00000015 dollars: rounded to the cent, a thousand calls would cost nothing.
  for (let n = 0; n < 7; n++) await makeCall(team, second, { usage: { input: 1 }, model: 'gpt-4o-mini' })
  const { body } = await team.ask()
  expect(body).toMatchObject({
    totalInputTokens: 1_007,
    totalOutputTokens: 100,
    totalCost: 0.002_876_05,
    totalCachedTokens: 500,
    totalReasoningTokens: 60,
    calls: 8,
    unpricedCalls: 0,
    executionCount: 2,
  })
})

test('of models, those that cost most come first; an unknown one costs null, and is counted', async () => {
  const team = await openTeam()
  const [first, second] = [await team.runs.addRun(), await team.runs.addRun()]
  await makeCall(team, first, { model: 'gpt-4o-mini', usage: { input: 1_000_000 } })
  await makeCall(team, first, { usage: { input: 1_000_000 } })
  await makeCall(team, second, { usage: { input: 1_000_000 } })
  await makeCall(team, second, {
    model: 'mine',
    provider: 'OPENAI_COMPATIBLE',
    usage: { input: 5, output: 7 },
  })
  const { body } = await team.ask('/by-model')
  expect(body.models).toEqual([
    {
      ...zeros,
      model: 'gpt-4o',
      provider: 'OPENAI',
      inputTokens: 2_000_000,
      cost: 5,
      calls: 2,
      executionCount: 2,
    },
    {
      ...zeros,
      model: 'gpt-4o-mini',
      provider: 'OPENAI',
      inputTokens: 1_000_000,
      cost: 0.15,
      calls: 1,
      executionCount: 1,
    },
    {
      ...zeros,
      model: 'mine',
      provider: 'OPENAI_COMPATIBLE',
      inputTokens: 5,
      outputTokens: 7,
      cost: null,
      calls: 1,
      unpricedCalls: 1,
      executionCount: 1,
    },
  ])
  expect((await team.ask()).body).toMatchObject({
    totalCost: 5.15,
    calls: 4,
    unpricedCalls: 1,
    executionCount: 2,
  })
})

test('calls count from `from` on and before `to`, by when they began', async () => {
  const team = await openTeam()
  const run = await team.runs.addRun()
  for (const at of ['2026-03-01T00:00:00Z', '2026-03-01T23:59:59.999Z', '2026-03-02T00:00:00Z'])
    await makeCall(team, run, { at })
  const count = async (query: string) => (await team.ask('', query)).body.calls
  expect(await count('?from=2026-03-01&to=2026-03-02')).toBe(2)
  expect(await count('?from=2026-03-01T00:00:00.001Z&to=2026-03-02T00:00:00.001Z')).toBe(2)
  expect(await count('?from=2026-03-01')).toBe(3)
  expect(await count('?from=2026-03-02&to=2026-03-02')).toBe(0)
  expect(await count('')).toBe(0)
  const days = (await team.ask('/daily', '?from=2026-02-28T12:00:00Z&to=2026-03-03')).body.days
  expect(
    days.map((day: typeof zeros & { date: string }) => [day.date, day.calls, day.executionCount]),
  ).toEqual([
    ['2026-02-28', 0, 0],
    ['2026-03-01', 2, 1],
    ['2026-03-02', 1, 1],
  ])
  expect((await team.ask('/daily', '?from=2026-03-02&to=2026-03-02')).body.days).toEqual([])
})

test('days are those of a time zone, also when one has 23 or 25 hours', async () => {
  const team = await openTeam()
  const run = await team.runs.addRun()
  // On March 29 Berlin goes from UTC+1 to UTC+2, on October 25 back.
  for (const at of [
    '2026-03-28T22:59:59Z',
    '2026-03-28T23:00:00Z',
    '2026-03-29T21:59:59Z',
    '2026-03-29T22:00:00Z',
  ])
    await makeCall(team, run, { at })
  const list = async (query: string) =>
    (await team.ask('/daily', `${query}&timezone=Europe/Berlin`)).body.days.map(
      (day: typeof zeros & { date: string }) => [day.date, day.calls],
    )
  expect(await list('?from=2026-03-28&to=2026-03-30')).toEqual([
    ['2026-03-28', 1],
    ['2026-03-29', 2],
    ['2026-03-30', 1],
  ])
  for (const at of ['2026-10-24T22:00:00Z', '2026-10-25T22:59:59Z', '2026-10-25T23:00:00Z'])
    await makeCall(team, run, { at })
  expect(await list('?from=2026-10-24T22:00:00Z&to=2026-10-26')).toEqual([
    ['2026-10-25', 2],
    ['2026-10-26', 1],
  ])
})

test('a workflow has its own totals, also after it and its executions are deleted', async () => {
  const team = await openTeam()
  const [run, other] = [
    await team.runs.addRun(),
    await createRuns({ ...service, ...team, user: team } as never).addRun(),
  ]
  await makeCall(team, run)
  await makeCall(team, other)
  await makeCall(team, other)
  const workflowOf = async (id: string) =>
    (await db.selectFrom('executions').select('workflowId').where('id', '=', id).executeTakeFirstOrThrow())
      .workflowId
  const workflowId = await workflowOf(other)
  const ask = async (path: string) => (await team.ask(path, `?workflowId=${workflowId}`)).body
  expect((await ask('')).calls).toBe(2)
  const deleted = await service.call('DELETE', `/api/workflows/${workflowId}`, team.cookie)
  expect(deleted.status).toBe(200)
  expect(await db.selectFrom('executions').select('id').where('id', '=', other).execute()).toEqual([])
  expect(await ask('')).toMatchObject({ calls: 2, totalCost: 0.007, executionCount: 1 })
  expect((await ask('/by-model')).models).toMatchObject([{ model: 'gpt-4o', calls: 2 }])
  expect((await ask('/daily')).days.at(-1)).toMatchObject({ calls: 2 })
  expect((await team.ask()).body).toMatchObject({ calls: 3, executionCount: 2 })
})

test('a refused call costs nothing; a lost one is not priced, and neither is one whose worker was killed', async () => {
  const team = await openTeam()
  const run = await team.runs.addRun()
  await team.runs.setRun(run, { status: 'RUNNING' })
  const { workflowId } = await db
    .selectFrom('executions')
    .select('workflowId')
    .where('id', '=', run)
    .executeTakeFirstOrThrow()
  const meter = openMeter(service, { executionId: run, workflowId, activityId: 'llm', teamId: team.teamId })
  await (await meter.begin(GPT_4O)).end(REFUSED)
  expect((await team.ask()).body).toMatchObject({ totalCost: 0, calls: 1, unpricedCalls: 0 })
  await (await meter.begin(GPT_4O)).end(LOST)
  // The one that cost nothing says nothing of the one that did.
  expect((await team.ask()).body).toMatchObject({ totalCost: null, calls: 2, unpricedCalls: 1 })
  const open = await meter.begin(GPT_4O)
  expect((await team.ask()).body).toMatchObject({ calls: 3, unpricedCalls: 1 })
  await team.runs.setRun(run, { status: 'CANCELLED' })
  expect((await team.ask()).body).toMatchObject({ calls: 3, unpricedCalls: 2, totalCost: null })
  expect((await team.ask('/by-model')).body.models).toMatchObject([{ cost: null, unpricedCalls: 2 }])
  expect((await team.ask('/daily')).body.days.at(-1)).toMatchObject({ cost: null, unpricedCalls: 2 })
  await open.end(answered({ input: 1_000_000 }))
  expect((await team.ask()).body).toMatchObject({ totalCost: 2.5, calls: 3, unpricedCalls: 1 })
})

test('an execution and each record of it show what their calls took, an agent what its steps did', async () => {
  const team = await openTeam()
  const run = await team.runs.addRun()
  for (const node of ['agent', 'plain', 'llm']) await team.runs.setNode(run, node, 'SUCCESS')
  const inLoop = {
    executionId: run,
    nodeName: 'llm',
    nodeType: 'LLM',
    status: 'SUCCESS',
    startedAt: new Date(),
  }
  await db
    .insertInto('nodeExecutions')
    .values({ ...inLoop, id: nodeExecutionId(run, 'llm', '3'), nodeId: 'llm', iteration: '3', settled: true })
    .execute()
  const read = async (path = '') =>
    (await service.call('GET', `/api/executions/${run}${path}`, team.cookie)).body
  const before = await read()
  expect(before.usage).toBeNull()
  expect(before.nodeExecutions.some((node: object) => 'usage' in node)).toBe(false)

  await makeCall(team, run, {
    activityId: 'agent!1',
    usage: { input: 1_000, output: 100, cached: 200, reasoning: 30 },
  })
  await makeCall(team, run, { activityId: 'agent!3', usage: { input: 2_000, output: 200 } })
  await makeCall(team, run, { activityId: 'llm#3', model: 'mine', usage: { input: 5 } })
  const usageOf = (body: { nodeExecutions: Record<string, unknown>[] }) =>
    Object.fromEntries(
      body.nodeExecutions.map((node) => [`${node.nodeId}#${node.iteration ?? ''}`, node.usage]),
    )
  const whole = {
    inputTokens: 3_000,
    outputTokens: 300,
    cachedTokens: 200,
    reasoningTokens: 30,
    cost: 0.01025,
    calls: 2,
    unpricedCalls: 0,
  }
  const own = { ...zeros, inputTokens: 5, cost: null, calls: 1, unpricedCalls: 1, executionCount: undefined }
  const after = await read()
  expect(after.usage).toEqual({ ...whole, inputTokens: 3_005, calls: 3, unpricedCalls: 1 })
  expect(usageOf(after)).toEqual({ 'agent#': whole, 'plain#': undefined, 'llm#': undefined, 'llm#3': own })
  const { content } = await read('/nodes?nodeId=agent')
  expect(content.map(({ usage }: { usage: unknown }) => usage)).toEqual([whole])
})

test('who may read a team may read its usage, and nobody else', async () => {
  const team = await openTeam()
  const viewer = await service.token('VIEWER', team.cookie, team.teamId)
  const stranger = await service.otherTeam()
  for (const path of ['', '/daily', '/by-model']) {
    expect((await team.ask(path, '', viewer)).status).toBe(200)
    expect((await team.ask(path, '', stranger.cookie)).status).toBe(403)
    const nobody = await service.call('GET', pathOf(team) + path)
    expect(nobody.status).toBe(401)
    const none = await service.call('GET', pathOf({ teamId: crypto.randomUUID() }) + path, team.cookie)
    expect(none.status).toBe(404)
  }
})

test('all faults of a query are named at once', async () => {
  const team = await openTeam()
  const faults = async (path: string, query: string) => {
    const { status, body } = await team.ask(path, query)
    expect(status).toBe(400)
    return body.errors.map(({ path }: { path: string }) => path)
  }
  for (const path of ['', '/daily', '/by-model']) {
    expect(await faults(path, '?from=yesterday&to=2026-02-30&workflowId=7')).toEqual([
      'from',
      'to',
      'workflowId',
    ])
    expect(await faults(path, '?from=2026-02-02&to=2026-02-01')).toEqual(['from'])
    // By default it would begin after its end.
    expect(await faults(path, '?to=2020-01-01')).toEqual(['to'])
    expect(await faults(path, '?from=2190-01-01')).toEqual(['from'])
    expect((await team.ask(path, '?from=2190-01-01&to=2190-01-02')).status).toBe(200)
  }
  expect(await faults('/daily', '?timezone=Moon/Base&from=x')).toEqual(['from', 'timezone'])
  expect(await faults('/daily', '?from=1990-01-01')).toEqual(['from'])
  expect((await team.ask('', '?from=1990-01-01')).status).toBe(200)
})

test('after a team is deleted, what its calls took stays in the database', async () => {
  const team = await openTeam()
  await makeCall(team, await team.runs.addRun())
  const { status } = await service.call('DELETE', `/api/teams/${team.teamId}`, team.cookie)
  expect(status).toBe(200)
  const rows = await db.selectFrom('modelCalls').select('cost').where('teamId', '=', team.teamId).execute()
  expect(rows).toEqual([{ cost: '0.0035000000' }])
})

test('the first days of the calendar can be asked for in every time zone', async () => {
  const team = await openTeam()
  for (const [timezone, days] of [
    ['Asia/Tokyo', ['0001-01-01', '0001-01-02']],
    ['America/New_York', ['0000-12-31', '0001-01-01']],
  ]) {
    const { status, body } = await team.ask(
      '/daily',
      `?from=0001-01-01T00:00:00Z&to=0001-01-01T20:00:00Z&timezone=${timezone}`,
    )
    expect([status, body.days.map(({ date }: { date: string }) => date)]).toEqual([200, days])
  }
})
