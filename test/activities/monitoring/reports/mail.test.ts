import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { parse } from 'csv-parse/sync'
import { sql } from 'kysely'
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { createOutsides } from '../../../../activities/egress/outside.ts'
import { createMailer } from '../../../../activities/mail/smtp.ts'
import { sendReportRun } from '../../../../activities/monitoring/reports/send.ts'
import { claimReportRuns } from '../../../../db/monitoring/reports/claims.ts'
import { missing, useBrowser } from '../../../support/browser.ts'
import { createRuns } from '../../../support/engine/runs.ts'
import { keep } from '../../../support/keep.ts'
import { type ParsedMail, parseMail } from '../../../support/monitoring/mailparts.ts'
import { answered, GPT_4O, openMeter } from '../../../support/monitoring/usage/calls.ts'
import { LOCAL } from '../../../support/servers/loopback.ts'
import { startMailbox } from '../../../support/servers/mailbox.ts'
import { type Service, startService } from '../../../support/service.ts'

const service = await keep(startService({ rateLimits: false }))
const { store } = service
const { db } = store
const EVIL = '<img src=x onerror=alert(1)> & "Töchter"'

/** A team with some days of usage, and alerts of each type. */
async function openTeam() {
  const team = await service.otherTeam()
  const runs = createRuns({ store, teamId: team.teamId, user: team } as unknown as Service)
  const workflowId = await runs.addWorkflow()
  await sql`update workflows set name = ${EVIL} where id = ${workflowId}`.execute(db)
  const models = [
    { model: 'gpt-4o', input: 90_000, output: 12_000 },
    { model: '=HYPERLINK("http://x")', input: 3_000, output: 400 },
    { model: 'gpt-4o-mini', input: 250_000, output: 31_000 },
  ]
  for (let day = 0; day < 9; day++) {
    for (const { model, input, output } of models) {
      const executionId = await runs.addRun()
      const meter = openMeter(service, { executionId, workflowId, activityId: 'llm', teamId: team.teamId })
      const share = 0.5 + ((day * 5) % 7) / 7
      const usage = { input: Math.round(input * share), output: Math.round(output * share) }
      await (await meter.begin({ ...GPT_4O, model })).end(answered(usage))
      await sql`update model_calls set created_at = now() - ${day} * interval '1 day' - interval '1 hour'
        where execution_id = ${executionId}`.execute(db)
    }
  }
  const alerts = [
    {
      type: 'ANOMALY',
      severity: 'CRITICAL',
      hours: 3,
      message: 'Executions fail more often than they did: 15 % instead of 2 %',
    },
    {
      type: 'ANOMALY',
      severity: 'MEDIUM',
      hours: 30,
      message: 'The p95 of the latency has doubled',
      workflowId: null,
    },
    { type: 'ANOMALY', severity: 'LOW', hours: 31, message: `Tokens of ${EVIL}`, status: 'RESOLVED' },
    {
      type: 'DRIFT',
      severity: 'HIGH',
      hours: 50,
      message: 'The inputs are about other topics than before',
      status: 'ACKNOWLEDGED',
    },
  ]
  for (const { hours, ...alert } of alerts) {
    const at = new Date(Date.now() - hours * 3_600_000)
    const window = { windowFrom: new Date(at.getTime() - 3_600_000), windowTo: at }
    await db
      .insertInto('alerts')
      .values({
        id: randomUUID(),
        teamId: team.teamId,
        workflowId,
        metric: `m${hours}`,
        observed: 1,
        ...window,
        createdAt: at,
        ...alert,
      })
      .execute()
  }
  const said = { sessionId: randomUUID(), workflowId, executionId: await runs.addRun() }
  await sql`insert into agent_chat_sessions (id, team_id, workflow_id, owner_kind, owner_id, title, untitled)
    values (${said.sessionId}, ${team.teamId}, ${workflowId}, 'USER', ${team.id}, 'chat', false)`.execute(db)
  for (let day = 0; day < 6; day++)
    await sql`with said as (
        insert into agent_chat_messages (id, session_id, team_id, owner_id, execution_id, role, status, content, created_at)
        select gen_random_uuid(), ${said.sessionId}, ${team.teamId}, ${team.id}, ${said.executionId}, 'user', 'COMPLETE', 'a text',
          now() - ${day} * interval '1 day' from generate_series(1, 6) returning id, created_at)
      insert into sentiment_scores (message_id, team_id, workflow_id, execution_id, said_at, score)
      select id, ${team.teamId}, ${workflowId}, ${said.executionId}, created_at, ${0.4 - day / 6} from said`.execute(
      db,
    )
  const compared = { windowTo: new Date(), referenceCount: 100, currentCount: 90, hits: 0 }
  await db
    .insertInto('shiftChecks')
    .values({ workflowId, metric: 'sentiment', teamId: team.teamId, state: 'QUIET', ...compared })
    .execute()
  return team
}

/** The mail that a report sends now, as another program reads it. */
async function sendMail(team: { teamId: string; cookie: string }, more: Record<string, unknown>) {
  const path = `/api/monitoring/teams/${team.teamId}/scheduled-reports`
  const fields = {
    name: 'Weekly figures',
    schedule: '0 7 * * MON',
    timezone: 'Europe/Berlin',
    recipients: ['ada@example.com'],
  }
  const { body } = await service.call('POST', path, team.cookie, { ...fields, ...more })
  expect((await service.call('POST', `${path}/${body.id}/send`, team.cookie)).status).toBe(202)
  let raw = ''
  const box = await startMailbox({
    onData(stream, _, done) {
      stream.setEncoding('latin1').on('data', (part) => {
        raw += part
      })
      stream.on('end', () => done())
    },
  })
  const mailer = createMailer({
    host: '127.0.0.1',
    port: box.port,
    tls: 'never',
    auth: undefined,
    from: 'p@example.com',
  })
  const [run] = await claimReportRuns(store, 1, 60_000)
  const carrier = {
    ...{ store, mailer, outside: createOutsides(LOCAL) },
    ...{ publicUrl: 'http://perdure.example.com', log: pino({ level: 'silent' }) },
  }
  await sendReportRun(carrier, run!, new AbortController().signal)
  await box.stop()
  const { body: list } = await service.call('GET', `${path}/${body.id}/runs`, team.cookie)
  expect(list.content[0]).toMatchObject({ status: 'SENT', error: null })
  return parseMail(raw)
}

const findPart = (mail: ParsedMail, type: string) => mail.parts.find((part) => part.type === type)!

test('a mail has a text, HTML with pictures, and a CSV', async () => {
  const team = await openTeam()
  const mail = await sendMail(team, {
    name: 'Zahlen – "Woche" <x@example.com>',
    recipients: ['grace@bücher.example'],
    metrics: ['token_usage', 'anomalies', 'drift', 'sentiment'],
  })
  expect(mail.defects).toEqual([])
  expect(mail.headers).toMatchObject({
    Subject: ['A scheduled report of your team'],
    From: ['Perdure <p@example.com>'],
    To: ['grace@xn--bcher-kva.example'],
    'Auto-Submitted': ['auto-generated'],
  })
  const image = 'image/png'
  expect(mail.structure).toBe(
    `multipart/mixed(multipart/alternative(text/plain,multipart/related(text/html,${image},${image},${image},${image},${image})),text/csv)`,
  )
  const html = findPart(mail, 'text/html').text!
  const cids = [...html.matchAll(/src="cid:([\w-]+)"/g)].map(([, cid]) => `<${cid}>`)
  const pictures = mail.parts.filter(({ type }) => type === image)
  expect(pictures.map(({ cid }) => cid)).toEqual(cids)
  for (const { base64 } of pictures)
    expect(Buffer.from(base64, 'base64').subarray(1, 4).toString()).toBe('PNG')
  expect(html).not.toContain('<img src=x')
  expect(html).not.toMatch(/<script|https?:\/\/(?!perdure\.example\.com)[\w.]+\/?"/)

  const plain = findPart(mail, 'text/plain').text!
  for (const said of [
    'Token usage',
    'gpt-4o-mini',
    '15 % instead of 2 %',
    EVIL,
    'Drift',
    'No shift of sentiment',
  ])
    expect(plain).toContain(said)
  const csv = findPart(mail, 'text/csv')
  expect(csv.filename).toMatch(/^report-\d{4}-\d\d-\d\d\.csv$/)
  const rows = parse(csv.text!, { columns: true, bom: true }) as Record<string, string>[]
  const days = rows.filter(({ name, measure }) => name === 'day' && measure === 'inputTokens')
  expect(days.length).toBeGreaterThanOrEqual(8)
  const { body } = await service.call(
    'GET',
    `/api/monitoring/teams/${team.teamId}/token-usage/by-model`,
    team.cookie,
  )
  expect(body.models).toHaveLength(3)
  expect(rows.find(({ name }) => name!.includes('HYPERLINK'))!.name).toBe('model =HYPERLINK("http://x")')
})

test('the figures are those of the period, and are compared with the time before', async () => {
  const team = await openTeam()
  const mail = await sendMail(team, { schedule: '0 * * * *', metrics: ['token_usage'] })
  const rows = parse(findPart(mail, 'text/csv').text!, { columns: true, bom: true }) as Record<
    string,
    string
  >[]
  const total = (name: string) => rows.find((row) => row.name === name && row.measure === 'calls')!.value
  // The calls of today were an hour ago: some before the period, or right at its beginning.
  expect(Number(total('total')) + Number(total('period before'))).toBe(3)
  const path = `/api/monitoring/teams/${team.teamId}/token-usage`
  const { body } = await service.call('GET', path, team.cookie)
  expect(body.calls).toBe(27)
  // Each model has one call in this hour, or none.
  expect(findPart(mail, 'text/plain').text).not.toMatch(/\b1 calls/)
})

test('a team where nothing has happened is told so', async () => {
  const team = await service.otherTeam()
  const mail = await sendMail(team, { metrics: ['sentiment', 'token_usage'] })
  const plain = findPart(mail, 'text/plain').text!
  expect(plain).toContain('No model was called in this time.')
  expect(plain.indexOf('Sentiment')).toBeLessThan(plain.indexOf('Token usage'))
})

describe.skipIf(missing)('in a browser', () => {
  const browser = useBrowser(() => 'http://127.0.0.1')

  test('a mail is ready to read on a phone', async () => {
    const team = await openTeam()
    const metrics = ['token_usage', 'anomalies', 'drift', 'sentiment']
    const mail = await sendMail(team, { name: `Figures of ${'a'.repeat(60)}`, metrics })
    const html = findPart(mail, 'text/html').text!.replaceAll(/"cid:([\w-]+)"/g, (_, cid: string) => {
      const { base64 } = mail.parts.find((part) => part.cid === `<${cid}>`)!
      return `"data:image/png;base64,${base64}"`
    })
    const { page } = browser
    await page.route('http://127.0.0.1/', (route) =>
      route.fulfill({ body: html, contentType: 'text/html; charset=utf-8' }),
    )
    for (const width of [360, 1_000]) {
      await page.setViewportSize({ width, height: 740 })
      await page.goto('http://127.0.0.1/')
      const seen = await page.locator('html').evaluate((root) => ({
        width: root.scrollWidth,
        pictures: [...root.querySelectorAll('img')].map(
          (one) => one.naturalWidth > 0 && one.getBoundingClientRect().width > 300,
        ),
      }))
      expect(seen).toEqual({ width, pictures: [true, true, true, true, true] })
      if (process.env.MAIL_SHOTS)
        writeFileSync(
          `${process.env.MAIL_SHOTS}/mail-${width}.png`,
          await page.screenshot({ fullPage: true }),
        )
    }
  })
})
