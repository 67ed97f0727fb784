import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { createClient, type ExecutionBody, type NodeBody } from '../../support/client.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { shareService } from '../../support/service.ts'

const service = await keep(shareService())
const { db } = service.store
const client = createClient({
  send: (path, init) => service.request(path, { as: service.admin, ...init }),
  teamId: service.teamId,
})
const graph = {
  nodes: [
    { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
    { id: 'each', type: 'FOR_EACH', config: { items: '{{ $input.list }}' } },
    { id: 'first', parentId: 'each', type: 'NO_OP', config: {} },
    { id: 'second', parentId: 'each', type: 'NO_OP', config: {} },
  ],
  edges: edges('start -> each', 'first -> second'),
}

/**
 * An ended execution with `count` iterations of two nodes, as its projection writes it. Iteration n begins at n
 * milliseconds; every hundredth fails at its second node.
 */
async function seed(count: number, recordCount: number | null): Promise<string> {
  const id = await client.execute(await client.create(graph))
  await sql`update executions set status = 'FAILED', started_at = '2026-01-01', completed_at = '2026-01-02',
    record_count = ${recordCount} where id = ${id}`.execute(db)
  await sql`
    insert into node_executions (id, execution_id, node_id, iteration, node_name, node_type, status, started_at,
      completed_at, output, position, settled)
    select gen_random_uuid(), ${id}, node, iteration, node, 'NO_OP',
      case when iteration <> '' and node = 'second' and n % 100 = 0 then 'FAILED' else 'SUCCESS' end,
      '2026-01-01'::timestamptz + n * interval '1 millisecond', '2026-01-02', '{"v":{},"bytes":2}', n, true
    from (select 'start' as node, '' as iteration, 0 as n union all select 'each', '', 0
      union all select node, i::text, i from generate_series(0, ${count - 1}) i, (values ('first'), ('second')) v (node)
    ) seeded`.execute(db)
  return id
}

const large = seed(2_000, 4_002)

type Page = { content: NodeBody[]; totalElements: number }
const list = (id: string, query: string) => client.ask<Page>('GET', `/api/executions/${id}/nodes?${query}`)
const name = ({ nodeId, iteration }: NodeBody) => `${nodeId} ${iteration ?? '-'}`

test('of 4,002 records an execution shows those outside of loops, then failed ones, then the newest', async () => {
  const id = await seed(2_000, 4_002)
  const { nodeExecutions, nodeExecutionsTotal } = await client.read(id)
  expect(nodeExecutionsTotal).toBe(4_002)
  expect(nodeExecutions).toHaveLength(1_000)
  const starts = nodeExecutions.map(({ startedAt }) => startedAt)
  expect(starts).toEqual(starts.toSorted())
  const outside = nodeExecutions.filter(({ iteration }) => iteration === null)
  expect(outside.map(({ nodeId }) => nodeId).toSorted()).toEqual(['each', 'start'])
  expect(nodeExecutions.filter(({ status }) => status === 'FAILED')).toHaveLength(20)
  // 978 others, of 494 iterations, of which five have failed.
  const others = nodeExecutions.filter(({ iteration, status }) => iteration !== null && status === 'SUCCESS')
  expect(Math.min(...others.map(({ iteration }) => Number(iteration)))).toBeGreaterThan(1_500)
})

test('the total of an ended execution is the stored count, and is counted where an older release wrote none', async () => {
  const counted = await seed(600, null)
  expect((await client.read(counted)).nodeExecutionsTotal).toBe(1_202)
  // The count of an ended execution is read, not made.
  const stored = await seed(600, 7_777)
  expect((await client.read(stored)).nodeExecutionsTotal).toBe(7_777)
  // One that is open may have records that no projection has counted yet.
  await sql`update executions set status = 'RUNNING', completed_at = null where id = ${stored}`.execute(db)
  expect((await client.read(stored)).nodeExecutionsTotal).toBe(1_202)
})

test.for([
  ['', 4_002, ['each -', 'first 0', 'second 0', 'start -']],
  ['status=FAILED', 20, ['second 0', 'second 100', 'second 200', 'second 300']],
  ['nodeId=first', 2_000, ['first 0', 'first 1', 'first 2', 'first 3']],
  ['nodeId=first&page=499', 2_000, ['first 1996', 'first 1997', 'first 1998', 'first 1999']],
  ['nodeId=second&status=FAILED&page=2', 20, ['second 800', 'second 900', 'second 1000', 'second 1100']],
  ['nodeId=start&status=SUCCESS', 1, ['start -']],
  ['nodeId=first&status=FAILED', 0, []],
  ['nodeId=nobody', 0, []],
  ['status=RUNNING', 0, []],
] as const)('a page of records with "%s"', async ([query, total, shown]) => {
  const id = await large
  const { content, totalElements } = await list(id, `${query}&size=4`)
  expect(totalElements).toBe(total)
  expect(content.map(name)).toEqual(shown)
})

test('all pages together have each record once', async () => {
  const id = await seed(150, 302)
  const seen: string[] = []
  for (let page = 0; page < 4; page++)
    seen.push(...(await list(id, `page=${page}&size=100`)).content.map(name))
  expect(seen).toHaveLength(302)
  expect(new Set(seen).size).toBe(302)
})

test('an unknown status is refused', async () => {
  const answer = await service.request(`/api/executions/${await large}/nodes?status=BAD`, {
    as: service.admin,
  })
  expect(answer.status).toBe(400)
})

test('the first page does not read the other records', async () => {
  const id = await seed(20_000, 40_002)
  await sql`vacuum analyze node_executions`.execute(db)
  const before = await readRows()
  const run: ExecutionBody = await client.read(id)
  expect(run.nodeExecutions).toHaveLength(1_000)
  // Index-only scans of 1,001 entries, and the shown records; all others would be 40,002.
  await expect.poll(readRows, { timeout: 20_000 }).toBeGreaterThan(before)
  expect((await readRows()) - before).toBeLessThan(25_000)
})

/** How many rows of records this database has fetched from the table, in any way. */
async function readRows(): Promise<number> {
  await sql`select pg_stat_force_next_flush()`.execute(db)
  const { rows } = await sql<{ n: number }>`
    select seq_tup_read + coalesce(idx_tup_fetch, 0) as n from pg_stat_user_tables where relname = 'node_executions'`.execute(
    db,
  )
  return Number(rows[0]!.n)
}
