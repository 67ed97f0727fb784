import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { countDays } from '../../../db/executions/days.ts'
import { pruneExecutions } from '../../../db/executions/retention.ts'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

const service = await keep(startService())
const { store, teamId } = service
const { db } = store
const STATUSES = ['PENDING', 'RUNNING', 'SUCCESS', 'FAILED', 'CANCELLED']

let count = 0
async function create(retention: object | null = null): Promise<string> {
  const nodes = [{ id: 'start', type: 'MANUAL_TRIGGER', config: {} }]
  const json = { teamId, name: `days ${++count}`, nodes, settings: { retention } }
  const answer = await service.request('/api/workflows', { method: 'POST', as: service.admin, json })
  return ((await answer.json()) as { id: string }).id
}

/** Adds executions of several statuses, one every seven hours back from `ago`. */
const seed = (workflowId: string, runs: number, ago = '0 hours') =>
  sql`insert into executions (id, team_id, workflow_id, workflow_name, workflow_version, node_count, status, trigger,
      trigger_node_id, input_data, input_bytes, started_by_kind, created_at, completed_at)
    select gen_random_uuid(), ${teamId}, ${workflowId}, 'w', 1, 1, (${STATUSES}::text[])[1 + n % 5], 'API', 'start',
      '{}', 2, 'SYSTEM', now() - ${ago}::interval - n * interval '7 hours',
      case when n % 5 > 1 then now() - ${ago}::interval - n * interval '7 hours' end
    from generate_series(1, ${runs}::int) n`.execute(db)

const readKept = async () => {
  const { rows } = await sql<{ noted: Date; counted: Date }>`
    select noted_until as noted, counted_until as counted from execution_days_kept`.execute(db)
  return rows[0]!
}

const DAY_MS = 86_400_000
const at = (daysAgo: number, ms = 0) =>
  new Date(Math.floor(Date.now() / DAY_MS) * DAY_MS - daysAgo * DAY_MS + ms).toISOString()

const SPANS = [
  { from: at(20) },
  { to: at(1) },
  { from: at(12), to: at(3) },
  { from: at(12, 40_000_000), to: at(3, 1) },
  { from: at(12, 1), to: at(12, 50_000_000) },
  { from: at(2, 50_000_000), to: at(1, 50_000_000) },
  { from: at(1, 10), to: at(-1) },
  { from: at(400), to: at(0, 1) },
]

/** Compares the totals of many spans, as the API tells them, with the rows. */
async function expectRight(workflowId: string): Promise<void> {
  for (const span of SPANS) {
    for (const status of [undefined, ...STATUSES]) {
      const { rows } = await sql<{ team: number; own: number }>`
        select count(*) as team, count(*) filter (where workflow_id = ${workflowId}) as own from executions
        where team_id = ${teamId} and (${status ?? null}::text is null or status = ${status ?? null})
          and created_at >= ${span.from ?? '-infinity'}::timestamptz
          and created_at < ${span.to ?? 'infinity'}::timestamptz`.execute(db)
      const query = new URLSearchParams({ ...span, ...(status ? { status } : {}), size: '1' } as never)
      const list = async (path: string) => {
        const answer = await service.request(path, { as: service.admin })
        return ((await answer.json()) as { totalElements: number }).totalElements
      }
      const shown = {
        team: await list(`/api/executions/team/${teamId}?${query}`),
        own: await list(`/api/executions?workflowId=${workflowId}&${query}`),
      }
      expect(shown, JSON.stringify({ span, status })).toEqual(rows[0])
    }
  }
}

test('totals of spans are right before, while and after days are counted, whatever changes', async () => {
  const [id, other] = [await create(), await create({ days: 9 })]
  await seed(id, 100)
  await seed(other, 100, '3 hours')
  await expectRight(id)
  // An execution of an earlier day that ends while the days begin to be counted, in a transaction that began before.
  let counting: Promise<number> | undefined
  await db.transaction().execute(async (tx) => {
    const { rows } = await sql`update executions set status = 'SUCCESS', completed_at = now()
      where workflow_id = ${id} and status = 'RUNNING' and created_at < ${at(5)} returning id`.execute(tx)
    expect(rows.length).toBeGreaterThan(5)
    counting = countDays(store)
    await expect.poll(readKept, { timeout: 20_000 }).toMatchObject({ noted: new Date(at(0)) })
    // And another, which the triggers note already.
    await sql`update executions set status = 'FAILED', completed_at = now()
      where workflow_id = ${id} and status = 'PENDING' and created_at < ${at(7)}`.execute(db)
    expect((await readKept()).counted.getTime()).toBeLessThan(Date.parse(at(20)))
  })
  expect(await counting).toBeGreaterThan(25)
  expect((await readKept()).counted).toEqual(new Date(at(0)))
  await expectRight(id)

  await sql`update executions set status = 'CANCELLED', completed_at = now()
    where workflow_id = ${id} and status = 'PENDING'`.execute(db)
  await sql`delete from executions where workflow_id = ${id} and status = 'FAILED' and created_at < ${at(4)}`.execute(
    db,
  )
  await seed(id, 30, '11 days')
  await expectRight(id)
  expect(await pruneExecutions(store)).toBeGreaterThan(10)
  await expectRight(other)
  // Changes are folded into the counts, and days of which nothing is left are forgotten.
  await countDays(store)
  const { rows } = await sql`select from execution_days where slot >= 0 or n = 0`.execute(db)
  expect(rows).toEqual([])
  await expectRight(id)
  await expectRight(other)
  await service.request(`/api/workflows/${other}`, { method: 'DELETE', as: service.admin })
  await expectRight(id)
  const left = await sql`select from execution_days where owner_id = ${other}`.execute(db)
  expect(left.rows).toEqual([])
})

test('several processes count each day once, while executions end', async () => {
  const id = await create()
  await seed(id, 80)
  // Two days are to be counted anew.
  await sql`delete from execution_days where day >= ${at(2)}::date`.execute(db)
  await sql`update execution_days_kept set counted_until = ${at(2)}, noted_until = ${at(2)}`.execute(db)
  let over = false
  const changing = (async () => {
    while (!over)
      await sql`update executions set status = case status when 'RUNNING' then 'FAILED' else 'RUNNING' end
        where id in (select id from executions where workflow_id = ${id} and created_at < ${at(0)}
          order by random() limit 3)`.execute(db)
  })()
  const counted = await Promise.all([countDays(store), countDays(store), countDays(store)])
  over = true
  await changing
  expect(counted.reduce((sum, days) => sum + days, 0)).toBe(2)
  await expectRight(id)
})
