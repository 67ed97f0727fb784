import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { readDailyUsage, readModelUsage, readTokenUsage } from '../../../../db/monitoring/usage/totals.ts'
import { readRecordUsage, readRunUsage } from '../../../../db/monitoring/usage/usage.ts'
import { type Scope, serviceScope } from '../../../../db/scope.ts'
import { keep } from '../../../support/keep.ts'
import { explain, watchStore } from '../../../support/monitoring/usage/watched.ts'
import { startService } from '../../../support/service.ts'

const ROWS = 20_000
const service = await keep(startService())
const { db } = service.store

test('totals read one index, of the span alone; what a run took is found by its key', async () => {
  // A quarter of the calls are the team's, spread over 120 days; every fifth of them has no known cost.
  await sql`insert into model_calls (execution_id, activity_id, attempt, caller, call, team_id, workflow_id, node_id,
      iteration, provider, model, status, input_tokens, output_tokens, cached_tokens, cache_write_tokens,
      reasoning_tokens, cost, created_at)
    select ('00000000-0000-4000-8000-' || lpad(to_hex(n / 5), 12, '0'))::uuid, 'llm#' || n, 1, gen_random_uuid(), 1,
      case when n % 20 < 5 then ${service.teamId}::uuid else ('00000000-0000-4000-9000-' || lpad(to_hex(n % 20), 12, '0'))::uuid end,
      gen_random_uuid(), 'llm', n::text, 'OPENAI', 'model ' || n % 7, 'SUCCESS', 100, 10, 0, 0, 0,
      case when n % 5 > 0 then 0.0001 end, now() - (${ROWS} - n) * interval '120 days' / ${ROWS}
    from generate_series(1, ${ROWS}) n`.execute(db)
  await sql`vacuum analyze model_calls`.execute(db)
  const { store, sent } = watchStore(service.store as Scope['store'])
  const scope = serviceScope(store, { kind: 'SYSTEM', id: null, name: 'test' }, [[service.teamId, 'VIEWER']])
  const query = { from: new Date(Date.now() - 30 * 86_400_000), to: undefined }
  const calls = ROWS / 16
  const total = await readTokenUsage(scope, service.teamId, query)
  expect(Math.abs(total.calls - calls)).toBeLessThan(10)
  expect(total).toMatchObject({ inputTokens: total.calls * 100, outputTokens: total.calls * 10 })
  expect(total.executions * 5).toBeGreaterThanOrEqual(total.calls)
  const priced = total.calls - total.unpricedCalls
  expect(total.cost).toBe(Number((priced * 0.0001).toFixed(10)))
  const days = await readDailyUsage(scope, service.teamId, query, 'UTC')
  expect(days.reduce((sum, day) => sum + day.calls, 0)).toBe(total.calls)
  const models = await readModelUsage(scope, service.teamId, query)
  expect(models.reduce((sum, model) => sum + model.inputTokens, 0)).toBe(total.inputTokens)
  expect(models).toHaveLength(7)
  const run = '00000000-0000-4000-8000-000000000004'
  await readRunUsage(store, run)
  await readRecordUsage(store, run, [{ nodeId: 'llm', iteration: '20', step: null }])

  const plans: string[] = []
  for (const query of sent.filter(({ sql }) => sql.includes('model_calls')))
    plans.push((await explain(service.store, query)).join('\n'))
  expect(plans).toHaveLength(5)
  for (const plan of plans) expect(plan).not.toMatch(/Seq Scan on model_calls/)
  for (const plan of plans.slice(0, 3)) expect(plan).toMatch(/Scan (using|on) model_calls_of_team/)
  for (const plan of plans.slice(3)) expect(plan).toMatch(/model_calls_pkey/)
  // Whether an execution is open is looked up for a call that is, and never for all executions at once.
  for (const plan of plans) expect(plan).not.toMatch(/Seq Scan on executions|hashed/)
})
