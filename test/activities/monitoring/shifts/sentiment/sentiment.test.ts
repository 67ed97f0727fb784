import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { scoreSentiment } from '../../../../../activities/monitoring/shifts/sentiment/score.ts'
import { detectSentiment } from '../../../../../activities/monitoring/shifts/sentiment/sentiment.ts'
import { loadMonitoringConfig } from '../../../../../db/monitoring/config.ts'
import { keep } from '../../../../support/keep.ts'
import { plantSamples } from '../../../../support/monitoring/samples.ts'
import { startService } from '../../../../support/service.ts'

const service = await keep(startService({ rateLimits: false }))
const { db } = service.store
const HOUR_MS = 3_600_000

type Said = { age: number; mean: number }

/** A team whose users have sent messages that sound so on average. */
async function plantScores(said: Said[], to: Date) {
  const team = await plantSamples(service)
  const workflowId = await team.runs.addWorkflow()
  const ids = await team.addRuns(workflowId, to, said)
  const session = crypto.randomUUID()
  await sql`insert into agent_chat_sessions (id, team_id, workflow_id, owner_kind, owner_id, title, untitled)
    values (${session}, ${team.teamId}, ${workflowId}, 'USER', ${team.id}, 'chat', false)`.execute(db)
  const list = said.map(({ age, mean }, n) => ({
    id: crypto.randomUUID(),
    execution: ids[n],
    at: new Date(to.getTime() - age * HOUR_MS),
    score: Math.max(-1, Math.min(1, mean + 0.4 * team.normal())),
  }))
  const rows = sql`json_to_recordset(${JSON.stringify(list)}::json)
    as k (id uuid, execution uuid, at timestamptz, score real)`
  await sql`insert into agent_chat_messages (id, session_id, team_id, owner_id, execution_id, role, status, content, created_at)
    select id, ${session}, ${team.teamId}, ${team.id}, execution, 'user', 'COMPLETE', 'a text', at from ${rows}`.execute(
    db,
  )
  await sql`insert into sentiment_scores (message_id, team_id, workflow_id, execution_id, said_at, score)
    select id, ${team.teamId}, ${workflowId}, execution, at, score from ${rows}`.execute(db)
  const judge = async (end: Date) => {
    const config = await loadMonitoringConfig(db, team.teamId)
    const window = { from: new Date(end.getTime() - HOUR_MS), to: end }
    return detectSentiment({ db, teamId: team.teamId, config, window, signal: new AbortController().signal })
  }
  const read = async () =>
    (await service.call('GET', `/api/monitoring/teams/${team.teamId}/sentiment`, team.cookie)).body
  return { ...team, workflowId, judge, read }
}

const days = (from: number, to: number, perDay: number, mean: number): Said[] =>
  Array.from({ length: Math.round((to - from) * perDay) }, (_, n) => ({
    age: 24 * from + (24 * (n + 0.5)) / perDay,
    mean,
  }))

const NOW = new Date(Math.floor(Date.now() / HOUR_MS) * HOUR_MS)

test('messages that sound worse are found within two windows', async () => {
  const team = await plantScores([...days(2, 29, 60, 0.3), ...days(0, 1, 120, 0)], NOW)
  await team.judge(new Date(NOW.getTime() - HOUR_MS))
  const [verdict] = await team.judge(NOW)
  expect(verdict).toMatchObject({ metric: 'sentiment', state: 'FIRING', finding: { type: 'SENTIMENT' } })
  expect(verdict!.finding!.observed).toBeLessThan(0.1)
  expect(verdict!.finding!.expected).toBeGreaterThan(0.2)
  expect(verdict!.finding!.message).toContain('sounds worse')
  const { workflows, days: told } = await team.read()
  expect(workflows).toMatchObject([{ workflowId: team.workflowId, state: 'FIRING' }])
  expect(told.find(({ count }: { count: number }) => count > 50).mean).toBeLessThan(0.4)
})

test('messages that sound as before are quiet, and too few are said to be too few', async () => {
  const quiet = await plantScores([...days(0, 29, 60, 0.3)], NOW)
  for (const hours of [3, 2, 1, 0])
    expect(await quiet.judge(new Date(NOW.getTime() - hours * HOUR_MS))).toMatchObject([{ state: 'QUIET' }])
  const few = await plantScores([...days(2, 29, 60, 0.3), ...days(0, 1, 12, -0.6)], NOW)
  expect(await few.judge(NOW)).toMatchObject([
    {
      state: 'INSUFFICIENT_DATA',
      reason: 'There are only 12 samples of the last 24 hours (20 are needed)',
    },
  ])
})

test('English sounds good or bad, whatever it says', () => {
  expect(scoreSentiment('I am not happy with this')).toBeLessThan(-0.3)
  expect(scoreSentiment('Thank you, that is wonderful!')).toBeGreaterThan(0.5)
  for (const text of [
    '',
    'The report is due Monday.',
    '!'.repeat(5_000),
    '报告很好',
    'constructor __proto__',
  ])
    expect(scoreSentiment(text)).toBe(0)
})
