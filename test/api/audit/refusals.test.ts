import { sql } from 'kysely'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createApp } from '../../../api/app.ts'
import { flushRefusals } from '../../../db/audit/refusals/counts.ts'
import { settleRefusals } from '../../../db/audit/refusals/settle.ts'
import { INSTANCE_CHAIN } from '../../../db/audit/signing.ts'
import { openBus } from '../../../db/bus.ts'
import { openDatabase } from '../../../db/connection.ts'
import { makeChains } from '../../support/chains.ts'
import { onServer } from '../../support/database.ts'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

const service = await keep(startService({ rateLimits: false, proxyHops: 1, emailProof: () => 'none' }))
const { store, admin, call, teamId } = service
const { verdicts } = makeChains(service)

/** What the chain of a team has of refused requests, oldest first. */
async function refusalsOf(chain: string) {
  const { rows } = await sql<{
    action: string
    outcome: string
    actorKind: string
    actorId: string | null
    actorName: string
    userId: string | null
    srcIp: string | null
    userAgent: string | null
    resourceId: string | null
    // biome-ignore lint/suspicious/noExplicitAny: tests read details field by field
    details: any
  }>`select action, outcome, actor_kind, actor_id, actor_name, user_id, src_ip, user_agent, resource_id, details
    from audit_entries where team_id = ${chain} and (outcome = 'DENIED' or action = 'SIGN_IN_FAILED')
    order by seq`.execute(store.db)
  return rows
}

/** Lets the present minute be over for the counts, and settles them as the housekeeping does. */
async function settle(): Promise<void> {
  await flushRefusals(store)
  await sql`update audit_refusals set minute = minute - interval '5 minutes'`.execute(store.db)
  const failures: unknown[] = []
  await settleRefusals(store, (_, error) => failures.push(error))
  expect(failures).toEqual([])
}

/** Another process of the API, on the same database. */
async function startOther() {
  const { db, close } = openDatabase(service.database.url, { max: 5, name: 'other' })
  const bus = openBus(service.database.url, { name: 'other' })
  const other = { ...store, db }
  const app = createApp({
    store: other,
    bus,
    log: pino({ level: 'silent' }),
    publicUrl: 'http://127.0.0.1:3000',
    isReady: async () => ({ database: true, temporal: true, worker: true }),
    carryOut: async () => false,
    rateLimits: false,
  })
  const stop = async () => {
    await flushRefusals(other)
    await bus.stop()
    await close()
  }
  return { app, stop }
}

test('a flood of refused requests adds ten entries a minute and one count to a chain, and the acts of others go on', async () => {
  const stranger = await service.otherTeam()
  const other = await startOther()
  const headers = { cookie: stranger.cookie, 'x-forwarded-for': '198.51.100.1' }
  const path = `/api/teams/${teamId}/members`
  const flood = 600
  const refuse = async (app: typeof service.app) => {
    for (let i = 0; i < flood / 20; i++) expect((await app.request(path, { headers })).status).toBe(403)
  }
  const acts: number[] = []
  const act = async () => {
    for (let i = 0; i < 10; i++)
      acts.push((await call('PUT', `/api/teams/${teamId}`, admin, { name: `n${i}` })).status)
  }
  const refusing = Array.from({ length: 20 }, (_, i) => refuse(i % 2 === 0 ? service.app : other.app))
  await Promise.all([...refusing, act()])
  expect(acts).toEqual(Array(10).fill(200))
  await other.stop()
  const single = await refusalsOf(teamId)
  // The minute of an entry is the one in which its transaction began: its `ts` may lie in the next one.
  const { rows: minutes } = await sql<{ entered: number }>`
    select entered::int as entered from audit_refusals where chain_id = ${teamId} and caller like 'USER:%' and act = ''`.execute(
    store.db,
  )
  for (const { entered } of minutes) expect(entered).toBeLessThanOrEqual(10)
  expect(single).toHaveLength(minutes.reduce((sum, { entered }) => sum + entered, 0))
  expect(single.length).toBeGreaterThanOrEqual(10)
  expect(single[0]).toMatchObject({
    action: 'ACCESS_DENIED',
    outcome: 'DENIED',
    actorKind: 'USER',
    actorId: stranger.id,
    userId: stranger.id,
    srcIp: '198.51.100.1',
    details: {
      operation: 'listMembers',
      method: 'GET',
      route: '/api/teams/:teamId/members',
      needs: 'ADMIN',
      has: null,
    },
  })
  await settle()
  const counted = (await refusalsOf(teamId)).slice(single.length)
  expect(counted).toHaveLength(1)
  expect(counted[0]).toMatchObject({ action: 'ACCESS_DENIED', actorId: stranger.id, actorName: 'Ada Byron' })
  expect(counted[0]!.details.count + single.length).toBe(flood)
  expect(Date.parse(counted[0]!.details.to)).toBeGreaterThanOrEqual(Date.parse(counted[0]!.details.from))
  // Nothing is counted twice, and nothing stays behind.
  await settle()
  expect(await refusalsOf(teamId)).toHaveLength(single.length + 1)
  expect((await sql`select from audit_refusals`.execute(store.db)).rows).toHaveLength(0)
  expect(await verdicts(teamId)).toEqual([])
})

test('callers beyond the limit of a chain are counted together', async () => {
  const limited = await startService({
    refusals: { ofCaller: 2, ofChain: 3 },
    rateLimits: false,
    proxyHops: 1,
  })
  const ask = (ip: string) =>
    limited.request('/api/teams', { headers: { 'x-forwarded-for': ip, 'user-agent': 'probe/1' } })
  for (const ip of ['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4', '192.0.2.1'])
    for (let i = 0; i < 2; i++) expect((await ask(ip)).status).toBe(401)
  const read = () =>
    sql<{ action: string; srcIp: string | null; details: { count?: number; callers?: string } }>`
      select action, src_ip, details from audit_entries where outcome = 'DENIED' order by seq`.execute(
      limited.store.db,
    )
  const first = (await read()).rows
  // Within one minute; the test may begin at the end of one.
  expect(first.length).toBeGreaterThanOrEqual(3)
  expect(first.length).toBeLessThanOrEqual(6)
  await flushRefusals(limited.store)
  await sql`update audit_refusals set minute = minute - interval '5 minutes'`.execute(limited.store.db)
  await settleRefusals(limited.store, () => {})
  const sums = (await read()).rows.slice(first.length)
  expect(sums.reduce((sum, { details }) => sum + details.count!, first.length)).toBe(10)
  expect(sums.some(({ details, srcIp }) => details.callers === 'several' && srcIp === null)).toBe(true)
  await limited.stop()
})

test('the use of a revoked or expired token is noted in the chain of its team, with who had made it', async () => {
  const headers = { 'x-forwarded-for': '192.0.2.10', 'user-agent': 'curl/8' }
  const made = await call('POST', `/api/teams/${teamId}/sdk-tokens`, admin, {
    name: 'old one',
    role: 'BUILDER',
  })
  expect((await call('DELETE', `/api/teams/${teamId}/sdk-tokens/${made.body.id}`, admin)).status).toBe(200)
  const before = (await refusalsOf(teamId)).length
  expect((await call('GET', '/api/teams', made.body.token, undefined, headers)).status).toBe(401)
  const late = await call('POST', `/api/teams/${teamId}/sdk-tokens`, admin, { name: 'late', role: 'VIEWER' })
  await sql`update sdk_tokens set expires_at = now() - interval '1 day' where id = ${late.body.id}`.execute(
    store.db,
  )
  expect((await call('POST', '/api/workflows', late.body.token, { teamId })).status).toBe(401)
  const common = {
    action: 'REVOKED_TOKEN_USED',
    actorKind: 'SDK_TOKEN',
    userId: service.user.id,
    outcome: 'DENIED',
  }
  expect((await refusalsOf(teamId)).slice(before)).toMatchObject([
    {
      ...common,
      actorId: made.body.id,
      actorName: 'old one',
      srcIp: '192.0.2.10',
      userAgent: 'curl/8',
      resourceId: made.body.id,
      details: { why: 'revoked', since: expect.any(String), method: 'GET', route: '/api/teams' },
    },
    { ...common, actorId: late.body.id, details: { why: 'expired', operation: 'createWorkflow' } },
  ])
  // An invented token is nobody's.
  const invented = 'sdk_0000000000000000000000000000000000000'
  expect(
    (await call('GET', '/api/teams', invented, undefined, { 'x-forwarded-for': '192.0.2.11' })).status,
  ).toBe(401)
  expect((await refusalsOf(INSTANCE_CHAIN)).at(-1)).toMatchObject({
    action: 'ACCESS_DENIED',
    srcIp: '192.0.2.11',
  })
})

test('the use of a session that has ended is noted with whose it was', async () => {
  const { id, cookie } = await service.signUp()
  expect((await call('POST', '/api/auth/logout', cookie)).status).toBe(200)
  expect((await call('GET', `/api/teams/${teamId}`, cookie)).status).toBe(401)
  expect((await refusalsOf(INSTANCE_CHAIN)).at(-1)).toMatchObject({
    action: 'ENDED_SESSION_USED',
    actorKind: 'USER',
    actorId: id,
    resourceId: id,
    details: { operation: 'readTeam' },
  })
})

test('failures of one address beyond ten a minute are counted, and the lock of an account is an entry', async () => {
  const { id, email } = await service.signUp()
  const before = (await refusalsOf(INSTANCE_CHAIN)).length
  const login = (name: string) =>
    call(
      'POST',
      '/api/auth/login',
      undefined,
      { email: name, password: 'wrong' },
      { 'x-forwarded-for': '192.0.2.20' },
    )
  for (let i = 0; i < 5; i++) expect((await login(email)).status).toBe(401)
  const own = (await refusalsOf(INSTANCE_CHAIN)).slice(before)
  expect(own.map(({ action }) => action)).toEqual([
    ...Array(4).fill('SIGN_IN_FAILED'),
    'ACCOUNT_LOCKED',
    'SIGN_IN_FAILED',
  ])
  expect(own[4]).toMatchObject({ resourceId: id, details: { locks: 'account' }, outcome: 'DENIED' })
  for (let i = 0; i < 12; i++) expect((await login(`nobody${i}@example.com`)).status).toBe(401)
  await settle()
  const all = (await refusalsOf(INSTANCE_CHAIN))
    .slice(before)
    .filter(({ action }) => action === 'SIGN_IN_FAILED')
  const counted = all.reduce((sum, { details }) => sum + (details.count ?? 1), 0)
  expect(counted).toBe(17)
  expect(all.length).toBeLessThan(17)
  expect(all.at(-1)).toMatchObject({ outcome: 'FAILURE', actorKind: 'ANONYMOUS', srcIp: '192.0.2.20' })
  expect(await verdicts(INSTANCE_CHAIN)).toEqual([])
})

test('refusals that cannot be entered while the database takes no changes are counted, and noted when it does again', async () => {
  const stranger = await service.otherTeam()
  const headers = { 'x-forwarded-for': '192.0.2.30' }
  const path = `/api/teams/${teamId}/members`
  const before = (await refusalsOf(teamId)).length
  // As a database says it that takes no changes.
  await onServer(
    service.database.url,
    `create function refuse_entries() returns trigger language plpgsql as $$
      begin raise exception 'read-only' using errcode = 'read_only_sql_transaction'; end $$;
    create trigger refuse_entries before insert on audit_entries for each row execute function refuse_entries()`,
  )
  for (let i = 0; i < 3; i++)
    expect((await call('GET', path, stranger.cookie, undefined, headers)).status).toBe(403)
  await onServer(service.database.url, 'drop function refuse_entries cascade')
  await settle()
  const noted = (await refusalsOf(teamId)).slice(before)
  const counted = noted.reduce((sum, { details }) => sum + (details.count ?? 1), 0)
  expect(counted).toBe(3)
  expect(noted.every(({ actorId }) => actorId === stranger.id)).toBe(true)
})

test('a refusal that no chain can take is refused all the same', async () => {
  const stranger = await service.otherTeam()
  await sql`delete from audit_heads where team_id = ${teamId}`.execute(store.db)
  const before = (await refusalsOf(INSTANCE_CHAIN)).length
  expect((await call('GET', `/api/teams/${teamId}`, stranger.cookie)).status).toBe(403)
  // It goes to the instance's chain, as all that is urgent does.
  const moved = (await refusalsOf(INSTANCE_CHAIN)).slice(before)
  expect(moved).toMatchObject([{ action: 'ACCESS_DENIED', details: { brokenChain: teamId } }])
})
