import { sql } from 'kysely'
import { expect, test, vi } from 'vitest'
import { keep } from '../../../support/keep.ts'
import { listStatements } from '../../../support/statements.ts'
import { startWorkerless } from '../../../support/workerless.ts'

const service = await keep(startWorkerless())
const { create, execute, teamId } = service
const { db } = service.store
const elsewhere = await service.otherTeam()

const data = (n: number, more = {}) => ({ teamId, data: { n }, ...more })

test('executions that are accepted together keep their own rights, workflows and inputs, and hold up no others', async () => {
  const kept = await create()
  const gone = await create()
  const free = await create()
  const other = await create({ teamId: elsewhere.teamId }, elsewhere.cookie, elsewhere.teamId)
  const good = await service.token('OPERATOR')
  const revoked = await service.token('OPERATOR')
  // What a process has read last is what it starts without reading it again.
  for (const id of [kept, gone, free]) await execute(id, data(0), good)
  await execute(other, { teamId: elsewhere.teamId }, elsewhere.cookie)

  const sent = await db.transaction().execute(async (tx) => {
    await sql`select from workflows where id in (${kept}, ${gone}) for update`.execute(tx)
    const first = execute(kept, data(1), good)
    const isWaiting = async () => {
      const { rows } = await sql`select from pg_stat_activity where datname = current_database()
        and wait_event_type = 'Lock' and query like '%with asked (id%'`.execute(db)
      expect(rows).toHaveLength(1)
    }
    await vi.waitFor(isWaiting, 20_000)
    const together = [
      execute(kept, data(2), good),
      execute(kept, data(3), revoked),
      execute(gone, data(4), good),
      execute(kept, data(6, { data: { text: 'x'.repeat(30_000) } }), good),
      execute(kept, data(7), good, { 'Idempotency-Key': 'seven' }),
      execute(kept, data(7), good, { 'Idempotency-Key': 'seven' }),
    ]
    const beside = [
      await execute(other, { teamId: elsewhere.teamId }, elsewhere.cookie),
      await execute(free, data(8), good),
    ]
    expect(beside.map(({ status }) => status)).toEqual([202, 202])
    await sql`update sdk_tokens set revoked_at = now() where hint = ${hintOf(revoked)}`.execute(tx)
    await sql`delete from workflows where id = ${gone}`.execute(tx)
    return [first, ...together]
  })
  const responses = await Promise.all(sent)
  expect(responses.map(({ status }) => status)).toEqual([202, 202, 401, 404, 202, 202, 202])
  const rows = await db
    .selectFrom('executions')
    .select(['id', 'workflowId', 'workflowName', 'inputData'])
    .where(
      'id',
      'in',
      responses.flatMap(({ body }) => body.executionId ?? []),
    )
    .execute()
  const inputs = new Map(rows.map((row) => [row.id, row]))
  expect(inputs.get(responses[1]!.body.executionId)).toMatchObject({ workflowId: kept, inputData: { n: 2 } })
  expect(responses[5]!.body.executionId).toBe(responses[6]!.body.executionId)
  const errands = await db.selectFrom('outbox').select('subjectId').where('kind', '=', 'START').execute()
  const started = new Set(errands.map(({ subjectId }) => subjectId))
  for (const { id } of rows) expect(started.has(id)).toBe(true)
})

const hintOf = (token: string) => `${token.slice(0, 8)}…${token.slice(-4)}`

test('a start that PostgreSQL refuses harms none of those that are accepted with it', async () => {
  const workflowId = await create()
  const good = await service.token('OPERATOR')
  await execute(workflowId, data(0), good)
  await sql`alter table executions add constraint refused check (input_data::text not like '%refused%')`.execute(
    db,
  )
  const responses = await Promise.all(
    Array.from({ length: 12 }, (_, i) =>
      execute(workflowId, data(i, i === 5 ? { data: { text: 'refused' } } : {}), good),
    ),
  )
  await sql`alter table executions drop constraint refused`.execute(db)
  const expected = Array.from({ length: 12 }, (_, i) => (i === 5 ? 500 : 202))
  expect(responses.map(({ status }) => status)).toEqual(expected)
  expect(new Set(responses.map(({ body }) => body.executionId)).size).toBe(12)
})

test('what is written together has statements of few kinds, since each connection keeps what it has prepared', async () => {
  const hook = { id: 'hook', type: 'WEBHOOK_TRIGGER', config: { path: 'in' } }
  const workflowId = await create({ nodes: [{ id: 'start', type: 'MANUAL_TRIGGER' }, hook], edges: [] })
  await service.call('PUT', `/api/workflows/${workflowId}`, service.admin, { active: true })
  const call = () => service.call('POST', `/hooks/${workflowId}/in`, service.admin, {})
  const sent = await listStatements('test', () =>
    Promise.all(Array.from({ length: 30 }, (_, i) => (i % 3 ? call() : execute(workflowId)))),
  )
  const count = (text: string, what: RegExp) => text.match(what)?.length ?? 0
  const kinds = sent
    .filter((text) => text.includes('with asked (id'))
    .map((text) => {
      const all = count(text, /::bytea/g)
      return [count(text, /hold_right\(/g) / all, count(text, /from workflows/g) / all, all > 1]
    })
  expect(kinds.some(([, , together]) => together)).toBe(true)
  for (const [rights, stamps] of kinds) expect([rights, stamps]).toEqual([rights ? 1 : 0, 1])
})
