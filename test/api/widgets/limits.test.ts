import { sql } from 'kysely'
import { beforeEach, expect, test } from 'vitest'
import { VISITOR_LIMIT, WIDGET_ADDRESS_LIMIT } from '../../../db/operation/limits.ts'
import { purgeWidgetCounts } from '../../../db/widgets/caps.ts'
import { createVisiting } from '../../support/chat/visiting.ts'
import { keep } from '../../support/keep.ts'
import { startRunning } from '../../support/running.ts'

const host = await keep(startRunning())
const { addWidget, pathOf, visit, arrive, post, say } = createVisiting(host)
const { teamId, admin, call } = host
const { db } = host.store

beforeEach(async () => {
  await sql`truncate request_counts`.execute(db)
  // A minute that ends in the middle of a test would begin to count anew.
  const { rows } = await sql<{
    left: number
  }>`select (60 - extract(second from now()))::float8 as left`.execute(db)
  const { left } = rows[0]!
  if (left < 15) await new Promise((resolve) => setTimeout(resolve, left * 1000 + 50))
})

const readLimit = ({ headers }: Response) => ({
  limit: Number(headers.get('x-ratelimit-limit')),
  remaining: Number(headers.get('x-ratelimit-remaining')),
})

async function readCounts(kind: string): Promise<Record<string, number>> {
  const rows = await db.selectFrom('requestCounts').select(['key', 'used']).execute()
  return Object.fromEntries(
    rows.filter(({ key }) => key.startsWith(`${kind}:`)).map(({ key, used }) => [key, used]),
  )
}

test("visitors use up the widget's limit, which is that of the plan, and never the team's own", async () => {
  const widget = await addWidget()
  const { key, id } = widget
  await sql`truncate request_counts`.execute(db)
  for (const [plan, limit] of [
    ['TEAM', 300],
    ['ENTERPRISE', 5_000],
  ] as const) {
    await db.updateTable('teams').set({ plan }).where('id', '=', teamId).execute()
    expect(readLimit(await visit('GET', pathOf(key)))).toMatchObject({ limit })
  }
  const { token, sessionId } = await arrive(key)
  // A stream counts once, as the request that it is.
  const reply = await post(key, token, 'say x')
  expect(readLimit(reply)).toEqual({ limit: 5_000, remaining: 5_000 - 4 })
  await reply.text()
  expect(await readCounts('WIDGET')).toEqual({ [`WIDGET:${id}`]: 4 })
  expect(await readCounts('VISITOR')).toEqual({ [`VISITOR:${sessionId}`]: 1 })
  expect(Object.values(await readCounts('WIDGET_IP'))).toEqual([4])
  expect({ ...(await readCounts('TEAM')), ...(await readCounts('IP')) }).toEqual({})
  const listed = await call('GET', '/api/admin/rate-limits', admin)
  expect(listed.body.content).toContainEqual({
    ...{ kind: 'WIDGET', id, name: widget.name, limit: 5_000, used: 4, remaining: 4_996 },
    resetAt: expect.any(String),
  })
})

test('a visitor, an address and a widget are each refused above their own limit', async () => {
  const widget = await addWidget()
  const { key, id } = widget
  const { token, sessionId } = await arrive(key)
  await sql`insert into request_counts (key, minute, used)
    values (${`VISITOR:${sessionId}`}, date_trunc('minute', now()), ${VISITOR_LIMIT})`.execute(db)
  const before = await readCounts('WIDGET')
  const refused = await visit('GET', pathOf(key, '/messages'), { token })
  expect([refused.status, readLimit(refused)]).toEqual([429, { limit: VISITOR_LIMIT, remaining: 0 }])
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(refused.headers.get('access-control-allow-origin')).not.toBeNull()
  // What is refused uses up no other limit, and another visitor goes on.
  expect(await readCounts('WIDGET')).toEqual(before)
  expect((await visit('GET', pathOf(key))).status).toBe(200)
  const [address] = Object.keys(await readCounts('WIDGET_IP'))
  await sql`update request_counts set used = ${WIDGET_ADDRESS_LIMIT} where key = ${address!}`.execute(db)
  const crowded = await visit('GET', pathOf(key))
  expect([crowded.status, readLimit(crowded).limit]).toEqual([429, WIDGET_ADDRESS_LIMIT])
  const other = await addWidget()
  expect((await visit('GET', pathOf(other.key))).status).toBe(200)
  await sql`update request_counts set used = 5000 where key = ${`WIDGET:${id}`}`.execute(db)
  await sql`delete from request_counts where key = ${address!}`.execute(db)
  const full = await visit('GET', pathOf(key))
  expect([full.status, readLimit(full).limit]).toEqual([429, 5_000])
  // The team goes on all the same.
  expect((await call('GET', `/api/widgets/${id}`, admin)).status).toBe(200)
})

test('a visitor, and all of them together, post only so many messages in a day', async () => {
  const { key, id } = await addWidget({ limits: { perVisitor: 2, perDay: 3 } })
  const ada = await arrive(key)
  for (const content of ['say one', 'say two']) await say(key, ada.token, content)
  const third = await post(key, ada.token, 'say three')
  expect(third.status).toBe(429)
  expect(Number(third.headers.get('retry-after'))).toBeLessThanOrEqual(86_400)
  expect(await third.text()).toContain('too many messages today')
  const bob = await arrive(key)
  await say(key, bob.token, 'say three')
  expect((await post(key, bob.token, 'say four')).status).toBe(429)
  // What was refused has started nothing, and counts for nothing.
  const { rows } = await sql<{ who: string; used: number }>`
    select who, used from widget_counts where widget_id = ${id}`.execute(db)
  const counts = Object.fromEntries(rows.map(({ who, used }) => [who, used]))
  expect(counts).toMatchObject({ '': 3, [ada.sessionId]: 2, [bob.sessionId]: 1 })
  expect(JSON.stringify(counts)).not.toContain('127.0.0.1')
  await sql`update widget_counts set day = day - 1`.execute(db)
  await say(key, ada.token, 'say three')
  await purgeWidgetCounts(host.store)
  const left = await sql<{ used: number }>`select used from widget_counts where who = ''`.execute(db)
  expect(left.rows).toEqual([{ used: 1 }])
})

test('one address posts for at most ten visitors, and opens a hundred sessions, in a day', async () => {
  const { key, id } = await addWidget({ limits: { perVisitor: 1 } })
  const ada = await arrive(key)
  const bob = await arrive(key)
  await say(key, ada.token, 'say x')
  await sql`update widget_counts set used = 10 where widget_id = ${id} and who like 'ip %'`.execute(db)
  expect((await post(key, bob.token, 'say x')).status).toBe(429)
  await sql`update widget_counts set used = 100 where widget_id = ${id} and who like 'opened %'`.execute(db)
  expect((await visit('POST', pathOf(key, '/sessions'), { json: {} })).status).toBe(429)
})
