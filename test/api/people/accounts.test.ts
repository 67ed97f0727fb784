import { randomBytes, randomInt } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { keep } from '../../support/keep.ts'
import { PASSWORD, readCookie, startService } from '../../support/service.ts'

const service = await keep(startService({ signUp: 'open', emailProof: () => 'none' }))

type Json = Record<string, unknown>
const person = () => ({
  firstName: 'Ada',
  lastName: 'Byron',
  email: `${randomBytes(6).toString('hex')}@example.com`,
  password: PASSWORD,
})
const register = (json: unknown) => service.call('POST', '/api/auth/register', undefined, json)
const login = async (email: string, password: string) => {
  const response = await service.request('/api/auth/login', { method: 'POST', json: { email, password } })
  return response.status === 200 ? readCookie(response) : response.status
}

const paths = (body: Json) => [...new Set((body.errors as { path: string }[]).map(({ path }) => path))]

test('a stranger creates an account, which has no team and no rights, and signs in', async () => {
  const ada = person()
  const made = await register({ ...ada, instanceAdmin: true, id: service.user.id, teams: [{}] })
  expect(made.status).toBe(201)
  expect(made.headers.getSetCookie()).toEqual([])
  const { password: _, ...shown } = ada
  expect(made.body).toEqual({ id: expect.stringMatching(/^[\da-f-]{36}$/), ...shown })
  const cookie = (await login(ada.email, ada.password)) as string
  const me = await service.call('GET', '/api/auth/me', cookie)
  const createdAt = expect.stringMatching(/\.\d{3}Z$/)
  const more = { instanceAdmin: false, emailConfirmed: true, pendingEmail: null, createdAt, teams: [] }
  expect(me.body).toEqual({ ...shown, id: made.body.id, ...more })
  expect((await register({ ...person(), email: ada.email.toUpperCase() })).status).toBe(409)
  const twice = person()
  const both = await Promise.all([register(twice), register(twice)])
  expect(both.map(({ status }) => status).sort()).toEqual([201, 409])
})

test('every invalid field is named; common and short passwords are refused, unusual ones are not', async () => {
  const nothing = await register({})
  expect([nothing.status, paths(nothing.body)]).toEqual([400, ['firstName', 'lastName', 'email', 'password']])
  const wrong = await register({
    firstName: ' ',
    lastName: 'x'.repeat(101),
    email: 'ada@',
    password: 'short',
  })
  expect(paths(wrong.body)).toEqual(['firstName', 'lastName', 'email', 'password'])
  for (const password of [
    'elevenchars',
    'password1234',
    'Password1234!',
    'aaaaaaaaaaaa',
    '123456789012',
    'qwertyuiop12',
    'perdureperdure',
    `a${'\u00e4'.repeat(512)}`,
  ]) {
    const { status, body } = await register({ ...person(), password })
    expect([password, status, status === 400 && paths(body)]).toEqual([password, 400, ['password']])
  }
  // A user's own name and e-mail are among the first guesses.
  const own = { firstName: 'Wilhelmine', lastName: 'Oberhuber', email: 'wilhelmine.oberhuber@example.com' }
  expect((await register({ ...own, password: 'wilhelmineoberhuber' })).status).toBe(400)
  for (const password of ['twelve marks', 'жить трудно 🐎', 'no capitals no digits', 'tab\tand nul\0'])
    expect([password, (await register({ ...person(), password })).status]).toEqual([password, 201])
})

test('all usual characters are accepted in an e-mail, and its domain must have a dot', async () => {
  for (const [email, status] of [
    [`o'brien+x_${randomBytes(4).toString('hex')}@mail-1.example.co.uk`, 201],
    ['ada@localhost', 400],
    ['ada@b.c', 400],
    ['a b@example.com', 400],
    ['"a b"@example.com', 400],
  ] as const) {
    expect([email, (await register({ ...person(), email })).status]).toEqual([email, status])
  }
})

test('if SIGNUP is closed nobody can create an account', async () => {
  const closed = await startService()
  const response = await closed.request('/api/auth/register', { method: 'POST', json: person() })
  expect(response.status).toBe(403)
  await closed.stop()
})

test('while sign-up is closed no body is read and no password estimated', async () => {
  const closed = await startService()
  for (const body of ['{', 'x'.repeat(3_000_000)]) {
    const headers = { 'content-type': 'application/json' }
    const response = await closed.request('/api/auth/register', { method: 'POST', headers, body })
    expect(response.status).toBe(403)
  }
  await closed.stop()
})

describe('sign-up that is open by default', () => {
  async function startOpen(options: Parameters<typeof startService>[0] = {}) {
    const openByDefault = { signUp: true, loopback: true }
    const open = await startService({ signUp: 'open', openByDefault, ...options })
    const signUp = async (headers: Record<string, string> = {}) =>
      (await open.request('/api/auth/register', { method: 'POST', json: person(), headers })).status
    return { ...open, signUp }
  }

  test.each([
    'Forwarded',
    'X-Forwarded-For',
    'X-Forwarded-Host',
    'X-Forwarded-Something',
    'X-Real-IP',
    'Via',
  ])('is closed by the first request with %s, whatever it asks for', async (name) => {
    const open = await startOpen()
    expect(await open.signUp()).toBe(201)
    // A request that is refused for its Host, and for a path that does not exist.
    await open.app.request('/nothing', { headers: { host: 'evil.example', [name]: 'x' } })
    expect(await open.signUp()).toBe(403)
    await open.request('/healthz', { headers: { [name]: 'y' } })
    const header = name.toLowerCase()
    expect(open.exposure.why()).toBe(`a request came through a proxy (it had the header ${header})`)
    const { status, body } = await open.call('POST', '/api/auth/register', undefined, person())
    expect(status).toBe(403)
    expect(body.message).toMatch(/^Sign-up is closed since a request came .*\. To open it, set SIGNUP=open$/)
    await open.stop()
  })

  test('stays open with headers that a browser sends, and with proxies that are announced', async () => {
    const open = await startOpen()
    await open.request('/healthz', {
      headers: { 'X-Requested-With': 'x', 'X-Forward': 'x', Origin: 'http://a.example' },
    })
    expect([await open.signUp(), open.exposure.why()]).toEqual([201, null])
    await open.stop()
    const proxied = await startOpen({ proxyHops: 1 })
    expect(await proxied.signUp({ 'X-Forwarded-For': '203.0.113.7' })).toBe(201)
    expect(proxied.exposure.why()).toBeNull()
    await proxied.stop()
  })

  test('stays open if an operator has opened it', async () => {
    const open = await startOpen({ openByDefault: { signUp: false, loopback: true } })
    expect(await open.signUp({ 'X-Forwarded-For': '203.0.113.7' })).toBe(201)
    expect(open.exposure.why()).not.toBeNull()
    await open.stop()
  })
})

test('sign-ups are throttled by address', async () => {
  const from = (ip: string) =>
    service.app.request(
      '/api/auth/register',
      {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ ...person(), email: 'admin@example.com' }),
      },
      { incoming: { socket: { remoteAddress: ip } } },
    )
  const guessed = `192.0.2.${randomInt(3, 255)}`
  await service.store.db
    .insertInto('signinFailures')
    .values({ key: `signup:${guessed}`, failures: 57, blockedUntil: new Date(0) })
    .execute()
  expect((await from(guessed)).status).toBe(409)
  const refused = await from(guessed)
  expect(refused.status).toBe(429)
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  expect((await from('192.0.2.2')).status).toBe(409)
})

test('names are changed without the password, the e-mail only with it', async () => {
  const { cookie, email } = await service.signUp('OPERATOR')
  const put = (json: unknown) => service.call('PUT', '/api/auth/me', cookie, json)
  const before = (await service.call('GET', '/api/auth/me', cookie)).body
  const renamed = await put({ ...before, firstName: ' Augusta ', instanceAdmin: true, teams: [] })
  expect([renamed.status, renamed.body]).toEqual([200, { ...before, firstName: 'Augusta' }])
  const fresh = person().email
  const bare = await put({ email: fresh })
  expect([bare.status, paths(bare.body)]).toEqual([400, ['currentPassword']])
  expect(paths((await put({ email: fresh, currentPassword: 'wrong' })).body)).toEqual(['currentPassword'])
  expect((await put({ email: 'ADMIN@example.com', currentPassword: PASSWORD })).status).toBe(409)
  const moved = await put({ email: fresh, currentPassword: PASSWORD })
  expect([moved.status, moved.body.email]).toEqual([200, fresh])
  expect(await login(email, PASSWORD)).toBe(401)
  expect(await login(fresh, PASSWORD)).toMatch(/=/)
  expect((await put({ firstName: '', email: 'x' })).status).toBe(400)
})

test('a new password ends the other sessions, and the old password no longer works', async () => {
  const { cookie, email } = await service.signUp('BUILDER')
  const others = (await Promise.all([1, 2].map(() => login(email, PASSWORD)))) as string[]
  const change = (json: unknown, as = cookie) => service.call('POST', '/api/auth/password', as, json)
  const newPassword = 'another horse entirely'
  const poor = await change({ currentPassword: PASSWORD, newPassword: 'password1234' })
  expect([poor.status, paths(poor.body)]).toEqual([400, ['newPassword']])
  const wrong = await change({ currentPassword: 'wrong', newPassword })
  expect([wrong.status, paths(wrong.body)]).toEqual([400, ['currentPassword']])
  expect((await service.call('GET', '/api/auth/me', others[0])).status).toBe(200)
  const changed = await change({ currentPassword: PASSWORD, newPassword })
  expect([changed.status, changed.body]).toEqual([200, { message: 'Password changed' }])
  expect((await service.call('GET', '/api/auth/me', cookie)).status).toBe(200)
  for (const as of others) {
    expect((await service.call('GET', '/api/auth/me', as)).status).toBe(401)
    expect((await service.call('POST', '/api/auth/refresh', as)).status).toBe(401)
  }
  expect(await login(email, PASSWORD)).toBe(401)
  expect(await login(email, newPassword)).toMatch(/=/)
})

test('a session that is extended while the password changes does not outlive the change', async () => {
  const { cookie, email } = await service.signUp()
  let current = PASSWORD
  for (let round = 0; round < 5; round++) {
    const other = (await login(email, current)) as string
    const newPassword = `${PASSWORD} ${round}`
    const [changed, refreshed] = await Promise.all([
      service.call('POST', '/api/auth/password', cookie, { currentPassword: current, newPassword }),
      service.request('/api/auth/refresh', { method: 'POST', as: other }),
    ])
    expect(changed.status).toBe(200)
    if (refreshed.status === 200)
      expect((await service.call('GET', '/api/auth/me', readCookie(refreshed))).status).toBe(401)
    else expect(refreshed.status).toBe(401)
    current = newPassword
  }
})

test('guesses of the current password are throttled as at sign-in', async () => {
  const { cookie } = await service.signUp()
  const guesses = await Promise.all(
    Array.from({ length: 12 }, (_, i) =>
      service.call('POST', '/api/auth/password', cookie, {
        currentPassword: `guess ${i}`,
        newPassword: 'not so common',
      }),
    ),
  )
  const statuses = guesses.map(({ status }) => status)
  expect(statuses).toContain(429)
  expect(statuses.filter((status) => status === 400).length).toBeLessThanOrEqual(6)
})

test('the account routes refuse SDK tokens with 403, and callers without credentials with 401', async () => {
  const token = await service.token('ADMIN')
  const requests = [
    ['GET', '/api/auth/me', undefined],
    ['PUT', '/api/auth/me', { firstName: 'x' }],
    ['POST', '/api/auth/password', { currentPassword: PASSWORD, newPassword: 'another horse entirely' }],
  ] as const
  for (const [method, path, json] of requests) {
    expect((await service.call(method, path, token, json)).status).toBe(403)
    expect((await service.call(method, path, undefined, json)).status).toBe(401)
  }
})
