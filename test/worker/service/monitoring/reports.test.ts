import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { text as readText } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { sql } from 'kysely'
import { pino } from 'pino'
import type { SMTPServerOptions } from 'smtp-server'
import { expect, test } from 'vitest'
import { createOutsides } from '../../../../activities/egress/outside.ts'
import { createMailer } from '../../../../activities/mail/smtp.ts'
import { claimReportRuns, noteReportSending } from '../../../../db/monitoring/reports/claims.ts'
import { beginSlots, purgeReportRuns } from '../../../../db/monitoring/reports/runs.ts'
import { startScheduledReports } from '../../../../worker/service/monitoring/reports.ts'
import { keep } from '../../../support/keep.ts'
import { LOCAL } from '../../../support/servers/loopback.ts'
import { startMailbox } from '../../../support/servers/mailbox.ts'
import { type Body, startService } from '../../../support/service.ts'
import { until } from '../../../support/until.ts'

const service = await keep(startService({ rateLimits: false }))
const { store } = service
const { db } = store

/** Runs the job as a process does, with or without an SMTP server. */
function begin(port?: number): () => Promise<void> {
  const options = { host: '127.0.0.1', tls: 'never', auth: undefined, from: 'p@example.com' } as const
  const mailer = port === undefined ? undefined : createMailer({ ...options, port })
  const log = pino({ level: process.env.TEST_LOG ?? 'silent' })
  const deps = { store, outside: createOutsides(LOCAL), mailer, publicUrl: 'http://x.example.com', log }
  return startScheduledReports(deps)
}

/** A team with a report; `due` says how many minutes ago its next slot was. */
async function makeReport({ due, ...more }: { due?: number } & Record<string, unknown> = {}) {
  const team = await service.otherTeam()
  const path = `/api/monitoring/teams/${team.teamId}/scheduled-reports`
  const fields = {
    name: 'Figures',
    schedule: '0 7 * * *',
    recipients: ['ada@example.com'],
    metrics: ['token_usage'],
  }
  const call = (method: string, below = '', json?: unknown) =>
    service.call(method, `${path}${below}`, team.cookie, json)
  const { status, body } = await call('POST', '', { ...fields, ...more })
  expect(status).toBe(201)
  const id: string = body.id
  if (due !== undefined) await makeDue(id, due)
  const runs = async (): Promise<Body> => (await call('GET', `/${id}/runs`)).body.content
  return { ...team, id, path, call, runs, fields: { ...fields, ...more } }
}

const makeDue = (id: string, minutes: number) =>
  sql`update scheduled_reports set next_at = date_trunc('minute', now()) - ${minutes} * interval '1 minute'
    where id = ${id}`.execute(db)

const settled = (runs: Body) => runs.length > 0 && runs.every(({ status }: Body) => status !== 'PENDING')

/** Makes what is tried again, or held by a process that has died, due. */
const hurry = () =>
  sql`update scheduled_report_runs set due_at = now(), claimed_until = case when claim is null then null else now() - interval '1 second' end
    where status in ('PENDING', 'SENDING')`.execute(db)

async function openBox(options: SMTPServerOptions = {}) {
  const box = await startMailbox(options)
  const own = (address: string) => box.mails.filter(({ to }) => to.includes(address))
  return { ...box, own }
}

const fresh = () => `${randomUUID()}@example.com`

test('a slot sends one mail to each recipient, whatever number of processes run', async () => {
  const box = await openBox()
  const recipients = [fresh(), fresh()]
  const report = await makeReport({ due: 1, recipients, name: 'Täglich: <b>Figures</b>' })
  const ends = [begin(box.port), begin(box.port), begin(box.port)]
  const runs = await until(report.runs, { holds: settled })
  await Promise.all(ends.map((end) => end()))
  expect(runs).toMatchObject([
    { status: 'SENT', manual: false, tries: 1, error: null, refused: [], recipients },
  ])
  expect(box.mails.map(({ to }) => to)).toEqual(recipients.map((one) => [one]))
  for (const { headers, to } of box.mails) {
    expect(headers).toContain(`Message-ID: <report.${runs[0].id}.`)
    expect(headers).toContain('Auto-Submitted: auto-generated')
    expect(headers).toContain(`To: ${to[0]}`)
    expect(headers).toContain('Subject: A scheduled report of your team')
    expect(headers).toMatch(/^List-Unsubscribe: <http:\/\/x\.example\.com\/mail\/[\w-]+\/stop>$/m)
    expect(headers).toContain('List-Unsubscribe-Post: List-Unsubscribe=One-Click')
  }
  const [listed] = (await report.call('GET')).body
  expect(listed).toMatchObject({ lastStatus: 'SENT', lastRunAt: runs[0].slot })
  expect(Date.parse(listed.nextRunAt)).toBeGreaterThan(Date.now())
  await box.stop()
})

test('of slots that have passed only the latest is sent', async () => {
  const box = await openBox()
  const report = await makeReport({ schedule: '0 * * * *', recipients: [fresh()] })
  const first = new Date(Math.floor(Date.now() / 3_600_000 - 3) * 3_600_000)
  await db.updateTable('scheduledReports').set({ nextAt: first }).where('id', '=', report.id).execute()
  const end = begin(box.port)
  const runs = await until(report.runs, { holds: settled })
  await end()
  const hours = [3, 2, 1, 0].map((more) => new Date(first.getTime() + more * 3_600_000).toISOString())
  expect(runs.map(({ slot }: { slot: string }) => slot)).toEqual(hours)
  expect(runs.map(({ status }: { status: string }) => status)).toEqual([
    'SENT',
    'SKIPPED',
    'SKIPPED',
    'SKIPPED',
  ])
  expect(runs[0].periodFrom).toBe(hours[1])
  expect(runs[3].error).toContain('did not run')
  expect(box.mails).toHaveLength(1)
  // A clock that has gone back makes no slot come again.
  await db.updateTable('scheduledReports').set({ nextAt: first }).where('id', '=', report.id).execute()
  expect(await beginSlots(store)).toBe(1)
  expect(await report.runs()).toEqual(runs)
  await box.stop()
})

test('a server that cannot be reached is tried again, with the same mail', async () => {
  const gone = await openBox()
  await gone.stop()
  const recipients = [fresh()]
  const report = await makeReport({ due: 1, recipients })
  const endFirst = begin(gone.port)
  const [failed] = await until(report.runs, { holds: (runs) => !!runs[0]?.error })
  await endFirst()
  expect(failed).toMatchObject({
    status: 'PENDING',
    tries: 1,
    error: expect.stringContaining('ECONNREFUSED'),
  })
  // Whoever is a recipient by now gets the next one.
  await report.call('PUT', `/${report.id}`, { ...report.fields, recipients: [fresh()] })
  await hurry()
  const box = await openBox()
  const end = begin(box.port)
  const [sent] = await until(report.runs, { holds: settled })
  await end()
  expect(sent).toMatchObject({ status: 'SENT', tries: 2, error: null, recipients })
  expect(box.own(recipients[0]!)).toHaveLength(1)
  await box.stop()
})

test('what an earlier slot could not send is given up at the next one, and after a day', async () => {
  const report = await makeReport({ due: 2, recipients: [fresh()] })
  const gone = await openBox()
  await gone.stop()
  const end = begin(gone.port)
  await until(report.runs, { holds: (runs) => !!runs[0]?.error })
  await makeDue(report.id, 1)
  const runs = await until(report.runs, { holds: (found) => found.length === 2 && !!found[0].error })
  await end()
  expect(runs[1]).toMatchObject({
    status: 'FAILED',
    error: expect.stringMatching(/ECONNREFUSED.*given up at the next slot/),
  })
  expect(runs[0]).toMatchObject({ status: 'PENDING' })
  await sql`update scheduled_report_runs set created_at = now() - interval '25 hours' where id = ${runs[0].id}`.execute(
    db,
  )
  await hurry()
  const again = begin(gone.port)
  const [last] = await until(report.runs, { holds: settled })
  await again()
  expect(last).toMatchObject({ status: 'FAILED', tries: 2 })
})

test('recipients who are refused keep nobody from getting theirs', async () => {
  const box = await openBox({
    onRcptTo({ address }, _, done) {
      done(
        address.startsWith('no')
          ? Object.assign(new Error('no such mailbox'), { responseCode: 550 })
          : undefined,
      )
    },
  })
  const recipients = [fresh(), `no.${fresh()}`]
  const report = await makeReport({ due: 1, recipients })
  const none = await makeReport({ due: 1, recipients: [`no.${fresh()}`] })
  const end = begin(box.port)
  const [some] = await until(report.runs, { holds: settled })
  const [failed] = await until(none.runs, { holds: settled })
  await end()
  expect(some).toMatchObject({
    status: 'SENT',
    refused: [recipients[1]],
    error: 'The mail server has refused 1 of the recipients',
  })
  expect(box.mails.map(({ to }) => to)).toEqual([[recipients[0]]])
  expect(failed).toMatchObject({ status: 'FAILED', tries: 1, error: expect.stringContaining('550') })
  await box.stop()
})

test('without an SMTP server a run says so', async () => {
  const report = await makeReport({ due: 1 })
  const end = begin()
  const [run] = await until(report.runs, { holds: settled })
  await end()
  expect(run).toMatchObject({ status: 'FAILED', error: expect.stringContaining('SMTP_URL') })
})

test('a process that dies before the mail is handed over leaves it to the others', async () => {
  const report = await makeReport({ due: 1, recipients: [fresh()] })
  await beginSlots(store)
  const dead = (await claimReportRuns(store, 100, 60_000)).find(({ reportId }) => reportId === report.id)!
  const box = await openBox()
  const end = begin(box.port)
  // It is still held.
  expect(await report.runs()).toMatchObject([{ status: 'PENDING' }])
  await hurry()
  const [run] = await until(report.runs, { holds: settled })
  expect(run).toMatchObject({ status: 'SENT', tries: 2 })
  // Should it live after all, it may not send it any more.
  expect(await noteReportSending(store, dead, dead.recipients[0]!, 60_000)).toBe(false)
  await end()
  expect(box.mails).toHaveLength(1)
  await box.stop()
})

test('a mail that was handed over without an answer is not sent again', async () => {
  const recipients = [fresh()]
  const report = await makeReport({ due: 1, recipients })
  let taken = 0
  const box = await openBox({
    onData(stream) {
      void readText(stream).then(() => {
        taken++
        // The connection ends instead of an answer.
        for (const { _socket } of box.server.connections as Set<{ _socket: Socket }>) _socket.destroy()
      })
    },
  })
  const end = begin(box.port)
  const [run] = await until(report.runs, { holds: settled })
  await end()
  expect(run).toMatchObject({ status: 'FAILED', error: expect.stringContaining('may have been sent') })
  expect(taken).toBe(1)
  await box.stop()

  // The same, if the process dies meanwhile.
  await report.call('POST', `/${report.id}/send`)
  const dead = (await claimReportRuns(store, 100, 60_000)).find(({ reportId }) => reportId === report.id)!
  expect(await noteReportSending(store, dead, dead.recipients[0]!, 60_000)).toBe(true)
  await hurry()
  const next = await openBox()
  const endNext = begin(next.port)
  const [lost] = await until(report.runs, { holds: settled })
  await endNext()
  expect(lost).toMatchObject({
    status: 'FAILED',
    manual: true,
    error: expect.stringContaining('may have been sent'),
  })
  expect(next.own(recipients[0]!)).toHaveLength(0)
  await next.stop()
})

test.each([
  { when: 'before the mail is handed over', holdsAt: 'RCPT', mails: 1, status: 'SENT' },
  { when: 'while the server looks at the mail', holdsAt: 'DATA', mails: 0, status: 'FAILED' },
])('a process that is killed $when sends no second mail', async ({ holdsAt, mails, status }) => {
  const recipients = [fresh()]
  const report = await makeReport({ due: 1, recipients })
  const held = Promise.withResolvers<void>()
  const box = await openBox({
    onRcptTo: (_, __, done) => (holdsAt === 'RCPT' ? held.resolve() : done()),
    onData(stream) {
      void readText(stream).then(() => held.resolve())
    },
  })
  const program = new URL('../../../support/monitoring/reportsender.ts', import.meta.url)
  const child = spawn(process.execPath, [fileURLToPath(program), service.database.url, String(box.port)], {
    stdio: 'inherit',
  })
  const ended = once(child, 'close')
  await held.promise
  child.kill('SIGKILL')
  await ended
  await box.stop()
  expect(await report.runs()).toMatchObject([{ status: 'PENDING', tries: 1 }])
  await hurry()
  const next = await openBox()
  const end = begin(next.port)
  const [run] = await until(report.runs, { holds: settled })
  await end()
  expect(run.status).toBe(status)
  expect(next.own(recipients[0]!)).toHaveLength(mails)
  await next.stop()
})

test('a report that is deleted or disabled while its mail is on its way is not sent', async () => {
  const reports = [await makeReport({ due: 1 }), await makeReport({ due: 1 })]
  await beginSlots(store)
  const claimed = await claimReportRuns(store, 100, 60_000)
  expect((await reports[0]!.call('DELETE', `/${reports[0]!.id}`)).status).toBe(200)
  const { body } = await reports[1]!.call('PUT', `/${reports[1]!.id}`, {
    ...reports[1]!.fields,
    enabled: false,
  })
  expect(body).toMatchObject({ enabled: false, nextRunAt: null })
  for (const { id } of reports) {
    const run = claimed.find(({ reportId }) => reportId === id)!
    expect(await noteReportSending(store, run, run.recipients[0]!, 60_000)).toBe(false)
  }
  expect(await reports[1]!.runs()).toMatchObject([
    { status: 'SKIPPED', error: expect.stringContaining('disabled') },
  ])
})

test('one that was asked for is sent, also of a report that is disabled, and twice is once', async () => {
  const box = await openBox()
  const recipients = [fresh()]
  const report = await makeReport({
    enabled: false,
    recipients,
    metrics: ['token_usage', 'anomalies', 'drift', 'sentiment'],
  })
  const first = await report.call('POST', `/${report.id}/send`)
  expect(first.status).toBe(202)
  expect(first.body).toMatchObject({ status: 'PENDING', manual: true, tries: 0 })
  expect((await report.call('POST', `/${report.id}/send`)).body.id).toBe(first.body.id)
  const end = begin(box.port)
  const [run] = await until(report.runs, { holds: settled })
  expect(run).toMatchObject({ id: first.body.id, status: 'SENT' })
  expect(Date.parse(run.slot) - Date.parse(run.periodFrom)).toBe(86_400_000)
  await end()
  expect(box.mails).toHaveLength(1)
  await box.stop()
})

test('a team with many that are due does not hold up another one', async () => {
  const many = await makeReport({ recipients: [fresh()] })
  for (let more = 0; more < 8; more++) await many.call('POST', '', many.fields)
  await sql`update scheduled_reports set next_at = now() - interval '1 minute' where team_id = ${many.teamId}`.execute(
    db,
  )
  await beginSlots(store)
  const late = await makeReport({ due: 0 })
  await beginSlots(store)
  const claimed = await claimReportRuns(store, 2, 60_000)
  expect(claimed.map(({ teamId }) => teamId).sort()).toEqual([many.teamId, late.teamId].sort())
})

test('runs are kept for 90 days', async () => {
  const report = await makeReport({ due: 1 })
  await beginSlots(store)
  await sql`update scheduled_report_runs set status = 'SENT', created_at = now() - interval '91 days'
    where report_id = ${report.id}`.execute(db)
  await purgeReportRuns(store)
  expect(await report.runs()).toEqual([])
})
