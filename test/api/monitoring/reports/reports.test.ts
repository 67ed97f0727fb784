import { expect, test } from 'vitest'
import type { EmailProof } from '../../../../db/scope.ts'
import { keep } from '../../../support/keep.ts'
import { startService } from '../../../support/service.ts'

let proof: EmailProof = 'mail'
const service = await keep(startService({ rateLimits: false, emailProof: () => proof }))

const FIELDS = {
  name: 'Weekly figures',
  schedule: '0 7 * * MON',
  recipients: ['ada@example.com', 'grace@example.com'],
  metrics: ['token_usage', 'drift'],
}

async function openTeam() {
  const team = await service.otherTeam()
  const path = `/api/monitoring/teams/${team.teamId}/scheduled-reports`
  const call = (method: string, below = '', json?: unknown, as = team.cookie) =>
    service.call(method, `${path}${below}`, as, json)
  return { ...team, path, call }
}

test('a report is created, listed, changed and deleted, and the audit says so', async () => {
  const { path, call, teamId } = await openTeam()
  expect((await call('GET')).body).toEqual([])
  const made = await call('POST', '', { ...FIELDS, name: ' Weekly figures ' })
  expect(made.status).toBe(201)
  const { id, nextRunAt } = made.body
  expect(made.headers.get('location')).toBe(`${path}/${id}`)
  expect(made.body).toEqual({
    ...{
      id,
      ...FIELDS,
      timezone: 'UTC',
      enabled: true,
      lastRunAt: null,
      lastStatus: null,
      credentialId: null,
    },
    ...{ held: null, recipientStates: FIELDS.recipients.map((address) => ({ address, state: 'READY' })) },
    ...{ createdAt: expect.any(String), updatedAt: expect.any(String), nextRunAt: expect.any(String) },
  })
  expect(new Date(nextRunAt).getUTCDay()).toBe(1)
  expect(nextRunAt.slice(11)).toBe('07:00:00.000Z')
  expect((await call('GET')).body).toEqual([made.body])

  const off = await call('PUT', `/${id}`, { ...FIELDS, timezone: 'Asia/Tokyo', enabled: false })
  expect(off).toMatchObject({
    status: 200,
    body: { timezone: 'Asia/Tokyo', enabled: false, nextRunAt: null },
  })
  // What is not given stays.
  const still = await call('PUT', `/${id}`, { ...FIELDS, metrics: ['sentiment'] })
  expect(still.body).toMatchObject({ timezone: 'Asia/Tokyo', enabled: false, metrics: ['sentiment'] })
  const on = await call('PUT', `/${id}`, { ...FIELDS, enabled: true })
  expect(on.body.nextRunAt.slice(11)).toBe('22:00:00.000Z')
  expect((await call('GET', `/${id}/runs`)).body).toMatchObject({ content: [], totalElements: 0 })

  const gone = await call('DELETE', `/${id}`)
  expect(gone).toMatchObject({ status: 200, body: { message: 'Scheduled report deleted' } })
  expect((await call('GET')).body).toEqual([])
  for (const [method, below] of [
    ['PUT', ''],
    ['DELETE', ''],
    ['GET', '/runs'],
    ['POST', '/send'],
  ] as const)
    expect((await call(method, `/${id}${below}`, method === 'PUT' ? FIELDS : undefined)).status).toBe(404)
  const rows = await service.store.db
    .selectFrom('auditEntries')
    .select('action')
    .where('teamId', '=', teamId)
    .where('action', 'like', 'SCHEDULED_REPORT%')
    .orderBy('seq')
    .execute()
  const words = rows.map(({ action }) => action.slice('SCHEDULED_REPORT_'.length))
  expect(words).toEqual(['CREATED', 'UPDATED', 'UPDATED', 'UPDATED', 'DELETED'])
})

test('all faults are named at once', async () => {
  const { call } = await openTeam()
  const name = async (json: Record<string, unknown>) => {
    const { status, body } = await call('POST', '', { ...FIELDS, ...json })
    return [status, (body.errors ?? []).map(({ path }: { path: string }) => path)]
  }
  for (const schedule of ['', '* * * *', '0 7 * * MON *', '@daily', '61 * * * *', '0 0 31 2 *'])
    expect([schedule, ...(await name({ schedule }))]).toEqual([schedule, 400, ['schedule']])
  for (const recipient of [
    'ada',
    'ada@example.com, eve@example.com',
    'Ada <ada@example.com>',
    'a@b.c\r\nBcc: eve@example.com',
    '@example.com',
  ])
    expect([recipient, ...(await name({ recipients: [recipient] }))]).toEqual([
      recipient,
      400,
      ['recipients[0]'],
    ])
  expect(await name({ name: 'a\r\nBcc: x' })).toEqual([400, ['name']])
  expect(await name({ recipients: ['a@b.c', 'A@b.c'] })).toEqual([400, ['recipients']])
  expect(await name({ metrics: ['drift', 'drift'] })).toEqual([400, ['metrics']])
  expect(
    await name({
      name: ' ',
      schedule: 7,
      timezone: 'Mars/Base',
      recipients: [],
      metrics: [],
      enabled: 'yes',
    }),
  ).toEqual([400, ['name', 'schedule', 'recipients', 'metrics', 'timezone', 'enabled']])
  const many = Array.from({ length: 51 }, (_, at) => `a${at}@example.com`)
  expect(await name({ recipients: many })).toEqual([400, ['recipients']])
  expect(await name({ recipients: many.slice(1) })).toEqual([201, []])
  const { body } = await call('POST', '', {})
  expect(body.errors.map(({ path }: { path: string }) => path)).toEqual([
    'name',
    'schedule',
    'recipients',
    'metrics',
  ])
})

test('members read reports and runs, and only ADMINs change and send them', async () => {
  const { call, teamId } = await openTeam()
  const { id } = (await call('POST', '', FIELDS)).body
  const { cookie } = await service.signUp('OPERATOR', teamId)
  expect((await call('GET', '', undefined, cookie)).body).toHaveLength(1)
  expect((await call('GET', `/${id}/runs`, undefined, cookie)).status).toBe(200)
  for (const [method, below] of [
    ['POST', ''],
    ['PUT', `/${id}`],
    ['DELETE', `/${id}`],
    ['POST', `/${id}/send`],
  ] as const)
    expect((await call(method, below, FIELDS, cookie)).status).toBe(403)
  // A report is its team's.
  const other = await openTeam()
  expect((await other.call('PUT', `/${id}`, FIELDS)).status).toBe(404)
  expect((await other.call('GET', `/${id}/runs`)).status).toBe(404)
  expect((await other.call('POST', `/${id}/send`)).status).toBe(404)
})

test('a team can have 100 reports', async () => {
  const { call, teamId } = await openTeam()
  const { id } = (await call('POST', '', FIELDS)).body
  const { db } = service.store
  const { id: _, ...row } = await db
    .selectFrom('scheduledReports')
    .selectAll()
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  const rows = Array.from({ length: 98 }, () => ({ ...row, id: crypto.randomUUID(), teamId }))
  await db.insertInto('scheduledReports').values(rows).execute()
  const both = await Promise.all([call('POST', '', FIELDS), call('POST', '', FIELDS)])
  expect(both.map(({ status }) => status).sort()).toEqual([201, 409])
})

test('the reports of a team come to at most 120 mails an hour, those that are not enabled left out', async () => {
  const { call } = await openTeam()
  const often = { ...FIELDS, schedule: '* * * * *' }
  const first = await call('POST', '', often)
  expect([first.status, first.body.schedule]).toEqual([201, '* * * * *'])
  expect(new Date(first.body.nextRunAt).getTime() - Date.now()).toBeLessThanOrEqual(60_000)
  expect((await call('POST', '', often)).status).toBe(201)
  const refused = await call('POST', '', { ...FIELDS, schedule: '0 7 * * MON' })
  expect([refused.status, refused.body.message]).toEqual([
    409,
    'The reports of a team may have 120 slots an hour together, and would have 121',
  ])
  const idle = await call('POST', '', { ...often, enabled: false })
  expect(idle.status).toBe(201)
  expect((await call('PUT', `/${idle.body.id}`, { ...often, enabled: true })).status).toBe(409)
  expect((await call('PUT', `/${first.body.id}`, { ...FIELDS, schedule: '*/15 8-18 * * *' })).status).toBe(
    200,
  )
  expect((await call('PUT', `/${idle.body.id}`, { ...FIELDS, schedule: '0,30 7 * * *' })).status).toBe(200)
})

test('without a mail server the answers warn', async () => {
  const { call } = await openTeam()
  proof = 'operator'
  const { status, body } = await call('POST', '', FIELDS)
  expect([status, body.warnings]).toEqual([
    201,
    [{ path: 'recipients', message: expect.stringContaining('SMTP_URL') }],
  ])
  expect((await call('PUT', `/${body.id}`, FIELDS)).body.warnings).toHaveLength(1)
  expect((await call('GET')).body[0]).not.toHaveProperty('warnings')
})

test('a team can ask for 20 mails an hour', async () => {
  const { call } = await openTeam()
  const { id } = (await call('POST', '', FIELDS)).body
  const send = async () => {
    const { status, headers } = await call('POST', `/${id}/send`)
    const sent = service.store.db.updateTable('scheduledReportRuns').set({ status: 'SENT' })
    await sent.where('reportId', '=', id).execute()
    return [status, headers.has('retry-after')]
  }
  for (let count = 0; count < 20; count++) expect(await send()).toEqual([202, false])
  expect(await send()).toEqual([429, true])
  expect((await call('GET', `/${id}/runs`)).body.totalElements).toBe(20)
})
