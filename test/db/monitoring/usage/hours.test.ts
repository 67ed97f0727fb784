import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { noteModelCallEnd } from '../../../../db/monitoring/usage/calls.ts'
import { foldModelCalls } from '../../../../db/monitoring/usage/hours.ts'
import { readNodeUsage } from '../../../../db/monitoring/usage/nodes.ts'
import {
  readDailyUsage,
  readModelUsage,
  readTokenUsage,
  readWorkflowUsage,
} from '../../../../db/monitoring/usage/totals.ts'
import { type Scope, serviceScope } from '../../../../db/scope.ts'
import { createRuns } from '../../../support/engine/runs.ts'
import { keep } from '../../../support/keep.ts'
import { explain, watchStore } from '../../../support/monitoring/usage/watched.ts'
import { startService } from '../../../support/service.ts'

const service = await keep(startService())
const { store } = service
const { db } = store
const HOUR_MS = 3_600_000

const scopeOf = (teamId: string, own: Scope['store'] = store) =>
  serviceScope(own, { kind: 'SYSTEM', id: null, name: 'test' }, [[teamId, 'VIEWER']])

type Call = {
  teamId: string
  run: string
  at: Date
  workflowId?: string
  node?: string
  activity?: string
  model?: string
  status?: string
  cost?: string | null
}

/** Adds calls as they are once they have ended. */
async function addCalls(calls: Call[]): Promise<string[]> {
  const ids = calls.map(() => crypto.randomUUID())
  const column = <T>(read: (call: Call, index: number) => T) => calls.map(read)
  await sql`insert into model_calls (execution_id, activity_id, attempt, caller, call, team_id, workflow_id, node_id,
      iteration, provider, model, status, input_tokens, output_tokens, cached_tokens, reasoning_tokens, cost, created_at)
    select run, activity, 1, caller, 1, team, workflow, node, '', 'OPENAI', model, status, 100, 10, 7, 3, cost, at
    from unnest(${column(({ run }) => run)}::uuid[], ${ids}::uuid[], ${column(({ teamId }) => teamId)}::uuid[],
      ${column(({ workflowId = service.teamId }) => workflowId)}::uuid[],
      ${column(({ node = 'llm' }) => node)}::text[], ${column(({ model = 'a' }) => model)}::text[],
      ${column(({ status = 'SUCCESS' }) => status)}::text[], ${column(({ cost = '0.0000000123' }) => cost)}::numeric[],
      ${column(({ at }) => at.toISOString())}::timestamptz[], ${column(({ activity = 'llm' }) => activity)}::text[])
      as c (run, caller, team, workflow, node, model, status, cost, at, activity)`.execute(db)
  return ids
}

const startOfHour = (hoursAgo: number) =>
  new Date(Math.floor(Date.now() / HOUR_MS) * HOUR_MS - hoursAgo * HOUR_MS)

const readFolded = async (teamId: string) => {
  const row = await db
    .selectFrom('modelCallFolds')
    .select('until')
    .where('teamId', '=', teamId)
    .executeTakeFirst()
  return row?.until
}

/** A generator of numbers below 1 that are the same in each try. */
function createRandom(seed: number) {
  let state = seed
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return state / 2_147_483_648
  }
}

test('folded hours give the same totals as the calls, whatever the span, the days and the workflow', async () => {
  const { teamId } = await service.otherTeam()
  const random = createRandom(14)
  const pick = <T>(values: T[]) => values[Math.floor(random() * values.length)]!
  const workflows = [crypto.randomUUID(), crypto.randomUUID()]
  const begin = startOfHour(100).getTime()
  const calls = Array.from({ length: 60 }, () => ({
    run: crypto.randomUUID(),
    workflowId: pick(workflows),
  })).flatMap((run) => {
    const from = begin + random() * 90 * HOUR_MS
    const length = pick([0, 0.2, 3, 40]) * HOUR_MS
    return Array.from({ length: Math.ceil(random() * 8) }, () => ({
      ...run,
      teamId,
      at: new Date(Math.min(from + random() * length, Date.now() - 1_000)),
      node: pick(['one', 'two', 'two$item']),
      model: pick(['a', 'a', 'b']),
      status: pick(['SUCCESS', 'SUCCESS', 'REFUSED', 'LOST', 'OPEN']),
      cost: pick(['0.0000000123', '1.5', '0', null]),
    }))
  })
  // On the hour, and just before it, of one execution each.
  for (const ms of [0, -1, 1])
    calls.push({ ...calls[0]!, run: crypto.randomUUID(), at: new Date(begin + 50 * HOUR_MS + ms) })
  await addCalls(calls)
  const scope = scopeOf(teamId)
  const spans = [
    { from: new Date(begin - HOUR_MS), to: undefined },
    { from: new Date(begin + 50 * HOUR_MS), to: new Date(begin + 51 * HOUR_MS) },
    { from: new Date(begin + 50 * HOUR_MS - 1), to: new Date(begin + 50 * HOUR_MS) },
    { from: new Date(begin + 50.5 * HOUR_MS), to: new Date(begin + 50.7 * HOUR_MS) },
    { from: new Date('0001-01-01T00:00:00Z'), to: undefined },
    ...Array.from({ length: 12 }, () => {
      const from = begin + random() * 90 * HOUR_MS
      return { from: new Date(from), to: new Date(from + random() * 60 * HOUR_MS) }
    }),
  ].flatMap((span) => [undefined, workflows[0]].map((workflowId) => ({ ...span, workflowId })))
  const readAll = async () => {
    const found: unknown[] = []
    for (const span of spans) {
      found.push(await readTokenUsage(scope, teamId, span), await readModelUsage(scope, teamId, span))
      found.push(await readWorkflowUsage(scope, teamId, span), await readNodeUsage(scope, teamId, span))
      if (span.from.getFullYear() < 2_000) continue
      for (const zone of ['UTC', 'Asia/Kathmandu', 'America/New_York'])
        found.push(await readDailyUsage(scope, teamId, span, zone))
    }
    return found
  }
  const unfolded = await readAll()
  expect(unfolded[0]).toMatchObject({ calls: calls.length, executions: 63 })
  expect(await foldModelCalls(store)).toBeGreaterThan(50)
  expect(await readFolded(teamId)).toBeInstanceOf(Date)
  expect(await readAll()).toEqual(unfolded)
  const nodes = unfolded[3] as { nodeId: string; calls: number }[]
  expect(nodes.reduce((sum, node) => sum + node.calls, 0)).toBe(calls.length)
  expect(new Set(nodes.map(({ nodeId }) => nodeId))).toEqual(new Set(['one', 'two']))
  // The days are rolled up, and a change takes back only those from its own on.
  const readRolled = async () => {
    const { rows } = await sql<{ rolled: Date; nodes: Date; until: Date; days: number }>`
      select days_until as rolled, nodes_until as nodes, until,
        (select count(distinct day)::int from model_call_days where team_id = ${teamId}) as days
      from model_call_folds where team_id = ${teamId}`.execute(db)
    return rows[0]!
  }
  const rolled = await readRolled()
  expect(rolled.nodes).toEqual(rolled.until)
  expect(rolled.rolled.getTime()).toBe(Math.floor(rolled.until.getTime() / (24 * HOUR_MS)) * 24 * HOUR_MS)
  expect(rolled.days).toBeGreaterThan(2)
  const late = {
    teamId,
    run: crypto.randomUUID(),
    at: new Date(begin + 40 * HOUR_MS),
    workflowId: workflows[0]!,
  }
  await addCalls([late])
  expect((await readRolled()).days).toBeLessThan(rolled.days)
  const changed = await readAll()
  expect(changed[0]).toMatchObject({ calls: calls.length + 1, executions: 64 })
  expect(await Promise.all([foldModelCalls(store), foldModelCalls(store)])).toContainEqual(expect.any(Number))
  expect(await readAll()).toEqual(changed)
  expect(await readRolled()).toEqual(rolled)
  // A second round has nothing to do.
  expect(await foldModelCalls(store)).toBe(0)
})

test('what changes in a folded hour counts at once, also while somebody folds', async () => {
  const { teamId } = await service.otherTeam()
  const run = crypto.randomUUID()
  const [first] = await addCalls([
    { teamId, run, at: startOfHour(5), status: 'LOST', cost: null },
    { teamId, run, at: startOfHour(4) },
    { teamId, run: crypto.randomUUID(), at: startOfHour(3) },
  ])
  const scope = scopeOf(teamId)
  const read = () => readTokenUsage(scope, teamId, { from: startOfHour(9), to: undefined })
  await foldModelCalls(store)
  expect(await readFolded(teamId)).toEqual(startOfHour(2))
  expect(await read()).toMatchObject({ calls: 3, executions: 2, unpricedCalls: 1 })

  const call = { executionId: run, activityId: 'llm', attempt: 1, caller: first! } as never
  const tokens = { input: 1, output: 2, cached: 0, cacheWrite: 0, reasoning: 0 }
  const end = { status: 'SUCCESS', tokens, cost: '0.0000000001', price: null, firstMs: 1, latencyMs: 1 }
  await noteModelCallEnd(store, call, 1, end)
  expect(await readFolded(teamId)).toEqual(startOfHour(5))
  const late = { calls: 3, executions: 2, unpricedCalls: 0, cost: 0.0000000247, inputTokens: 201 }
  expect(await read()).toMatchObject(late)
  await foldModelCalls(store)
  expect(await readFolded(teamId)).toEqual(startOfHour(2))
  expect(await read()).toMatchObject(late)

  // Somebody changes a call, and has not committed yet: whoever folds waits.
  await db.deleteFrom('modelCallFolds').where('teamId', '=', teamId).execute()
  await db.deleteFrom('modelCallHours').where('teamId', '=', teamId).execute()
  await db.deleteFrom('modelCallHourRuns').where('teamId', '=', teamId).execute()
  let folding: Promise<number> | undefined
  await db.transaction().execute(async (tx) => {
    await sql`update model_calls set cost = 7 where execution_id = ${run} and caller = ${first}`.execute(tx)
    folding = foldModelCalls(store)
    await expect
      .poll(async () => {
        const { rows } = await sql<{ waits: boolean }>`select exists (
          select from pg_locks where locktype = 'advisory' and not granted) as waits`.execute(tx)
        return rows[0]?.waits
      })
      .toBe(true)
  })
  expect(await folding).toBe(3)
  expect(await read()).toMatchObject({ ...late, cost: 7.0000000246 })
})

test('a call that may still be under way counts as unpriced once its execution has ended, also if it is folded', async () => {
  const team = await service.otherTeam()
  const runs = createRuns({ store, teamId: team.teamId, user: team } as never)
  const run = await runs.addRun()
  await runs.setRun(run, { status: 'RUNNING' })
  await addCalls([{ teamId: team.teamId, run, at: startOfHour(5), status: 'OPEN', cost: null }])
  await foldModelCalls(store)
  const scope = scopeOf(team.teamId)
  const query = { from: startOfHour(9), to: undefined }
  expect(await readTokenUsage(scope, team.teamId, query)).toMatchObject({
    calls: 1,
    unpricedCalls: 0,
    cost: 0,
  })
  await runs.setRun(run, { status: 'CANCELLED' })
  for (const usage of [
    await readTokenUsage(scope, team.teamId, query),
    (await readModelUsage(scope, team.teamId, query))[0],
    (await readDailyUsage(scope, team.teamId, query, 'UTC')).find(({ calls }) => calls > 0),
    (await readWorkflowUsage(scope, team.teamId, query))[0],
    { executions: 1, ...(await readNodeUsage(scope, team.teamId, query))[0] },
  ])
    expect(usage).toMatchObject({ calls: 1, executions: 1, unpricedCalls: 1, cost: null })
})

test("a judge's calls are of no execution, before and after their hours are folded; a node of its name is one", async () => {
  const { teamId } = await service.otherTeam()
  const judging = { teamId, run: crypto.randomUUID(), node: 'evaluation', activity: 'evaluation relevance' }
  const own = { teamId, run: crypto.randomUUID(), node: 'evaluation', activity: 'evaluation#0' }
  // Those of one evaluation, and of one execution, in two hours.
  await addCalls([judging, own].flatMap((call) => [5, 4].map((ago) => ({ ...call, at: startOfHour(ago) }))))
  const scope = scopeOf(teamId)
  const look = async () => {
    const query = { from: startOfHour(9), to: undefined }
    const later = { from: startOfHour(4), to: undefined }
    return [
      await readTokenUsage(scope, teamId, query),
      await readTokenUsage(scope, teamId, later),
      (await readModelUsage(scope, teamId, query))[0],
      (await readWorkflowUsage(scope, teamId, later))[0],
    ].map((usage) => [usage?.calls, usage?.executions])
  }
  const expected = [
    [4, 1],
    [2, 1],
    [4, 1],
    [2, 1],
  ]
  expect(await look()).toEqual(expected)
  await foldModelCalls(store)
  expect((await readFolded(teamId))!.getTime()).toBeGreaterThanOrEqual(startOfHour(3).getTime())
  expect(await look()).toEqual(expected)
})

type Plan = {
  Plans?: Plan[]
  'Relation Name'?: string
  'Actual Rows': number
  'Actual Loops': number
} & Record<'Shared Hit Blocks' | 'Shared Read Blocks', number>

test('totals read the folded hours, and of the calls only those of hours that are not', {
  tags: 'long',
}, async () => {
  const { teamId } = await service.otherTeam()
  const count = 30_000
  await addCalls(
    Array.from({ length: count }, (_, n) => ({
      teamId,
      run: `00000000-0000-4000-8000-${String(Math.floor(n / 5)).padStart(12, '0')}`,
      at: new Date(Date.now() - (n * 29 * 24 * HOUR_MS) / count),
      model: n % 2 ? 'a' : 'b',
    })),
  )
  await foldModelCalls(store)
  await sql`vacuum analyze model_calls, model_call_hours, model_call_hour_runs, model_call_days`.execute(db)
  const { store: watching, sent } = watchStore(store as Scope['store'])
  const scope = scopeOf(teamId, watching)
  const query = { from: new Date(Date.now() - 30 * 24 * HOUR_MS), to: undefined }
  const total = await readTokenUsage(scope, teamId, query)
  expect(total).toMatchObject({ calls: count, executions: count / 5, inputTokens: 100 * count })
  await readDailyUsage(scope, teamId, query, 'Europe/Berlin')
  await readModelUsage(scope, teamId, query)
  const statements = sent.filter(({ sql: text }) => text.includes('model_calls'))
  expect(statements).toHaveLength(3)
  for (const statement of statements) {
    const [[{ Plan: plan }]] = (await explain(
      service.store,
      statement,
      '(analyze, buffers, format json)',
    )) as [[{ Plan: Plan }]]
    const nodes: Plan[] = [plan]
    for (const { Plans = [] } of nodes) nodes.push(...Plans)
    const read = nodes.filter((node) => node['Relation Name'] === 'model_calls')
    const rows = read.reduce((sum, node) => sum + node['Actual Rows'] * node['Actual Loops'], 0)
    // Some of two hours, and for each of them its execution's calls before.
    expect(rows).toBeLessThan(1_000)
    // Read one by one the calls take 1,500 blocks.
    expect(plan['Shared Hit Blocks'] + plan['Shared Read Blocks']).toBeLessThan(900)
  }
})

test('a team that is deleted leaves its folded hours; they are read by nobody', async () => {
  const team = await service.otherTeam()
  await addCalls([{ teamId: team.teamId, run: crypto.randomUUID(), at: startOfHour(5) }])
  await foldModelCalls(store)
  expect((await service.call('DELETE', `/api/teams/${team.teamId}`, team.cookie)).status).toBe(200)
  const { status } = await service.call(
    'GET',
    `/api/monitoring/teams/${team.teamId}/token-usage`,
    team.cookie,
  )
  expect(status).toBe(404)
  const rows = await db
    .selectFrom('modelCallHours')
    .select('calls')
    .where('teamId', '=', team.teamId)
    .execute()
  expect(rows).toEqual([{ calls: 1 }])
})
