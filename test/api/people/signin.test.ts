import { sql } from 'kysely'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createApp } from '../../../api/app.ts'
import { openDatabase } from '../../../db/connection.ts'
import { hashPassword } from '../../../db/people/passwords.ts'
import { purgeFailures } from '../../../db/people/signin.ts'
import { keep } from '../../support/keep.ts'
import { PASSWORD, startService } from '../../support/service.ts'
import { until } from '../../support/until.ts'

const service = await keep(startService({ rateLimits: false }))
const { db } = service.store

type Try = { password?: string; cookie?: string | undefined; ip?: string; path?: string }

async function login(email: string, { password = PASSWORD, cookie, ip = '10.9.9.9' }: Try = {}) {
  const headers = { 'content-type': 'application/json', ...(cookie ? { cookie } : {}) }
  const init = { method: 'POST', headers, body: JSON.stringify({ email, password }) }
  const env = { incoming: { socket: { remoteAddress: ip } } }
  const response = await service.app.request('/api/auth/login', init, env)
  return { status: response.status, cookies: readCookies(response) }
}

/** The cookies of a response, by name, as a Cookie header has them. */
function readCookies(response: Response): Record<string, string> {
  const pairs = response.headers.getSetCookie().map((line) => line.split(';')[0]!)
  return Object.fromEntries(pairs.map((pair) => [pair.split('=')[0]!, pair]))
}

/** An account, and the device on which its owner has signed in. */
async function makeOwner() {
  const { email, id } = await service.signUp()
  const { cookies } = await login(email)
  return { email, id, device: cookies.perdure_device! }
}

const guess = (email: string, more: Try = {}) => login(email, { password: 'a wrong guess', ...more })

async function countsOf(kind: string): Promise<Record<string, number>> {
  const rows = await db
    .selectFrom('signinFailures')
    .select(['key', 'failures'])
    .where('key', 'like', `${kind}:%`)
    .execute()
  return Object.fromEntries(rows.map(({ key, failures }) => [key, failures]))
}

/** The counts of a kind, and how long each has to wait from its last failure on. */
async function readWaits(kind: string) {
  const { rows } = await sql<{ failures: number; seconds: number }>`
    select failures, extract(epoch from blocked_until - updated_at)::float8 as seconds
    from signin_failures where key like ${`${kind}:%`}`.execute(db)
  return rows
}

/** Makes whoever has failed wait for longer than a test lasts. */
const blockAll = () =>
  db
    .updateTable('signinFailures')
    .set({ blockedUntil: new Date(Date.now() + 600_000) })
    .execute()

const forget = () => db.deleteFrom('signinFailures').execute()

test('a stranger who guesses without end does not lock the owner out, not even from the same address', async () => {
  const { email, device } = await makeOwner()
  const owner: number[] = []
  const stranger: number[] = []
  for (let round = 0; round < 25; round++) {
    stranger.push((await guess(email)).status)
    owner.push((await login(email, { cookie: device })).status)
  }
  expect(owner).toEqual(Array(25).fill(200))
  expect(stranger.slice(0, 5)).toEqual(Array(5).fill(401))
  expect(stranger.filter((status) => status === 429).length).toBeGreaterThan(5)
  // The owner's success does not give the stranger new guesses.
  expect(Object.values(await countsOf('account'))[0]).toBeGreaterThanOrEqual(5)
  await forget()
})

test('an address from which many have failed is closed to strangers, and open to known devices', async () => {
  const { email, device } = await makeOwner()
  const ip = '10.1.1.1'
  await db
    .insertInto('signinFailures')
    .values({ key: `ip:${ip}`, failures: 60, blockedUntil: new Date(Date.now() + 60_000) })
    .execute()
  expect((await login(email, { ip })).status).toBe(429)
  expect((await login(email, { ip, cookie: device })).status).toBe(200)
  await forget()
})

test('a known device has its own four guesses, and counts against nobody else', async () => {
  const { email, id, device } = await makeOwner()
  const statuses: number[] = []
  for (let round = 0; round < 5; round++) statuses.push((await guess(email, { cookie: device })).status)
  expect(statuses).toEqual(Array(5).fill(401))
  expect(await readWaits('device')).toEqual([{ failures: 5, seconds: 1 }])
  await blockAll()
  expect((await login(email, { cookie: device })).status).toBe(429)
  expect(Object.keys(await countsOf('device'))).toEqual([expect.stringContaining(id)])
  expect([await countsOf('account'), await countsOf('ip')]).toEqual([{}, {}])
  // For everybody else, and on a second device, nothing has happened.
  expect((await login(email)).status).toBe(200)
  await forget()
})

test('a device is known only to those who signed in on it, and to each of them', async () => {
  const [ada, bob, eve] = [await makeOwner(), await makeOwner(), await makeOwner()]
  const shared = (await login(bob.email, { cookie: ada.device })).cookies.perdure_device!
  for (const { email } of [ada, bob, eve]) await guess(email, { cookie: shared })
  expect(Object.keys(await countsOf('device')).length).toBe(2)
  expect(Object.keys(await countsOf('account')).length).toBe(1)
  const forged = [`${shared}x`, `perdure_device=${eve.device.split('.')[1]}`, 'perdure_device=a.b.c']
  for (const cookie of forged) await guess(ada.email, { cookie })
  expect(Object.values(await countsOf('account')).sort()).toEqual([1, 3])
  await forget()
})

test('a new password makes strangers of all devices but the one on which it was changed', async () => {
  const { email, device } = await makeOwner()
  const { cookies } = await login(email)
  const newPassword = 'another horse entirely'
  const response = await service.request('/api/auth/password', {
    method: 'POST',
    as: `${cookies.perdure_session}; ${cookies.perdure_device}`,
    json: { currentPassword: PASSWORD, newPassword },
  })
  expect(response.status).toBe(200)
  await guess(email, { cookie: device })
  expect([Object.keys(await countsOf('account')).length, await countsOf('device')]).toEqual([1, {}])
  await guess(email, { cookie: readCookies(response).perdure_device })
  expect(Object.values(await countsOf('device'))).toEqual([1])
  await forget()
})

test('all processes share the counts, and know the devices of each other', async () => {
  const { email, device } = await makeOwner()
  const other = openDatabase(service.database.url, { max: 2, name: 'another' })
  const app = createApp({
    store: { db: other.db, keys: service.store.keys },
    bus: service.bus,
    log: pino({ level: 'silent' }),
    publicUrl: 'http://127.0.0.1:3000',
    rateLimits: false,
    isReady: async () => ({ database: true, temporal: true, worker: true }),
    carryOut: async () => false,
  })
  const there = async (password: string, cookie = '') => {
    const headers = { 'content-type': 'application/json', cookie }
    const body = JSON.stringify({ email, password })
    return (await app.request('/api/auth/login', { method: 'POST', headers, body })).status
  }
  expect([(await guess(email)).status, await there('a wrong guess')]).toEqual([401, 401])
  expect(Object.values(await countsOf('account'))).toEqual([2])
  await blockAll()
  expect([(await login(email)).status, await there(PASSWORD)]).toEqual([429, 429])
  expect(await there(PASSWORD, device)).toBe(200)
  await other.close()
  await forget()
})

test('all spellings of an e-mail that find the same user have one count, and so have those that find none', async () => {
  const { email } = await makeOwner()
  const [name] = email.split('@') as [string]
  const spellings = [email, email.toUpperCase(), `${name.toUpperCase()}@example.com`]
  for (const spelling of spellings) await guess(spelling)
  expect(Object.values(await countsOf('account'))).toEqual([3])
  await forget()
  for (const spelling of ['nobody@example.com', 'NOBODY@example.com', 'nobody@EXAMPLE.com'])
    await guess(spelling)
  expect(Object.values(await countsOf('account'))).toEqual([3])
  await forget()
})

test('a letter that only the database folds has no count of its own', async () => {
  const email = `admin.${crypto.randomUUID()}@example.com`
  const { id } = await service.signUp()
  await db.updateTable('users').set({ email }).where('id', '=', id).execute()
  const odd = email.replace('admin', 'admİn')
  const { rows } = await sql<{ folds: boolean }>`select lower(${odd}) = lower(${email}) as folds`.execute(db)
  await guess(email)
  await guess(odd)
  expect(Object.values(await countsOf('account'))).toEqual(rows[0]!.folds ? [2] : [1, 1])
  await forget()
})

test('strangers learn nothing of who has an account: known and unknown addresses answer alike', async () => {
  const { email } = await makeOwner()
  const run = async (address: string, ip: string) => {
    const answers: unknown[] = []
    for (let round = 0; round < 5; round++) {
      answers.push(await guess(round % 2 ? address.toUpperCase() : address, { ip }))
    }
    answers.push(await readWaits('account'))
    await blockAll()
    answers.push(await guess(address, { ip: '10.2.3.1' }))
    await forget()
    return answers
  }
  const known = await run(email, '10.2.1.1')
  expect(known).toEqual(await run('nobody.at.all@example.com', '10.2.2.1'))
  expect(known.slice(5)).toEqual([[{ failures: 5, seconds: 1 }], { status: 429, cookies: {} }])
})

test('the addresses of one /64 network are counted together, those of another apart', async () => {
  for (let host = 1; host <= 3; host++) {
    await guess(`nobody${host}@example.com`, { ip: `2001:db8:1:2::${host}` })
  }
  await guess('nobody@example.com', { ip: '2001:db8:1:3::1' })
  await guess('nobody@example.com', { ip: '::ffff:10.3.3.3' })
  expect(await countsOf('ip')).toEqual({
    'ip:2001:db8:1:2::/64': 3,
    'ip:2001:db8:1:3::/64': 1,
    'ip:10.3.3.3': 1,
  })
  await forget()
})

test('the counts of failures are few: old ones are forgotten, and the oldest if there are too many', async () => {
  const at = (minutes: number) => new Date(Date.now() - minutes * 60_000)
  const rows = Array.from({ length: 20 }, (_, i) => ({
    key: `ip:10.4.0.${i}`,
    failures: 1,
    blockedUntil: at(i),
    updatedAt: at(i),
  }))
  await db.insertInto('signinFailures').values(rows).execute()
  await purgeFailures(service.store)
  expect(Object.keys(await countsOf('ip')).length).toBe(15)
  await purgeFailures(service.store, 4)
  const left = Object.keys(await countsOf('ip')).sort()
  expect(left).toEqual([0, 1, 2, 3].map((i) => `ip:10.4.0.${i}`))
  await forget()
})

/** Holds the account while `begin` waits for it, then changes its password. Returns what `begin` resolves to. */
async function changeWhile<T>(userId: string, passwordHash: string, begin: () => Promise<T>): Promise<T> {
  let answer: Promise<T> | undefined
  await db.transaction().execute(async (tx) => {
    await tx.selectFrom('users').select('id').where('id', '=', userId).forUpdate().execute()
    answer = begin()
    await until(async () => {
      const { rows } = await sql`select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`.execute(db)
      return rows.length > 0
    })
    await tx.updateTable('users').set({ passwordHash }).where('id', '=', userId).execute()
    await tx.deleteFrom('sessions').where('userId', '=', userId).execute()
  })
  return answer!
}

test('a sign-in with the old password that waits for the change of it opens no session', async () => {
  const { email, id } = await makeOwner()
  const changed = await hashPassword('another horse entirely')
  expect((await changeWhile(id, changed, () => login(email))).status).toBe(401)
  expect(await db.selectFrom('sessions').selectAll().where('userId', '=', id).execute()).toEqual([])
  await forget()
})

test('a sign-in and a refresh that wait while the account is removed open no session', async () => {
  const removeWhile = async (id: string, begin: () => Promise<{ status: number }>) => {
    let answer: Promise<{ status: number }> | undefined
    await db.transaction().execute(async (tx) => {
      await tx.selectFrom('users').select('id').where('id', '=', id).forUpdate().execute()
      answer = begin()
      await until(async () => {
        const { rows } = await sql`select from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock'`.execute(db)
        return rows.length > 0
      })
      await tx.deleteFrom('users').where('id', '=', id).execute()
    })
    return answer!
  }
  const one = await makeOwner()
  expect((await removeWhile(one.id, () => login(one.email))).status).toBe(401)
  const two = await makeOwner()
  const { cookies } = await login(two.email)
  const refresh = () => service.call('POST', '/api/auth/refresh', cookies.perdure_session)
  expect((await removeWhile(two.id, refresh)).status).toBe(401)
  const ids = [one.id, two.id]
  expect(await db.selectFrom('sessions').selectAll().where('userId', 'in', ids).execute()).toEqual([])
  const changed = await hashPassword('another horse entirely')
  const three = await makeOwner()
  const session = (await login(three.email)).cookies.perdure_session
  const late = changeWhile(three.id, changed, () => service.call('POST', '/api/auth/refresh', session))
  expect((await late).status).toBe(401)
  expect(await db.selectFrom('sessions').selectAll().where('userId', '=', three.id).execute()).toEqual([])
  await forget()
})

test('a sign-in succeeds if meanwhile only the hash of the same password was replaced', async () => {
  const { email, id } = await makeOwner()
  const fresh = await hashPassword(PASSWORD)
  expect((await changeWhile(id, fresh, () => login(email))).status).toBe(200)
})

test('of two changes of a password at once, with the same old one, only one succeeds', async () => {
  const { email } = await makeOwner()
  const sessions = [(await login(email)).cookies, (await login(email)).cookies]
  const change = (i: number) =>
    service.call('POST', '/api/auth/password', sessions[i]!.perdure_session, {
      currentPassword: PASSWORD,
      newPassword: `another horse entirely ${i}`,
    })
  const statuses = (await Promise.all([change(0), change(1)])).map(({ status }) => status).sort()
  expect([
    [200, 400],
    [200, 401],
  ]).toContainEqual(statuses)
})
