import { sql } from 'kysely'
import { pino } from 'pino'
import { afterEach, expect, test } from 'vitest'
import { createOutsides } from '../../../activities/egress/outside.ts'
import { claimEvaluations, MOST_A_DAY } from '../../../db/evaluation/claims.ts'
import { startJudging } from '../../../worker/service/evaluation/judging.ts'
import { keep } from '../../support/keep.ts'
import { LOCAL } from '../../support/servers/loopback.ts'
import type { VendorScript } from '../../support/servers/models/vendor.ts'
import { useVendors } from '../../support/servers/models/vendors.ts'
import { type Body, startService } from '../../support/service.ts'
import { until } from '../../support/until.ts'

const outside = createOutsides(LOCAL)
const service = await keep(startService({ outside, rateLimits: false }))
const { store, teamId, admin } = service
const vendors = useVendors()
const log = pino({ level: 'silent' })

const ends: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
  await sql`delete from evaluation_days`.execute(store.db)
  await sql`delete from evaluations where status = 'PENDING'`.execute(store.db)
})
const start = () => {
  const end = startJudging({ store, outside, log }, { everyMs: 20, restMs: 1 })
  ends.push(end)
  return end
}

async function createJudged(script: VendorScript, more: object = {}) {
  const nodes = [{ id: 'start', type: 'MANUAL_TRIGGER', config: {} }]
  const graph = { teamId, name: crypto.randomUUID(), nodes, edges: [] }
  const created = await service.call('POST', '/api/workflows', admin, graph)
  expect(created.status, created.text).toBe(201)
  const workflowId: string = created.body.id
  const { server, data } = await vendors.startVendor('OPENAI_COMPATIBLE', script)
  const credential = { teamId, name: crypto.randomUUID(), type: 'OPENAI_COMPATIBLE', data }
  const { id } = (await service.call('POST', '/api/credentials', admin, credential)).body
  const config = {
    ...{ evalEnabled: true, evalProvider: 'custom', evalModel: 'judge', evalCredentialId: id },
    ...{ evalSamplingRate: 100, ...more },
  }
  const path = `/api/monitoring/workflow/${workflowId}`
  const set = await service.call('PUT', `${path}/eval-config`, admin, config)
  expect(set.status, set.text).toBe(200)
  return { workflowId, path, server }
}

/** A run that has ended, as the projection ends it. */
async function endRun(
  workflowId: string,
  { trigger = 'API', kept = true, id = crypto.randomUUID() as string } = {},
) {
  await sql`insert into executions (id, team_id, workflow_id, workflow_name, workflow_version, node_count, trigger,
      trigger_node_id, input_data, input_bytes, started_by_kind, status, started_at, keep_inputs, keep_outputs)
    values (${id}, ${teamId}, ${workflowId}, 'Judged', 1, 1, ${trigger}, 'start', '{"mail": "ada@example.com", "about": "the invoice"}', 50,
      'USER', 'RUNNING', now(), ${kept}, ${kept})`.execute(store.db)
  await sql`insert into node_executions (id, execution_id, node_id, node_name, node_type, status, started_at,
      completed_at, output, settled)
    values (${crypto.randomUUID()}, ${id}, 'start', 'start', 'MANUAL_TRIGGER', 'SUCCESS', now(), now(),
      '{"v": {"mail": "ada@example.com", "said": "the answer"}}', true)`.execute(store.db)
  await sql`update executions set status = 'SUCCESS', completed_at = now() where id = ${id}`.execute(store.db)
  return id
}

const list = async (path: string, query = ''): Promise<Body[]> =>
  (await service.call('GET', `${path}/evaluations${query}`, admin)).body.content

const GOOD = { text: '{"explanation": "fine", "score": 4}' }
const BAD = { text: '{"explanation": "bad", "score": 1}' }

test('a run that succeeded is judged once for each dimension, masked, and its scores can be read', async () => {
  const { workflowId, path, server } = await createJudged(GOOD)
  const executionId = await endRun(workflowId)
  start()
  await until(async () => (await list(path))[0]?.status === 'SCORED')
  const [one] = await list(path)
  expect(one).toMatchObject({ executionId, composite: 4, failed: false, flagged: false, model: 'judge' })
  expect(one.scores.map(({ dimension, score }: Body) => [dimension, score])).toEqual([
    ['groundedness', 4],
    ['relevance', 4],
    ['safety', 4],
  ])
  expect(server.calls).toHaveLength(3)
  for (const { body } of server.calls) {
    const asked = JSON.stringify(body)
    expect(asked).toContain('the invoice')
    expect(asked).toContain('the answer')
    expect(asked).not.toContain('ada@example.com')
  }
  const read = await service.call('GET', `${path}/evaluations/${one.id}`, admin)
  expect(read.body).toEqual(one)
  const { body } = await service.call('GET', `${path}/evaluations/summary`, admin)
  expect(body).toMatchObject({ total: 1, scored: 1, passRate: 1, composite: 4 })
  expect(body.dimensions).toHaveLength(3)
})

test('what an evaluation cost is the sum of its calls, without rounding errors', async () => {
  const { workflowId, path } = await createJudged(GOOD)
  const prices = `/api/teams/${teamId}/model-prices`
  const price = { model: 'judge', inputPerMillion: 1, outputPerMillion: 2 }
  expect((await service.call('PUT', prices, admin, { prices: [price] })).status).toBe(200)
  try {
    await endRun(workflowId)
    start()
    const one = await until(async () => (await list(path)).find(({ status }) => status === 'SCORED'))
    expect([one.tokens, one.cost]).toEqual([360, 0.00042])
  } finally {
    await service.call('PUT', prices, admin, { prices: [] })
  }
})

test('a run below the threshold has failed, and one notice tells of it', async () => {
  const { workflowId, path } = await createJudged(BAD, { evalNotifyFailures: true })
  await endRun(workflowId)
  start()
  await until(async () => (await list(path, '?failed=true')).length === 1)
  const [one] = await list(path)
  const { rows } = await sql<Body>`select * from notices where subject_id = ${one.id}`.execute(store.db)
  expect(rows).toMatchObject([{ kind: 'EVALUATION', severity: 'HIGH', workflowId }])
})

test.each([
  ['has passed', GOOD, { evalNotifyFailures: true }, false],
  ['has failed, if nobody asked for it', BAD, {}, true],
  ['is just at the threshold', GOOD, { evalNotifyFailures: true, evalFailureThreshold: 4 }, false],
  ['is just below it', GOOD, { evalNotifyFailures: true, evalFailureThreshold: 4.01 }, true],
])('of a run that %s, its result says so', async (_, script, more, failed) => {
  const { workflowId, path } = await createJudged(script, more)
  await endRun(workflowId)
  start()
  await until(async () => (await list(path))[0]?.status === 'SCORED')
  const [one] = await list(path)
  expect(one.failed).toBe(failed)
  const { rows } = await sql`select id from notices where subject_id = ${one.id}`.execute(store.db)
  expect(rows).toHaveLength(failed && 'evalNotifyFailures' in more ? 1 : 0)
})

test('no more runs of a team are judged on a day than it may have', async () => {
  const { workflowId, path, server } = await createJudged(GOOD)
  await sql`insert into evaluation_days (team_id, day, begun)
    values (${teamId}, (now() at time zone 'UTC')::date, ${MOST_A_DAY - 1})`.execute(store.db)
  for (let n = 0; n < 3; n++) await endRun(workflowId)
  start()
  await until(async () => (await list(path, '?status=PENDING')).length === 0)
  expect(await list(path, '?status=SCORED')).toHaveLength(1)
  const skipped = await list(path, '?status=SKIPPED')
  expect(skipped.map(({ reason }) => reason)).toEqual(['DAILY_LIMIT', 'DAILY_LIMIT'])
  expect(server.calls).toHaveLength(3)
})

test('a dimension without a score is left out, and a run without any has failed to be judged', async () => {
  const { workflowId, path } = await createJudged(({ body }) =>
    JSON.stringify(body).includes('relevance') ? { text: 'no answer' } : GOOD,
  )
  await endRun(workflowId)
  const none = await createJudged({ text: 'no answer' })
  await endRun(none.workflowId)
  start()
  await until(async () => (await list(path))[0]?.status === 'SCORED')
  const [one] = await list(path)
  expect(one.scores.map(({ score }: Body) => score)).toEqual([4, null, 4])
  expect(one.scores[1].reason).toEqual(expect.any(String))
  expect(one).toMatchObject({ composite: 4, failed: false })
  await until(async () => (await list(none.path))[0]?.status === 'FAILED')
  const [failed] = await list(none.path)
  expect(failed).toMatchObject({ composite: null, failed: null, reason: failed.scores[0].reason })
  const { body } = await service.call('GET', `${none.path}/evaluations/summary`, admin)
  expect(body).toEqual({ total: 1, scored: 0, passRate: null, composite: null, dimensions: [], days: [] })
})

test('a process that is stopped gives back what it is at, and the next one asks for the rest only', async () => {
  let hangs = true
  const { workflowId, path, server } = await createJudged((_, number) =>
    number === 1 && hangs ? { ...GOOD, hangAfter: 0 } : GOOD,
  )
  await endRun(workflowId)
  const stop = start()
  await until(() => server.calls.length === 2)
  hangs = false
  await stop()
  expect(await list(path)).toMatchObject([{ status: 'PENDING', scores: [{ dimension: 'groundedness' }] }])
  start()
  await until(async () => (await list(path))[0]?.status === 'SCORED')
  expect(server.calls).toHaveLength(4)
  const { rows } = await sql<Body>`select begun from evaluation_days`.execute(store.db)
  expect(rows).toEqual([{ begun: 1 }])
})

test('a config that is switched off in the meantime judges nothing more', async () => {
  const { workflowId, path, server } = await createJudged(GOOD)
  await endRun(workflowId)
  await service.call('PUT', `${path}/eval-config`, admin, { evalEnabled: false })
  await endRun(workflowId)
  start()
  await until(async () => (await list(path))[0]?.status === 'SKIPPED')
  expect(await list(path)).toMatchObject([{ reason: 'DISABLED' }])
  expect(server.calls).toEqual([])
})

test('the list is paged and filtered, and stays in its workflow and team', async () => {
  const { workflowId, path } = await createJudged(GOOD)
  const kept = []
  for (let n = 0; n < 3; n++) kept.push(await endRun(workflowId))
  await endRun(workflowId, { kept: false })
  await sql`update evaluations e set created_at = now() - (4 - k.n) * interval '1 day'
    from unnest(${kept}::uuid[]) with ordinality as k (id, n) where e.execution_id = k.id`.execute(store.db)
  const { body: page } = await service.call('GET', `${path}/evaluations?size=3&page=1`, admin)
  expect(page).toMatchObject({ totalElements: 4, content: [{ executionId: kept[0] }] })
  const pending = await list(path, '?status=PENDING')
  expect(pending.map(({ executionId }) => executionId)).toEqual([...kept].reverse())
  const from = new Date(Date.now() - 2.5 * 86_400_000).toISOString()
  expect(await list(path, `?from=${from}`)).toHaveLength(3)
  expect(await list(path, `?to=${from}`)).toMatchObject([{ executionId: kept[0] }])
  const other = await createJudged(GOOD)
  const { id } = pending[0]!
  expect((await service.call('GET', `${other.path}/evaluations/${id}`, admin)).status).toBe(404)
  const { cookie } = await service.otherTeam()
  for (const end of ['', '/summary', `/${id}`])
    expect((await service.call('GET', `${path}/evaluations${end}`, cookie)).status).toBe(403)
})

test("what a judge says of somebody else's chat is for ADMINs only", async () => {
  const { workflowId, path } = await createJudged(GOOD)
  await endRun(workflowId, { trigger: 'CHAT' })
  start()
  await until(async () => (await list(path))[0]?.status === 'SCORED')
  const { cookie } = await service.signUp('BUILDER')
  const { body } = await service.call('GET', `${path}/evaluations`, cookie)
  expect(body.content[0].scores).toMatchObject([4, 4, 4].map((score) => ({ score, explanation: null })))
  expect((await list(path))[0].scores[0].explanation).toBe('fine')
})

test('a dimension that was judged before a process died is not asked again', async () => {
  const { workflowId, path, server } = await createJudged(GOOD)
  await endRun(workflowId)
  const [claim] = await claimEvaluations(store, { most: 4, teams: 4, busy: [] })
  await sql`insert into evaluation_scores (evaluation_id, dimension, score, input_tokens, output_tokens, cost)
    values (${claim!.id}, 'groundedness', 5, 1, 1, 0)`.execute(store.db)
  // Nobody else takes it while the claim lasts; then somebody does.
  expect(await claimEvaluations(store, { most: 4, teams: 4, busy: [] })).toEqual([])
  await sql`update evaluations set due_at = now() where id = ${claim!.id}`.execute(store.db)
  start()
  await until(async () => (await list(path))[0]?.status === 'SCORED')
  expect(server.calls).toHaveLength(2)
  expect((await list(path))[0].composite).toBe(4.33)
})

test('values that were not kept are not judged, and others than users start nothing', async () => {
  const { workflowId, path } = await createJudged(GOOD)
  await endRun(workflowId, { kept: false })
  await endRun(workflowId, { trigger: 'EVALUATION' })
  await endRun(workflowId, { trigger: 'PLAYBOOK' })
  expect(await list(path)).toMatchObject([{ status: 'SKIPPED', reason: 'NOT_KEPT' }])
})

test('the same runs are taken for the same rate, and all of them for a higher one', async () => {
  const ids = Array.from({ length: 60 }, (_, n) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`)
  const taken = async (rate: number) => {
    await sql`delete from executions where id = any(${ids}::uuid[])`.execute(store.db)
    const { workflowId, path } = await createJudged(GOOD, { evalSamplingRate: rate })
    for (const id of ids) await endRun(workflowId, { id })
    return (await list(path, '?size=100')).map(({ executionId }) => executionId).sort()
  }
  expect(await taken(0)).toEqual([])
  const half = await taken(50)
  expect(half.length).toBeGreaterThan(15)
  expect(half.length).toBeLessThan(45)
  expect(await taken(50)).toEqual(half)
  const fewer = await taken(20)
  expect(fewer.length).toBeGreaterThan(0)
  expect(fewer.length).toBeLessThan(half.length)
  expect(half).toEqual(expect.arrayContaining(fewer))
  expect(await taken(100)).toEqual(ids)
})
