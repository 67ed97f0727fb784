import { expect, test } from 'vitest'
import { detectDrift } from '../../../../../activities/monitoring/shifts/drift/drift.ts'
import { loadMonitoringConfig } from '../../../../../db/monitoring/config.ts'
import { keep } from '../../../../support/keep.ts'
import { plantSamples, spread } from '../../../../support/monitoring/samples.ts'
import { startService } from '../../../../support/service.ts'

const service = await keep(startService({ rateLimits: false }))
const { db } = service.store
const HOUR_MS = 3_600_000
const TO = new Date('2026-11-20T12:00:00Z')

async function judge(teamId: string, to = TO) {
  const config = await loadMonitoringConfig(db, teamId)
  const window = { from: new Date(to.getTime() - HOUR_MS), to }
  return detectDrift({ db, teamId, config, window, signal: new AbortController().signal })
}

const readDrift = async (team: { teamId: string; cookie: string }) =>
  (await service.call('GET', `/api/monitoring/teams/${team.teamId}/drift`, team.cookie)).body.workflows

const BEFORE = { from: 2, to: 15, perDay: 30 }

test('inputs that are about something else are found, with executions that show it', async () => {
  const team = await plantSamples(service)
  const workflowId = await team.runs.addWorkflow()
  await team.plant(workflowId, TO, spread(BEFORE))
  await team.plant(workflowId, TO, spread({ from: 0.1, to: 1, perDay: 50 }))
  const other = await team.plant(workflowId, TO, spread({ from: 0.1, to: 1, perDay: 25 }, 1))
  const verdicts = await judge(team.teamId)
  const next = await judge(team.teamId, new Date(TO.getTime() + HOUR_MS))
  const found = next.find(({ metric }) => metric === 'drift.input')!
  expect(verdicts.map(({ metric }) => metric)).toEqual(['drift.input', 'drift.output'])
  expect(found).toMatchObject({ workflowId, state: 'FIRING', finding: { type: 'DRIFT' } })
  expect(found.finding!.message).toContain('inputs of the workflow are about something else')
  expect(found.finding!.observed).toBeGreaterThan(found.finding!.threshold!)
  expect(other).toEqual(expect.arrayContaining(found.finding!.sampleExecutionIds))
  expect(next[1]).toMatchObject({ state: 'INSUFFICIENT_DATA' })
  expect((await readDrift(team))[0]).toMatchObject({ workflowId, side: 'INPUT', state: 'FIRING' })
})

test('texts that are much longer than before are found', async () => {
  const team = await plantSamples(service)
  const workflowId = await team.runs.addWorkflow()
  await team.plant(workflowId, TO, spread(BEFORE), 'OUTPUT')
  const longer = spread({ from: 0.1, to: 1, perDay: 60 }).map((one) => ({ ...one, length: 900 }))
  await team.plant(workflowId, TO, longer, 'OUTPUT')
  const verdicts = await judge(team.teamId)
  const found = verdicts.find(({ metric }) => metric === 'drift.output')!
  expect(found.state).toBe('FIRING')
  expect(found.finding!.message).toContain('outputs of the workflow are of another length')
})

test('what is as before is quiet, in every window', async () => {
  const team = await plantSamples(service)
  const workflowId = await team.runs.addWorkflow()
  // Fridays are of another topic: that is usual.
  const weekly = spread({ from: 0, to: 16, perDay: 30 }).map((one) => ({
    ...one,
    topic: Math.floor(one.age / 24) % 7 === 0 ? 1 : 0,
  }))
  await team.plant(workflowId, TO, weekly)
  const states = []
  for (let hours = -5; hours <= 0; hours++)
    states.push(...(await judge(team.teamId, new Date(TO.getTime() + hours * HOUR_MS))))
  expect(states.filter(({ metric }) => metric === 'drift.input').map(({ state }) => state)).toEqual(
    Array(6).fill('QUIET'),
  )
})

test('too few samples are said to be too few, and not that all is well', async () => {
  const team = await plantSamples(service)
  const workflowId = await team.runs.addWorkflow()
  await team.plant(workflowId, TO, spread({ from: 2, to: 6, perDay: 5 }))
  await team.plant(workflowId, TO, spread({ from: 0.1, to: 1, perDay: 30 }, 1))
  const [verdict] = await judge(team.teamId)
  expect(verdict).toMatchObject({
    state: 'INSUFFICIENT_DATA',
    reason: 'There are only 20 samples of the 14 days to compare with (50 are needed)',
  })
  const [shown] = await readDrift(team)
  expect(shown).toMatchObject({ state: 'INSUFFICIENT_DATA', referenceCount: 20, statistic: null })
})

test('a window gets the same verdict however often it is judged, and one hit is no alert', async () => {
  const team = await plantSamples(service)
  // Of these shares of another topic some are too small, some are plain, and one between them is a hit.
  for (const perDay of [5, 6, 7, 8, 9, 10]) {
    const workflowId = await team.runs.addWorkflow()
    await team.plant(workflowId, TO, spread({ ...BEFORE, perDay: 12 }))
    await team.plant(workflowId, TO, spread({ from: 0.05, to: 1, perDay: 26 }))
    await team.plant(workflowId, TO, spread({ from: 0.05, to: 1, perDay }, 1))
  }
  const first = await judge(team.teamId)
  expect(await judge(team.teamId)).toEqual(first)
  const doubtful = first.find(({ reason }) => reason === 'There may be a shift: the next window will tell')!
  expect(doubtful).toMatchObject({ state: 'QUIET' })
  const next = await judge(team.teamId, new Date(TO.getTime() + 0.1 * HOUR_MS))
  const again = next.find(
    ({ workflowId, metric }) => workflowId === doubtful.workflowId && metric === doubtful.metric,
  )
  expect(again!.state).toBe('FIRING')
})

test('samples and checks go with their executions, their workflow and their team', async () => {
  const team = await plantSamples(service)
  const [workflowId, kept] = [await team.runs.addWorkflow(), await team.runs.addWorkflow()]
  const [first] = await team.plant(workflowId, TO, spread({ from: 0.1, to: 1, perDay: 3 }))
  await team.plant(kept, TO, spread({ from: 0.1, to: 1, perDay: 3 }))
  await judge(team.teamId)
  const count = async () =>
    (await db.selectFrom('driftSamples').select('executionId').where('teamId', '=', team.teamId).execute())
      .length
  const before = await count()
  await db.deleteFrom('executions').where('id', '=', first!).execute()
  expect(await count()).toBe(before - 1)
  expect((await service.call('DELETE', `/api/workflows/${workflowId}`, team.cookie)).status).toBe(200)
  expect((await readDrift(team)).map(({ workflowId }: { workflowId: string }) => workflowId)).toEqual([
    kept,
    kept,
  ])
  await service.call('DELETE', `/api/teams/${team.teamId}`, team.cookie)
  expect(await count()).toBe(0)
})
