import { sql } from 'kysely'
import { pino } from 'pino'
import { Webhook } from 'standardwebhooks'
import { expect, onTestFinished, test } from 'vitest'
import { createOutsides } from '../../../../activities/egress/outside.ts'
import { createMailer } from '../../../../activities/mail/smtp.ts'
import { deliverNotification } from '../../../../activities/monitoring/channels/deliver.ts'
import { claimDeliveries } from '../../../../db/monitoring/channels/deliveries.ts'
import { fanOutNotice, purgeNotices } from '../../../../db/monitoring/notices/fanout.ts'
import { startNotices } from '../../../../worker/service/monitoring/notices.ts'
import { plantCredential } from '../../../support/credentials.ts'
import { keep } from '../../../support/keep.ts'
import { makeNotices } from '../../../support/monitoring/notices.ts'
import { LOCAL } from '../../../support/servers/loopback.ts'
import { startMailbox } from '../../../support/servers/mailbox.ts'
import { type HookAnswer, startHookReceiver } from '../../../support/servers/webhook.ts'
import { startService } from '../../../support/service.ts'
import { until } from '../../../support/until.ts'

const service = await keep(startService({ rateLimits: false }))
const { store } = service
const { notify, route, add, read, path } = makeNotices(service)
const outside = createOutsides(LOCAL)
const mailbox = await keep(startMailbox())
const mailerOf = (port: number) =>
  createMailer({ host: '127.0.0.1', port, tls: 'never', auth: undefined, from: 'perdure@example.com' })
const carrier = {
  store,
  outside,
  mailer: mailerOf(mailbox.port),
  publicUrl: 'https://perdure.example.com',
  log: pino({ level: 'silent' }),
}

/** Works on notices until the end of the test. */
function work(more: object = {}, leaseMs = 30_000) {
  const end = startNotices({ ...carrier, ...more }, { everyMs: 25, leaseMs })
  onTestFinished(end)
  return end
}

async function receive(answer?: (at: number) => HookAnswer) {
  const receiver = await startHookReceiver(answer)
  onTestFinished(() => receiver.stop())
  return receiver
}

const makeDue = (teamId: string) =>
  sql`update notification_deliveries set due_at = now() where team_id = ${teamId} and lease is null`.execute(
    store.db,
  )

const settled = (teamId: string, as: string, count = 1) =>
  until(() => read(teamId, 'deliveries', as), {
    holds: ({ content }) =>
      content.length === count && content.every(({ status }: { status: string }) => status !== 'PENDING'),
  })

const hookOf = (teamId: string, as: string, url: string, name = 'Hook') =>
  add(teamId, 'channels', { name, type: 'WEBHOOK', config: { url } }, as)

test('an alert goes to each channel of the config once, signed, and the log says so', async () => {
  const { teamId, cookie, email } = await service.otherTeam()
  const receiver = await receive()
  const slack = await receive()
  const { id, secret } = await hookOf(teamId, cookie, receiver.url)
  await add(teamId, 'channels', { name: 'Chat', type: 'SLACK', config: { url: slack.url } }, cookie)
  await route(teamId, ['webhook', id, 'slack', 'email'])
  const subjectId = await notify(teamId, { title: 'Tokens <!channel> & more' })
  await notify(teamId, { subjectId })
  work()
  const { content } = await settled(teamId, cookie, 3)
  expect(content.map(({ status }: { status: string }) => status)).toEqual(Array(3).fill('DELIVERED'))

  expect(receiver.hooks).toHaveLength(1)
  const { headers, body } = receiver.hooks[0]!
  const sent = new Webhook(secret).verify(body, headers as Record<string, string>)
  expect(sent).toMatchObject({
    type: 'alert.opened',
    data: { teamId, subjectId, severity: 'HIGH', alertType: 'ANOMALY', title: 'Tokens <!channel> & more' },
  })
  const ofHook = content.find(({ channelId }: { channelId: string }) => channelId === id)
  expect(ofHook).toMatchObject({ channelName: 'Hook', attempts: 1, lastError: null, nextAttemptAt: null })
  expect(headers['webhook-id']).toBe(`msg_${ofHook.id}`)

  const said = JSON.parse(slack.hooks[0]!.body).text
  expect(said).toContain('*Tokens &lt;!channel&gt; &amp; more*')

  const mail = mailbox.mails.find(({ to }) => to.includes(email))!
  // By the service's own server nothing that a user has named is in the subject.
  expect(mail.headers).toContain('Subject: An alert of your team')
  expect(mail.headers).toMatch(/^List-Unsubscribe: <https:\/\/perdure\.example\.com\/mail\/[\w-]+\/stop>$/m)
  expect(mail.text).toContain('Tokens <!channel> & more')
  expect(mail.text).toContain('3,000 tokens')
  expect(await read(teamId, `channels/${id}/deliveries`, cookie)).toMatchObject({ totalElements: 1 })
})

test('entries that lead nowhere are in the log', async () => {
  const { teamId, cookie } = await service.otherTeam()
  const receiver = await receive()
  const { id } = await hookOf(teamId, cookie, receiver.url)
  await service.call('PUT', path(teamId, `channels/${id}`), cookie, { enabled: false })
  const gone = crypto.randomUUID()
  await route(teamId, ['slack', id, gone])
  await notify(teamId)
  work()
  const { content } = await settled(teamId, cookie, 3)
  const byTarget = Object.fromEntries(
    content.map((one: { target: string; lastError: string; status: string }) => [
      one.target,
      [one.status, one.lastError],
    ]),
  )
  expect(byTarget).toEqual({
    slack: ['FAILED', 'The team has no enabled channel of the type SLACK'],
    [id]: ['FAILED', 'The channel is disabled'],
    [gone]: ['FAILED', 'The team has no such channel'],
  })
  expect(receiver.hooks).toEqual([])
})

test('what may pass is tried again with the same id, later each time, and when the receiver says so', async () => {
  const { teamId, cookie } = await service.otherTeam()
  const answers: HookAnswer[] = [
    { status: 500 },
    { status: 500 },
    { status: 429, headers: { 'retry-after': '1800' } },
    { status: 204 },
  ]
  const receiver = await receive((at) => answers[at])
  await hookOf(teamId, cookie, receiver.url)
  await route(teamId, ['webhook'])
  await notify(teamId)
  work()
  const waits: number[] = []
  // From before the attempt: a slow machine makes them longer, never shorter.
  let asked = Date.now()
  for (let attempts = 1; attempts <= 3; attempts++) {
    const { content } = await until(() => read(teamId, 'deliveries', cookie), {
      holds: ({ content }) => content[0]?.attempts === attempts && content[0].nextAttemptAt !== null,
    })
    expect(content[0]).toMatchObject({ status: 'PENDING' })
    expect(content[0].lastError).toBe(`${receiver.host} answered with ${answers[attempts - 1]!.status}`)
    waits.push(Math.round((Date.parse(content[0].nextAttemptAt) - asked) / 1_000))
    asked = Date.now()
    await makeDue(teamId)
  }
  await settled(teamId, cookie)
  expect(new Set(receiver.hooks.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
  expect(receiver.hooks).toHaveLength(4)
  expect(waits[0]).toBeGreaterThanOrEqual(8)
  expect(waits[1]).toBeGreaterThanOrEqual(17)
  expect(waits[2]).toBeGreaterThanOrEqual(1_795)
})

test.each([
  ['410', { status: 410 }],
  ['404', { status: 404 }],
  ['a redirect', { status: 307, headers: { location: 'http://127.0.0.1:1/' } }],
])('%s is final', async (_, answer) => {
  const { teamId, cookie } = await service.otherTeam()
  const receiver = await receive(() => answer)
  await hookOf(teamId, cookie, receiver.url)
  await route(teamId, ['webhook'])
  await notify(teamId)
  work()
  const { content } = await settled(teamId, cookie)
  expect(content[0]).toMatchObject({ status: 'FAILED', attempts: 1 })
  expect(content[0].lastError).toBe(`${receiver.host} answered with ${answer.status}`)
  expect(receiver.hooks).toHaveLength(1)
})

test('after a day it is given up', async () => {
  const { teamId, cookie } = await service.otherTeam()
  const receiver = await receive(() => ({ status: 503 }))
  await hookOf(teamId, cookie, receiver.url)
  await route(teamId, ['webhook'])
  await notify(teamId)
  while (await fanOutNotice(store));
  await sql`update notification_deliveries set created_at = now() - interval '25 hours'
    where team_id = ${teamId}`.execute(store.db)
  work()
  const { content } = await settled(teamId, cookie)
  expect(content[0].lastError).toBe(`${receiver.host} answered with 503 (tried for 24 hours)`)
})

test('receivers of one team that hang hold up no other team', async () => {
  const slow = await service.otherTeam()
  const quick = await service.otherTeam()
  const hanging = await receive(() => undefined)
  const receiver = await receive()
  await hookOf(slow.teamId, slow.cookie, hanging.url)
  await route(slow.teamId, ['webhook'])
  for (let some = 0; some < 12; some++) await notify(slow.teamId)
  work()
  await until(() => hanging.hooks.length >= 4)
  await hookOf(quick.teamId, quick.cookie, receiver.url)
  await route(quick.teamId, ['webhook'])
  await notify(quick.teamId)
  await settled(quick.teamId, quick.cookie)
  expect(hanging.hooks).toHaveLength(4)
})

test('what a killed process held is sent by another once its claim ends, and nobody else sends what is held', async () => {
  const { teamId, cookie } = await service.otherTeam()
  const receiver = await receive()
  await hookOf(teamId, cookie, receiver.url)
  await route(teamId, ['webhook'])
  await notify(teamId)
  while (await fanOutNotice(store));
  const query = { limit: 10, ofTeam: 4, leaseMs: 600_000, busy: new Map(), failing: true }
  const [held] = (await claimDeliveries(store, query)).filter((one) => one.teamId === teamId)
  expect(held).toBeDefined()
  expect((await claimDeliveries(store, query)).filter((one) => one.teamId === teamId)).toEqual([])
  // It dies here, and its claim ends. Two others work on.
  await sql`update notification_deliveries set due_at = now() where id = ${held!.id}`.execute(store.db)
  work()
  work()
  const { content } = await settled(teamId, cookie)
  expect(content[0]).toMatchObject({ status: 'DELIVERED', attempts: 2 })
  expect(receiver.hooks).toHaveLength(1)
  // What the killed one would still say counts no more.
  await deliverNotification(carrier, held!, AbortSignal.abort())
  expect((await read(teamId, 'deliveries', cookie)).content[0]).toMatchObject({ status: 'DELIVERED' })
})

test('a claim is renewed while the receiver takes its time', async () => {
  const { teamId, cookie } = await service.otherTeam()
  const receiver = await receive(() => undefined)
  await hookOf(teamId, cookie, receiver.url)
  await route(teamId, ['webhook'])
  await notify(teamId)
  const end = work({}, 9_000)
  work({}, 9_000)
  await until(() => receiver.hooks.length > 0)
  const endOfClaim = async () => {
    const { rows } = await sql<{ dueAt: Date }>`select due_at from notification_deliveries
      where team_id = ${teamId} and lease is not null`.execute(store.db)
    return rows[0]?.dueAt.getTime()
  }
  const first = await endOfClaim()
  await until(endOfClaim, { holds: (at) => at !== undefined && at > first! })
  // Sent by nobody else: it would be another attempt, with a claim of its own.
  expect((await read(teamId, 'deliveries', cookie)).content[0].attempts).toBe(1)
  expect(receiver.hooks).toHaveLength(1)
  await end()
})

test('each recipient gets a mail of their own, and nobody gets it twice', async () => {
  const { teamId, cookie } = await service.otherTeam()
  const refused = { once: true }
  const box = await startMailbox({
    onRcptTo({ address }, _, done) {
      if (!address.startsWith('late') || !refused.once) return done()
      refused.once = false
      done(Object.assign(new Error('come again'), { responseCode: 451 }))
    },
  })
  onTestFinished(() => box.stop())
  const data = { host: '127.0.0.1', port: box.port, username: 'team@example.com', password: '', tls: 'never' }
  const credentialId = await plantCredential(store, teamId, 'SMTP', data)
  const recipients = ['first@example.com', 'late@example.com', 'third@example.com']
  const config = { recipients, credentialId }
  const { id } = await add(teamId, 'channels', { name: 'Us', type: 'EMAIL', config }, cookie)
  await route(teamId, [id])
  await notify(teamId)
  work({ mailer: undefined })
  await until(() => read(teamId, 'deliveries', cookie), {
    holds: ({ content }) => content[0]?.nextAttemptAt != null,
  })
  const { content: tried } = await read(teamId, 'deliveries', cookie)
  expect(tried[0].lastError).toContain('late@example.com')
  await makeDue(teamId)
  await settled(teamId, cookie)
  expect(box.mails.map(({ to }) => to).sort()).toEqual(recipients.map((one) => [one]))
  expect(box.mails[0]!.from).toBe('team@example.com')
  const opens = await sql<{ openerKind: string }>`select opener_kind from credential_opens
    where team_id = ${teamId}`.execute(store.db)
  expect(opens.rows[0]).toMatchObject({ openerKind: 'CHANNEL' })
})

test('without an SMTP server the log says so', async () => {
  const { teamId, cookie } = await service.otherTeam()
  await route(teamId, ['email'])
  await notify(teamId)
  work({ mailer: undefined })
  const { content } = await settled(teamId, cookie)
  expect(content[0]).toMatchObject({ status: 'FAILED', target: 'email', channelId: null })
  expect(content[0].lastError).toMatch(/no SMTP server/)
})

test('with its channel, what waits for it fails; with its team, all of it goes', async () => {
  const { teamId, cookie } = await service.otherTeam()
  const receiver = await receive(() => ({ status: 503 }))
  const { id } = await hookOf(teamId, cookie, receiver.url)
  await route(teamId, ['email', id])
  await notify(teamId)
  work({ mailer: undefined })
  await until(() => read(teamId, `channels/${id}/deliveries`, cookie), {
    holds: ({ content }) => content?.[0]?.nextAttemptAt != null,
  })
  expect((await service.call('DELETE', path(teamId, `channels/${id}`), cookie)).status).toBe(200)
  const { content } = await settled(teamId, cookie, 2)
  expect(content.find(({ channelId }: { channelId: string }) => channelId === id)).toMatchObject({
    status: 'FAILED',
    lastError: 'The channel was deleted',
    channelName: null,
  })
  const config = await store.db
    .selectFrom('monitoringConfigs')
    .select('notificationChannels')
    .where('teamId', '=', teamId)
    .executeTakeFirstOrThrow()
  expect(config.notificationChannels).toEqual(['email'])
  expect((await service.call('DELETE', `/api/teams/${teamId}`, cookie)).status).toBe(200)
  for (const table of ['notices', 'notificationDeliveries', 'notificationChannels'] as const)
    expect(await store.db.selectFrom(table).selectAll().where('teamId', '=', teamId).execute()).toEqual([])
})

test('a notice that cannot be worked on holds no other up', async () => {
  const { teamId, cookie } = await service.otherTeam()
  await notify(teamId)
  await sql`update notices set severity = 'LOW', created_at = created_at - interval '1 hour',
    claimed_until = now() + interval '1 minute' where team_id = ${teamId}`.execute(store.db)
  await route(teamId, ['slack'])
  await notify(teamId)
  work()
  expect((await settled(teamId, cookie)).content[0]).toMatchObject({ severity: 'HIGH' })
})

test('what is older than 30 days is removed', async () => {
  const { teamId, cookie } = await service.otherTeam()
  await route(teamId, ['slack'])
  const old = await notify(teamId)
  await notify(teamId)
  while (await fanOutNotice(store));
  await sql`update notices set done_at = now() - interval '31 days' where subject_id = ${old}`.execute(
    store.db,
  )
  await purgeNotices(store, new AbortController().signal)
  expect((await read(teamId, 'deliveries', cookie)).totalElements).toBe(1)
})
