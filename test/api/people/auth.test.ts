import { SignJWT } from 'jose'
import { expect, test } from 'vitest'
import { SESSION_COOKIE } from '../../../api/people/session.ts'
import { countWaitingHashes, queueHashing } from '../../../db/people/passwords.ts'
import { purposeKey } from '../../../db/seal.ts'
import { keep } from '../../support/keep.ts'
import { PASSWORD, readCookie, startService } from '../../support/service.ts'
import { until } from '../../support/until.ts'

const service = await keep(startService())

const tokensPath = () => `/api/teams/${service.teamId}/sdk-tokens`
const login = (json: unknown, ip?: string) =>
  service.app.request(
    '/api/auth/login',
    { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(json) },
    ip ? { incoming: { socket: { remoteAddress: ip } } } : undefined,
  )

test('login returns the user with their teams and sets an HttpOnly cookie', async () => {
  const response = await login({ email: 'ADMIN@example.com', password: PASSWORD })
  expect(response.status).toBe(200)
  expect(await response.json()).toEqual({
    id: service.user.id,
    firstName: 'Grace',
    lastName: 'Hopper',
    email: 'admin@example.com',
    teams: [{ teamId: service.teamId, teamName: 'Default', role: 'ADMIN' }],
  })
  const cookie = response.headers.getSetCookie()[0]!
  expect(cookie).toMatch(
    /^perdure_session=[\w-]+\.[\w-]+\.[\w-]+; Path=\/; Expires=.*; HttpOnly; SameSite=Lax$/,
  )
  expect((await service.request(tokensPath(), { as: readCookie(response) })).status).toBe(200)
})

test('over https the cookie is Secure, and bound to the host; sessions of before go on until they end', async () => {
  const secure = await startService({ publicUrl: 'https://perdure.example' })
  const response = await secure.request('/api/auth/login', {
    method: 'POST',
    json: { email: 'admin@example.com', password: PASSWORD },
  })
  const [cookie] = response.headers.getSetCookie()
  expect(cookie).toMatch(
    /^__Host-perdure_session=[^;]+; Path=\/; Expires=.*; HttpOnly; Secure; SameSite=Lax$/,
  )
  expect(response.headers.get('strict-transport-security')).toBeTruthy()
  const me = async (cookie: string) => (await secure.request('/api/auth/me', { headers: { cookie } })).status
  const jwt = readCookie(response).split('=')[1]!
  expect(await me(readCookie(response))).toBe(200)
  // Another host of the domain could set this one.
  expect(await me(`perdure_session=${jwt}`)).toBe(401)
  const { sid, sub } = JSON.parse(Buffer.from(jwt.split('.')[1]!, 'base64url').toString())
  const before = await new SignJWT({ sid })
    .setProtectedHeader({ alg: 'HS256', typ: 'JWT', kid: 'k1' })
    .setIssuer('perdure')
    .setAudience('perdure-api')
    .setSubject(sub)
    .setIssuedAt()
    .setExpirationTime('1h')
    .sign(purposeKey(secure.store.keys, 'session'))
  expect(await me(`perdure_session=${before}`)).toBe(200)
  expect(await me(`perdure_session=${before}; ${readCookie(response)}x`)).toBe(401)
  const old = `perdure_session=${before}`
  const renewed = await secure.request('/api/auth/refresh', { method: 'POST', headers: { cookie: old } })
  expect(renewed.headers.getSetCookie().map((line) => line.split('=')[0])).toEqual([
    '__Host-perdure_session',
    'perdure_session',
  ])
  expect(renewed.headers.getSetCookie()[1]).toContain('Max-Age=0')
  expect(await me(readCookie(renewed))).toBe(200)
  expect(await me(old)).toBe(401)
  const out = await secure.request('/api/auth/logout', { method: 'POST', as: readCookie(renewed) })
  expect(out.headers.getSetCookie()).toEqual([
    expect.stringMatching(/^__Host-perdure_session=; Max-Age=0; Path=\/; HttpOnly; Secure; SameSite=Lax$/),
  ])
  expect(await me(readCookie(renewed))).toBe(401)
  await secure.stop()
})

test('an invalid login is 400 with every field; a wrong password and an unknown e-mail get the same 401', async () => {
  const bad = await login({ email: 5 })
  expect(bad.status).toBe(400)
  const { errors } = (await bad.json()) as { errors: { path: string }[] }
  expect(errors.map((problem) => problem.path)).toEqual(['email', 'password'])
  const wrong = await login({ email: 'admin@example.com', password: 'wrong' })
  const unknown = await login({ email: 'nobody@example.com', password: 'wrong' })
  expect([wrong.status, unknown.status]).toEqual([401, 401])
  const [a, b] = [await wrong.json(), await unknown.json()] as { message: string }[]
  expect(a!.message).toBe(b!.message)
  expect((await login({ email: 'admin@example.com', password: 'x'.repeat(1025) })).status).toBe(400)
})

test('logout ends the session itself: the old cookie no longer works', async () => {
  const { cookie } = await service.signUp('ADMIN')
  expect((await service.request(tokensPath(), { as: cookie })).status).toBe(200)
  const out = await service.request('/api/auth/logout', { method: 'POST', as: cookie })
  expect(out.status).toBe(200)
  expect(out.headers.getSetCookie()[0]).toMatch(
    /^perdure_session=; Max-Age=0; Path=\/; HttpOnly; SameSite=Lax$/,
  )
  expect((await service.request(tokensPath(), { as: cookie })).status).toBe(401)
  expect((await service.request('/api/auth/refresh', { method: 'POST', as: cookie })).status).toBe(401)
  expect((await service.request('/api/auth/logout', { method: 'POST', as: cookie })).status).toBe(200)
  expect((await service.request('/api/auth/logout', { method: 'POST' })).status).toBe(200)
})

test('refresh replaces the session; of many concurrent requests only one succeeds', async () => {
  const { cookie } = await service.signUp('ADMIN')
  const responses = await Promise.all(
    Array.from({ length: 8 }, () => service.request('/api/auth/refresh', { method: 'POST', as: cookie })),
  )
  expect(responses.map((response) => response.status).sort()).toEqual([200, ...Array(7).fill(401)])
  const won = responses.find((response) => response.status === 200)!
  expect(await won.json()).toEqual({ message: expect.any(String) })
  expect((await service.request(tokensPath(), { as: readCookie(won) })).status).toBe(200)
  expect((await service.request(tokensPath(), { as: cookie })).status).toBe(401)
})

test('refresh without a cookie, or with an SDK token even beside a cookie, is 401', async () => {
  const { cookie } = await service.signUp('ADMIN')
  const sdk = await service.token('ADMIN')
  const refresh = (headers: Record<string, string>) =>
    service.request('/api/auth/refresh', { method: 'POST', headers })
  expect((await refresh({})).status).toBe(401)
  expect((await refresh({ authorization: `Bearer ${sdk}` })).status).toBe(401)
  expect((await refresh({ authorization: `Bearer ${sdk}`, cookie })).status).toBe(401)
  expect((await refresh({ cookie })).status).toBe(200)
})

test('forged, unsigned and foreign cookies, and those without an expiry, are refused', async () => {
  const { cookie, id } = await service.signUp('ADMIN')
  const [head, body, signature] = cookie.slice(SESSION_COOKIE.length + 1).split('.') as [
    string,
    string,
    string,
  ]
  const { sid } = JSON.parse(Buffer.from(body, 'base64url').toString()) as { sid: string }
  const key = purposeKey(service.store.keys, 'session').export()
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const make = (change: (jwt: SignJWT) => SignJWT, header = {}, claims = {}, secret: Uint8Array = key) =>
    change(
      new SignJWT({ sid, ...claims })
        .setProtectedHeader({ alg: 'HS256', typ: 'JWT', kid: 'k1', ...header })
        .setIssuer('perdure')
        .setAudience('perdure-api')
        .setSubject(id)
        .setIssuedAt()
        .setExpirationTime('1h'),
    ).sign(secret)
  const right = await make((jwt) => jwt)
  const noExpiry = new SignJWT({ sid })
    .setProtectedHeader({ alg: 'HS256', typ: 'JWT', kid: 'k1' })
    .setIssuer('perdure')
    .setAudience('perdure-api')
    .setSubject(id)
    .setIssuedAt()
    .sign(key)
  const forged = {
    none: `${encode({ alg: 'none', typ: 'JWT' })}.${body}.`,
    noneWithSignature: `${encode({ alg: 'none', typ: 'JWT', kid: 'k1' })}.${body}.${signature}`,
    rs256: `${encode({ alg: 'RS256', typ: 'JWT', kid: 'k1' })}.${body}.${signature}`,
    hs512: await make((jwt) => jwt, { alg: 'HS512' }),
    otherType: await make((jwt) => jwt, { typ: 'at+jwt' }),
    unknownKey: await make((jwt) => jwt, { kid: 'k2' }),
    masterKey: await make((jwt) => jwt, {}, {}, service.store.keys.byId.get('k1')!),
    changedBody: `${head}.${encode({ sid, sub: id, iss: 'perdure', aud: 'perdure-api', exp: 9e9 })}.${signature}`,
    expired: await make((jwt) => jwt.setExpirationTime('-1s')),
    issuer: await make((jwt) => jwt.setIssuer('other')),
    audience: await make((jwt) => jwt.setAudience('other')),
    otherUser: await make((jwt) => jwt.setSubject(service.user.id)),
    noExpiry: await noExpiry,
    oddSession: await make((jwt) => jwt, {}, { sid: 'not-a-uuid' }),
    garbage: 'a.b.c',
  }
  expect((await service.request(tokensPath(), { as: `${SESSION_COOKIE}=${right}` })).status).toBe(200)
  for (const [name, jwt] of Object.entries(forged)) {
    const response = await service.request(tokensPath(), { as: `${SESSION_COOKIE}=${jwt}` })
    expect([name, response.status]).toEqual([name, 401])
  }
})

test('a cookie no longer works once its session row has expired', async () => {
  const { cookie, id } = await service.signUp('ADMIN')
  await service.store.db
    .updateTable('sessions')
    .set({ expiresAt: new Date(0) })
    .where('userId', '=', id)
    .execute()
  expect((await service.request(tokensPath(), { as: cookie })).status).toBe(401)
  expect((await service.request('/api/auth/refresh', { method: 'POST', as: cookie })).status).toBe(401)
})

test('20 concurrent wrong guesses count as 20, and then the right password must wait too, but not for long', async () => {
  const { email } = await service.signUp()
  const began = Date.now() - 1
  const [here, there] = [randomAddress(), randomAddress()]
  // A guess that arrives after the first ones have been counted is refused and not counted, so they all have to
  // wait for their turn until the last one is there.
  const gate = Promise.withResolvers<void>()
  const held = Array.from({ length: 4 }, () => queueHashing(() => gate.promise))
  const before = countWaitingHashes()
  const guesses = Array.from({ length: 20 }, (_, i) => login({ email, password: `guess ${i}` }, here))
  await until(() => countWaitingHashes() === before + 20)
  gate.resolve()
  const responses = await Promise.all(guesses)
  await Promise.all(held)
  expect(new Set(responses.map((response) => response.status))).toEqual(new Set([401, 429]))
  const rows = await service.store.db
    .selectFrom('signinFailures')
    .selectAll()
    .where('failures', '=', 20)
    .where('updatedAt', '>', new Date(began))
    .execute()
  expect(rows.map((row) => row.key.split(':')[0]).sort()).toEqual(['account', 'ip'])
  const blocked = await login({ email, password: PASSWORD }, there)
  expect(blocked.status).toBe(429)
  const wait = Number(blocked.headers.get('retry-after'))
  expect(wait).toBeGreaterThan(0)
  expect(wait).toBeLessThanOrEqual(60)
  // A refused attempt is not counted and does not extend the wait.
  const after = await service.store.db
    .selectFrom('signinFailures')
    .select('failures')
    .where('key', 'like', 'acc%')
    .where('updatedAt', '>', new Date(began))
    .execute()
  expect(Math.max(...after.map((row) => row.failures))).toBe(20)
  await service.store.db
    .updateTable('signinFailures')
    .set({ blockedUntil: new Date(0) })
    .execute()
  expect((await login({ email, password: PASSWORD }, there)).status).toBe(200)
  expect((await login({ email, password: 'wrong' }, '10.0.0.3')).status).toBe(401)
})

test('guesses from one address at many accounts are throttled', async () => {
  const from = randomAddress()
  await service.store.db
    .insertInto('signinFailures')
    .values({ key: `ip:${from}`, failures: 60, blockedUntil: new Date(Date.now() + 60_000) })
    .execute()
  const body = { email: 'admin@example.com', password: PASSWORD }
  expect((await login(body, from)).status).toBe(429)
  expect((await login(body, randomAddress())).status).toBe(200)
})

test('a write with the cookie from a page of another origin is 403; the own origin and Bearer tokens pass', async () => {
  const { cookie } = await service.signUp('ADMIN')
  const sdk = await service.token('ADMIN')
  const json = { name: 'x', role: 'Viewer' }
  const write = (headers: Record<string, string>) =>
    service.request(`http://console.localhost${tokensPath()}`, { method: 'POST', json, headers })
  const at = { host: 'console.localhost', cookie }
  expect((await write({ ...at, origin: 'https://evil.example' })).status).toBe(403)
  expect((await write({ ...at, origin: 'null' })).status).toBe(403)
  expect((await write({ ...at, origin: 'http://127.0.0.1:3000' })).status).toBe(201)
  expect((await write({ ...at, origin: 'http://console.localhost' })).status).toBe(201)
  expect(
    (await write({ ...at, origin: 'https://evil.example', authorization: `Bearer ${sdk}` })).status,
  ).toBe(201)
})

test('over https a page of the same name over http is of another origin, but for this machine', async () => {
  const secure = await startService({
    publicUrl: 'https://perdure.example',
    allowedHosts: ['other.example'],
  })
  const cookie = await secure.signIn('admin@example.com')
  const write = async (host: string, origin: string) => {
    const url = `http://${host}/api/teams/${secure.teamId}`
    const init = { method: 'PUT', headers: { host, origin, cookie }, json: {} }
    return (await secure.request(url, init)).status
  }
  expect(await write('perdure.example', 'https://perdure.example')).toBe(200)
  expect(await write('other.example', 'https://other.example')).toBe(200)
  expect(await write('perdure.example', 'http://perdure.example')).toBe(403)
  expect(await write('other.example', 'http://other.example')).toBe(403)
  expect(await write('perdure.example', 'https://other.example')).toBe(403)
  expect(await write('localhost:3000', 'http://localhost:3000')).toBe(200)
  expect(await write('localhost:3000', 'http://localhost:3001')).toBe(403)
  await secure.stop()
})

/** An address without earlier failures. */
function randomAddress(): string {
  return `10.${[0, 0, 0].map(() => Math.floor(Math.random() * 256)).join('.')}`
}
