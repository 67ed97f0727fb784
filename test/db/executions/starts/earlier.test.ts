import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { createRuns } from '../../../support/engine/runs.ts'
import { keep } from '../../../support/keep.ts'
import { startService } from '../../../support/service.ts'

const service = await keep(startService())
const runs = createRuns(service)

test('among very many executions the one of an Idempotency-Key is found by an index, which holds no others', async () => {
  const { db } = service.store
  const run = await runs.addRun()
  await sql`
    insert into executions (id, team_id, workflow_id, workflow_name, workflow_version, node_count, trigger,
      trigger_node_id, input_data, input_bytes, started_by_kind, idempotency_key)
    select gen_random_uuid(), team_id, workflow_id, workflow_name, workflow_version, node_count, trigger,
      trigger_node_id, input_data, input_bytes, started_by_kind, case when n % 100 = 0 then 'key ' || n end
    from executions, generate_series(1, 20000) n where id = ${run}`.execute(db)
  await sql`analyze executions`.execute(db)
  const explain = async (where: string) => {
    const { rows } = await sql<Record<string, string>>`
      ${sql.raw(`explain (generic_plan) select id from executions where workflow_id = $1 and ${where}`)}`.execute(
      db,
    )
    return rows.map((row) => row['QUERY PLAN']).join('\n')
  }
  expect(await explain('idempotency_key = $2')).toContain('using executions_idempotency')
  const either = await explain('(id = $2 or idempotency_key = $3)')
  expect(either).toContain('on executions_idempotency')
  expect(either).toContain('on executions_pkey')
  const { rows } = await sql<{ entries: number }>`
    select reltuples::int as entries from pg_class where relname = 'executions_idempotency'`.execute(db)
  expect(rows[0]!.entries).toBe(200)
})
