import { expect, test } from 'vitest'
import { verifyAudit } from '../../../db/audit/verify/verify.ts'
import { keep } from '../../support/keep.ts'
import { type Body, shareService } from '../../support/service.ts'

const service = await keep(shareService())

const members = (teamId: string) => `/api/teams/${teamId}/members`

/** A new team, whose only member is its ADMIN. */
const openTeam = async () => {
  const ada = await service.signUp()
  const { id } = (await service.call('POST', '/api/teams', ada.cookie, { name: 'T' })).body as { id: string }
  return { ...ada, teamId: id, path: members(id) }
}

test('a member is added, listed, changed and removed; adding and changing respond with the member', async () => {
  const ada = await openTeam()
  const bob = await service.signUp()
  const added = await service.call('POST', ada.path, ada.cookie, {
    email: ` ${bob.email.toUpperCase()} `,
    role: 'OPERATOR',
    userId: ada.id,
  })
  const member = {
    userId: bob.id,
    firstName: 'Ada',
    lastName: 'Byron',
    email: bob.email,
    role: 'OPERATOR',
    joinedAt: expect.stringMatching(/\.\d{3}Z$/),
  }
  expect([added.status, added.body]).toEqual([201, member])
  expect(added.headers.get('location')).toBe(`${ada.path}/${bob.id}`)
  const listed: Body[] = (await service.call('GET', ada.path, ada.cookie)).body
  expect(listed.map(({ userId, role }) => [userId, role])).toEqual([
    [ada.id, 'ADMIN'],
    [bob.id, 'OPERATOR'],
  ])
  expect(listed[1]).toEqual(added.body)
  const changed = await service.call('PUT', `${ada.path}/${bob.id}`, ada.cookie, { role: 'BUILDER' })
  expect([changed.status, changed.body]).toEqual([200, { ...added.body, role: 'BUILDER' }])
  const removed = await service.call('DELETE', `${ada.path}/${bob.id}`, ada.cookie)
  expect([removed.status, removed.body]).toEqual([200, { message: 'Member removed' }])
  expect((await service.call('DELETE', `${ada.path}/${bob.id}`, ada.cookie)).status).toBe(404)
  expect((await service.call('PUT', `${ada.path}/${bob.id}`, ada.cookie, { role: 'ADMIN' })).status).toBe(404)
  const entries = await service.store.db
    .selectFrom('auditEntries')
    .select(['action', 'resourceType', 'resourceId', 'details'])
    .where('teamId', '=', ada.teamId)
    .orderBy('seq')
    .execute()
  expect(
    entries.slice(1).map(({ action, resourceType, resourceId }) => [action, resourceType, resourceId]),
  ).toEqual(['MEMBER_ADDED', 'MEMBER_ROLE_CHANGED', 'MEMBER_REMOVED'].map((act) => [act, 'MEMBER', bob.id]))
  expect(entries[2]?.details).toEqual({
    email: bob.email,
    ...{ from: 'OPERATOR', to: 'BUILDER' },
    ...{ changed: ['role'], before: { role: 'OPERATOR' }, after: { role: 'BUILDER' } },
  })
  expect((await verifyAudit(service.store, ada.teamId)).findings).toEqual([])
})

test('adding somebody without an account is 404, a member 409, an invalid field 400', async () => {
  const ada = await openTeam()
  const add = (json: unknown) => service.call('POST', ada.path, ada.cookie, json)
  expect((await add({ email: 'nobody@example.com', role: 'OPERATOR' })).status).toBe(404)
  expect((await add({ email: ada.email, role: 'OPERATOR' })).status).toBe(409)
  const bob = await service.signUp()
  const both = await Promise.all([1, 2, 3].map(() => add({ email: bob.email, role: 'BUILDER' })))
  expect(both.map(({ status }) => status).sort()).toEqual([201, 409, 409])
  for (const [json, paths] of [
    [{}, ['email', 'role']],
    [{ email: 'bob', role: 'VIEWER' }, ['email', 'role']],
    [{ email: bob.email, role: 'admin' }, ['role']],
    [{ email: `a\0@example.com`, role: 'ADMIN' }, ['email']],
  ] as const) {
    const { status, body } = await add(json)
    const errors = body.errors as { path: string }[]
    expect([status, [...new Set(errors.map(({ path }) => path))]]).toEqual([400, paths])
  }
  expect((await service.call('PUT', `${ada.path}/${bob.id}`, ada.cookie, { role: 'OWNER' })).status).toBe(400)
  expect((await service.call('DELETE', `${ada.path}/bob`, ada.cookie)).status).toBe(400)
})

test('only an ADMIN of the team sees and changes members', async () => {
  const ada = await openTeam()
  const bob = await service.signUp('BUILDER', ada.teamId)
  const eve = await openTeam()
  const callers = [
    bob.cookie,
    (await service.signUp('OPERATOR', ada.teamId)).cookie,
    eve.cookie,
    await service.token('BUILDER', ada.cookie, ada.teamId),
    await service.token('VIEWER', ada.cookie, ada.teamId),
    await service.token('ADMIN', eve.cookie, eve.teamId),
  ]
  for (const as of callers) {
    const responses = await Promise.all([
      service.call('GET', ada.path, as),
      service.call('POST', ada.path, as, { email: eve.email, role: 'ADMIN' }),
      service.call('PUT', `${ada.path}/${bob.id}`, as, { role: 'ADMIN' }),
      service.call('DELETE', `${ada.path}/${bob.id}`, as),
    ])
    expect(responses.map(({ status }) => status)).toEqual([403, 403, 403, 403])
  }
  const token = await service.token('ADMIN', ada.cookie, ada.teamId)
  expect((await service.call('GET', ada.path, token)).status).toBe(200)
  expect((await service.call('GET', members(crypto.randomUUID()), ada.cookie)).status).toBe(404)
  // Members of other teams are not found in this team.
  expect((await service.call('DELETE', `${ada.path}/${eve.id}`, ada.cookie)).status).toBe(404)
})

test('the last ADMIN can neither leave nor be demoted; with a second one they can', async () => {
  const ada = await openTeam()
  const own = `${ada.path}/${ada.id}`
  expect((await service.call('DELETE', own, ada.cookie)).status).toBe(409)
  expect((await service.call('PUT', own, ada.cookie, { role: 'BUILDER' })).status).toBe(409)
  expect((await service.call('PUT', own, ada.cookie, { role: 'ADMIN' })).status).toBe(200)
  const bob = await service.signUp('ADMIN', ada.teamId)
  expect((await service.call('PUT', own, ada.cookie, { role: 'OPERATOR' })).status).toBe(200)
  expect((await service.call('GET', ada.path, ada.cookie)).status).toBe(403)
  expect((await service.call('DELETE', `${ada.path}/${bob.id}`, bob.cookie)).status).toBe(409)
})

test('if two ADMINs demote or remove each other at the same time, exactly one stays ADMIN', async () => {
  const ada = await openTeam()
  const bob = await service.signUp('ADMIN', ada.teamId)
  for (let round = 0; round < 20; round++) {
    const act = (from: string, at: string) =>
      round % 2
        ? service.call('DELETE', `${ada.path}/${at}`, from)
        : service.call('PUT', `${ada.path}/${at}`, from, { role: 'OPERATOR' })
    const responses = await Promise.all([act(ada.cookie, bob.id), act(bob.cookie, ada.id)])
    const statuses = responses.map(({ status }) => status).sort()
    // 403 if the second request was authenticated after the first had taken effect.
    expect([
      [200, 409],
      [200, 403],
    ]).toContainEqual(statuses)
    const admins = await service.store.db
      .selectFrom('members')
      .select('userId')
      .where('teamId', '=', ada.teamId)
      .where('role', '=', 'ADMIN')
      .execute()
    expect(admins.length).toBe(1)
    const [left, other] = admins[0]!.userId === ada.id ? [ada, bob] : [bob, ada]
    const back =
      round % 2
        ? await service.call('POST', ada.path, left!.cookie, { email: other!.email, role: 'ADMIN' })
        : await service.call('PUT', `${ada.path}/${other!.id}`, left!.cookie, { role: 'ADMIN' })
    expect([200, 201]).toContain(back.status)
  }
  expect((await verifyAudit(service.store, ada.teamId)).findings).toEqual([])
})

test('a removed member and their tokens lose access at once; the tokens stay revoked if the member returns', async () => {
  const ada = await openTeam()
  const bob = await service.signUp('ADMIN', ada.teamId)
  const token = await service.token('ADMIN', bob.cookie, ada.teamId)
  const team = `/api/teams/${ada.teamId}`
  for (const as of [bob.cookie, token]) expect((await service.call('GET', team, as)).status).toBe(200)
  await service.call('PUT', `${ada.path}/${bob.id}`, ada.cookie, { role: 'OPERATOR' })
  for (const as of [bob.cookie, token]) {
    expect((await service.call('GET', ada.path, as)).status).toBe(403)
    expect((await service.call('GET', team, as)).status).toBe(200)
  }
  await service.call('DELETE', `${ada.path}/${bob.id}`, ada.cookie)
  expect((await service.call('GET', team, bob.cookie)).status).toBe(403)
  expect((await service.call('GET', team, token)).status).toBe(401)
  await service.call('POST', ada.path, ada.cookie, { email: bob.email, role: 'ADMIN' })
  expect((await service.call('GET', team, bob.cookie)).status).toBe(200)
  expect((await service.call('GET', team, token)).status).toBe(401)
})
