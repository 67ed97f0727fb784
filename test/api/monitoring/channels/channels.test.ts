import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { createOutsides } from '../../../../activities/egress/outside.ts'
import { createMailer } from '../../../../activities/mail/smtp.ts'
import { MAX_CHANNELS } from '../../../../db/monitoring/channels/channels.ts'
import { findUnknownChannels } from '../../../../db/monitoring/channels/names.ts'
import { plantCredential } from '../../../support/credentials.ts'
import { keep } from '../../../support/keep.ts'
import { makeNotices } from '../../../support/monitoring/notices.ts'
import { LOCAL } from '../../../support/servers/loopback.ts'
import { startMailbox } from '../../../support/servers/mailbox.ts'
import { startHookReceiver } from '../../../support/servers/webhook.ts'
import { startService } from '../../../support/service.ts'

const mailbox = await keep(startMailbox())
const mailer = createMailer({
  host: '127.0.0.1',
  port: mailbox.port,
  tls: 'never',
  auth: undefined,
  from: 'perdure@example.com',
})
const service = await keep(startService({ rateLimits: false, outside: createOutsides(LOCAL), mailer }))
const { store } = service
const { path, add } = makeNotices(service)

const EMAIL = { name: 'Us', type: 'EMAIL', config: { recipients: ['ada@example.com'] } }
const HOOK = { name: 'Hook', type: 'WEBHOOK', config: { url: 'https://hooks.example.com/a/secret?token=b' } }

const call = (method: string, teamId: string, rest = '', json?: unknown, as = service.admin) =>
  service.call(method, path(teamId, `channels${rest}`), as, json)

/** The paths of what is wrong with a body. */
async function faults(teamId: string, body: object, as: string): Promise<string[]> {
  const response = await call('POST', teamId, '', body, as)
  expect(response.status).toBe(400)
  return response.body.errors.map((one: { path: string }) => one.path).sort()
}

test('a channel is added, read, changed and deleted, and each of it is an entry without secrets', async () => {
  const { teamId, cookie } = await service.otherTeam()
  const made = await call('POST', teamId, '', HOOK, cookie)
  expect(made.status).toBe(201)
  const { id, secret, ...shown } = made.body
  expect(secret).toMatch(/^whsec_[\w+/=]{44}$/)
  expect(shown).toMatchObject({ name: 'Hook', type: 'WEBHOOK', enabled: true, teamId })
  expect(shown.config).toEqual({ url: 'https://hooks.example.com/[hidden]' })
  expect((await call('GET', teamId, `/${id}`, undefined, cookie)).body).toEqual({ id, ...shown })
  const mail = await call('POST', teamId, '', EMAIL, cookie)
  expect(mail.body).toMatchObject({ config: { recipients: ['ada@example.com'], credentialId: null } })
  expect(mail.body.secret).toBeUndefined()
  expect((await call('GET', teamId, '', undefined, cookie)).body).toHaveLength(2)

  // What was read can be sent back.
  const back = await call('PUT', teamId, `/${id}`, { ...shown, name: 'Other' }, cookie)
  expect(back.body).toMatchObject({ name: 'Other', config: shown.config })
  const moved = { config: { url: 'https://other.example.com/secret' } }
  expect((await call('PUT', teamId, `/${id}`, moved, cookie)).body.config.url).toBe(
    'https://other.example.com/[hidden]',
  )
  expect((await call('POST', teamId, `/${id}/rotate-secret`, undefined, cookie)).body.secret).not.toBe(secret)
  expect((await call('POST', teamId, `/${mail.body.id}/rotate-secret`, undefined, cookie)).status).toBe(409)
  expect((await call('PUT', teamId, `/${id}`, { name: 'Us' }, cookie)).status).toBe(409)
  expect((await call('DELETE', teamId, `/${id}`, undefined, cookie)).status).toBe(200)
  expect((await call('DELETE', teamId, `/${id}`, undefined, cookie)).status).toBe(404)

  const { body } = await service.call('GET', `/api/audit/team/${teamId}?resourceId=${id}`, cookie)
  const actions = body.content.map(({ action }: { action: string }) => action).reverse()
  expect(actions).toEqual([
    'NOTIFICATION_CHANNEL_CREATED',
    'NOTIFICATION_CHANNEL_UPDATED',
    'NOTIFICATION_CHANNEL_UPDATED',
    'NOTIFICATION_CHANNEL_SECRET_ROTATED',
    'NOTIFICATION_CHANNEL_DELETED',
  ])
  expect(JSON.stringify(body)).not.toMatch(/whsec_|\/secret|token=b/)
})

test('what is wrong with a channel is named', async () => {
  const { teamId, cookie } = await service.otherTeam()
  expect(await faults(teamId, { name: ' ', type: 'PAGER', config: {} }, cookie)).toEqual(['name', 'type'])
  expect(await faults(teamId, { ...EMAIL, config: {} }, cookie)).toEqual(['config.recipients'])
  const both = { ...EMAIL.config, url: HOOK.config.url }
  expect(await faults(teamId, { ...EMAIL, config: both }, cookie)).toEqual(['config.url'])
  expect(await faults(teamId, { ...HOOK, config: both }, cookie)).toEqual(['config.recipients'])
  expect(await faults(teamId, { ...EMAIL, config: { recipients: ['a@b.c\nBcc: x@y.z'] } }, cookie)).toEqual([
    'config.recipients[0]',
  ])
  for (const url of ['http://hooks.example.com/', 'https://a:b@hooks.example.com/', 'ftp://a.example/'])
    expect(await faults(teamId, { ...HOOK, config: { url } }, cookie)).toEqual(['config.url'])
  const bearer = await plantCredential(store, teamId, 'HTTP_BEARER', { token: 'a token' })
  for (const credentialId of [bearer, crypto.randomUUID()])
    expect(await faults(teamId, { ...EMAIL, config: { ...EMAIL.config, credentialId } }, cookie)).toEqual([
      'config.credentialId',
    ])
})

test('entries of a config are words, or channels of the team', async () => {
  const { teamId, cookie } = await service.otherTeam()
  const other = await service.otherTeam()
  const { id } = await add(teamId, 'channels', EMAIL, cookie)
  const foreign = await add(other.teamId, 'channels', EMAIL, other.cookie)
  const entries = ['email', 'slack', 'webhook', id, foreign.id, 'pager', crypto.randomUUID()]
  expect(await findUnknownChannels(store.db, teamId, entries)).toEqual(entries.slice(4))
})

test('a team has at most so many channels, and another team sees none of them', async () => {
  const { teamId, cookie } = await service.otherTeam()
  const other = await service.otherTeam()
  const email = { teamId, type: 'EMAIL', recipients: ['ada@example.com'] }
  const known = Array.from({ length: MAX_CHANNELS - 1 }, (_, at) => ({
    ...email,
    id: crypto.randomUUID(),
    name: `Channel ${at}`,
  }))
  await store.db.insertInto('notificationChannels').values(known).execute()
  const adding = await Promise.all(
    ['One', 'Two'].map((name) => call('POST', teamId, '', { ...EMAIL, name }, cookie)),
  )
  expect(adding.map(({ status }) => status).sort()).toEqual([201, 409])
  const { id } = adding.find(({ status }) => status === 201)!.body
  expect((await call('GET', other.teamId, `/${id}`, undefined, other.cookie)).status).toBe(404)
  expect((await call('GET', other.teamId, `/${id}/deliveries`, undefined, other.cookie)).status).toBe(404)
  expect((await call('GET', teamId, `/${id}`, undefined, other.cookie)).status).toBe(403)
})

test('a test sends at once, and tells what came of it', async () => {
  const { teamId, cookie } = await service.otherTeam()
  const receiver = await keep(startHookReceiver((at) => ({ status: at === 0 ? 200 : 500 })))
  const hook = await add(teamId, 'channels', { ...HOOK, config: { url: receiver.url } }, cookie)
  const tried = await call('POST', teamId, `/${hook.id}/test`, undefined, cookie)
  expect(tried.body).toMatchObject({ status: 'SUCCESS' })
  const { secret } = (await call('POST', teamId, `/${hook.id}/rotate-secret`, undefined, cookie)).body
  const failed = await call('POST', teamId, `/${hook.id}/test`, undefined, cookie)
  expect(failed.body).toMatchObject({ status: 'FAILED', message: `${receiver.host} answered with 500` })
  const [first, second] = receiver.hooks
  const verify = (key: string, at: typeof first) =>
    new Webhook(key).verify(at!.body, at!.headers as Record<string, string>)
  expect(verify(hook.secret, first)).toMatchObject({ type: 'channel.test', data: { teamId } })
  // After a rotation both secrets hold for a day.
  for (const key of [hook.secret, secret]) expect(verify(key, second)).toMatchObject({ type: 'channel.test' })
  expect(() => verify(secret, first)).toThrow()

  // Who knew the secrets of before can sign nothing for another URL; the one there is sent back keeps them.
  const same = await call('PUT', teamId, `/${hook.id}`, { config: { url: receiver.url } }, cookie)
  expect([same.status, same.body.secret]).toEqual([200, undefined])
  const elsewhere = { config: { url: `${receiver.url}?elsewhere` } }
  const moved = await call('PUT', teamId, `/${hook.id}`, elsewhere, cookie)
  expect([moved.status, moved.body.secret]).toEqual([200, expect.stringMatching(/^whsec_/)])
  await call('POST', teamId, `/${hook.id}/test`, undefined, cookie)
  const third = receiver.hooks[2]
  expect(verify(moved.body.secret, third)).toMatchObject({ type: 'channel.test' })
  for (const key of [hook.secret, secret]) expect(() => verify(key, third)).toThrow()
  expect((await call('GET', teamId, `/${hook.id}`, undefined, cookie)).body.secret).toBeUndefined()

  const mail = await add(teamId, 'channels', EMAIL, cookie)
  expect((await call('POST', teamId, `/${mail.id}/test`, undefined, cookie)).body.status).toBe('SUCCESS')
  expect(mailbox.mails.at(-1)).toMatchObject({ to: ['ada@example.com'], from: 'perdure@example.com' })
  const { body } = await service.call(
    'GET',
    `/api/audit/team/${teamId}?action=NOTIFICATION_CHANNEL_TESTED`,
    cookie,
  )
  expect(body.content.map(({ details }: { details: { status: string } }) => details.status)).toEqual([
    'SUCCESS',
    'FAILED',
    'FAILED',
    'SUCCESS',
  ])
})

test('a credential that a channel sends with is not deleted by mistake', async () => {
  const { teamId, cookie } = await service.otherTeam()
  const credentialId = await plantCredential(store, teamId, 'SMTP', {
    host: 'a',
    port: 25,
    username: 'a@b.c',
    password: '',
  })
  await add(teamId, 'channels', { ...EMAIL, config: { ...EMAIL.config, credentialId } }, cookie)
  const path = `/api/credentials/${credentialId}`
  expect((await service.call('DELETE', path, cookie)).body.message).toContain('Notification channels use')
  expect((await service.call('DELETE', `${path}?force=true`, cookie)).status).toBeLessThan(300)
})

test('no team sends where its rules do not let it', async () => {
  const closed = await keep(
    startService({ rateLimits: false, outside: createOutsides({ allowLoopback: false, allow: [] }) }),
  )
  const { teamId, admin } = closed
  const inside = { ...HOOK, config: { url: 'https://127.0.0.1:1/a' } }
  const channels = `/api/monitoring/teams/${teamId}/channels`
  const { body } = await closed.call('POST', channels, admin, inside)
  const tried = await closed.call('POST', `${channels}/${body.id}/test`, admin)
  expect(tried.body.status).toBe('FAILED')
  expect(tried.body.message).toMatch(/not allowed|refused|127\.0\.0\.1/)
})
