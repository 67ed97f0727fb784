import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { rebuildExecution } from '../../../activities/temporal/rebuild.ts'
import { MAX_NOTED } from '../../../db/executions/attempts/notes.ts'
import { type ExecutionBody, nodeOf } from '../../support/client.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'
import { startWorld } from '../../support/servers/world.ts'
import { until } from '../../support/until.ts'

const host = await keep(shareRunning())
const { db } = host.store
const world = await keep(
  startWorld({
    '/flaky': ({ response, count }) => response.writeHead([503, 500][(count - 1) % 3] ?? 200).end('said'),
    '/late': ({ response, count }) => response.writeHead([503, 500][count - 1] ?? 200).end('said'),
    '/ok': ({ response }) => response.writeHead(200).end('fine'),
    '/hang': () => {},
  }),
)

type Attempt = {
  attempt: number
  status: string
  startedAt: string | null
  endedAt: string | null
  durationMs: number | null
  error: { type: string | null; message: string } | null
  counted: boolean
}
type Page = { content: Attempt[]; totalElements: number }

const graph = (node: object) => ({
  nodes: [
    { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
    { id: 'call', type: 'HTTP_REQUEST', ...node },
  ],
  edges: edges('start -> call'),
})
const THREE = { maxAttempts: 3, initialIntervalMs: 400, backoffCoefficient: 1 }
const flaky = (path = '/flaky', retry: object = THREE) => graph({ retry, config: { url: world.url + path } })
const pathOf = (run: ExecutionBody, nodeId = 'call') =>
  `/api/executions/${run.id}/nodes/${nodeOf(run, nodeId).id}/attempts`
const list = (run: ExecutionBody, query = '') => host.ask<Page>('GET', pathOf(run) + query)
/** The attempts, once the failure of the last one is noted with its type. */
const listNoted = (run: ExecutionBody) =>
  until(() => list(run), { holds: ({ content }) => content.at(-1)?.error?.type != null })

test('every failed attempt is listed with its times and its error, while the node retries and after', async () => {
  const id = await host.execute(await host.create(flaky()))
  const waiting = await host.until(id, ({ nodeExecutions }) =>
    nodeExecutions.some(({ nextAttemptAt }) => nextAttemptAt !== null),
  )
  const first = {
    ...{ attempt: 1, status: 'FAILED', counted: true, durationMs: expect.any(Number) },
    error: { type: 'Http503', message: expect.stringContaining('responded with 503') },
  }
  expect(await list(waiting)).toMatchObject({ content: [first], totalElements: 1 })

  const run = await host.ended(id)
  const { content, totalElements } = await list(run)
  expect([content, totalElements]).toMatchObject([
    [
      first,
      { attempt: 2, status: 'FAILED', counted: true, error: { type: 'Http500' } },
      { attempt: 3, status: 'SUCCESS', counted: false, error: null },
    ],
    3,
  ])
  const times = content.flatMap(({ startedAt, endedAt }) => [startedAt!, endedAt!])
  expect(times).toEqual([...times].sort())
  expect(Date.parse(content[1]!.startedAt!) - Date.parse(content[0]!.endedAt!)).toBeGreaterThanOrEqual(390)
  expect(content[2]!.endedAt).toBe(nodeOf(run, 'call').completedAt)
  expect((await list(run, '?size=2&page=1')).content).toEqual([content[2]])

  // Rows that are made anew from the history keep what only the attempts knew.
  await sql`delete from node_executions where execution_id = ${id}`.execute(db)
  const { client, sealer } = host.engine
  await rebuildExecution({ store: host.store, client, sealer }, id)
  expect((await list(run)).content).toEqual(content)

  await sql`delete from executions where id = ${id}`.execute(db)
  const { rows } = await sql`select from node_attempts where execution_id = ${id}`.execute(db)
  expect(rows).toEqual([])
})

test('a node that succeeds at once notes nothing, one that fails for good its failure, cut and masked', async () => {
  const fine = await host.run(graph({ config: { url: `${world.url}/ok` } }))
  expect((await list(fine)).content).toMatchObject([{ attempt: 1, status: 'SUCCESS', error: null }])
  const { rows } = await sql`select from node_attempts where execution_id = ${fine.id}`.execute(db)
  expect(rows).toEqual([])

  const code = `throw new Error('password=hunter-and-hunted ' + 'x'.repeat(5000))`
  const failed = await host.run(graph({ type: 'CODE', retry: { maxAttempts: 2 }, config: { code } }))
  expect(failed.status).toBe('FAILED')
  const { content } = await listNoted(failed)
  expect(content).toMatchObject([{ attempt: 1, status: 'FAILED', counted: true }])
  const { type, message } = content[0]!.error!
  expect([type, message.length]).toEqual(['CodeFailed', expect.any(Number)])
  expect(message.length).toBeLessThanOrEqual(2_000)
  expect(message).toContain('password=[redacted]')
})

test('a loop has those of each iteration; a pinned node has none; a cancelled one says so', async () => {
  const nodes = [
    { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
    { id: 'each', type: 'FOR_EACH', config: { items: '{{ [404, 200, 404] }}' } },
    {
      ...{ id: 'call', parentId: 'each', type: 'HTTP_REQUEST', onError: 'CONTINUE' },
      config: { url: `${world.url}/{{ $item = 404 ? "none" : "ok" }}` },
    },
  ]
  const run = await host.run({ nodes, edges: edges('start -> each') })
  const records = run.nodeExecutions.filter(({ nodeId }) => nodeId === 'call')
  const seen = await Promise.all(
    records.map(({ id }) => host.ask<Page>('GET', `/api/executions/${run.id}/nodes/${id}/attempts`)),
  )
  expect(seen.flatMap(({ content }) => content.map(({ status }) => status))).toEqual([
    ...['FAILED', 'SUCCESS', 'FAILED'],
  ])

  const workflowId = await host.create(flaky('/hang'))
  const pinned = { teamId: host.teamId, pinned: { call: { output: { given: true } } } }
  const { executionId } = await host.ask<{ executionId: string }>(
    ...(['POST', `/api/workflows/${workflowId}/execute`, pinned] as const),
  )
  expect(await list(await host.ended(executionId))).toMatchObject({ content: [], totalElements: 0 })

  const id = await host.execute(workflowId)
  const open = await host.until(id, (one) => one.nodeExecutions.some(({ nodeId }) => nodeId === 'call'))
  expect((await list(open)).content).toMatchObject([{ status: 'RUNNING', endedAt: null, durationMs: null }])
  await host.ask('POST', `/api/executions/${id}/cancel`)
  expect((await list(await host.ended(id))).content).toMatchObject([{ status: 'CANCELLED', error: null }])
})

test('beyond the most that an execution notes, attempts are UNKNOWN', async () => {
  const id = await host.execute(await host.create(flaky('/late')))
  const waiting = await host.until(id, ({ nodeExecutions }) =>
    nodeExecutions.some(({ nextAttemptAt }) => nextAttemptAt !== null),
  )
  await sql`insert into node_attempts (execution_id, record_id, attempt)
    select ${id}, gen_random_uuid(), 1 from generate_series(2, ${MAX_NOTED})`.execute(db)
  const run = await host.ended(id)
  expect(nodeOf(waiting, 'call').id).toBe(nodeOf(run, 'call').id)
  expect((await list(run)).content).toMatchObject([
    { attempt: 1, status: 'FAILED', error: { type: 'Http503' } },
    { attempt: 2, status: 'UNKNOWN', startedAt: null, endedAt: null, error: null, counted: false },
    { attempt: 3, status: 'SUCCESS', startedAt: null },
  ])
})

test('they are for those who may read the execution; others get 404 or 400', async () => {
  const run = await host.run(graph({ config: { url: `${world.url}/ok` } }))
  const ask = async (path: string, as?: string) => (await host.request(path, as ? { as } : {})).status
  const path = pathOf(run)
  expect(await ask(path, host.admin)).toBe(200)
  expect(await ask(`${path}?size=101`, host.admin)).toBe(400)
  expect(await ask(path.replace(nodeOf(run, 'call').id, run.id), host.admin)).toBe(404)
  expect(await ask(path)).toBe(401)
})
