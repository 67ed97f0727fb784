import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { findAccessToken } from '../../../activities/credentials/oauth/token.ts'
import { createOutsides } from '../../../activities/egress/outside.ts'
import { purgeConnects } from '../../../db/credentials/connects.ts'
import { openTeamCredential } from '../../../db/credentials/open.ts'
import { keep } from '../../support/keep.ts'
import { startOidc } from '../../support/servers/oidc.ts'
import { respond, startTokenServer } from '../../support/servers/tokens.ts'
import { readCookie, startService } from '../../support/service.ts'

const outside = createOutsides({ allowLoopback: true, allow: [] })
const service = await keep(startService({ rateLimits: false, outside }))
const oidc = await keep(startOidc('http://127.0.0.1:3000/api/oauth2/callback'))
const tokens = await keep(startTokenServer())
const { store, teamId, call, request } = service
const { http } = await outside.forTeam(teamId)
const builder = await service.signUp('BUILDER')
const colleague = await service.signUp('BUILDER')

const { accessToken: _, refreshToken: __, ...unconnected } = tokens.data

async function make(data: object = unconnected, type = 'OAUTH2'): Promise<string> {
  const made = await call('POST', '/api/credentials', builder.cookie, {
    name: randomUUID(),
    type,
    teamId,
    data,
  })
  expect([made.status, made.text]).toEqual([201, expect.anything()])
  return made.body.id
}

const connect = (id: string, as = builder.cookie) => call('POST', `/api/credentials/${id}/connect`, as)

/** Begins to connect, and returns the state that goes to the authorization server. */
async function begin(id: string, as = builder.cookie): Promise<string> {
  const { status, body } = await connect(id, as)
  expect(status).toBe(200)
  return new URL(body.url).searchParams.get('state')!
}

async function comeBack(query: Record<string, string>, as: string | undefined = builder.cookie) {
  const path = `/api/oauth2/callback?${new URLSearchParams(query)}`
  const response = await request(path, as ? { as } : {})
  return { status: response.status, headers: response.headers, text: await response.text() }
}

const open = (id: string) => openTeamCredential(store, teamId, id)
const read = async (id: string) => (await call('GET', `/api/credentials/${id}`, builder.cookie)).body
const code = 'a code'

test('a credential is connected at a real authorization server, used, renewed and revoked', async () => {
  const id = await make(oidc.data)
  const check = async () =>
    (await call('POST', `/api/credentials/${id}/test?teamId=${teamId}`, builder.cookie)).body
  expect(await check()).toMatchObject({
    status: 'FAILED',
    message: expect.stringContaining('It is not connected'),
  })
  const { body } = await connect(id)
  const url = new URL(body.url)
  expect(url.href).toContain(`${oidc.url}/auth?prompt=consent&`)
  expect(Object.fromEntries(url.searchParams)).toEqual({
    prompt: 'consent',
    response_type: 'code',
    client_id: 'perdure',
    redirect_uri: 'http://127.0.0.1:3000/api/oauth2/callback',
    scope: 'openid offline_access',
    state: expect.stringMatching(/^[\w-]{43}$/),
    code_challenge: expect.stringMatching(/^[\w-]{43}$/),
    code_challenge_method: 'S256',
  })
  const back = new URL(await oidc.agree(url.href))
  const page = await comeBack(Object.fromEntries(back.searchParams))
  expect([page.status, page.text]).toEqual([200, expect.stringContaining('is connected')])
  expect(await read(id)).toMatchObject({ testStatus: 'SUCCESS', broken: null, expiresAt: expect.any(String) })

  const { data } = await open(id)
  for (const secret of [
    data.accessToken,
    data.refreshToken,
    back.searchParams.get('code')!,
    oidc.data.clientSecret,
  ])
    expect(page.text).not.toContain(secret)
  const ask = async (token: string | null) =>
    (await fetch(oidc.userUrl, { headers: { authorization: `Bearer ${token}` } })).status
  const token = await findAccessToken({ store, http }, { id, teamId })
  expect([token, await ask(token)]).toEqual([data.accessToken, 200])

  // Rotation: the old refresh token does not work any more, so what follows shows that the new one was stored.
  const renewal = {
    status: 'SUCCESS',
    message: expect.stringMatching(/^The access token was renewed; it ends at /),
  }
  expect(await check()).toMatchObject(renewal)
  expect(await check()).toMatchObject(renewal)
  const renewed = (await open(id)).data
  expect(renewed.refreshToken).not.toBe(data.refreshToken)
  expect(await ask(renewed.accessToken as string)).toBe(200)

  await oidc.revoke(renewed.refreshToken as string)
  expect(await ask(renewed.accessToken as string)).toBe(401)
  expect(await check()).toMatchObject({
    status: 'FAILED',
    message: expect.stringMatching(/invalid_grant.*Connect it again/),
  })
  expect(await read(id)).toMatchObject({
    testStatus: 'FAILED',
    broken: expect.stringContaining('invalid_grant'),
  })

  const again = new URL(await oidc.agree((await connect(id)).body.url))
  expect((await comeBack(Object.fromEntries(again.searchParams))).status).toBe(200)
  expect(await read(id)).toMatchObject({ testStatus: 'SUCCESS', broken: null })
  expect(await ask(await findAccessToken({ store, http }, { id, teamId }))).toBe(200)
  expect(oidc.grants.map(({ type, ok }) => `${type} ${ok}`)).toEqual([
    'authorization_code true',
    'refresh_token true',
    'refresh_token true',
    'refresh_token false',
    'authorization_code true',
  ])
  const { rows } = await sql<{ action: string; details: object }>`select action, details from audit_entries
    where resource_id = ${id} order by seq`.execute(store.db)
  expect(rows.map(({ action }) => action)).toEqual([
    'CREDENTIAL_CREATED',
    'CREDENTIAL_TESTED',
    'CREDENTIAL_CONNECT_BEGUN',
    'CREDENTIAL_CONNECTED',
    ...['CREDENTIAL_TESTED', 'CREDENTIAL_TESTED', 'CREDENTIAL_TESTED'],
    'CREDENTIAL_CONNECT_BEGUN',
    'CREDENTIAL_CONNECTED',
  ])
  expect(rows[3]!.details).toMatchObject({ refreshable: true })
})

test('the verifier is shown to the token server, and nothing of the state or verifier is stored in plain', async () => {
  const id = await make()
  const state = await begin(id)
  const { rows } = await sql<{ row: string }>`select credential_connects::text as row from credential_connects
    where credential_id = ${id}`.execute(store.db)
  expect(rows).toHaveLength(1)
  expect(rows[0]!.row).not.toContain(state)
  tokens.reset()
  expect((await comeBack({ state, code })).status).toBe(200)
  const { form, authorization } = tokens.asked[0]!
  expect(form).toEqual({
    grant_type: 'authorization_code',
    code,
    redirect_uri: 'http://127.0.0.1:3000/api/oauth2/callback',
    code_verifier: expect.stringMatching(/^[\w-]{43}$/),
  })
  expect(authorization).toMatch(/^Basic /)
  expect((await open(id)).data).toMatchObject({ accessToken: 'access-2', refreshToken: 'refresh-2' })
  expect(rows[0]!.row).not.toContain(form.code_verifier)
})

test('the page runs nothing, loads nothing, and shows nothing of the address', async () => {
  const id = await make()
  const evil = '<script>alert(1)</script>'
  const page = await comeBack({
    state: await begin(id),
    error: evil,
    error_description: evil,
    error_uri: evil,
  })
  expect(page.status).toBe(409)
  expect(page.text).not.toContain('script')
  const policy = page.headers.get('content-security-policy')!
  expect(policy).toMatch(/^default-src 'none'; style-src 'sha256-[^']+'; form-action 'none'; /)
  expect(page.headers.get('referrer-policy')).toBe('no-referrer')
  expect(page.headers.get('cache-control')).toBe('no-store')
})

test('only a person with the role BUILDER connects, and only what can be connected', async () => {
  const id = await make()
  const operator = await service.signUp('OPERATOR')
  expect((await connect(id, operator.cookie)).status).toBe(403)
  expect((await connect(id, await service.token('ADMIN'))).body).toMatchObject({ status: 403 })
  expect((await connect(id, (await service.otherTeam()).cookie)).status).toBe(403)
  expect((await connect(randomUUID())).status).toBe(404)
  expect((await connect(await make({ token: 't' }, 'HTTP_BEARER'))).body).toMatchObject({
    status: 409,
    message: 'Only credentials of the type OAUTH2 are connected; this is HTTP_BEARER',
  })
  const { authorizationUrl: _, tokenUrl: __, ...plain } = tokens.data
  expect((await connect(await make(plain))).body.message).toMatch(/needs authorizationUrl and tokenUrl/)
})

test('what the authorization server refuses is told, and leaves the credential as it was', async () => {
  const id = await make(tokens.data)
  for (const [error, said] of [
    ['access_denied', 'The access was denied there'],
    ['temporarily_unavailable', 'overloaded'],
    ['__proto__', 'not in the standard'],
  ] as const) {
    const page = await comeBack({ state: await begin(id), error })
    expect([page.status, page.text]).toEqual([409, expect.stringContaining(said)])
  }
  const missing = await comeBack({ state: await begin(id) })
  expect([missing.status, missing.text]).toEqual([
    409,
    expect.stringContaining('neither a code nor an error'),
  ])
  expect((await comeBack({ code })).text).toContain('without the state')
  expect((await comeBack({ state: 'x'.repeat(2_000), code: 'y'.repeat(20_000) })).status).toBe(409)
  expect((await open(id)).data).toMatchObject({ accessToken: 'access-1', refreshToken: 'refresh-1' })
})

test('a state works once, also if two come back with it at once', async () => {
  tokens.reset()
  const id = await make()
  const state = await begin(id)
  const pages = await Promise.all([1, 2, 3].map(() => comeBack({ state, code })))
  expect(pages.map(({ status }) => status).sort()).toEqual([200, 409, 409])
  expect(pages.find(({ status }) => status === 409)!.text).toContain('it has been used already')
  expect((await comeBack({ state, code })).status).toBe(409)
  expect(tokens.asked).toHaveLength(1)
})

test('a state works only in the session that began with it', async () => {
  tokens.reset()
  const id = await make()
  const state = await begin(id)
  const nobody = await comeBack({ state, code }, '')
  expect([nobody.status, nobody.text]).toEqual([401, expect.stringContaining('You are not signed in here')])
  const other = await comeBack({ state, code }, colleague.cookie)
  expect([other.status, other.text]).toEqual([409, expect.stringContaining('begun in another session')])
  const anew = await comeBack({ state, code }, await service.signIn(builder.email))
  expect([anew.status, anew.text]).toEqual([409, expect.stringContaining('begun in another session')])
  expect((await comeBack({ state, code }, await service.token('ADMIN'))).status).toBe(403)
  expect(tokens.asked).toEqual([])
  // Whoever cannot use it does not use it up.
  expect((await comeBack({ state, code })).status).toBe(200)
})

test('a session that is extended meanwhile is still the same', async () => {
  const { email } = await service.signUp('BUILDER')
  const cookie = await service.signIn(email)
  const state = await begin(await make(), cookie)
  const next = readCookie(await request('/api/auth/refresh', { method: 'POST', as: cookie }))
  expect((await comeBack({ state, code }, cookie)).status).toBe(401)
  expect((await comeBack({ state, code }, next)).status).toBe(200)
})

test('whoever comes back too late, or to a credential that is gone or changed, connects nothing', async () => {
  tokens.reset()
  const late = await make()
  const state = await begin(late)
  await sql`update credential_connects set expires_at = now() where credential_id = ${late}`.execute(store.db)
  expect((await comeBack({ state, code })).text).toContain('longer than 10 minutes')

  const gone = await make()
  const lost = await begin(gone)
  expect((await call('DELETE', `/api/credentials/${gone}`, builder.cookie)).status).toBe(200)
  expect((await comeBack({ state: lost, code })).text).toContain('the credential is gone')

  for (const data of [
    { tokenUrl: `${tokens.url}/other`, clientSecret: 'secret' },
    { clientId: 'other' },
    { authorizationUrl: 'https://b.example', clientSecret: 'secret' },
    { allowedHosts: ['b.example', 'c.example'], clientSecret: 'another' },
  ]) {
    const id = await make()
    const begun = await begin(id)
    expect((await call('PUT', `/api/credentials/${id}`, builder.cookie, { data })).status).toBe(200)
    expect((await comeBack({ state: begun, code })).text).toContain('was changed in the meantime')
  }
  expect(tokens.asked).toEqual([])
})

test('a credential that is changed while the code is exchanged keeps what was set', async () => {
  tokens.reset()
  const id = await make()
  const state = await begin(id)
  tokens.state.hold = async () => {
    tokens.state.hold = async () => {}
    await call('PUT', `/api/credentials/${id}`, builder.cookie, { data: { clientId: 'other' } })
  }
  expect((await comeBack({ state, code })).text).toContain('was changed in the meantime')
  expect((await open(id)).data).not.toHaveProperty('accessToken')
})

test('a role that is taken away meanwhile connects nothing, also while the code is exchanged', async () => {
  tokens.reset()
  const person = await service.signUp('BUILDER')
  const remove = () =>
    store.db.updateTable('members').set({ role: 'OPERATOR' }).where('userId', '=', person.id).execute()
  const id = await make()
  const [first, second] = [await begin(id, person.cookie), await begin(id, person.cookie)]
  tokens.state.hold = async () => void (await remove())
  expect((await comeBack({ state: first, code }, person.cookie)).status).toBe(403)
  expect((await comeBack({ state: second, code }, person.cookie)).status).toBe(403)
  expect(tokens.asked).toHaveLength(1)
  expect((await open(id)).data).not.toHaveProperty('accessToken')
})

test('an answer of another server is not taken', async () => {
  tokens.reset()
  const id = await make()
  for (const iss of ['https://evil.example', 'nonsense', `${tokens.url}.evil.example`, 'x'.repeat(3_000)]) {
    const page = await comeBack({ state: await begin(id), code, iss })
    expect([page.status, page.text]).toEqual([409, expect.stringContaining('Another authorization server')])
  }
  expect(tokens.asked).toEqual([])
  expect((await comeBack({ state: await begin(id), code, iss: tokens.url })).status).toBe(200)
  const named = await make({ ...unconnected, issuer: 'https://issuer.example/a' })
  expect((await comeBack({ state: await begin(named), code, iss: 'https://issuer.example/b' })).status).toBe(
    409,
  )
  expect((await comeBack({ state: await begin(named), code, iss: 'https://issuer.example/a' })).status).toBe(
    200,
  )
})

test('a token server that gives no tokens is told of, without what it wrote', async () => {
  tokens.reset()
  const id = await make()
  for (const misbehave of [
    (res: Parameters<typeof respond>[0]) =>
      respond(res, 400, { error: 'invalid_grant', error_description: 'canary' }),
    (res: Parameters<typeof respond>[0]) => respond(res, 500, 'canary'),
    (res: Parameters<typeof respond>[0]) => res.end('canary'),
    (res: Parameters<typeof respond>[0]) => res.destroy(),
  ]) {
    tokens.state.misbehave = misbehave
    const page = await comeBack({ state: await begin(id), code })
    expect([page.status, page.text]).toEqual([409, expect.stringContaining('Connect the credential again')])
    expect(page.text).not.toContain('canary')
  }
  expect((await read(id)).broken).toBeNull()
})

test('without a new refresh token that of an earlier connection is not kept, which the page tells', async () => {
  tokens.reset()
  const id = await make(tokens.data)
  tokens.state.misbehave = (res) => respond(res, 200, { access_token: 'only', expires_in: 60 })
  const page = await comeBack({ state: await begin(id), code })
  expect([page.status, page.text]).toEqual([200, expect.stringContaining('gave no refresh token')])
  const { data } = await open(id)
  expect(data.accessToken).toBe('only')
  expect(data).not.toHaveProperty('refreshToken')
})

test('a person has at most five ways open to connect a credential, and old ones are removed', async () => {
  const id = await make()
  const states = []
  for (let n = 0; n < 7; n++) states.push(await begin(id))
  const count = async () => {
    const found = sql<{
      n: number
    }>`select count(*)::int as n from credential_connects where credential_id = ${id}`
    return (await found.execute(store.db)).rows[0]!.n
  }
  expect(await count()).toBe(5)
  expect((await comeBack({ state: states[0]!, code })).status).toBe(409)
  await sql`update credential_connects set expires_at = now() where credential_id = ${id}`.execute(store.db)
  await purgeConnects(store)
  expect(await count()).toBe(0)
})

test('a test renews what can be renewed, tries the testUrl, and says what it could not do', async () => {
  tokens.reset()
  const run = async (data: object) => {
    const id = await make(data)
    const { body } = await call('POST', `/api/credentials/${id}/test?teamId=${teamId}`, builder.cookie)
    return `${body.status} ${body.message}`
  }
  const { tokenUrl: _, ...plain } = tokens.data
  expect(await run(plain)).toBe(
    'SUCCESS Its data is complete. Without a tokenUrl its token is never renewed, and nothing was tried with it',
  )
  const testUrl = `${tokens.url}/api`
  const { host } = new URL(testUrl)
  expect(await run({ ...plain, testUrl })).toMatch(`. ${host} takes it`)
  expect(await run({ ...plain, accessToken: 'other', testUrl })).toMatch(
    /^FAILED .* refuses the credential with 401/,
  )
  expect(tokens.asked).toEqual([])
  expect(await run({ ...tokens.data, testUrl })).toMatch(
    /^SUCCESS The access token was renewed; .* takes it$/,
  )
  expect(await run(tokens.data)).toMatch(/^FAILED .*invalid_grant/)
})

test('a workflow says which of its credentials cannot be used, and why', async () => {
  tokens.reset()
  const id = await make({ ...tokens.data, refreshToken: 'wrong' })
  const nodes = [
    { id: 'a', type: 'MANUAL_TRIGGER' },
    { id: 'b', type: 'HTTP_REQUEST', config: { url: 'https://api.example.com', credentialId: id } },
  ]
  const edges = [{ source: 'a', target: 'b' }]
  const made = await call('POST', '/api/workflows', builder.cookie, {
    teamId,
    name: randomUUID(),
    nodes,
    edges,
  })
  const readIt = async () => (await call('GET', `/api/workflows/${made.body.id}`, service.admin)).body
  expect(await readIt()).not.toHaveProperty('warnings')
  await call('POST', `/api/credentials/${id}/test?teamId=${teamId}`, builder.cookie)
  expect((await readIt()).warnings).toEqual([
    {
      path: 'nodes[1].config.credentialId',
      message: expect.stringMatching(
        /^names a credential that cannot be used: it got invalid_grant from .* Connect it again$/,
      ),
    },
  ])
})
