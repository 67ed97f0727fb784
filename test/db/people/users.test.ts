import { argon2Sync } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { INSTANCE_CHAIN } from '../../../db/audit/signing.ts'
import { type Database, openDatabase } from '../../../db/connection.ts'
import { Fault } from '../../../db/fault.ts'
import { checkPassword, hashPassword, queueHashing } from '../../../db/people/passwords.ts'
import { createSession, findSession, purgeSessions } from '../../../db/people/sessions.ts'
import { createTeam, readMemberships } from '../../../db/people/teams.ts'
import { createFirstAdmin, createUser, verifyPassword } from '../../../db/people/users.ts'
import { type Scope, type Store, serviceScope } from '../../../db/scope.ts'
import { cloneDatabase } from '../../support/database.ts'
import { makeKeys } from '../../support/service.ts'

let database: Awaited<ReturnType<typeof cloneDatabase>>
let pools: ReturnType<typeof openDatabase>[]
let stores: (Store & { db: Database })[]
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

const operator = () =>
  serviceScope(stores[0]!, { kind: 'SYSTEM', id: null, name: 'cli' }, [], { instanceAdmin: true })

const ada = { email: 'Ada@Example.com', password: 'correct horse', firstName: 'Ada', lastName: 'Byron' }

test('of several first starts at once only one creates the admin, the team and their audit entries', async () => {
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
  // The second head and the second entry are those of the instance's chain.
  expect(counts).toEqual([1, 1, 1, 2, 2])
  expect(await accountsMade(store)).toEqual([
    { resourceId: won[0]!.user.id, details: { email: 'root@example.com', instanceAdmin: true } },
  ])
  const row = await store.db.selectFrom('users').selectAll().executeTakeFirstOrThrow()
  expect(row).toMatchObject({
    instanceAdmin: true,
    passwordHash: expect.stringMatching(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/),
  })
  expect(await createFirstAdmin(store, input)).toBeNull()
})

/** What the instance's chain says of accounts that were made. */
const accountsMade = (store: Store & { db: Database }) =>
  store.db
    .selectFrom('auditEntries')
    .select(['resourceId', 'details'])
    .where('teamId', '=', INSTANCE_CHAIN)
    .where('action', '=', 'ACCOUNT_CREATED')
    .orderBy('seq')
    .execute()

test('an account that the operator makes has an audit entry, which says whether it is the administrator of all', async () => {
  const admin = { ...ada, email: 'boss@example.com' }
  const { id } = await createUser(operator(), admin, { instanceAdmin: true })
  expect((await accountsMade(stores[0]!)).at(-1)).toEqual({
    resourceId: id,
    details: { email: 'boss@example.com', instanceAdmin: true },
  })
  await expect(createUser(operator(), admin)).rejects.toMatchObject({ code: 'CONFLICT' })
  await expect(createUser({ ...operator(), instanceAdmin: false }, ada)).rejects.toMatchObject({
    code: 'FORBIDDEN',
  })
  expect(await accountsMade(stores[0]!)).toHaveLength(2)
})

test('an e-mail has only one account, ignoring case, also if two are created at once', async () => {
  const store = stores[0]!
  const both = await Promise.allSettled([
    createUser(operator(), ada),
    createUser(operator(), { ...ada, email: 'ada@example.COM' }),
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
  // Alternating, so that a busy machine slows down both. The shortest time of each is what the work takes.
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

test('a hash made with other parameters is still accepted, and replaced at the next sign-in', async () => {
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
  const { id } = await createUser(operator(), { ...ada, email: 'old@example.com' })
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

test('a hash is argon2id as in RFC 9106, in a PHC string that other implementations can read', async () => {
  // Made with the reference implementation: echo -n password | argon2 somesalt -id -t 2 -k 65536 -p 1 -l 32
  const phc = '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc'
  expect(await checkPassword(phc, 'password')).toEqual({ right: true, stale: true })
  expect((await checkPassword(phc, 'Password')).right).toBe(false)
  const own = await hashPassword('pässwörd\0 \u{1f40e}')
  expect(await checkPassword(own, 'pässwörd\0 \u{1f40e}')).toEqual({ right: true, stale: false })
  await expect(hashPassword('x'.repeat(1025))).rejects.toMatchObject({ code: 'INVALID' })
  await expect(checkPassword(own, 'ö'.repeat(513))).rejects.toMatchObject({ code: 'INVALID' })
})

test('only a few passwords are hashed at once, and what exceeds the queue is refused', async () => {
  let running = 0
  let most = 0
  const open: (() => void)[] = []
  const work = async () => {
    running++
    most = Math.max(most, running)
    await new Promise<void>((resolve) => open.push(resolve))
    running--
  }
  const settled = Promise.allSettled(Array.from({ length: 200 }, () => queueHashing(work)))
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

test('a call ahead of the others is neither refused with them nor waits for them', async () => {
  const order: string[] = []
  const gate = Promise.withResolvers<void>()
  const work = (name: string) => async () => {
    await gate.promise
    order.push(name)
  }
  const others = Array.from({ length: 110 }, () => queueHashing(work('other')).catch(() => {}))
  const first = queueHashing(work('ahead'), { ahead: true })
  gate.resolve()
  await first
  // Only those came before it that were at work already.
  expect(order.indexOf('ahead')).toBeLessThanOrEqual(4)
  await Promise.all(others)
  expect(order.length).toBeGreaterThan(100)
})

test('expired sessions and old failures are purged, valid sessions are kept', async () => {
  const store = stores[0]!
  const user = (await verifyPassword(store, ada.email, ada.password))!
  const nowhere = { ip: null, requestId: null, userAgent: null }
  const [living, dead] = [
    (await createSession(store, user, nowhere))!,
    (await createSession(store, user, nowhere))!,
  ]
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

test('a user who creates a team is its ADMIN; an SDK token cannot create one', async () => {
  const store = stores[0]!
  const user = (await verifyPassword(store, ada.email, ada.password))!
  const scope: Scope = {
    store,
    actor: { kind: 'USER', id: user.id, name: 'Ada' },
    userId: user.id,
    instanceAdmin: false,
    access: null,
    roles: new Map(),
    requestId: null,
    ip: null,
    userAgent: null,
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
