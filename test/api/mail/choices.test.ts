import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createOutsides } from '../../../activities/egress/outside.ts'
import { createMailer } from '../../../activities/mail/smtp.ts'
import { MAILS_AN_HOUR } from '../../../db/mail/bounds.ts'
import { startMailing } from '../../../worker/service/mailing.ts'
import { startScheduledReports } from '../../../worker/service/monitoring/reports.ts'
import { plantCredential } from '../../support/credentials.ts'
import { keep } from '../../support/keep.ts'
import { LOCAL } from '../../support/servers/loopback.ts'
import { startMailbox } from '../../support/servers/mailbox.ts'
import { type Body, startService } from '../../support/service.ts'
import { until } from '../../support/until.ts'

// As an operator has it who lets everybody sign up, and whose own domain is staff.example.com.
const mailbox = await keep(startMailbox())
const mailer = createMailer({
  ...({ host: '127.0.0.1', port: mailbox.port, tls: 'never', auth: undefined } as const),
  from: 'perdure@example.com',
})
const outside = createOutsides(LOCAL)
const service = await keep(
  startService({
    ...({ rateLimits: false, emailProof: () => 'mail', outside, mailer } as const),
    mailDomains: ['staff.example.com', '*.corp.example.com'],
  }),
)
const { store } = service
const { db } = store
const publicUrl = 'http://127.0.0.1:3000'
const log = pino({ level: 'silent' })
const carrier = { store, mailer, outside, publicUrl, log }
await keep(Promise.resolve({ stop: startMailing(carrier, service.bus) }))
await keep(Promise.resolve({ stop: startScheduledReports(carrier) }))

const fresh = (domain = 'elsewhere.example.com') => `${randomBytes(6).toString('hex')}@${domain}`
const mailsTo = (address: string) => mailbox.mails.filter(({ to }) => to.includes(address))
const EVIL = 'Your bank account is locked'

/** The path of the link in a mail's text, with what its encoding has cut put together again. */
const linkIn = (text: string) =>
  new URL(/http:\/\/127\.0\.0\.1:3000\/mail\/[\w-]+/.exec(text.replaceAll('=\r\n', ''))![0]).pathname

async function makeTeam() {
  const team = await service.otherTeam()
  const base = `/api/monitoring/teams/${team.teamId}`
  const call = (method: string, path: string, json?: unknown) =>
    service.call(method, `${base}/${path}`, team.cookie, json)
  return { ...team, call }
}
type Team = Awaited<ReturnType<typeof makeTeam>>

async function makeReport(team: Team, recipients: string[], more: object = {}) {
  const fields = { name: EVIL, schedule: '0 7 * * *', metrics: ['token_usage'], recipients, ...more }
  const { status, body } = await team.call('POST', 'scheduled-reports', fields)
  expect(status).toBe(201)
  const send = async (): Promise<Body> => {
    expect((await team.call('POST', `scheduled-reports/${body.id}/send`)).status).toBe(202)
    return until(async () => (await team.call('GET', `scheduled-reports/${body.id}/runs`)).body.content[0], {
      holds: (run: Body) => run.status !== 'PENDING' || run.error !== null,
    })
  }
  const states = async () => {
    const { body: listed } = await team.call('GET', 'scheduled-reports')
    return listed.find(({ id }: Body) => id === body.id).recipientStates.map(({ state }: Body) => state)
  }
  return { ...body, fields, send, states }
}

/** The page of a link, and what its button of the choice makes of it. */
const open = (path: string) => service.request(path)
const choose = (path: string, choice: string) => service.request(`${path}/${choice}`, { method: 'POST' })

test('a stranger gets one mail of fixed words, and nothing else before they say yes', {
  tags: 'long',
}, async () => {
  const team = await makeTeam()
  const [stranger, staff, corp] = [fresh(), fresh('staff.example.com'), fresh('a.corp.example.com')]
  const report = await makeReport(team, [stranger, staff, corp, team.email])
  expect(report.recipientStates.map(({ state }: Body) => state)).toEqual(['ASKED', 'READY', 'READY', 'READY'])
  expect(report.warnings).toEqual([{ path: 'recipients[0]', message: expect.stringContaining('says yes') }])
  const run = await report.send()
  expect(run).toMatchObject({
    status: 'SENT',
    withheld: [stranger],
    error: expect.stringContaining('have not said yes'),
  })
  for (const address of [staff, corp, team.email]) {
    const [mail] = mailsTo(address)
    expect(mail!.headers).toContain('Subject: A scheduled report of your team')
    expect(mail!.headers).not.toContain(EVIL)
  }
  await mailbox.until(() => mailsTo(stranger).length > 0)
  const [question, ...others] = mailsTo(stranger)
  expect(others).toEqual([])
  expect(question!.headers + question!.text).not.toContain(EVIL)
  expect(question!.headers + question!.text).not.toMatch(/Byron|Team [0-9a-f]{8}/)
  expect(question!.headers).toMatch(/^List-Unsubscribe: <.*\/stop>$/m)
  expect(question!.headers).toContain('List-Unsubscribe-Post: List-Unsubscribe=One-Click')

  // Programs that scan mail open links: that says nothing.
  const link = linkIn(question!.text)
  for (const path of [link, `${link}/yes`, `${link}/stop`, `${link}/never`]) {
    const page = await open(path)
    expect(page.status).toBe(200)
    expect(await page.text()).toContain('<form method="post"')
  }
  expect(await report.states()).toEqual(['ASKED', 'READY', 'READY', 'READY'])

  expect((await choose(link, 'yes')).status).toBe(200)
  expect((await choose(link, 'yes')).status).toBe(200)
  expect(await report.states()).toEqual(['READY', 'READY', 'READY', 'READY'])
  expect(await report.send()).toMatchObject({ status: 'SENT', withheld: [], error: null })
  const sent = mailsTo(stranger)[1]!
  expect(sent.headers).toContain('Subject: A scheduled report of your team')

  // One click of a mail program stops it, and saving the report again asks nobody again.
  const stop = /^List-Unsubscribe: <(.*)>$/m.exec(sent.headers)![1]!
  const oneClick = await service.request(new URL(stop).pathname, {
    ...{ method: 'POST', body: 'List-Unsubscribe=One-Click' },
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  })
  expect(oneClick.status).toBe(200)
  const put = await team.call('PUT', `scheduled-reports/${report.id}`, report.fields)
  expect(put.body.recipientStates[0]).toEqual({ address: stranger, state: 'REFUSED' })
  expect(await report.send()).toMatchObject({ status: 'SENT', withheld: [stranger] })
  expect(mailsTo(stranger)).toHaveLength(2)
})

test('a member can stop the mails too, and a no for ever holds for all teams', { tags: 'long' }, async () => {
  const [team, other] = [await makeTeam(), await makeTeam()]
  const report = await makeReport(team, [team.email])
  expect(await report.send()).toMatchObject({ status: 'SENT' })
  expect((await choose(linkIn(mailsTo(team.email)[0]!.text), 'stop')).status).toBe(200)
  expect(await report.states()).toEqual(['REFUSED'])
  expect(await report.send()).toMatchObject({ status: 'FAILED', withheld: [team.email] })

  const stranger = fresh()
  await makeReport(team, [stranger])
  await mailbox.until(() => mailsTo(stranger).length > 0)
  expect((await choose(linkIn(mailsTo(stranger)[0]!.text), 'never')).status).toBe(200)
  const elsewhere = await makeReport(other, [stranger.toUpperCase()])
  expect(await elsewhere.states()).toEqual(['REFUSED'])
  expect(mailsTo(stranger)).toHaveLength(1)
})

test('an address is asked once for a team, and seldom for all of them', async () => {
  const stranger = fresh()
  const teams = [await makeTeam(), await makeTeam(), await makeTeam(), await makeTeam()]
  const states: string[] = []
  for (const team of teams) {
    const report = await makeReport(team, [stranger])
    await team.call('PUT', `scheduled-reports/${report.id}`, { ...report.fields, name: 'Again' })
    states.push(...(await report.states()))
  }
  expect(states).toEqual(['ASKED', 'ASKED', 'ASKED', 'NOT_ASKED'])
  await mailbox.until(() => mailsTo(stranger).length === 3)
  const { rows } = await sql`select from mails where email = ${stranger}`.execute(db)
  expect(rows).toHaveLength(3)
  // Other addresses of the same mailbox are no way around that.
  const [local, domain] = stranger.split('@')
  const others = [`${local}+news@${domain}`, `${local}+2+3@${domain}`, `${local}@${domain}.`]
  const report = await makeReport(await makeTeam(), others)
  expect(await report.states()).toEqual(['NOT_ASKED', 'NOT_ASKED', 'NOT_ASKED'])
})

test('nothing goes out on behalf of somebody whose address is not confirmed', async () => {
  const team = await makeTeam()
  await db.updateTable('users').set({ emailConfirmedAt: null }).where('id', '=', team.id).execute()
  const [stranger, staff] = [fresh(), fresh('staff.example.com')]
  const report = await makeReport(team, [stranger, staff, team.email])
  expect(report.held).toContain('has not confirmed')
  expect(report.warnings[0].message).toContain('has not confirmed')
  expect(await report.states()).toEqual(['NOT_ASKED', 'READY', 'NOT_ASKED'])
  expect(await report.send()).toMatchObject({ status: 'FAILED', error: expect.stringContaining('confirmed') })
  const channel = { name: EVIL, type: 'EMAIL', config: { recipients: [staff] } }
  const made = await team.call('POST', 'channels', channel)
  expect(made.body).toMatchObject({ held: expect.stringContaining('confirmed') })
  expect((await team.call('POST', `channels/${made.body.id}/test`)).body).toMatchObject({
    status: 'FAILED',
    message: expect.stringContaining('confirmed'),
  })
  for (const address of [stranger, staff, team.email]) expect(mailsTo(address)).toEqual([])
})

test('a channel says whose yes is missing, and a test reaches those who want it', async () => {
  const team = await makeTeam()
  const [stranger, staff] = [fresh(), fresh('staff.example.com')]
  const config = { recipients: [staff, stranger] }
  const made = await team.call('POST', 'channels', { name: EVIL, type: 'EMAIL', config })
  expect(made.body).toMatchObject({
    ...{ held: null, config: { ...config, credentialId: null } },
    recipientStates: [
      { address: staff, state: 'READY' },
      { address: stranger, state: 'ASKED' },
    ],
  })
  const tested = await team.call('POST', `channels/${made.body.id}/test`)
  expect(tested.body).toMatchObject({
    status: 'FAILED',
    message: `${stranger}: has not said yes to mail of this team yet`,
  })
  expect(mailsTo(staff)[0]!.headers).toContain('Subject: A test of a notification channel')
  await mailbox.until(() => mailsTo(stranger).length === 1)
  await choose(linkIn(mailsTo(stranger)[0]!.text), 'yes')
  expect((await team.call('POST', `channels/${made.body.id}/test`)).body.status).toBe('SUCCESS')
  expect(mailsTo(stranger)).toHaveLength(2)
})

test("by a credential of the team's own there are no such limits", async () => {
  const team = await makeTeam()
  const own = await startMailbox()
  const login = { host: '127.0.0.1', port: own.port, tls: 'never', from: 'us@team.example.com' }
  const data = { ...login, authentication: 'none' }
  const id = await plantCredential(store, team.teamId, 'SMTP', data as never)
  const [stranger, other] = [fresh(), fresh()]
  const report = await makeReport(team, [stranger, other], { credentialId: id })
  expect(report).toMatchObject({ credentialId: id, held: null })
  expect(await report.states()).toEqual(['READY', 'READY'])
  expect(await report.send()).toMatchObject({ status: 'SENT', error: null, withheld: [] })
  expect(own.mails.map(({ to }) => to)).toEqual([[stranger], [other]])
  expect(own.mails[0]!.headers).toContain(`Subject: ${EVIL}`)
  expect(own.mails[0]!.headers).not.toContain('List-Unsubscribe')
  expect(mailsTo(stranger)).toEqual([])
  const removed = await service.call('DELETE', `/api/credentials/${id}`, team.cookie)
  expect([removed.status, removed.body.message]).toEqual([409, expect.stringContaining(EVIL)])
  const wrong = await team.call('POST', 'scheduled-reports', {
    ...report.fields,
    credentialId: crypto.randomUUID(),
  })
  expect([wrong.status, wrong.body.errors[0].path]).toEqual([400, 'credentialId'])
  await own.stop()
})

test('at the bound of an hour mails wait, and say so', { tags: 'long' }, async () => {
  const team = await makeTeam()
  const staff = fresh('staff.example.com')
  const report = await makeReport(team, [staff])
  const fill = (key: string, mails: number) =>
    sql`insert into mail_counts (key, hour, mails) values (${key}, date_trunc('hour', now(), 'UTC'), ${mails})
      on conflict (key, hour) do update set mails = ${mails}`.execute(db)
  await fill(`team ${team.teamId}`, MAILS_AN_HOUR.team)
  expect(await report.send()).toMatchObject({
    status: 'PENDING',
    error: expect.stringContaining(`The ${MAILS_AN_HOUR.team} mails an hour that a team can send`),
  })
  expect(mailsTo(staff)).toEqual([])
  const { rows } = await sql<{ late: boolean }>`
    select due_at >= date_trunc('hour', now(), 'UTC') + interval '1 hour' as late from scheduled_report_runs
    where report_id = ${report.id}`.execute(db)
  expect(rows).toEqual([{ late: true }])
  await fill(`team ${team.teamId}`, 0)
  await sql`update scheduled_report_runs set due_at = now() where report_id = ${report.id}`.execute(db)
  await mailbox.until(() => mailsTo(staff).length === 1)

  const channel = await team.call('POST', 'channels', {
    ...{ name: 'Us', type: 'EMAIL', config: { recipients: [staff] } },
  })
  const tryIt = async () => (await team.call('POST', `channels/${channel.body.id}/test`)).body
  await fill(`account ${team.id}`, MAILS_AN_HOUR.account)
  expect((await tryIt()).message).toContain('that you can send')
  await fill(`account ${team.id}`, 0)
  await fill('instance', MAILS_AN_HOUR.instance)
  expect((await tryIt()).message).toContain('that this service sends')
  await fill('instance', 0)
  expect((await tryIt()).status).toBe('SUCCESS')
})

test('a link that is no link of this service leads nowhere', async () => {
  const team = await makeTeam()
  const report = await makeReport(team, [team.email])
  await report.send()
  const link = linkIn(mailsTo(team.email)[0]!.text)
  const broken = `${link.slice(0, 20)}${link[20] === 'A' ? 'B' : 'A'}${link.slice(21)}`
  for (const path of [broken, '/mail/x', `/mail/${'A'.repeat(46)}`, `${link}A`]) {
    expect([path, (await open(path)).status]).toEqual([path, 404])
    expect([path, (await choose(path, 'stop')).status]).toEqual([path, 404])
  }
  expect((await choose(link, 'perhaps')).status).toBe(400)
  expect(await report.states()).toEqual(['READY'])
})
