import { createPublicKey, verify } from 'node:crypto'
import { expect, test } from 'vitest'
import { checkpointChain } from '../../../db/audit/checkpoints.ts'
import { readViews, streamViews } from '../../../db/audit/list.ts'
import { reopenChain } from '../../../db/audit/reopen.ts'
import { serviceScope } from '../../../db/scope.ts'
import { makeChains } from '../../support/chains.ts'
import { keep } from '../../support/keep.ts'
import { type Body, startService } from '../../support/service.ts'

const service = await keep(startService({ rateLimits: false }))
const { team, act } = makeChains(service)
const { store } = service

const list = (teamId: string, query = '', as = service.admin) =>
  service.call('GET', `/api/audit/team/${teamId}${query}`, as)

test('an entry says who did what to what, when, from where and with which program, and what it links to', async () => {
  const teamId = await team(1)
  await service.call(
    'PUT',
    `/api/teams/${teamId}`,
    service.admin,
    { name: 'New' },
    { 'user-agent': 'Curl/8 é' },
  )
  const { status, body } = await list(teamId)
  expect(status).toBe(200)
  expect({ ...body, content: body.content.length }).toEqual({
    content: 2,
    totalElements: 2,
    totalPages: 1,
    number: 0,
    size: 50,
  })
  const [second, first] = body.content
  expect(second).toEqual({
    id: expect.stringMatching(/-/),
    teamId,
    userId: service.user.id,
    userName: 'Grace Hopper',
    action: 'TEAM_UPDATED',
    resourceType: 'TEAM',
    resourceId: teamId,
    details: expect.objectContaining({ name: 'New' }),
    createdAt: expect.stringMatching(/Z$/),
    seq: 2,
    outcome: 'SUCCESS',
    actor: { kind: 'USER', id: service.user.id, role: 'ADMIN' },
    ip: 'unknown',
    userAgent: 'Curl/8 é',
    requestId: expect.stringMatching(/-/),
    hash: expect.stringMatching(/^[\da-f]{64}$/),
    prevHash: first.hash,
  })
  expect(first).toMatchObject({ action: 'TEAM_CREATED', seq: 1, userAgent: null })
})

test('an SDK token is the actor, and the person behind it is the user', async () => {
  const teamId = await team(1)
  const token = await service.token('ADMIN', service.admin, teamId)
  await service.call('PUT', `/api/teams/${teamId}`, token, { name: 'By a token' })
  const { body } = await list(teamId, `?userId=${service.user.id}&action=TEAM_UPDATED`, token)
  expect(body.content).toMatchObject([
    { userId: service.user.id, userName: 'a ADMIN token', actor: { kind: 'SDK_TOKEN', role: 'ADMIN' } },
  ])
  expect(body.content[0].actor.id).not.toBe(service.user.id)
})

test('pages and filters find what they should, and count it exactly', async () => {
  const teamId = await team(12)
  await service.token('VIEWER', service.admin, teamId)
  const seqs = async (query: string) => {
    const { body } = await list(teamId, query)
    return [body.totalElements, body.content.map(({ seq }: Body) => seq)]
  }
  expect(await seqs('?size=5')).toEqual([13, [13, 12, 11, 10, 9]])
  expect(await seqs('?size=5&page=2')).toEqual([13, [3, 2, 1]])
  expect(await seqs('?size=5&page=3')).toEqual([13, []])
  expect(await seqs('?page=1000000&size=100')).toEqual([13, []])
  expect(await seqs('?action=TEAM_UPDATED&size=3&page=1')).toEqual([11, [9, 8, 7]])
  expect(await seqs('?action=SDK_TOKEN_CREATED')).toEqual([1, [13]])
  expect(await seqs('?resourceType=SDK_TOKEN')).toEqual([1, [13]])
  expect(await seqs(`?resourceId=${teamId}&action=TEAM_CREATED`)).toEqual([1, [1]])
  expect(await seqs(`?userId=${crypto.randomUUID()}`)).toEqual([0, []])
  expect(await seqs('?outcome=FAILURE')).toEqual([0, []])
  const all = (await list(teamId)).body.content
  const [from, to] = [all.find(({ seq }: Body) => seq === 4), all.find(({ seq }: Body) => seq === 8)]
  const within = all.filter(({ createdAt }: Body) => createdAt >= from.createdAt && createdAt < to.createdAt)
  expect(await seqs(`?from=${from.createdAt}&to=${to.createdAt}`)).toEqual([
    within.length,
    within.map(({ seq }: Body) => seq),
  ])
  expect(await seqs('?to=2020-01-01')).toEqual([0, []])
  expect(await seqs('?from=9999-12-31')).toEqual([0, []])
  expect(await seqs('?from=0001-01-01T00:00%2B14:00&to=9999-12-31T23:59-14:00&size=1')).toEqual([13, [13]])
})

test('a number that a reopened chain leaves out does not count', async () => {
  const teamId = await team(4)
  const { tamper } = makeChains(service)
  await tamper(`delete from audit_entries where team_id = '${teamId}' and seq = 2`)
  const operator = serviceScope(store, { kind: 'SYSTEM', id: null, name: 'operator' }, [[teamId, 'ADMIN']], {
    instanceAdmin: true,
  })
  await reopenChain(operator, teamId, { by: 'me', note: null })
  const { body } = await list(teamId, '?size=2&page=1')
  expect([body.totalElements, body.content.map(({ seq }: Body) => seq)]).toEqual([4, [3, 1]])
})

test('wrong parameters are named all at once, with every action that there is', async () => {
  const teamId = await team(1)
  const { status, body } = await list(
    teamId,
    '?action=TEAM_EATEN&userId=me&size=101&page=-1&from=yesterday&outcome=x&resourceId=1&resourceType=',
  )
  expect(status).toBe(400)
  expect(body.errors.map(({ path }: Body) => path).sort()).toEqual(
    ['action', 'from', 'outcome', 'page', 'resourceId', 'resourceType', 'size', 'userId'].sort(),
  )
  const { message } = body.errors.find(({ path }: Body) => path === 'action')
  expect(message).toMatch(
    /^must be one of TEAM_CREATED, .*WORKFLOW_CREATED.*MEMBER_ADDED|MEMBER_ADDED.*WORKFLOW_CREATED/,
  )
  expect((await list(teamId, '?from=2026-01-02&to=2026-01-01')).body.errors).toEqual([
    { path: 'from', message: 'must not be after to' },
  ])
})

test('only an ADMIN of the team reads it; for others it is forbidden, or not there', async () => {
  const teamId = await team(1)
  const [builder, stranger] = [await service.signUp('BUILDER', teamId), await service.otherTeam()]
  expect((await list(teamId, '', builder.cookie)).status).toBe(403)
  expect((await list(teamId, '', await service.token('OPERATOR', service.admin, teamId))).status).toBe(403)
  expect((await list(teamId, '', stranger.cookie)).status).toBe(403)
  expect((await list(crypto.randomUUID(), '', stranger.cookie)).status).toBe(404)
  expect((await list('me')).status).toBe(400)
  expect((await service.call('GET', `/api/audit/team/${teamId}`)).status).toBe(401)
})

test('hostile programs and forwarded names are cut and cleaned, and the chain verifies', async () => {
  const teamId = await team(1)
  const { verdicts } = makeChains(service)
  for (const agent of ['x'.repeat(1_000_000), `a${'é'.repeat(600)}`, '', ' ', '{"a":"\\u0000"}'])
    await service.call('PUT', `/api/teams/${teamId}`, service.admin, { name: 'n' }, { 'user-agent': agent })
  const { body } = await list(teamId)
  const agents = body.content.map(({ userAgent }: Body) => userAgent)
  expect(Math.max(...agents.map((agent: string | null) => agent?.length ?? 0))).toBe(500)
  expect(await verdicts(teamId)).toEqual([])
})

test('views are read by number, oldest or newest first, and streamed in pieces without those that come later', async () => {
  const teamId = await team(8)
  const seqs = async (query: object) =>
    (await readViews(store.db, teamId, { limit: 3, order: 'oldest', ...query })).map(({ seq }) => seq)
  expect(await seqs({})).toEqual([1, 2, 3])
  expect(await seqs({ order: 'newest' })).toEqual([8, 7, 6])
  expect(await seqs({ after: 3, before: 6 })).toEqual([4, 5])
  expect(await seqs({ newest: 2 })).toEqual([7, 8])
  expect(await seqs({ newest: 2, action: 'TEAM_CREATED' })).toEqual([1])
  expect(await seqs({ newest: 100 })).toEqual([1, 2, 3])
  const streamed: number[] = []
  for await (const views of streamViews(store.db, teamId, {})) {
    streamed.push(...views.map(({ seq }) => seq))
    await act(teamId)
  }
  expect(streamed).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
})

test('a checkpoint is signed so that the public key alone verifies it, once for each place of the chain', async () => {
  const teamId = await team(3)
  const made = (await checkpointChain(store, teamId))!
  expect(made).toMatchObject({ teamId, seq: 3, keyId: 'k1' })
  expect((await list(teamId, '?size=1')).body.content[0].hash).toBe(made.hash)
  expect(await checkpointChain(store, teamId)).toEqual(made)
  const { status, body } = await service.call('GET', '/api/audit/public-key')
  expect(status).toBe(200)
  expect(body).toEqual({
    keys: [
      { keyId: 'k1', algorithm: 'Ed25519', publicKey: expect.stringMatching(/^-----BEGIN/), current: true },
    ],
  })
  const key = createPublicKey(body.keys[0].publicKey)
  const check = ({ seq, hash, at, signature }: typeof made) =>
    verify(
      null,
      Buffer.from(`perdure-audit-checkpoint-v1\n${teamId}\n${seq}\n${hash}\n${at}\n`),
      key,
      Buffer.from(signature, 'base64'),
    )
  expect(check(made)).toBe(true)
  expect(check({ ...made, seq: 2 })).toBe(false)
  await act(teamId)
  const next = (await checkpointChain(store, teamId))!
  expect([next.seq, check(next)]).toEqual([4, true])
})

test('a chain that is not what this installation has signed gets no checkpoint', async () => {
  const teamId = await team(3)
  const { tamper, adaptHead } = makeChains(service)
  await tamper(`delete from audit_entries where team_id = '${teamId}' and seq = 3; ${adaptHead(teamId)}`)
  expect(await checkpointChain(store, teamId)).toBeNull()
  expect(await checkpointChain(store, crypto.randomUUID())).toBeNull()
})
