import { expect, test } from 'vitest'
import { INSTANCE_CHAIN } from '../../../db/audit/signing.ts'
import { makeChains } from '../../support/chains.ts'
import { keep } from '../../support/keep.ts'
import { PASSWORD, startService } from '../../support/service.ts'

const service = await keep(startService({ rateLimits: false, signUp: 'open' }))
const { entries, verdicts } = makeChains(service)

/** What the instance's chain has got since `work` began. */
async function entriesOf(work: () => Promise<unknown>) {
  const { length } = await entries(INSTANCE_CHAIN)
  await work()
  const rows = (await entries(INSTANCE_CHAIN)).slice(length)
  return rows.map(({ action, outcome, actorKind, actorId, resourceId, details }) => ({
    action,
    outcome,
    actorKind,
    actorId,
    resourceId,
    details,
  }))
}

const login = (email: string, password: string) =>
  service.call('POST', '/api/auth/login', undefined, { email, password })

test("sign-ins, failed ones and sign-outs are in the instance's chain", async () => {
  const { id, email } = await service.signUp()
  const whom = { resourceId: id, details: { email } }
  const person = { outcome: 'SUCCESS', actorKind: 'USER', actorId: id, ...whom }
  const nobody = { action: 'SIGN_IN_FAILED', outcome: 'FAILURE', actorKind: 'ANONYMOUS', actorId: null }
  const secret = 'my password, in the wrong field'
  const found = await entriesOf(async () => {
    const cookie = await service.signIn(email)
    expect((await login(email, 'wrong')).status).toBe(401)
    expect((await login(secret, 'x')).status).toBe(401)
    expect((await service.call('POST', '/api/auth/logout', cookie)).status).toBe(200)
    expect((await service.call('POST', '/api/auth/logout', cookie)).status).toBe(200)
    expect((await service.call('POST', '/api/auth/logout')).status).toBe(200)
  })
  expect(found).toEqual([
    { action: 'SIGNED_IN', ...person },
    { ...nobody, ...whom },
    { ...nobody, resourceId: null, details: { email: null } },
    { action: 'SIGNED_OUT', ...person },
  ])
  const rows = await entries(INSTANCE_CHAIN)
  expect(JSON.stringify(rows)).not.toContain(secret)
  expect(rows.at(-1)).toMatchObject({ srcIp: expect.any(String), requestId: expect.stringMatching(/-/) })
  expect(await verdicts(INSTANCE_CHAIN)).toEqual([])
})

test('attempts that the throttle turns away are not tried, and have no entry', async () => {
  const { id, email } = await service.signUp()
  const statuses: number[] = []
  const found = await entriesOf(async () => {
    for (let i = 0; i < 9; i++) statuses.push((await login(email, 'wrong')).status)
  })
  expect(statuses).toContain(429)
  const tried = found.filter(({ action }) => action === 'SIGN_IN_FAILED')
  expect(tried).toHaveLength(statuses.filter((status) => status === 401).length)
  expect(found.filter(({ action }) => action !== 'SIGN_IN_FAILED')).toMatchObject([
    { action: 'ACCOUNT_LOCKED', outcome: 'DENIED', resourceId: id, details: { email, locks: 'account' } },
  ])
})

test('changes of password and e-mail are in it, and failures to confirm them', async () => {
  const { id, email, cookie } = await service.signUp()
  const other = `new-${email}`
  const found = await entriesOf(async () => {
    const put = (json: unknown) => service.call('PUT', '/api/auth/me', cookie, json)
    expect((await put({ firstName: 'Augusta' })).status).toBe(200)
    expect((await put({ email: other, currentPassword: 'wrong' })).status).toBe(400)
    await put({ email: other, currentPassword: PASSWORD })
    const passwords = { currentPassword: PASSWORD, newPassword: 'another horse entirely' }
    expect((await service.call('POST', '/api/auth/password', cookie, passwords)).status).toBe(200)
  })
  const person = { actorKind: 'USER', actorId: id, resourceId: id }
  expect(found).toEqual([
    {
      action: 'ACCOUNT_UPDATED',
      outcome: 'SUCCESS',
      ...person,
      details: { changed: ['firstName'], before: { firstName: 'Ada' }, after: { firstName: 'Augusta' } },
    },
    { action: 'SIGN_IN_FAILED', outcome: 'FAILURE', ...person, details: { email } },
    {
      action: 'EMAIL_CHANGED',
      outcome: 'SUCCESS',
      ...person,
      details: { from: email, to: other, pending: true },
    },
    { action: 'PASSWORD_CHANGED', outcome: 'SUCCESS', ...person, details: { email } },
  ])
})

test('a sign-up and the refresh of a session are in it', async () => {
  const email = 'new.one@example.com'
  const json = { firstName: 'Ada', lastName: 'Byron', email, password: PASSWORD }
  let id = ''
  const found = await entriesOf(async () => {
    const made = await service.call('POST', '/api/auth/register', undefined, json)
    id = made.body.id
    const cookie = await service.signIn(email)
    expect((await service.call('POST', '/api/auth/refresh', cookie)).status).toBe(200)
    // It has ended with that.
    expect((await service.call('POST', '/api/auth/refresh', cookie)).status).toBe(401)
  })
  const person = { actorKind: 'USER', actorId: id, resourceId: id, outcome: 'SUCCESS', details: { email } }
  expect(found).toMatchObject([
    { action: 'ACCOUNT_CREATED', ...person },
    { action: 'SIGNED_IN', ...person },
    { action: 'SESSION_REFRESHED', ...person },
    { action: 'ENDED_SESSION_USED', outcome: 'DENIED', actorId: id },
  ])
})

test('many sign-ins at once make one chain', async () => {
  const { email } = await service.signUp()
  const { length } = await entries(INSTANCE_CHAIN)
  await Promise.all(Array.from({ length: 8 }, () => service.signIn(email)))
  expect(await entries(INSTANCE_CHAIN)).toHaveLength(length + 8)
  expect(await verdicts(INSTANCE_CHAIN)).toEqual([])
})
