import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { createClient } from '../../support/client.ts'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

const service = await keep(startService())
const { db } = service.store
const url = await service.listen()

async function createHook(as: string, teamId: string): Promise<string> {
  const client = createClient({
    send: (path, init) => service.request(path, { as, ...init }),
    teamId,
  })
  const config = { path: 'in', files: {} }
  const id = await client.create({ nodes: [{ id: 'hook', type: 'WEBHOOK_TRIGGER', config }], edges: [] })
  await client.ask('PUT', `/api/workflows/${id}`, { active: true })
  return id
}

const own = await createHook(service.admin, service.teamId)

type Upload = { sent: ClientRequest; answer: Promise<{ status: number; body: string }> }

/** Begins to send a file of `size` bytes, and sends `now` of them. */
function begin(workflowId: string, size: number, now: number): Upload {
  const sent = request(`${url}/hooks/${workflowId}/in`, {
    method: 'POST',
    headers: { 'content-type': 'application/octet-stream', 'content-length': size },
  })
  const answer = once(sent, 'response').then(async ([first]) => {
    const response = first as IncomingMessage
    return { status: response.statusCode!, body: await text(response) }
  })
  answer.catch(() => {})
  sent.write(randomBytes(now))
  return { sent, answer }
}

const countOpen = async () =>
  (
    await sql<{
      n: number
    }>`select count(*) as n from stored_files where pieces is null and not removed`.execute(db)
  ).rows[0]!.n
const readUsage = async () =>
  (await sql<{ n: number }>`select coalesce(sum(bytes), 0)::bigint as n from file_usage`.execute(db)).rows[0]!
    .n
const countExecutions = async () =>
  (await sql<{ n: number }>`select count(*) as n from executions`.execute(db)).rows[0]!.n

test('nothing is kept of a file whose sender goes away', async () => {
  const { sent, answer } = begin(own, 1_000_000, 600_000)
  await expect.poll(countOpen, { timeout: 10_000 }).toBe(1)
  sent.destroy()
  await expect(answer).rejects.toThrow()
  await expect.poll(countOpen, { timeout: 10_000 }).toBe(0)
  expect(await readUsage()).toBe(0)
  expect(await countExecutions()).toBe(0)
})

test('a team has eight uploads under way at most, and others are not kept waiting', async () => {
  const uploads = Array.from({ length: 8 }, () => begin(own, 1_000, 500))
  await expect.poll(countOpen, { timeout: 10_000 }).toBe(8)
  // Nobody who sends slowly holds a connection to the database.
  const { rows } = await sql<{ n: number }>`
    select count(*) as n from pg_stat_activity
    where datname = current_database() and state like 'idle in transaction%'`.execute(db)
  expect(rows[0]!.n).toBe(0)
  const ninth = begin(own, 1_000, 1_000)
  expect(await ninth.answer).toMatchObject({ status: 429 })
  const stranger = await service.otherTeam()
  const other = begin(await createHook(stranger.cookie, stranger.teamId), 1_000, 1_000)
  expect(await other.answer).toMatchObject({ status: 202 })
  for (const { sent } of uploads) sent.end(randomBytes(500))
  for (const { answer } of uploads) expect(await answer).toMatchObject({ status: 202 })
  expect(await begin(own, 1_000, 1_000).answer).toMatchObject({ status: 202 })
})
