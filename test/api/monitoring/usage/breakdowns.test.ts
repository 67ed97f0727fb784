import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { foldModelCalls } from '../../../../db/monitoring/usage/hours.ts'
import { createRuns } from '../../../support/engine/runs.ts'
import { keep } from '../../../support/keep.ts'
import { type Service, startService } from '../../../support/service.ts'

const service = await keep(startService({ rateLimits: false }))
const { db } = service.store
const NOBODY = '00000000-0000-0000-0000-000000000000'

const none = {
  inputTokens: 0,
  outputTokens: 0,
  cost: 0,
  cachedTokens: 0,
  reasoningTokens: 0,
  unpricedCalls: 0,
}

test('workflows and nodes have their own totals, those that cost most first', async () => {
  const team = await service.otherTeam()
  const runs = createRuns({ store: service.store, teamId: team.teamId, user: team } as unknown as Service)
  const workflowId = await runs.addWorkflow()
  const deleted = crypto.randomUUID()
  const addCalls = (workflow: string, nodeId: string, count: number, cost: number | null) =>
    sql`insert into model_calls (execution_id, activity_id, attempt, caller, call, team_id, workflow_id, node_id, iteration,
        provider, model, status, input_tokens, output_tokens, cost, created_at)
      select ${crypto.randomUUID()}, 'a', 1, gen_random_uuid(), 1, ${team.teamId}, ${workflow}, ${nodeId}, '', 'OPENAI', 'm',
        'SUCCESS', 100, 10, ${cost}::numeric, now() - n * interval '7 hours'
      from generate_series(1, ${count}::int) n`.execute(db)
  await addCalls(workflowId, 'write', 20, 0.5)
  await addCalls(workflowId, 'check', 10, 0.01)
  await addCalls(workflowId, 'check$item', 5, 0.01)
  await addCalls(deleted, 'write', 4, null)
  await addCalls(NOBODY, 'guardrails', 2, 1)
  const path = `/api/monitoring/teams/${team.teamId}/token-usage`
  const read = async (what: string, query = '') =>
    (await service.call('GET', `${path}${what}${query}`, team.cookie)).body
  const name = `w ${workflowId}`
  const mine = { ...none, workflowId, workflowName: name }
  const unknown = {
    ...none,
    workflowId: deleted,
    workflowName: null,
    inputTokens: 400,
    outputTokens: 40,
    cost: null,
  }
  const nobody = {
    ...none,
    workflowId: null,
    workflowName: null,
    inputTokens: 200,
    outputTokens: 20,
    cost: 2,
  }
  for (const isFolded of [false, true]) {
    if (isFolded) expect(await foldModelCalls(service.store)).toBeGreaterThan(0)
    expect((await read('/by-workflow')).workflows).toEqual([
      { ...mine, inputTokens: 3_500, outputTokens: 350, cost: 10.15, calls: 35, executionCount: 3 },
      { ...nobody, calls: 2, executionCount: 0 },
      { ...unknown, calls: 4, unpricedCalls: 4, executionCount: 1 },
    ])
    expect((await read('/by-node')).nodes).toEqual([
      { ...mine, nodeId: 'write', inputTokens: 2_000, outputTokens: 200, cost: 10, calls: 20 },
      { ...nobody, nodeId: 'guardrails', calls: 2 },
      { ...mine, nodeId: 'check', inputTokens: 1_500, outputTokens: 150, cost: 0.15, calls: 15 },
      { ...unknown, nodeId: 'write', calls: 4, unpricedCalls: 4 },
    ])
    const from = new Date(Date.now() - 36 * 3_600_000).toISOString()
    const own = `?workflowId=${workflowId}&from=${from}`
    expect((await read('/by-workflow', own)).workflows).toMatchObject([{ workflowId, calls: 15 }])
    expect((await read('/by-node', own)).nodes).toMatchObject([
      { nodeId: 'write', calls: 5 },
      { nodeId: 'check', calls: 10 },
    ])
  }
})

test('whoever may read a team may read them, and nobody else; the span is checked', async () => {
  const team = await service.otherTeam()
  const viewer = await service.token('VIEWER', team.cookie, team.teamId)
  for (const what of ['by-workflow', 'by-node']) {
    const path = `/api/monitoring/teams/${team.teamId}/token-usage/${what}`
    expect((await service.call('GET', path, viewer)).status).toBe(200)
    expect((await service.call('GET', path, service.admin)).status).toBe(403)
    expect((await service.call('GET', `${path}?from=2026-02-02&to=2026-02-01`, viewer)).status).toBe(400)
  }
})
