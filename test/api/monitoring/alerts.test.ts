import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import type { Detector, DetectorVerdict } from '../../../activities/monitoring/alerts/detector.ts'
import { watchTeams } from '../../../activities/monitoring/alerts/watch.ts'
import { noteWindow } from '../../../db/monitoring/alerts/noting.ts'
import { arrangeWatches, claimWindow } from '../../../db/monitoring/alerts/watches.ts'
import { keep } from '../../support/keep.ts'
import { HOUR_MS, plantCalls, plantExecutions } from '../../support/monitoring/plant.ts'
import { type Body, startService } from '../../support/service.ts'

const service = await keep(startService({ rateLimits: false }))
const { store, call } = service
const { db } = store
const log = pino({ level: process.env.TEST_LOG ?? 'silent' })

/** The hour that is judged first, half a day ago, and a time of it. */
const HOUR = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - 14 * HOUR_MS
const at = (hours: number) => new Date(HOUR + hours * HOUR_MS)

/** A team that wants alerts, and a workflow of it. Other teams are not watched meanwhile. */
async function openTeam(flags: Record<string, boolean> = { anomalyDetectionEnabled: true }) {
  await db.deleteFrom('monitoringConfigs').execute()
  return addTeam(flags)
}

async function addTeam(flags: Record<string, boolean>) {
  const team = await service.otherTeam()
  await db
    .insertInto('monitoringConfigs')
    .values({ teamId: team.teamId, ...flags })
    .execute()
  const workflow = await call('POST', '/api/workflows', team.cookie, { teamId: team.teamId, name: 'watched' })
  const base = `/api/monitoring/teams/${team.teamId}/alerts`
  const list = async (query = ''): Promise<Body[]> =>
    (await call('GET', `${base}${query}`, team.cookie)).body.content
  const states = async (query = ''): Promise<Body> =>
    (await call('GET', `${base}/states?size=100${query}`, team.cookie)).body
  return { ...team, workflowId: workflow.body.id as string, base, list, states }
}

/** Evaluates what is due when `hours` after the first one are over. */
async function watch(hours: number, detect?: Detector): Promise<void> {
  const now = () => new Date(HOUR + hours * HOUR_MS + 61_000)
  const detectors = detect && [{ type: 'ANOMALY' as const, detect }]
  await watchTeams({ store, log, now, ...(detectors ? { detectors } : {}) }, new AbortController().signal)
}

const finding = (observed: number, severity: 'MEDIUM' | 'HIGH' = 'MEDIUM') => ({
  ...{ type: 'ANOMALY' as const, severity, observed, expected: 1, threshold: 2 },
  ...{ message: `${observed} is a lot`, sampleExecutionIds: [] },
})
const says =
  (verdict: Partial<DetectorVerdict> = {}): Detector =>
  async () => [{ metric: 'latency', workflowId: null, state: 'QUIET', ...verdict }]
const fires = (observed: number, severity?: 'MEDIUM' | 'HIGH') =>
  says({ state: 'FIRING', finding: finding(observed, severity) })

test('an hour in which far more executions fail than usual opens an alert, with samples, and tells of it once', async () => {
  const { teamId, workflowId, list, states } = await openTeam()
  const planted = { teamId, workflowId, each: 30 }
  await plantExecutions(db, { ...planted, from: at(-21 * 24), to: at(0), each: 4 })
  await plantExecutions(db, { ...planted, from: at(0), to: at(1), failed: 12 })
  await watch(1)
  const [alert, ...others] = await list()
  expect(others).toEqual([])
  expect(alert).toMatchObject({
    ...{ type: 'ANOMALY', severity: 'HIGH', workflowId, metric: 'error_rate', observed: 0.4, threshold: 0.1 },
    ...{ status: 'OPEN', window: { from: at(0).toISOString(), to: at(1).toISOString() } },
    ...{ acknowledgedBy: null, resolvedBy: null, resolvedAt: null },
  })
  expect(alert.expected).toBeLessThan(0.01)
  expect(alert.sampleExecutionIds).toHaveLength(5)
  const samples = await db
    .selectFrom('executions')
    .select('status')
    .where('id', 'in', alert.sampleExecutionIds)
    .execute()
  expect(samples.every(({ status }) => status === 'FAILED')).toBe(true)
  const notices = await db.selectFrom('notices').selectAll().where('teamId', '=', teamId).execute()
  expect(notices).toMatchObject([{ kind: 'ALERT', subjectId: alert.id, workflowId, alertType: 'ANOMALY' }])
  const { content, evaluatedTo } = await states()
  expect(evaluatedTo).toBe(at(1).toISOString())
  expect(content.find(({ metric }: Body) => metric === 'error_rate')).toMatchObject({ state: 'FIRING' })
  expect(content.find(({ metric }: Body) => metric === 'latency')).toMatchObject({ state: 'QUIET' })

  await plantExecutions(db, { ...planted, from: at(1), to: at(2), failed: 21 })
  await watch(2)
  const again = await list()
  expect(again).toHaveLength(1)
  expect(again[0]).toMatchObject({
    ...{ id: alert.id, severity: 'CRITICAL', observed: 0.7 },
    window: { from: at(0).toISOString(), to: at(2).toISOString() },
  })
  expect(await db.selectFrom('notices').select('id').where('teamId', '=', teamId).execute()).toHaveLength(1)
})

test('p95 that is twice as long as usual and above the threshold opens an alert', async () => {
  const { teamId, workflowId, list } = await openTeam()
  await plantExecutions(db, { teamId, workflowId, from: at(-10 * 24), to: at(0), each: 6, ms: 15_000 })
  await plantExecutions(db, { teamId, workflowId, from: at(0), to: at(1), each: 30, ms: 45_000 })
  await watch(1)
  const alerts = await list()
  expect(alerts).toMatchObject([{ metric: 'latency', threshold: 30_000, workflowId }])
  expect(alerts[0].observed).toBeGreaterThan(45_000)
  expect(alerts[0].expected).toBeLessThan(30_000)
})

test('a spike of tokens opens one alert, not another one for its calls; none with fewer than 15 calls', async () => {
  const { teamId, workflowId, list, states } = await openTeam()
  await plantCalls(db, { teamId, workflowId, from: at(-20 * 24), to: at(1), each: 10 })
  await watch(1)
  expect(await list()).toEqual([])
  await plantCalls(db, { teamId, workflowId, from: at(1), to: at(2), each: 14, tokens: 9_000 })
  await watch(2)
  expect(await list()).toEqual([])
  await plantCalls(db, { teamId, workflowId, from: at(2), to: at(3), each: 50 })
  await watch(3)
  const alerts = await list()
  expect(alerts).toMatchObject([
    { metric: 'token_usage', observed: 50_500, expected: 10_100, workflowId, severity: 'HIGH' },
  ])
  expect(alerts[0].sampleExecutionIds).toHaveLength(5)
  const { content } = await states('&state=FIRING')
  expect(content).toMatchObject([
    { metric: 'model_calls', reason: 'The alert of its tokens explains it' },
    { metric: 'token_usage', reason: null },
  ])
})

test('what evaluations and playbooks ask of models is no spike, and none of the samples', async () => {
  const { teamId, workflowId, list } = await openTeam()
  const planted = { teamId, workflowId }
  await plantCalls(db, { ...planted, from: at(-20 * 24), to: at(1), each: 20 })
  await plantCalls(db, { ...planted, from: at(0), to: at(1), each: 900, judging: true })
  await plantExecutions(db, { ...planted, from: at(0), to: at(1), each: 1, trigger: 'EVALUATION' })
  const { id: executionId } = await db
    .selectFrom('executions')
    .select('id')
    .where('teamId', '=', teamId)
    .executeTakeFirstOrThrow()
  await plantCalls(db, { ...planted, from: at(0), to: at(1), each: 900, executionId })
  await watch(1)
  expect(await list()).toEqual([])
  await plantCalls(db, { ...planted, from: at(1), to: at(2), each: 200 })
  await plantCalls(db, { ...planted, from: at(1), to: at(2), each: 900, executionId })
  await plantCalls(db, { ...planted, from: at(1), to: at(2), each: 9, judging: true, tokens: 1_000_000 })
  await watch(2)
  const [alert, ...others] = await list()
  expect(others).toEqual([])
  expect(alert).toMatchObject({ metric: 'token_usage', observed: 202_000, workflowId })
  const samples = await db
    .selectFrom('modelCalls')
    .select('nodeId')
    .where('executionId', 'in', alert.sampleExecutionIds)
    .execute()
  expect(samples.map(({ nodeId }) => nodeId)).toEqual(['llm', 'llm', 'llm', 'llm', 'llm'])
  expect(alert.sampleExecutionIds).not.toContain(executionId)
})

test('nothing is judged before a week is known, which is said', async () => {
  const { teamId, workflowId, list, states } = await openTeam()
  await plantExecutions(db, { teamId, workflowId, from: at(-48), to: at(0), each: 20 })
  await plantExecutions(db, { teamId, workflowId, from: at(0), to: at(1), each: 20, failed: 20 })
  await watch(1)
  expect(await list()).toEqual([])
  const { content } = await states('&state=INSUFFICIENT_DATA')
  expect(content.find(({ metric }: Body) => metric === 'error_rate')).toMatchObject({
    reason: 'It is judged after 7 days; there are 2 days so far',
  })
})

test('a team without flags is not watched, nor one that has switched them off', async () => {
  const { teamId, states } = await openTeam({})
  let asked = 0
  const detect: Detector = async (input) => {
    asked++
    return says()(input)
  }
  await watch(1, detect)
  expect(asked).toBe(0)
  expect(await states()).toMatchObject({ content: [], evaluatedTo: null, skipped: null })
  const set = (on: boolean) =>
    db
      .updateTable('monitoringConfigs')
      .set({ anomalyDetectionEnabled: on })
      .where('teamId', '=', teamId)
      .execute()
  await set(true)
  await watch(2, detect)
  expect(asked).toBe(1)
  expect((await states()).content).toHaveLength(1)
  await set(false)
  await watch(3, detect)
  expect(asked).toBe(1)
  expect(await states()).toMatchObject({ content: [], evaluatedTo: null })
})

test('a flag lets only its own detectors work', async () => {
  await openTeam({ driftAlertEnabled: true })
  let asked = 0
  await watch(1, async () => {
    asked++
    return []
  })
  expect(asked).toBe(0)
})

test('an alert is resolved after two quiet hours, cools down, and opens again only if it is worse', async () => {
  const { list } = await openTeam()
  await watch(1, fires(10))
  await watch(2, says())
  await watch(3, fires(11))
  await watch(4, says())
  expect(await list()).toMatchObject([{ status: 'OPEN', observed: 11 }])
  await watch(5, says())
  const [resolved] = await list()
  expect(resolved).toMatchObject({ status: 'RESOLVED', resolvedBy: null })
  expect(resolved.resolvedAt).not.toBeNull()
  await watch(6, fires(12))
  expect(await list()).toHaveLength(1)
  await watch(7, fires(20))
  expect(await list()).toHaveLength(2)
})

test('after the cool-down, or graver, it opens again', async () => {
  const graver = await openTeam()
  await watch(1, fires(10))
  await watch(2, says())
  await watch(3, says())
  await watch(4, fires(10, 'HIGH'))
  expect(await graver.list('?status=OPEN')).toHaveLength(1)
  const later = await openTeam()
  await watch(1, fires(10))
  for (let hours = 2; hours < 8; hours++) await watch(hours, says())
  await watch(8, fires(10))
  expect(await later.list()).toHaveLength(1)
  await watch(9, says())
  await watch(10, fires(10))
  expect(await later.list()).toHaveLength(2)
})

test('too little data resolves an alert only after a day', async () => {
  const { teamId, list } = await openTeam()
  await watch(-13, fires(10))
  const little = says({ state: 'INSUFFICIENT_DATA', reason: 'There is little' })
  for (let hours = -12; hours < 12; hours++) await watch(hours, little)
  expect(await list('?status=OPEN')).toHaveLength(1)
  await watch(12, little)
  expect(await list('?status=RESOLVED')).toHaveLength(1)
  expect(await db.selectFrom('alertStates').select('reason').where('teamId', '=', teamId).execute()).toEqual([
    { reason: 'There is little' },
  ])
})

test('what is not said any more has too little data', async () => {
  const { states } = await openTeam()
  await watch(1, says())
  await watch(2, says({ metric: 'error_rate' }))
  const { content } = await states()
  expect(content).toMatchObject([
    { metric: 'error_rate', state: 'QUIET', windowTo: at(2).toISOString() },
    {
      metric: 'latency',
      state: 'INSUFFICIENT_DATA',
      windowTo: at(1).toISOString(),
      since: at(2).toISOString(),
    },
  ])
})

test('several watches at once evaluate each hour of each team once', async () => {
  await openTeam()
  for (let more = 0; more < 5; more++) await addTeam({ anomalyDetectionEnabled: true })
  await watch(1, says())
  const asked: string[] = []
  const detect: Detector = async (input) => {
    asked.push(`${input.teamId} ${input.window.from.toISOString()}`)
    return fires(10)(input)
  }
  await Promise.all([1, 2, 3, 4].map(() => watch(5, detect)))
  expect(asked).toHaveLength(6 * 4)
  expect(new Set(asked).size).toBe(6 * 4)
  const { alerts } = await db
    .selectFrom('alerts')
    .select(sql<number>`count(*)`.as('alerts'))
    .where('windowTo', '=', at(5))
    .where('windowFrom', '=', at(1))
    .executeTakeFirstOrThrow()
  expect(alerts).toBe(6)
})

test('the hour of a process that was killed is evaluated by another one, and the killed one writes nothing', async () => {
  const { list, teamId } = await openTeam()
  const now = new Date(HOUR + HOUR_MS + 61_000)
  await arrangeWatches(store, now)
  const held = (await claimWindow(store, 600_000, now))!
  expect(held).toMatchObject({ teamId, from: at(0), to: at(1), attempts: 1 })
  await watch(1, fires(10))
  expect(await list()).toEqual([])
  await sql`update alert_watches set claimed_until = now() - interval '1 second'`.execute(db)
  await watch(1, fires(10))
  expect(await list()).toHaveLength(1)
  const found = [
    { type: 'ANOMALY' as const, verdicts: await says({ metric: 'other' })({} as never), failed: false },
  ]
  expect(await noteWindow(store, held, found)).toBe(false)
  expect(await db.selectFrom('alertStates').select('metric').where('teamId', '=', teamId).execute()).toEqual([
    { metric: 'latency' },
  ])
})

test('a detector that fails is asked three times, and then left out of the hour, which is said', async () => {
  const { teamId, states } = await openTeam()
  let asked = 0
  const detect: Detector = async () => {
    asked++
    throw new Error('no')
  }
  for (let times = 1; times <= 3; times++) {
    await watch(1, detect)
    await watch(1, detect)
    expect(asked).toBe(times)
    await sql`update alert_watches set due_at = now() where team_id = ${teamId}`.execute(db)
  }
  expect((await states()).content).toMatchObject([{ metric: 'anomaly', type: 'ANOMALY', state: 'FAILED' }])
  await watch(1, detect)
  expect(asked).toBe(3)
  await watch(2, says())
  expect((await states()).content).toMatchObject([{ metric: 'latency', state: 'QUIET' }])
})

test('after a standstill the last 24 hours are evaluated, and the others are said to be left out', async () => {
  const { states } = await openTeam()
  await watch(-60, says())
  const seen: number[] = []
  await watch(1, async (input) => {
    seen.push(input.window.from.getTime())
    return says()(input)
  })
  expect(seen).toEqual(Array.from({ length: 24 }, (_, place) => at(place - 23).getTime()))
  expect(await states()).toMatchObject({
    ...{ evaluatedTo: at(1).toISOString() },
    skipped: { from: at(-60).toISOString(), to: at(-23).toISOString() },
  })
})

test('alerts are acknowledged and resolved by people, with an entry of the audit', async () => {
  const { teamId, cookie, base, id: userId, list } = await openTeam()
  await watch(1, fires(10))
  const [{ id }] = await list()
  const acknowledged = await call('POST', `${base}/${id}/acknowledge`, cookie)
  expect(acknowledged.body).toMatchObject({
    ...{ id, status: 'ACKNOWLEDGED', acknowledgedBy: { id: userId, name: 'Ada Byron' } },
  })
  const again = await call('POST', `${base}/${id}/acknowledge`, cookie)
  expect(again.body).toEqual(acknowledged.body)
  await watch(2, fires(11))
  expect(await list()).toMatchObject([{ status: 'ACKNOWLEDGED', observed: 11 }])
  const resolved = await call('POST', `${base}/${id}/resolve`, cookie)
  expect(resolved.body).toMatchObject({ status: 'RESOLVED', resolvedBy: { id: userId, name: 'Ada Byron' } })
  expect((await call('POST', `${base}/${id}/acknowledge`, cookie)).status).toBe(409)
  expect((await call('GET', `${base}/${id}`, cookie)).body).toEqual(resolved.body)
  await watch(3, fires(11))
  expect(await list()).toHaveLength(1)
  const entries = await db
    .selectFrom('auditEntries')
    .select('action')
    .where('teamId', '=', teamId)
    .where('action', 'like', 'ALERT%')
    .orderBy('seq')
    .execute()
  expect(entries.map(({ action }) => action)).toEqual(['ALERT_ACKNOWLEDGED', 'ALERT_RESOLVED'])
})

/** Writes an alert as the watch would have. */
async function plantAlert(teamId: string, more: Record<string, unknown> = {}): Promise<string> {
  const id = randomUUID()
  await db
    .insertInto('alerts')
    .values({
      ...{
        id,
        teamId,
        type: 'ANOMALY',
        severity: 'HIGH',
        metric: randomUUID(),
        observed: 1,
        message: 'A lot',
      },
      ...{ windowFrom: at(0), windowTo: at(1), ...more },
    })
    .execute()
  return id
}

test('acknowledging many counts those of the type and the team that were open, each once', async () => {
  const { teamId, cookie, base, list } = await openTeam()
  const other = await service.otherTeam()
  const open = await Promise.all([plantAlert(teamId), plantAlert(teamId), plantAlert(teamId)])
  const drift = await plantAlert(teamId, { type: 'DRIFT' })
  const resolved = await plantAlert(teamId, { status: 'RESOLVED', resolvedAt: at(1) })
  const foreign = await plantAlert(other.teamId)
  const alertIds = [...open, ...open, drift, resolved, foreign, randomUUID()]
  const ask = (ids = alertIds) =>
    call('POST', `${base}/bulk-acknowledge`, cookie, { alertIds: ids, type: 'ANOMALY' })
  const answers = await Promise.all([ask(), ask(alertIds.toReversed()), ask()])
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
  expect(answers.reduce((sum, { body }) => sum + body.acknowledged, 0)).toBe(3)
  expect((await ask()).body).toEqual({ acknowledged: 0, message: '0 alerts acknowledged' })
  expect((await list('?status=ACKNOWLEDGED')).map(({ id }) => id).toSorted()).toEqual(open.toSorted())
  expect((await list('?status=OPEN')).map(({ id }) => id)).toEqual([drift])
  expect((await call('GET', `${base}/${foreign}`, cookie)).status).toBe(404)
  expect((await call('POST', `${base}/${foreign}/resolve`, cookie)).status).toBe(404)
  for (const json of [
    {},
    { alertIds: [], type: 'ANOMALY' },
    { alertIds, type: 'OTHER' },
    { alertIds: ['x'], type: 'DRIFT' },
  ])
    expect((await call('POST', `${base}/bulk-acknowledge`, cookie, json)).status).toBe(400)
})

test('the list is filtered and paged', async () => {
  const { teamId, cookie, base, workflowId, list } = await openTeam()
  const day = (n: number) => new Date(Date.UTC(2026, 0, n))
  const first = await plantAlert(teamId, { createdAt: day(1), severity: 'LOW' })
  const second = await plantAlert(teamId, { createdAt: day(2), workflowId })
  const third = await plantAlert(teamId, { createdAt: day(3), type: 'SENTIMENT' })
  const ids = async (query: string) => (await list(query)).map(({ id }) => id)
  expect(await ids('')).toEqual([third, second, first])
  expect(await ids('?type=SENTIMENT')).toEqual([third])
  expect(await ids('?severity=LOW')).toEqual([first])
  expect(await ids(`?workflowId=${workflowId}`)).toEqual([second])
  expect(await ids('?from=2026-01-02&to=2026-01-03')).toEqual([second])
  const page = await call('GET', `${base}?size=2&page=1`, cookie)
  expect(page.body).toMatchObject({ totalElements: 3, totalPages: 2, number: 1, size: 2 })
  expect(page.body.content).toMatchObject([{ id: first }])
  expect((await call('GET', `${base}?from=2026-01-02&to=2026-01-01`, cookie)).status).toBe(400)
  expect((await call('GET', `${base}?status=DONE`, cookie)).status).toBe(400)
})
