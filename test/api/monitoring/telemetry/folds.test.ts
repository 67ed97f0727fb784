import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { purgeTelemetry } from '../../../../db/monitoring/telemetry/purge.ts'
import { foldModelCalls } from '../../../../db/monitoring/usage/hours.ts'
import { keep } from '../../../support/keep.ts'
import { CHAT, fillSpan, toJson } from '../../../support/monitoring/usage/spans.ts'
import { startService } from '../../../support/service.ts'

const service = await keep(startService({ rateLimits: false }))
const { db } = service.store
const HOUR_MS = 3_600_000

async function openTeam() {
  const team = await service.otherTeam()
  const token = await service.token('OPERATOR', team.cookie, team.teamId)
  const send = async (spans: Parameters<typeof toJson>[0]) => {
    const { status, body } = await service.call('POST', '/api/telemetry/v1/traces', token, toJson(spans))
    expect({ status, body }).toEqual({ status: 200, body: {} })
  }
  const read = async (path: string) => {
    const base = `/api/monitoring/teams/${team.teamId}/token-usage`
    const { body } = await service.call('GET', `${base}${path}?from=2026-01-01T00:00:00Z`, team.cookie)
    const { period, ...rest } = body
    return rest
  }
  const until = async () =>
    (
      await db
        .selectFrom('modelCallFolds')
        .select('until')
        .where('teamId', '=', team.teamId)
        .executeTakeFirst()
    )?.until
  return { ...team, send, read, until }
}

const at = (hoursAgo: number, model = 'gpt-4o', more = {}) =>
  fillSpan({
    start: Date.now() - hoursAgo * HOUR_MS,
    attributes: { ...CHAT, 'gen_ai.request.model': model, ...more },
  })

test('late spans are added to hours that are folded, exactly, and unfold none', async () => {
  const team = await openTeam()
  await team.send([at(50), at(30), at(30, 'mine'), at(10), at(3)])
  expect(await foldModelCalls(service.store)).toBeGreaterThan(0)
  const folded = await team.until()
  expect(folded).toBeInstanceOf(Date)

  const late = [
    at(50),
    at(50, 'gpt-4o-mini', {
      'gen_ai.usage.reasoning_tokens': 40,
      'gen_ai.usage.cache_read.input_tokens': 300,
    }),
    at(40),
    at(30, 'mine'),
    at(10, 'gpt-4o', { 'error.type': '429' }),
    at(600),
    at(0.5),
  ]
  await Promise.all([team.send(late), team.send([...late].reverse()), team.send(late.slice(2))])
  expect(await team.until()).toEqual(folded)
  const paths = ['', '/daily', '/by-model', '/by-workflow', '/by-node']
  const shown = await Promise.all(paths.map(team.read))
  expect(shown[0]).toMatchObject({ calls: 12, totalInputTokens: 12_000, unpricedCalls: 2 })

  // The same from the calls themselves, and folded anew.
  await sql`delete from model_call_folds where team_id = ${team.teamId}`.execute(db)
  await sql`delete from model_call_hours where team_id = ${team.teamId}`.execute(db)
  expect(await Promise.all(paths.map(team.read))).toEqual(shown)
  await foldModelCalls(service.store)
  expect(await Promise.all(paths.map(team.read))).toEqual(shown)
})

test('spans that come while hours are folded count once', async () => {
  const team = await openTeam()
  for (let round = 0; round < 5; round++) {
    const spans = Array.from({ length: 40 }, (_, n) => at(2 + n * 3))
    const halves = [spans.slice(0, 25), spans.slice(15)]
    await Promise.all([
      ...halves.map(team.send),
      foldModelCalls(service.store),
      foldModelCalls(service.store),
    ])
    expect(await team.read('')).toMatchObject({
      calls: 40 * (round + 1),
      totalInputTokens: 40_000 * (round + 1),
    })
  }
})

test('spans are remembered for 31 days, and go with their team', async () => {
  const team = await openTeam()
  await team.send([at(1), at(2), at(3)])
  const seen = db.selectFrom('telemetrySpans').select('seenAt').where('teamId', '=', team.teamId)
  await sql`update telemetry_spans set seen_at = now() - interval '32 days'
    where team_id = ${team.teamId} and span_id = (select min(span_id) from telemetry_spans where team_id = ${team.teamId})`.execute(
    db,
  )
  await purgeTelemetry(service.store)
  expect(await seen.execute()).toHaveLength(2)
  const gone = await service.call('DELETE', `/api/teams/${team.teamId}`, team.cookie)
  expect(gone.status).toBeLessThan(300)
  expect(await seen.execute()).toHaveLength(0)
  const hours = db.selectFrom('telemetryHours').select('hour').where('teamId', '=', team.teamId)
  expect(await hours.execute()).toHaveLength(0)
})
