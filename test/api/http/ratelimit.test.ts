import { sql } from 'kysely'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createApp } from '../../../api/app.ts'
import { findRule } from '../../../api/http/accept.ts'
import { openDatabase } from '../../../db/connection.ts'
import type { PLAN_LIMITS } from '../../../db/operation/limits.ts'
import { startListener } from '../../../worker/service/listener.ts'
import { keep } from '../../support/keep.ts'
import { type Ask, makeKeys, PASSWORD, startService } from '../../support/service.ts'

const closing: (() => Promise<unknown>)[] = []
const service = await keep(startService({ proxyHops: 1 }))
beforeEach(async () => {
  await sql`truncate request_counts`.execute(service.store.db)
  await setPlan('ENTERPRISE')
})
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const setPlan = (plan: keyof typeof PLAN_LIMITS, team = service.teamId) =>
  service.store.db.updateTable('teams').set({ plan }).where('id', '=', team).execute()

const list = (team = service.teamId) => `/api/workflows?teamId=${team}`

/** Waits for the next minute of the database's clock if this one has less than 8 s left. */
async function awaitRoom(): Promise<void> {
  const { rows } = await sql<{ left: number }>`
    select (60 - extract(second from now()))::float8 as left`.execute(service.store.db)
  const { left } = rows[0]!
  if (left < 8) await new Promise((resolve) => setTimeout(resolve, left * 1000 + 50))
}

/** The current counts, by key. */
async function readCounts(): Promise<Record<string, number>> {
  const rows = await service.store.db.selectFrom('requestCounts').select(['key', 'used']).execute()
  return Object.fromEntries(rows.map(({ key, used }) => [key, used]))
}

function readLimit({ headers }: Response) {
  const [limit, remaining, reset] = ['limit', 'remaining', 'reset'].map((name) => {
    const text = headers.get(`x-ratelimit-${name}`)
    expect([name, text]).toEqual([name, expect.stringMatching(/^\d+$/)])
    return Number(text)
  })
  expect(reset! % 60).toBe(0)
  expect(Math.abs(reset! - Date.now() / 1000)).toBeLessThan(62)
  return { limit, remaining, reset }
}

/**
 * Stands in for another API process: an app with a pool of its own on the same database, behind a real
 * listener.
 */
async function addProcess(options: { rateLimits?: boolean } = {}): Promise<string> {
  const { db, close } = openDatabase(service.database.url, { max: 10, name: 'another' })
  const app = createApp({
    store: { db, keys: service.store.keys },
    bus: service.bus,
    log: pino({ level: 'silent' }),
    publicUrl: 'http://127.0.0.1:3000',
    isReady: async () => ({ database: true, temporal: true, worker: true }),
    carryOut: async () => false,
    ...options,
  })
  const listener = await startListener(app.fetch, 0, '127.0.0.1')
  closing.push(close, () => listener.stop(1_000))
  return `http://127.0.0.1:${listener.port}`
}

test('the four plans have the limits of the specification', async () => {
  for (const [plan, limit] of [
    ['FREE', 60],
    ['TEAM', 300],
    ['BUSINESS', 1_000],
    ['ENTERPRISE', 5_000],
  ] as const) {
    await setPlan(plan)
    const response = await service.request(list(), { as: service.admin })
    expect([plan, response.status, readLimit(response).limit]).toEqual([plan, 200, limit])
  }
})

test('of 200 concurrent requests to two processes exactly 60 are admitted, each with a different remainder', async () => {
  const team = await service.otherTeam()
  await setPlan('FREE', team.teamId)
  const key = await service.token('VIEWER', team.cookie, team.teamId)
  const bases = [await addProcess(), await addProcess()]
  await awaitRoom()
  await sql`truncate request_counts`.execute(service.store.db)
  const responses = await Promise.all(
    Array.from({ length: 200 }, (_, i) =>
      fetch(`${bases[i % 2]}${list(team.teamId)}`, {
        headers: i % 4 < 2 ? { cookie: team.cookie } : { authorization: `Bearer ${key}` },
      }),
    ),
  )
  const admitted = responses.filter(({ status }) => status === 200)
  const refused = responses.filter(({ status }) => status === 429)
  expect([admitted.length, refused.length]).toEqual([60, 140])
  const left = admitted.map((response) => readLimit(response).remaining!)
  expect(left.sort((a, b) => a - b)).toEqual(Array.from({ length: 60 }, (_, i) => i))
  for (const response of refused) {
    expect(readLimit(response)).toMatchObject({ limit: 60, remaining: 0 })
    expect(response.headers.get('retry-after')).toMatch(/^([1-9]|[1-5]\d|60)$/)
    expect(await response.json()).toMatchObject({
      status: 429,
      error: 'Too Many Requests',
      message: expect.stringContaining('60 requests'),
      path: '/api/workflows',
      timestamp: expect.any(String),
    })
  }
  expect(Object.keys(await readCounts()).sort()).toEqual([`FREE_TEAMS:${team.id}`, `TEAM:${team.teamId}`])
})

test('all FREE teams of a user share the limit of one, also with tokens; those with another plan do not', async () => {
  const ada = await service.otherTeam()
  const colleague = await service.signUp()
  const { db } = service.store
  const others: string[] = []
  for (let i = 0; i < 3; i++) {
    const { body } = await service.call('POST', '/api/teams', ada.cookie, { name: `More ${i}` })
    others.push(body.id)
    await setPlan('FREE', body.id)
  }
  await db
    .insertInto('members')
    .values({ teamId: others[0]!, userId: colleague.id, role: 'OPERATOR' })
    .execute()
  await setPlan('TEAM', ada.teamId)
  await setPlan('FREE', others[0]!)
  const token = await service.token('VIEWER', ada.cookie, others[1])
  await awaitRoom()
  await sql`truncate request_counts`.execute(db)
  const ask = (team: string, as = ada.cookie) => service.request(list(team), { as })
  const statuses: number[] = []
  for (let i = 0; i < 25; i++) {
    statuses.push((await ask(others[0]!)).status)
    statuses.push((await ask(others[1]!, token)).status)
    statuses.push((await ask(others[2]!)).status)
  }
  expect(statuses).toEqual([...Array(60).fill(200), ...Array(15).fill(429)])
  const refused = await ask(others[0]!)
  expect([refused.status, readLimit(refused)]).toMatchObject([429, { limit: 60, remaining: 0 }])
  // Neither a team with another plan nor a colleague in one of the teams is concerned.
  expect((await ask(ada.teamId)).status).toBe(200)
  expect((await ask(others[0]!, colleague.cookie)).status).toBe(200)
})

test('whoever signs in on a known device counts against themselves, not against the address', async () => {
  const { email, id } = await service.signUp()
  const headers = { 'x-forwarded-for': '10.7.7.7' }
  const json = { email, password: PASSWORD }
  const signIn = (cookie = '') =>
    service.request('/api/auth/login', { method: 'POST', json, headers: { ...headers, cookie } })
  const first = await signIn()
  const device = first.headers.getSetCookie().find((line) => line.startsWith('perdure_device='))!
  await sql`truncate request_counts`.execute(service.store.db)
  expect((await signIn(device.split(';')[0])).status).toBe(200)
  expect(await readCounts()).toEqual({ [`USER:${id}`]: 1 })
})

test('the next minute begins at zero, and a new team plan applies at once', async () => {
  await awaitRoom()
  await setPlan('FREE')
  const ask = async () => (await service.request(list(), { as: service.admin })).status
  for (let i = 0; i < 60; i++) await ask()
  expect([await ask(), await ask()]).toEqual([429, 429])
  await setPlan('TEAM')
  expect(await ask()).toBe(200)
  await setPlan('FREE')
  expect(await ask()).toBe(429)
  // Pretends that a minute has passed.
  await sql`update request_counts set minute = minute - interval '1 minute'`.execute(service.store.db)
  const response = await service.request(list(), { as: service.admin })
  expect([response.status, readLimit(response).remaining]).toEqual([200, 59])
})

test('each request counts once, against the right team, user or address', async () => {
  const { teamId, admin, user, request } = service
  const other = await service.otherTeam()
  const token = await service.token('ADMIN')
  const made = await request('/api/workflows', {
    method: 'POST',
    as: admin,
    json: { teamId, name: 'w', nodes: [{ id: 'a', type: 'MANUAL_TRIGGER' }], edges: [] },
  })
  const { id: workflow } = (await made.json()) as { id: string }
  const started = await request(`/api/workflows/${workflow}/execute`, {
    method: 'POST',
    as: admin,
    json: { teamId },
  })
  const { executionId } = (await started.json()) as { executionId: string }

  const team = `TEAM:${teamId}`
  const self = `USER:${user.id}`
  const address = 'IP:10.1.2.3'
  const cases: [string, string, string, Ask, number][] = [
    [team, 'GET', list(), { as: admin }, 200],
    [team, 'GET', `/api/workflows?teamId=${teamId.toUpperCase()}`, { as: admin }, 200],
    [team, 'GET', `/api/executions/team/${teamId}`, { as: admin }, 200],
    [team, 'GET', `/api/executions/team/${teamId}?size=1000`, { as: admin }, 400],
    [team, 'POST', '/api/workflows', { as: admin, json: { teamId, name: 'w' } }, 409],
    [team, 'GET', `/api/workflows/${workflow}`, { as: admin }, 200],
    [team, 'PUT', `/api/workflows/${workflow}`, { as: admin, json: {} }, 200],
    [team, 'POST', `/api/workflows/${workflow}/execute`, { as: admin, json: { teamId } }, 202],
    [team, 'GET', `/api/executions?workflowId=${workflow}`, { as: admin }, 200],
    [team, 'GET', `/api/executions/${executionId}`, { as: admin }, 200],
    [team, 'POST', `/api/executions/${executionId}/cancel`, { as: admin }, 200],
    // A token counts against its own team, whatever the request is about.
    [team, 'GET', list(), { as: token }, 200],
    [team, 'GET', '/api/node-types', { as: token }, 200],
    [team, 'GET', list(other.teamId), { as: token }, 403],
    [team, 'GET', '/api/nowhere', { as: token }, 404],
    // The request is about no team, or about one that the caller is not a member of.
    [self, 'GET', '/api/node-types', { as: admin }, 200],
    [self, 'GET', list(other.teamId), { as: admin }, 403],
    [self, 'GET', '/api/workflows?teamId=x', { as: admin }, 400],
    [self, 'GET', `${list()}&teamId=${teamId}`, { as: admin }, 400],
    [self, 'GET', `/api/workflows/${crypto.randomUUID()}`, { as: admin }, 404],
    [self, 'GET', '/api/workflows/x', { as: admin }, 400],
    [
      self,
      'POST',
      '/api/workflows',
      { as: admin, body: '{', headers: { 'content-type': 'application/json' } },
      400,
    ],
    [self, 'POST', '/api/workflows', { as: admin, body: 'x'.repeat(2_000_000) }, 415],
    [self, 'GET', '/api/nowhere', { as: admin }, 404],
    [self, 'PATCH', '/api/workflows', { as: admin }, 405],
    [self, 'OPTIONS', '/api/workflows', { as: admin }, 204],
    [self, 'POST', '/api/auth/login', { as: admin, headers: { origin: 'https://evil.example' } }, 403],
    // No valid credentials.
    [address, 'GET', list(), {}, 401],
    [address, 'GET', list(), { as: `${token.slice(0, -1)}${token.endsWith('x') ? 'y' : 'x'}` }, 401],
    [address, 'GET', list(), { as: 'perdure_session=x' }, 401],
    [address, 'POST', '/api/auth/login', { json: { email: 'a', password: 'b' } }, 401],
    [address, 'POST', `/hooks/${workflow}/x`, {}, 404],
    [address, 'GET', '/api/nowhere', {}, 404],
    [address, 'GET', '/nowhere', {}, 404],
  ]
  for (const [key, method, path, ask, status] of cases) {
    await sql`truncate request_counts`.execute(service.store.db)
    const headers = { 'x-forwarded-for': '1.1.1.1, 10.1.2.3', ...(ask.headers as Record<string, string>) }
    const response = await request(path, { ...ask, method, headers })
    expect([method, path, response.status, await readCounts()]).toEqual([method, path, status, { [key]: 1 }])
    const { limit, remaining } = readLimit(response)
    expect([method, path, limit, remaining]).toEqual(
      key === address ? [method, path, 300, 299] : [method, path, 5_000, 4_999],
    )
  }
})

test('a user has the limit of the best plan among their teams, and of FREE without a team', async () => {
  const user = await service.signUp()
  const limit = async () => readLimit(await service.request('/api/node-types', { as: user.cookie })).limit
  expect(await limit()).toBe(60)
  const teams = [await service.otherTeam(), await service.otherTeam()]
  for (const [i, { teamId }] of teams.entries()) {
    await setPlan(i === 0 ? 'BUSINESS' : 'TEAM', teamId)
    await service.store.db
      .insertInto('members')
      .values({ teamId, userId: user.id, role: 'OPERATOR' })
      .execute()
  }
  expect(await limit()).toBe(1_000)
})

test('all addresses of an IPv6 network count as one', async () => {
  for (const last of [':1', 'ffff:1:2:3']) {
    await service.request('/nowhere', { headers: { 'x-forwarded-for': `2001:db8:a:b:${last}` } })
  }
  await service.request('/nowhere', { headers: { 'x-forwarded-for': '::ffff:10.0.0.9' } })
  await service.request('/nowhere', { headers: { 'x-forwarded-for': 'nonsense' } })
  expect(await readCounts()).toEqual({ 'IP:2001:db8:a:b::/64': 2, 'IP:10.0.0.9': 1, 'IP:unknown': 1 })
})

test('an address is refused after 300 requests, but probes, metrics and docs are not', async () => {
  await awaitRoom()
  const base = await addProcess()
  for (let i = 0; i < 6; i++) {
    const responses = await Promise.all(Array.from({ length: 50 }, () => fetch(`${base}${list()}`)))
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([401]))
  }
  expect((await fetch(`${base}${list()}`)).status).toBe(429)
  expect((await fetch(`${base}/nowhere`)).status).toBe(429)
  expect((await fetch(`${base}/api/workflows`, { method: 'OPTIONS' })).status).toBe(429)
  // A signed-in user counts against their account, not the address.
  expect((await fetch(`${base}${list()}`, { headers: { cookie: service.admin } })).status).toBe(200)
  for (const path of ['/healthz', '/readyz', '/metrics', '/api/docs']) {
    const response = await fetch(`${base}${path}`)
    expect([path, response.status === 429]).toEqual([path, false])
    readLimit(response)
  }
})

test('probes, metrics, docs and the console do not count', async () => {
  for (const path of ['/healthz', '/readyz', '/metrics', '/api/docs', '/api/docs/x', '/', '/console/x']) {
    readLimit(await service.request(path, { as: service.admin }))
  }
  expect(await readCounts()).toEqual({})
})

test('with the limits switched off no request is refused, and the headers are still sent', async () => {
  await awaitRoom()
  await setPlan('FREE')
  const base = await addProcess({ rateLimits: false })
  const headers = { cookie: service.admin }
  const responses = await Promise.all(
    Array.from({ length: 80 }, () => fetch(`${base}${list()}`, { headers })),
  )
  expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]))
  expect(readLimit(await fetch(`${base}${list()}`, { headers }))).toMatchObject({ limit: 60, remaining: 0 })
})

test('the counts of old minutes are removed', async () => {
  const { db } = service.store
  await sql`insert into request_counts (key, minute, used)
    select 'IP:old', date_trunc('minute', now()) - n * interval '1 minute', 1 from generate_series(3, 9) n`.execute(
    db,
  )
  // The first request of a minute in a new process removes old counts.
  await fetch(`${await addProcess()}/nowhere`)
  await expect
    .poll(async () => (await sql`select from request_counts where key = 'IP:old'`.execute(db)).rows.length)
    .toBe(2)
})

test("only the instance's admin sees the counts of this minute", async () => {
  await awaitRoom()
  const { admin, teamId, request } = service
  const other = await service.otherTeam()
  await setPlan('FREE', other.teamId)
  await sql`truncate request_counts`.execute(service.store.db)
  for (let i = 0; i < 3; i++) await request(list(), { as: admin })
  for (let i = 0; i < 62; i++) await request(list(other.teamId), { as: other.cookie })
  await request('/nowhere', { headers: { 'x-forwarded-for': '10.0.0.1' } })
  const read = async (query = '') =>
    (await (await request(`/api/admin/rate-limits${query}`, { as: admin })).json()) as {
      content: Record<string, unknown>[]
      totalElements: number
    }
  const resetAt = expect.stringMatching(/:00\.000Z$/)
  const { content, totalElements } = await read()
  expect(totalElements).toBe(5)
  const full = { limit: 60, used: 60, remaining: 0, resetAt }
  expect(content.slice(0, 2)).toMatchObject([
    { kind: 'FREE_TEAMS', id: other.id, name: other.email, ...full },
    { kind: 'TEAM', id: other.teamId, ...full },
  ])
  expect(content.slice(2)).toEqual([
    { kind: 'TEAM', id: teamId, name: 'Default', limit: 5_000, used: 3, remaining: 4_997, resetAt },
    { kind: 'IP', id: '10.0.0.1', name: null, limit: 300, used: 1, remaining: 299, resetAt },
    {
      kind: 'USER',
      id: service.user.id,
      name: 'admin@example.com',
      limit: 5_000,
      used: 1,
      remaining: 4_999,
      resetAt,
    },
  ])
  expect(await read('?size=1&page=2')).toMatchObject({
    content: [{ id: teamId }],
    totalElements: 5,
    totalPages: 5,
    number: 2,
    size: 1,
  })
  const token = await service.token('ADMIN')
  for (const as of [other.cookie, token]) {
    expect((await request('/api/admin/rate-limits', { as })).status).toBe(403)
  }
  expect((await request('/api/admin/rate-limits')).status).toBe(401)
})

test('while PostgreSQL is unreachable only requests that must be counted are 503, and all have the headers', async () => {
  const { db, close } = openDatabase('postgres://postgres@127.0.0.1:1/nowhere', { max: 1, name: 'test' })
  closing.push(close)
  const app = createApp({
    store: { db, keys: makeKeys() },
    bus: service.bus,
    log: pino({ level: 'silent' }),
    publicUrl: 'http://127.0.0.1:3000',
    isReady: async () => ({ database: false, temporal: true, worker: true }),
    carryOut: async () => false,
  })
  const token = await service.token('ADMIN')
  for (const [path, headers, status] of [
    ['/healthz', {}, 200],
    ['/nowhere', {}, 404],
    [list(), { authorization: `Bearer ${token}` }, 503],
    [list(), {}, 503],
    ['/readyz', {}, 503],
  ] as const) {
    const response = await app.request(path, { headers })
    expect([path, response.status]).toEqual([path, status])
    readLimit(response)
    if (status === 503) expect(response.headers.get('retry-after')).toMatch(/^[1-9]\d*$/)
  }
})

test('every route that requires a role says which team it is about', () => {
  const silent: string[] = []
  let ruled = 0
  for (const { method, path, handler } of service.app.routes) {
    const rule = findRule(handler)
    if (!rule || !['member', 'VIEWER', 'OPERATOR', 'BUILDER', 'ADMIN'].includes(rule.role)) continue
    ruled++
    const named = [rule.params, rule.query, rule.json].some((schema) => {
      const entries = Object((schema as { entries?: object } | undefined)?.entries)
      return 'teamId' in entries || 'workflowId' in entries
    })
    if (!named && !(rule.of && path.includes('/:id'))) silent.push(`${method} ${path}`)
  }
  expect(ruled).toBeGreaterThan(10)
  expect(silent).toEqual([])
})
