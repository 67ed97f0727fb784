import { type ClientRequest, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { afterAll, expect, test } from 'vitest'
import { openDatabase } from '../../../db/connection.ts'
import { takeExportSlot } from '../../../db/executions/exportslots.ts'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'
import { until } from '../../support/until.ts'

const service = await keep(startService())
const url = await service.listen()
const { db } = service.store

// With a connection of its own, so that it does not hide the service's last statements.
const watcher = openDatabase(service.database.url, { max: 1, name: 'watcher' })
afterAll(() => watcher.close())

/**
 * Sends the headers of a request, and waits until the service has found its caller. The returned function
 * then sends the body and resolves to the status.
 */
async function announce(method: string, path: string, as: string, json: unknown) {
  const body = JSON.stringify(json)
  const headers = {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    ...(as.startsWith('sdk_') ? { authorization: `Bearer ${as}` } : { cookie: as }),
  }
  const since = await readClock()
  const sent: ClientRequest = request(`${url}${path}`, { method, headers, agent: false })
  const answered = new Promise<{ status: number; body: string }>((resolve, reject) => {
    sent.on('error', reject)
    sent.on('response', (response) => {
      text(response).then((body) => resolve({ status: response.statusCode!, body }), reject)
    })
  })
  sent.flushHeaders()
  await until(() => hasFoundCaller(since))
  return async () => {
    sent.end(body)
    return (await answered).status
  }
}

async function readClock(): Promise<Date> {
  const { rows } = await sql<{ now: Date }>`select clock_timestamp() as now`.execute(watcher.db)
  return rows[0]!.now
}

/** Whether a statement that finds a caller, or one that follows it, is the last one of a connection. */
async function hasFoundCaller(since: Date): Promise<boolean> {
  const { rows } = await sql`select from pg_stat_activity
    where datname = current_database() and application_name = 'test' and state = 'idle' and query_start > ${since}
      and query ~ 'from sessions s join users|sdk_tokens|request_counts'`.execute(watcher.db)
  return rows.length > 0
}

const { teamId } = service
const variable = () => ({ teamId, key: `k${crypto.randomUUID().replaceAll('-', '')}`, value: 1 })
const remove = (id: string) => service.call('DELETE', `/api/teams/${teamId}/members/${id}`, service.admin)

test('whoever is removed between the headers and the body of a request acts no more', async () => {
  const { id, cookie } = await service.signUp('ADMIN')
  const colleague = await service.signUp()
  const body = { email: colleague.email, role: 'ADMIN' }
  const send = await announce('POST', `/api/teams/${teamId}/members`, cookie, body)
  expect((await remove(id)).status).toBe(200)
  expect(await send()).toBe(403)
  const found = await db.selectFrom('members').selectAll().where('userId', '=', colleague.id).execute()
  expect(found).toEqual([])
})

test('so it is with a role that is lowered, and the lower role may do what it may', async () => {
  const { id, cookie } = await service.signUp('BUILDER')
  const sends = [
    await announce('POST', '/api/variables', cookie, variable()),
    await announce('POST', `/api/executions/team/${teamId}/cancel`, cookie, {
      filter: { status: 'PENDING' },
    }),
  ]
  const lowered = { role: 'OPERATOR' }
  expect(
    (await service.call('PUT', `/api/teams/${teamId}/members/${id}`, service.admin, lowered)).status,
  ).toBe(200)
  expect(await Promise.all(sends.map((send) => send()))).toEqual([403, 200])
})

test('so it is with a token that is revoked or has expired, or whose maker is removed', async () => {
  const maker = await service.signUp('ADMIN')
  const [revoked, expired, orphaned] = [
    await service.token('BUILDER'),
    await service.token('BUILDER'),
    await service.token('BUILDER', maker.cookie),
  ]
  const sends = [
    await announce('POST', '/api/variables', revoked, variable()),
    await announce('POST', '/api/variables', expired, variable()),
    await announce('POST', '/api/variables', orphaned, variable()),
  ]
  const hint = (token: string) => `${token.slice(0, 8)}…${token.slice(-4)}`
  await db
    .updateTable('sdkTokens')
    .set({ expiresAt: new Date(0) })
    .where('hint', '=', hint(expired))
    .execute()
  const { id } = await db
    .selectFrom('sdkTokens')
    .select('id')
    .where('hint', '=', hint(revoked))
    .executeTakeFirstOrThrow()
  const gone = await service.call('DELETE', `/api/teams/${teamId}/sdk-tokens/${id}`, service.admin)
  expect([gone.status, (await remove(maker.id)).status]).toEqual([200, 200])
  expect(await Promise.all(sends.map((send) => send()))).toEqual([401, 401, 401])
})

test('so it is with a session that is signed out, in a team and in the own account', async () => {
  const { cookie } = await service.signUp('BUILDER')
  const sends = [
    await announce('POST', '/api/variables', cookie, variable()),
    await announce('POST', '/api/teams', cookie, { name: 'Mine' }),
    await announce('PUT', '/api/auth/me', cookie, { firstName: 'Eve' }),
  ]
  expect((await service.call('POST', '/api/auth/logout', cookie)).status).toBe(200)
  expect(await Promise.all(sends.map((send) => send()))).toEqual([401, 401, 401])
})

test('what is read after the body is read with the rights of that moment', async () => {
  const { id, cookie } = await service.signUp('OPERATOR')
  // Nothing is to be cancelled, so the call only reads.
  const send = await announce('POST', `/api/executions/team/${teamId}/cancel`, cookie, {
    filter: { ids: [crypto.randomUUID()] },
  })
  expect((await remove(id)).status).toBe(200)
  expect(await send()).toBe(403)
})

test('an export that waited for its turn reads nothing for whoever was removed meanwhile', async () => {
  const { id, cookie } = await service.signUp('OPERATOR')
  const free = await takeExportSlot(db, teamId)
  const answer = service.request(`/api/executions/team/${teamId}/export?days=1`, { as: cookie })
  await until(async () => {
    const entry = await db
      .selectFrom('auditEntries')
      .select('id')
      .where('action', '=', 'EXECUTIONS_EXPORTED')
      .where('actorId', '=', id)
      .executeTakeFirst()
    return entry !== undefined
  })
  expect((await remove(id)).status).toBe(200)
  free()
  expect((await answer).status).toBe(403)
  // The slot is free again.
  const next = await service.request(`/api/executions/team/${teamId}/export?days=1`, { as: service.admin })
  expect([next.status, await next.text()]).toEqual([200, expect.any(String)])
})

test('an event whose body comes too late reaches no execution', async () => {
  const { id, cookie } = await service.signUp('OPERATOR')
  const workflow = await service.call('POST', '/api/workflows', service.admin, {
    teamId,
    name: 'Waits',
    nodes: [{ id: 'start', type: 'MANUAL_TRIGGER', config: {} }],
    edges: [],
  })
  const path = `/api/workflows/${workflow.body.id}/execute`
  const { executionId } = (await service.call('POST', path, service.admin, { teamId })).body
  const send = await announce('POST', `/api/executions/${executionId}/events/paid`, cookie, {})
  expect((await remove(id)).status).toBe(200)
  expect(await send()).toBe(403)
})

test('a removal has its turn although acts of the same team never pause', async () => {
  const { id, cookie } = await service.signUp('BUILDER')
  let removed = false
  const loops = Array.from({ length: 4 }, async () => {
    const statuses: number[] = []
    while (!removed) statuses.push((await service.call('POST', '/api/variables', cookie, variable())).status)
    return statuses
  })
  expect((await remove(id)).status).toBe(200)
  removed = true
  const statuses = new Set((await Promise.all(loops)).flat())
  expect([...statuses].filter((status) => status !== 201 && status !== 403)).toEqual([])
  expect((await service.call('POST', '/api/variables', cookie, variable())).status).toBe(403)
})

test('of all who wait for a change of rights only one keeps a connection, and all act in the end', async () => {
  const waiting = async () => {
    const { rows } = await sql`select from pg_locks where locktype = 'advisory' and not granted
      and database = (select oid from pg_database where datname = current_database())`.execute(db)
    return rows.length
  }
  let answers: Promise<{ status: number }[]> | undefined
  // As an act that takes long, such as the deletion of a workflow with very many executions.
  await watcher.db.transaction().execute(async (tx) => {
    await sql`select hold_team(${teamId}, false)`.execute(tx)
    const rename = (name: string) => service.call('PUT', `/api/teams/${teamId}`, service.admin, { name })
    const first = rename('one')
    await until(async () => (await waiting()) === 1)
    const others = Array.from({ length: 6 }, () =>
      service.call('POST', '/api/variables', service.admin, variable()),
    )
    answers = Promise.all([first, rename('two'), rename('three'), ...others])
    await sleep(200)
    expect(await waiting()).toBe(1)
  })
  expect((await answers!).map(({ status }) => status)).toEqual([200, 200, 200, ...Array(6).fill(201)])
})
