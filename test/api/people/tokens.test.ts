import { expect, test } from 'vitest'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

const service = await keep(startService())

const path = (team = service.teamId) => `/api/teams/${team}/sdk-tokens`
const create = (json: unknown, as = service.admin, team = service.teamId) =>
  service.request(path(team), { method: 'POST', as, json })

test('a token is created, shown once, listed, used and revoked', async () => {
  const made = await create({ name: 'ci', role: 'Operator', unknown: 1 })
  expect(made.status).toBe(201)
  const body = (await made.json()) as { id: string; token: string }
  expect(body).toMatchObject({ name: 'ci', role: 'Operator', lastUsedAt: null })
  expect(body.token).toMatch(/^sdk_[0-9A-Za-z]{38}$/)
  expect(body).not.toHaveProperty('unknown')
  expect(made.headers.get('location')).toBe(`${path()}/${body.id}`)
  // An OPERATOR token is valid but may not list tokens: 403, not 401.
  expect((await service.request(path(), { as: body.token })).status).toBe(403)
  const listed = await service.request(path(), { as: service.admin })
  const text = await listed.text()
  expect(text).not.toContain(body.token)
  const row = (JSON.parse(text) as { id: string; lastUsedAt: string | null }[]).find(
    ({ id }) => id === body.id,
  )
  expect(row).toMatchObject({ name: 'ci', role: 'Operator', lastUsedAt: expect.stringMatching(/\.\d{3}Z$/) })
  const gone = await service.request(`${path()}/${body.id}`, { method: 'DELETE', as: service.admin })
  expect([gone.status, await gone.json()]).toEqual([200, { message: expect.any(String) }])
  expect((await service.request(path(), { as: body.token })).status).toBe(401)
  expect(
    (await service.request(`${path()}/${body.id}`, { method: 'DELETE', as: service.admin })).status,
  ).toBe(404)
  expect(await (await service.request(path(), { as: service.admin })).text()).not.toContain(body.id)
})

test('a token is refused as soon as it is revoked, even while many requests use it', async () => {
  const { id, token } = (await (await create({ name: 'busy', role: 'Viewer' })).json()) as {
    id: string
    token: string
  }
  const ask = async () => (await service.request('/api/teams', { as: token })).status
  const many = () => Promise.all(Array.from({ length: 20 }, ask))
  expect(new Set(await many())).toEqual(new Set([200]))
  let revoked = false
  const asking = Promise.all(
    Array.from({ length: 10 }, async () => {
      const after: number[] = []
      while (after.length < 3) {
        const late = revoked
        const status = await ask()
        if (late) after.push(status)
      }
      return after
    }),
  )
  await service.request(`${path()}/${id}`, { method: 'DELETE', as: service.admin })
  revoked = true
  expect(new Set((await asking).flat())).toEqual(new Set([401]))
})

test('only a hash of the token is stored', async () => {
  const token = await service.token('VIEWER')
  const rows = await service.store.db.selectFrom('sdkTokens').selectAll().execute()
  expect(JSON.stringify(rows)).not.toContain(token.slice(8, -4))
})

test('roles are accepted in any case, and returned as the specification spells them', async () => {
  for (const role of ['Admin', 'BUILDER', 'operator', 'Viewer']) {
    const made = await create({ name: role, role })
    const { role: returned } = (await made.json()) as { role: string }
    expect(returned).toBe(role[0]!.toUpperCase() + role.slice(1).toLowerCase())
  }
  const bad = await create({ name: '', role: 'OWNER' })
  expect(bad.status).toBe(400)
  const { errors } = (await bad.json()) as { errors: { path: string }[] }
  expect(errors.map((problem) => problem.path)).toEqual(['name', 'role'])
  expect((await create({ name: 'a\0b', role: 'Viewer' })).status).toBe(400)
  expect((await create({ name: 'x'.repeat(101), role: 'Viewer' })).status).toBe(400)
})

test('only an ADMIN of the team can create, list and revoke tokens', async () => {
  const other = await service.otherTeam()
  const callers = {
    none: undefined,
    builder: (await service.signUp('BUILDER')).cookie,
    operator: (await service.signUp('OPERATOR')).cookie,
    stranger: other.cookie,
    builderToken: await service.token('BUILDER'),
    viewerToken: await service.token('VIEWER'),
    strangerToken: await service.token('ADMIN', other.cookie, other.teamId),
  }
  const target = (await (await create({ name: 't', role: 'Viewer' })).json()) as { id: string }
  for (const [name, as] of Object.entries(callers)) {
    const ask = as === undefined ? {} : { as }
    const json = { name: 'x', role: 'Viewer' }
    const responses = [
      await service.request(path(), { method: 'POST', json, ...ask }),
      await service.request(path(), ask),
      await service.request(`${path()}/${target.id}`, { method: 'DELETE', ...ask }),
    ]
    const expected = name === 'none' ? 401 : 403
    expect([name, ...responses.map((response) => response.status)]).toEqual([
      name,
      expected,
      expected,
      expected,
    ])
  }
  const adminToken = await service.token('ADMIN')
  expect((await service.request(path(), { as: adminToken })).status).toBe(200)
  // The token of another team is not found under the caller's own team.
  const own = `${path(other.teamId)}/${target.id}`
  expect((await service.request(own, { method: 'DELETE', as: other.cookie })).status).toBe(404)
})

test('an unknown team is 404, a malformed id 400', async () => {
  const nowhere = '00000000-0000-4000-8000-000000000000'
  expect((await service.request(path(nowhere), { as: service.admin })).status).toBe(404)
  expect((await create({ name: 'x', role: 'Viewer' }, service.admin, nowhere)).status).toBe(404)
  expect((await service.request(path('team'), { as: service.admin })).status).toBe(400)
  expect((await service.request(`${path()}/1`, { method: 'DELETE', as: service.admin })).status).toBe(400)
})

test('a token never has more rights than its creator, even after they are demoted or have left', async () => {
  const maker = await service.signUp('ADMIN')
  const token = await service.token('ADMIN', maker.cookie)
  expect((await service.request(path(), { as: token })).status).toBe(200)
  const membership = { teamId: service.teamId, userId: maker.id }
  const { db } = service.store
  await db.updateTable('members').set({ role: 'OPERATOR' }).where('userId', '=', maker.id).execute()
  expect((await service.request(path(), { as: token })).status).toBe(403)
  await db.deleteFrom('members').where('userId', '=', maker.id).execute()
  expect((await service.request(path(), { as: token })).status).toBe(403)
  await db
    .insertInto('members')
    .values({ ...membership, role: 'ADMIN' })
    .execute()
  expect((await service.request(path(), { as: token })).status).toBe(200)
  await db.deleteFrom('users').where('id', '=', maker.id).execute()
  expect((await service.request(path(), { as: token })).status).toBe(401)
})

test('a token that a token has made is revoked with it, and so are those that it has made itself', async () => {
  const root = await made(await create({ name: 'root', role: 'Admin' }))
  const other = await made(await create({ name: 'other', role: 'Admin' }))
  const child = await made(await create({ name: 'child', role: 'Admin' }, root.token))
  const grandchild = await made(await create({ name: 'grandchild', role: 'Admin' }, child.token))
  const works = async () =>
    Promise.all(
      [root, child, grandchild, other].map(
        async ({ token }) => (await service.request(path(), { as: token })).status,
      ),
    )
  expect(await works()).toEqual([200, 200, 200, 200])
  const revoked = await service.request(`${path()}/${root.id}`, { method: 'DELETE', as: service.admin })
  expect([revoked.status, await works()]).toEqual([200, [401, 401, 401, 200]])
  const entry = await service.store.db
    .selectFrom('auditEntries')
    .select('details')
    .where('resourceId', '=', root.id)
    .where('action', '=', 'SDK_TOKEN_REVOKED')
    .executeTakeFirstOrThrow()
  expect(entry.details).toMatchObject({ name: 'root', revokedWithIt: 2 })
})

test('a token that a token has made expires no later than its maker', async () => {
  const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
  const parent = await made(await create({ name: 'parent', role: 'Admin', expiresAt }))
  const unsaid = await made(await create({ name: 'unsaid', role: 'Viewer' }, parent.token))
  expect(unsaid.expiresAt).toBe(expiresAt)
  const sooner = new Date(Date.now() + 60_000).toISOString()
  const asked = await made(await create({ name: 'sooner', role: 'Viewer', expiresAt: sooner }, parent.token))
  expect(asked.expiresAt).toBe(sooner)
  const later = new Date(Date.now() + 7_200_000).toISOString()
  const refused = await create({ name: 'later', role: 'Viewer', expiresAt: later }, parent.token)
  const { errors } = (await refused.json()) as { errors: { path: string; message: string }[] }
  expect([refused.status, errors]).toEqual([
    400,
    [{ path: 'expiresAt', message: expect.stringContaining(expiresAt) }],
  ])
})

/** What the creation of a token responded. */
async function made(response: Response): Promise<{ id: string; token: string; expiresAt: string | null }> {
  expect(response.status).toBe(201)
  return (await response.json()) as { id: string; token: string; expiresAt: string | null }
}

test('the Bearer header is parsed strictly, and takes precedence over a cookie', async () => {
  const token = await service.token('ADMIN')
  const ask = async (authorization: string, cookie = '') =>
    (await service.request(path(), { headers: { authorization, cookie } })).status
  expect(await ask(`Bearer ${token}`)).toBe(200)
  expect(await ask(`bearer ${token}`)).toBe(200)
  const last = token.at(-1) === 'a' ? 'b' : 'a'
  const wrong = [
    token,
    'Bearer',
    'Bearer ',
    `Bearer ${token} ${token}`,
    `Bearer ${token},${token}`,
    `Bearer "${token}"`,
    `Bearer ${token.slice(0, -1)}${last}`,
    `Bearer ${token.slice(4)}`,
    `Bearer sdk_${'0'.repeat(38)}`,
    `Basic ${Buffer.from(`${token}:`).toString('base64')}`,
  ]
  for (const header of wrong) expect([header, await ask(header)]).toEqual([header, 401])
  expect(await ask('Bearer sdk_wrong', service.admin)).toBe(401)
  expect(await ask(`Bearer ${await service.token('VIEWER')}`, service.admin)).toBe(403)
})

test('lastUsedAt changes at most once a minute', async () => {
  const token = await service.token('ADMIN')
  const { db } = service.store
  const read = async () =>
    await db
      .selectFrom('sdkTokens')
      .select(['id', 'lastUsedAt'])
      .orderBy('createdAt', 'desc')
      .executeTakeFirstOrThrow()
  await Promise.all(Array.from({ length: 10 }, () => service.request(path(), { as: token })))
  const { id, lastUsedAt } = await read()
  expect(lastUsedAt).toBeInstanceOf(Date)
  await service.request(path(), { as: token })
  expect((await read()).lastUsedAt).toEqual(lastUsedAt)
  const past = new Date(Date.now() - 61_000)
  // A process looks at the token again after a minute, or if it has changed.
  await db.updateTable('sdkTokens').set({ lastUsedAt: past, name: 'old' }).where('id', '=', id).execute()
  await service.request(path(), { as: token })
  expect((await read()).lastUsedAt!.getTime()).toBeGreaterThan(past.getTime() + 60_000)
})

test('a token no longer works once it has expired', async () => {
  const inAnHour = new Date(Date.now() + 3_600_000).toISOString()
  const made = await create({ name: 'short', role: 'Admin', expiresAt: inAnHour })
  const body = (await made.json()) as { id: string; token: string; createdAt: string; expiresAt: string }
  expect([made.status, body.expiresAt]).toEqual([201, inAnHour])
  expect(body.createdAt).toMatch(/\.\d{3}Z$/)
  const list = async (as: string) => service.request(path(), { as })
  expect((await list(body.token)).status).toBe(200)
  const { db } = service.store
  await db
    .updateTable('sdkTokens')
    .set({ expiresAt: new Date(Date.now() - 1) })
    .where('id', '=', body.id)
    .execute()
  expect((await list(body.token)).status).toBe(401)
  // It is still listed, so that its team can see why it no longer works.
  const rows = (await (await list(service.admin)).json()) as { id: string; expiresAt: string | null }[]
  expect(rows.find(({ id }) => id === body.id)?.expiresAt).toMatch(/Z$/)
  const endless = await create({ name: 'endless', role: 'Viewer', expiresAt: null })
  expect(await endless.json()).toMatchObject({ expiresAt: null })
  for (const expiresAt of ['2020-01-01', 'tomorrow', 5, '', new Date().toISOString()]) {
    const response = await create({ name: 'x', role: 'Viewer', expiresAt })
    const { errors } = (await response.json()) as { errors: { path: string }[] }
    expect([expiresAt, response.status, errors.map((problem) => problem.path)]).toEqual([
      expiresAt,
      400,
      ['expiresAt'],
    ])
  }
})
