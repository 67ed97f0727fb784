import { argon2Sync } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openDatabase } from '../../db/connection.ts'
import { Fault } from '../../db/fault.ts'
import { checkPassword, hashPassword, queueWork } from '../../db/passwords.ts'
import type { Scope, Store } from '../../db/scope.ts'
import { createSession, findSession, purgeSessions } from '../../db/sessions.ts'
import { createTeam, readMemberships } from '../../db/teams.ts'
import { createFirstAdmin, createUser, verifyPassword } from '../../db/users.ts'
import { cloneDatabase } from '../database.ts'
import { makeKeys } from '../service.ts'

let database: Awaited<ReturnType<typeof cloneDatabase>>
let pools: ReturnType<typeof openDatabase>[]
let stores: Store[]
beforeAll(async () => {
  database = await cloneDatabase()
  const keys = makeKeys()
  pools = [1, 2].map((i) => openDatabase(database.url, { max: 4, name: `process ${i}` }))
  stores = pools.map(({ db }) => ({ db, keys }))
})
afterAll(async () => {
  for (const pool of pools) await pool.close()
  await database.drop()
})

const ada = { email: 'Ada@Example.com', password: 'correct horse', firstName: 'Ada', lastName: 'Byron' }

test('of several first starts at once one makes the admin, the team and its entry', async () => {
  const input = { ...ada, email: 'root@example.com', teamName: 'Default' }
  const made = await Promise.all([0, 1, 0, 1, 0, 1].map((i) => createFirstAdmin(stores[i]!, input)))
  const won = made.filter((one) => one !== null)
  expect(won.length).toBe(1)
  const store = stores[0]!
  expect(await readMemberships(store, won[0]!.user.id)).toEqual([
    { teamId: won[0]!.teamId, teamName: 'Default', role: 'ADMIN' },
  ])
  const counts = await Promise.all(
    (['users', 'teams', 'members', 'auditEntries', 'auditHeads'] as const).map(
      async (table) => (await store.db.selectFrom(table).selectAll().execute()).length,
    ),
  )
  expect(counts).toEqual([1, 1, 1, 1, 1])
  const row = await store.db.selectFrom('users').selectAll().executeTakeFirstOrThrow()
  expect(row).toMatchObject({
    instanceAdmin: true,
    passwordHash: expect.stringMatching(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/),
  })
  expect(await createFirstAdmin(store, input)).toBeNull()
})

test('an e-mail is one account in any case, also with two at once', async () => {
  const store = stores[0]!
  const both = await Promise.allSettled([
    createUser(store, ada),
    createUser(store, { ...ada, email: 'ada@example.COM' }),
  ])
  expect(both.map((one) => one.status).sort()).toEqual(['fulfilled', 'rejected'])
  const lost = both.find((one) => one.status === 'rejected')!
  expect((lost.reason as Fault).code).toBe('CONFLICT')
  expect(await verifyPassword(store, 'ADA@EXAMPLE.COM', ada.password)).toMatchObject({ firstName: 'Ada' })
  expect(await verifyPassword(store, ada.email, 'wrong')).toBeNull()
  expect(await verifyPassword(store, 'nobody@example.com', ada.password)).toBeNull()
})

test('an unknown user takes as long as a wrong password', async () => {
  const store = stores[0]!
  // In turn, so that a machine that is busy for a while is so for both; its least is what the work takes.
  const least = { [ada.email]: Infinity, 'nobody@example.com': Infinity }
  for (let i = 0; i < 10; i++) {
    for (const email of Object.keys(least)) {
      const start = performance.now()
      await verifyPassword(store, email, 'wrong')
      least[email] = Math.min(least[email]!, performance.now() - start)
    }
  }
  const [known, unknown] = Object.values(least) as [number, number]
  expect(Math.max(known, unknown) / Math.min(known, unknown)).toBeLessThan(2)
})

test('a hash made with other parameters still opens, and is made anew', async () => {
  const store = stores[0]!
  const nonce = Buffer.alloc(16, 7)
  const old = argon2Sync('argon2id', {
    message: 'old password',
    nonce,
    memory: 8_192,
    passes: 1,
    parallelism: 1,
    tagLength: 32,
  })
  const b64 = (bytes: Buffer) => bytes.toString('base64').replace(/=+$/, '')
  const phc = `$argon2id$v=19$m=8192,t=1,p=1$${b64(nonce)}$${b64(old)}`
  const { id } = await createUser(store, { ...ada, email: 'old@example.com' })
  const read = async () =>
    (await store.db.selectFrom('users').select('passwordHash').where('id', '=', id).executeTakeFirstOrThrow())
      .passwordHash
  await store.db.updateTable('users').set({ passwordHash: phc }).where('id', '=', id).execute()
  expect(await verifyPassword(store, 'old@example.com', 'wrong')).toBeNull()
  expect(await read()).toBe(phc)
  expect(await verifyPassword(store, 'old@example.com', 'old password')).not.toBeNull()
  expect(await read()).toContain('$m=19456,t=2,p=1$')
  expect(await verifyPassword(store, 'old@example.com', 'old password')).not.toBeNull()
})

test('argon2id is the one of RFC 9106, in a PHC string that others read', async () => {
  // Made with the reference implementation: echo -n password | argon2 somesalt -id -t 2 -k 65536 -p 1 -l 32
  const phc = '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc'
  expect(await checkPassword(phc, 'password')).toEqual({ right: true, stale: true })
  expect((await checkPassword(phc, 'Password')).right).toBe(false)
  const own = await hashPassword('pässwörd\0 \u{1f40e}')
  expect(await checkPassword(own, 'pässwörd\0 \u{1f40e}')).toEqual({ right: true, stale: false })
  await expect(hashPassword('x'.repeat(1025))).rejects.toMatchObject({ code: 'INVALID' })
  await expect(checkPassword(own, 'ö'.repeat(513))).rejects.toMatchObject({ code: 'INVALID' })
})

test('password work runs a few at a time, and a storm is turned away', async () => {
  let running = 0
  let most = 0
  const open: (() => void)[] = []
  const work = async () => {
    running++
    most = Math.max(most, running)
    await new Promise<void>((resolve) => open.push(resolve))
    running--
  }
  const asked = Array.from({ length: 200 }, () => queueWork(work))
  const settled = Promise.allSettled(asked)
  while (open.length > 0 || running > 0) {
    open.shift()?.()
    await new Promise((resolve) => setImmediate(resolve))
  }
  const outcomes = await settled
  expect(most).toBeLessThanOrEqual(4)
  const refused = outcomes.filter((one) => one.status === 'rejected')
  expect(refused.length).toBe(200 - 100 - most)
  expect(refused.every((one) => one.reason instanceof Fault && one.reason.code === 'UNAVAILABLE')).toBe(true)
})

test('expired sessions and old failures are purged, living ones stay', async () => {
  const store = stores[0]!
  const user = (await verifyPassword(store, ada.email, ada.password))!
  const [living, dead] = [await createSession(store, user.id), await createSession(store, user.id)]
  expect(living.expiresAt.getTime() - Date.now()).toBeGreaterThan(12 * 3_600_000 - 60_000)
  await store.db
    .updateTable('sessions')
    .set({ expiresAt: new Date(0) })
    .where('id', '=', dead.id)
    .execute()
  await store.db
    .insertInto('signinFailures')
    .values({ key: 'ip:old', failures: 9, blockedUntil: new Date(0), updatedAt: new Date(0) })
    .execute()
  await purgeSessions(store)
  expect((await store.db.selectFrom('sessions').select('id').execute()).map((row) => row.id)).toEqual([
    living.id,
  ])
  expect(await store.db.selectFrom('signinFailures').selectAll().execute()).toEqual([])
  expect(await findSession(store, living.id)).toMatchObject({ userId: user.id, memberships: [] })
})

test('a user makes a team and is its ADMIN; an SDK token cannot', async () => {
  const store = stores[0]!
  const user = (await verifyPassword(store, ada.email, ada.password))!
  const scope: Scope = {
    store,
    actor: { kind: 'USER', id: user.id, name: 'Ada' },
    userId: user.id,
    instanceAdmin: false,
    roles: new Map(),
    requestId: null,
    ip: null,
  }
  const team = await createTeam(scope, { name: 'Engines', description: 'Analytical' })
  expect(team).toEqual({
    id: team.id,
    name: 'Engines',
    description: 'Analytical',
    createdAt: expect.any(Date),
  })
  expect(await readMemberships(store, user.id)).toEqual([
    { teamId: team.id, teamName: 'Engines', role: 'ADMIN' },
  ])
  const token: Scope = { ...scope, actor: { kind: 'SDK_TOKEN', id: user.id, name: 't' } }
  await expect(createTeam(token, { name: 'x' })).rejects.toMatchObject({ code: 'FORBIDDEN' })
})
