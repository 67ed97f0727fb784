import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { foldExecutionHours } from '../../../db/monitoring/foldhours.ts'
import { createRuns } from '../../support/engine/runs.ts'
import { keep } from '../../support/keep.ts'
import { type Service, startService } from '../../support/service.ts'

const service = await keep(startService({ rateLimits: false }))
const { db } = service.store
const HOUR_MS = 3_600_000
/** One hour for the whole file: the next may begin meanwhile. */
const NOW = Math.floor(Date.now() / HOUR_MS) * HOUR_MS
const hour = (ago: number) => new Date(NOW - ago * HOUR_MS)

async function openTeam() {
  const team = await service.otherTeam()
  const runs = createRuns({ store: service.store, teamId: team.teamId, user: team } as unknown as Service)
  const path = `/api/monitoring/teams/${team.teamId}/executions`
  const ask = (query: Record<string, string> = {}, as = team.cookie) =>
    service.call('GET', `${path}?${new URLSearchParams(query)}`, as)
  /** Adds executions of a workflow that ended in an hour, each `durationMs` long. */
  const add = (workflowId: string, count: number, ago: number, status = 'SUCCESS', durationMs = 1_000) =>
    sql`insert into executions (id, team_id, workflow_id, workflow_name, workflow_version, node_count, status, trigger,
        trigger_node_id, input_data, input_bytes, started_by_kind, started_at, completed_at)
      select gen_random_uuid(), ${team.teamId}, ${workflowId}, 'w', 1, 1, ${status}, 'API', 'start', '{}', 2, 'USER',
        ${hour(ago)}::timestamptz + interval '1 minute' - ${durationMs} * interval '1 millisecond',
        ${hour(ago)}::timestamptz + interval '1 minute'
      from generate_series(1, ${count}::int)`.execute(db)
  return { ...team, runs, ask, add, path }
}

const NONE = { executions: 0, succeeded: 0, failed: 0, cancelled: 0, failureRate: null, retries: 0 }
const NO_TIMES = { durationP50Ms: null, durationP95Ms: null }

test('a team in which nothing ended has zeros in every hour of 30 days', async () => {
  const team = await openTeam()
  const { status, body } = await team.ask()
  expect(status).toBe(200)
  expect(body.totals).toEqual({ ...NONE, ...NO_TIMES })
  expect(body.hours).toHaveLength(720)
  const end = Date.parse(body.period.to)
  expect([hour(-1), hour(-2)]).toContainEqual(new Date(end))
  expect(Date.parse(body.period.from)).toBe(end - 720 * HOUR_MS)
  expect(body.hours.at(-1)).toEqual({ hour: new Date(end - HOUR_MS).toISOString(), ...NONE, ...NO_TIMES })
})

test('executions are counted in the hours in which they ended, of one workflow or of all', async () => {
  const team = await openTeam()
  const [one, other] = [await team.runs.addWorkflow(), await team.runs.addWorkflow()]
  await team.add(one, 90, 5)
  await team.add(one, 6, 5, 'FAILED')
  await team.add(one, 4, 5, 'CANCELLED', 60_000)
  await team.add(other, 3, 3, 'SUCCESS', 20)
  for (const isFolded of [false, true]) {
    if (isFolded) expect(await foldExecutionHours(service.store)).toBe(2)
    const { body } = await team.ask({ from: hour(6).toISOString(), to: hour(2).toISOString() })
    const mixed = { executions: 100, succeeded: 90, failed: 6, cancelled: 4, failureRate: 0.06, retries: 0 }
    expect(body.hours.map(({ hour, executions }: never) => [hour, executions])).toEqual([
      [hour(6).toISOString(), 0],
      [hour(5).toISOString(), 100],
      [hour(4).toISOString(), 0],
      [hour(3).toISOString(), 3],
    ])
    expect(body.hours[1]).toMatchObject(mixed)
    expect(body.totals).toMatchObject({ executions: 103, failed: 6, cancelled: 4 })
    for (const [ms, shown] of [
      [1_000, body.hours[1].durationP50Ms],
      [20, body.hours[3].durationP95Ms],
    ])
      expect(Math.abs(shown / ms - 1)).toBeLessThan(0.25)
    const workflows = async (query: Record<string, string> = {}) => {
      const span = { from: hour(6).toISOString(), to: hour(2).toISOString() }
      const asked = new URLSearchParams({ ...span, ...query })
      return (await service.call('GET', `${team.path}/workflows?${asked}`, team.cookie)).body
    }
    const all = await workflows()
    expect(all.workflowsTotal).toBe(2)
    expect(all.period).toEqual(body.period)
    expect(all.workflows).toMatchObject([
      { workflowId: one, workflowName: expect.any(String), ...mixed },
      { workflowId: other, executions: 3, failed: 0, failureRate: 0 },
    ])
    // 96 took one second, four a minute.
    const [{ durationAverageMs, durationP95Ms }] = all.workflows
    expect(Math.abs(durationAverageMs / (0.96 * 1_000 + 0.04 * 60_000) - 1)).toBeLessThan(0.25)
    expect(Math.abs(durationP95Ms / 1_000 - 1)).toBeLessThan(0.25)
    const first = async (sort: string) => {
      const { workflows: found, workflowsTotal } = await workflows({ sort, size: '1' })
      expect([found.length, workflowsTotal]).toEqual([1, 2])
      return found[0].workflowId
    }
    expect(await first('failureRate')).toBe(one)
    expect(await first('durationAverageMs')).toBe(one)
    const own = await team.ask({ from: hour(6).toISOString(), workflowId: one })
    expect(own.body.totals).toMatchObject(mixed)
    // An hour that is only touched counts as a whole.
    const touched = await team.ask({
      from: new Date(hour(5).getTime() + 1_800_000).toISOString(),
      to: new Date(hour(5).getTime() + 1_800_001).toISOString(),
    })
    expect(touched.body.totals).toMatchObject(mixed)
    expect(touched.body.period).toEqual({ from: hour(5).toISOString(), to: hour(4).toISOString() })
  }
})

test('a span has at most 31 days, and does not run backwards', async () => {
  const team = await openTeam()
  const ago = (days: number) => new Date(Date.now() - days * 24 * HOUR_MS).toISOString()
  expect((await team.ask({ from: ago(31) })).status).toBe(200)
  const long = await team.ask({ from: ago(32) })
  expect(long.status).toBe(400)
  expect(long.body.errors).toEqual([{ path: 'from', message: 'must be at most 31 days before to' }])
  for (const query of [{ from: ago(1), to: ago(2) }, { to: ago(40) }, { from: ago(-1) }, { workflowId: 'x' }])
    expect((await team.ask(query as never)).status, JSON.stringify(query)).toBe(400)
  const last = { from: '9999-12-31T20:00:00Z', to: '9999-12-31T23:59:59Z' }
  expect((await team.ask(last)).body.hours).toHaveLength(3)
  expect((await team.ask({ from: '0001-01-01', to: '0001-01-02' })).body.hours).toHaveLength(24)
})

test('every member may read them, and nobody else', async () => {
  const team = await openTeam()
  const viewer = await service.token('VIEWER', team.cookie, team.teamId)
  expect((await team.ask({}, viewer)).status).toBe(200)
  expect((await team.ask({}, service.admin)).status).toBe(403)
  expect((await service.call('GET', team.path)).status).toBe(401)
})

test('a workflow counts on after its deletion, without its name', async () => {
  const team = await openTeam()
  const gone = await team.runs.addWorkflow()
  await team.add(gone, 2, 4, 'FAILED')
  await foldExecutionHours(service.store)
  await db.deleteFrom('workflows').where('id', '=', gone).execute()
  const { body } = await service.call('GET', `${team.path}/workflows?sort=failed`, team.cookie)
  expect(body.workflows).toMatchObject([{ workflowId: gone, workflowName: null, failed: 2, failureRate: 1 }])
  const wrong = await service.call('GET', `${team.path}/workflows?sort=name&size=500`, team.cookie)
  expect(wrong.body.errors.map(({ path }: { path: string }) => path)).toEqual(['sort', 'size'])
})
