import { parse } from 'csv-parse/sync'
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { createRuns } from '../../../support/engine/runs.ts'
import { keep } from '../../../support/keep.ts'
import { answered, GPT_4O, LOST, openMeter, REFUSED } from '../../../support/monitoring/usage/calls.ts'
import { type Service, startService } from '../../../support/service.ts'

const service = await keep(startService({ rateLimits: false }))
const { db } = service.store

type Team = Awaited<ReturnType<Service['otherTeam']>>

async function openTeam() {
  const team = await service.otherTeam()
  const runs = createRuns({ store: service.store, teamId: team.teamId, user: team } as unknown as Service)
  return { ...team, runs }
}

const pathOf = ({ teamId }: Pick<Team, 'teamId'>, query = '') =>
  `/api/monitoring/teams/${teamId}/export${query}`

async function read(team: Team, query = '', as = team.cookie) {
  const answer = await service.request(pathOf(team, query), { as })
  expect(answer.status).toBe(200)
  return { headers: answer.headers, text: await answer.text() }
}

/** Adds calls of one execution, one a second back from now. */
async function addCalls(
  team: Team,
  count: number,
  { run = crypto.randomUUID(), node = 'llm', model = 'a' } = {},
) {
  await sql`insert into model_calls (execution_id, activity_id, attempt, caller, call, team_id, workflow_id, node_id,
      iteration, provider, model, status, input_tokens, output_tokens, cached_tokens, reasoning_tokens, cost, latency_ms,
      created_at)
    select ${run}, ${node}, 1, gen_random_uuid(), 1, ${team.teamId}, ${run}, ${node}, '', 'OPENAI', ${model}, 'SUCCESS',
      n, 10, 7, 3, 0.0000000123, 5, now() - n * interval '1 second'
    from generate_series(1, ${count}::int) n`.execute(db)
}

test('an export has every call, without its text, in the order in which they began', async () => {
  const team = await openTeam()
  const executionId = await team.runs.addRun()
  const { workflowId } = await db
    .selectFrom('executions')
    .select('workflowId')
    .where('id', '=', executionId)
    .executeTakeFirstOrThrow()
  const open = (activityId: string) =>
    openMeter(service, { executionId, workflowId, activityId, teamId: team.teamId })
  const usage = { input: 1_000, output: 100, cached: 500, cacheWrite: 4, reasoning: 60 }
  await (await open('llm').begin(GPT_4O)).end(answered(usage))
  await (await open('agent#3!2').begin({ ...GPT_4O, model: 'mine', provider: 'OPENAI_COMPATIBLE' })).end(
    REFUSED,
  )
  await (await open('llm#1').begin(GPT_4O)).end(LOST)
  await open('late').begin(GPT_4O)
  const begun = JSON.parse((await read(team)).text)
  expect(begun.map(({ status }: { status: string }) => status)).toEqual([
    'SUCCESS',
    'REFUSED',
    'LOST',
    'OPEN',
  ])
  await team.runs.setRun(executionId, { status: 'SUCCESS' })
  const { text, headers } = await read(team)
  expect(headers.get('content-type')).toBe('application/json')
  expect(headers.get('content-disposition')).toMatch(
    /^attachment; filename="token-usage-\d{4}-\d\d-\d\d\.json"$/,
  )
  const calls = JSON.parse(text)
  expect(calls[0]).toEqual({
    time: expect.stringMatching(/^\d{4}-.*Z$/),
    ...{ executionId, workflowId, nodeId: 'llm', iteration: null, step: null },
    ...{ provider: 'OPENAI', model: 'gpt-4o', status: 'SUCCESS' },
    ...{ inputTokens: 1_000, outputTokens: 100, cachedTokens: 500, cacheWriteTokens: 4, reasoningTokens: 60 },
    ...{ cost: expect.any(Number), firstMs: expect.any(Number), latencyMs: expect.any(Number) },
  })
  expect(calls[1]).toMatchObject({
    nodeId: 'agent',
    iteration: '3',
    step: 2,
    status: 'REFUSED',
    model: 'mine',
  })
  // Nobody knows what it took.
  expect(calls[2]).toMatchObject({ iteration: '1', status: 'LOST', cost: null, inputTokens: null })
  expect(calls[3]).toMatchObject({ nodeId: 'late', status: 'LOST', latencyMs: null })
  const total = await service.call('GET', `/api/monitoring/teams/${team.teamId}/token-usage`, team.cookie)
  expect(total.body).toMatchObject({ calls: 4, totalInputTokens: 1_000, totalCost: calls[0].cost })
})

test('another parser reads the CSV, and a spreadsheet finds no formula in it', async () => {
  const team = await openTeam()
  await addCalls(team, 1, { node: 'a', model: '=HYPERLINK("http://a.example"),x' })
  await addCalls(team, 1, { node: 'b', model: '@SUM(1)\r\n2' })
  await addCalls(team, 1, { node: 'c', model: 'write to ada.byron@example.com' })
  const { text, headers } = await read(team, '?format=csv')
  expect(headers.get('content-type')).toBe('text/csv; charset=utf-8')
  expect(headers.get('content-disposition')).toMatch(/\.csv"$/)
  const rows = parse<Record<string, string>>(text, { columns: true })
  expect(Object.keys(rows[0]!).slice(0, 4)).toEqual(['time', 'execution_id', 'workflow_id', 'node_id'])
  const models = new Map(rows.map((row) => [row.node_id, row.model]))
  expect(models.get('a')).toBe(`'=HYPERLINK("http://a.example"),x`)
  expect(models.get('b')).toBe("'@SUM(1)\r\n2")
  expect(models.get('c')).not.toContain('ada.byron')
  expect(rows[0]).toMatchObject({ status: 'SUCCESS', cost: '0.0000000123', iteration: '', latency_ms: '5' })
})

test('a span and a workflow choose the calls; both formats have the same', async () => {
  const team = await openTeam()
  const run = crypto.randomUUID()
  await addCalls(team, 1_300, { run })
  await addCalls(team, 5)
  const to = new Date(Date.now() - 100_000).toISOString()
  const from = new Date(Date.now() - 200_000).toISOString()
  const count = async (query: string) => JSON.parse((await read(team, query)).text).length
  expect(await count('')).toBe(1_305)
  expect(await count(`?workflowId=${run}`)).toBe(1_300)
  expect(await count(`?from=${from}&to=${to}`)).toBe(100)
  expect(await count(`?from=${to}&to=${to}`)).toBe(0)
  expect((await read(team, `?from=${to}&to=${to}`)).text).toBe('[]')
  const lines: string[][] = parse((await read(team, `?format=csv&workflowId=${run}`)).text, {})
  expect(lines).toHaveLength(1_301)
  const tokens = lines.slice(1).map((cells) => Number(cells[9]))
  expect(tokens).toEqual(Array.from({ length: 1_300 }, (_, n) => 1_300 - n))
  for (const query of ['?format=xml', `?from=${to}&to=${from}`, '?from=soon', '?workflowId=7'])
    expect((await service.request(pathOf(team, query), { as: team.cookie })).status, query).toBe(400)
})

test('calls outside of executions belong to none', async () => {
  const team = await openTeam()
  await addCalls(team, 1)
  await sql`update model_calls set workflow_id = '00000000-0000-0000-0000-000000000000', node_id = 'guardrails'
    where team_id = ${team.teamId}`.execute(db)
  const [call] = JSON.parse((await read(team)).text)
  expect(call).toMatchObject({ executionId: null, workflowId: null, nodeId: null, inputTokens: 1 })
})

test('each export has an audit entry; HEAD and refused requests have none', async () => {
  const team = await openTeam()
  const viewer = await service.token('VIEWER', team.cookie, team.teamId)
  const entries = () =>
    db
      .selectFrom('auditEntries')
      .select(['resourceType', 'details'])
      .where('teamId', '=', team.teamId)
      .where('action', '=', 'USAGE_EXPORTED')
      .execute()
  expect((await service.request(pathOf(team), { as: service.admin })).status).toBe(403)
  expect((await service.request(pathOf(team), {})).status).toBe(401)
  expect((await service.request(pathOf({ teamId: crypto.randomUUID() }), { as: team.cookie })).status).toBe(
    404,
  )
  const head = await service.request(pathOf(team), { method: 'HEAD', as: viewer })
  expect(head.status).toBe(200)
  expect(head.headers.get('content-disposition')).toMatch(/\.json"$/)
  expect(await entries()).toEqual([])
  expect(JSON.parse((await read(team, '?format=json', viewer)).text)).toEqual([])
  expect(await entries()).toEqual([
    {
      resourceType: 'USAGE',
      details: { format: 'json', from: expect.stringMatching(/Z$/), to: null, workflowId: null },
    },
  ])
})

test('a client that goes away ends the export, and the next one begins', async () => {
  const team = await openTeam()
  await addCalls(team, 20_000)
  const answer = await service.request(pathOf(team), { as: team.cookie })
  const reader = answer.body!.getReader()
  const { value } = await reader.read()
  expect(value!.length).toBeLessThanOrEqual(64 * 1024)
  await reader.cancel()
  // A team has one slot: it would wait for 30 s.
  expect(JSON.parse((await read(team)).text)).toHaveLength(20_000)
})
