import { pino } from 'pino'
import { expect, test } from 'vitest'
import { makeNextReport, type ReportMaker } from '../../../../activities/audit/reports/make.ts'
import { verifyAudit } from '../../../../db/audit/verify/verify.ts'
import { startReporting } from '../../../../worker/service/audit/reporting.ts'
import { launch } from '../../../support/engine/process.ts'
import { keep } from '../../../support/keep.ts'
import { type Body, startService } from '../../../support/service.ts'

const service = await keep(startService({ rateLimits: false }))
const { store, teamId } = service
const { db } = store
const log = pino({ level: process.env.TEST_LOG ?? 'silent' })
const never = new AbortController().signal

const path = `/api/audit/team/${teamId}/reports`
const ask = async (): Promise<string> => {
  const json = { name: 'a', type: 'ACTIVITY', from: '2020-01-01', to: '2100-01-01' }
  return (await service.call('POST', path, service.admin, json)).body.id
}
const read = async (id: string): Promise<Body> =>
  (await service.call('GET', `${path}/${id}`, service.admin)).body
const rowOf = (id: string) =>
  db.selectFrom('auditReports').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
const partsOf = (id: string) =>
  db
    .selectFrom('auditReportParts')
    .select(['format', 'part'])
    .where('reportId', '=', id)
    .orderBy('format')
    .execute()
const setRow = (id: string, values: { dueAt: Date }) =>
  db.updateTable('auditReports').set(values).where('id', '=', id).execute()
const SOON = new Date(0)

/** A maker that waits in the middle until `go` is called. */
function makeWaiting(more: Partial<ReportMaker> = {}) {
  let go = () => {}
  let begun = () => {}
  const free = new Promise<void>((resolve) => (go = resolve))
  const there = new Promise<void>((resolve) => (begun = resolve))
  const verify: ReportMaker['verify'] = async (...asked) => {
    begun()
    await free
    return verifyAudit(asked[0], asked[1], asked[2])
  }
  return { maker: { store, log, verify, ...more }, go, there }
}

test('a process that is killed while it makes a report is noticed, and another one makes it, once', async () => {
  const id = await ask()
  const [key] = [...store.keys.byId.values()]
  const victim = launch(['test/support/audit/stuck.ts'], {
    DATABASE_URL: service.database.url,
    KEY: Buffer.from(key as Uint8Array).toString('hex'),
  })
  await victim.until(() => victim.output().includes('verifying'))
  expect(await read(id)).toMatchObject({ status: 'RUNNING', startedAt: expect.any(String) })
  // Its claim holds.
  expect(await makeNextReport({ store, log }, never)).toBe(false)
  victim.kill('SIGKILL')
  await victim.ended
  const ends = [1, 2, 3].map(() => startReporting({ store, log }))
  await expect.poll(async () => (await read(id)).status, { timeout: 60_000 }).toBe('COMPLETED')
  for (const end of ends) await end()
  expect((await rowOf(id)).attempts).toBe(2)
  expect((await partsOf(id)).map(({ format, part }) => [format, part])).toEqual([
    ['html', 0],
    ['json', 0],
  ])
})

test('whoever has lost the claim completes nothing', async () => {
  const id = await ask()
  const slow = makeWaiting()
  const first = makeNextReport(slow.maker, never)
  await slow.there
  // As if this process had stood still until its claim was over.
  await setRow(id, { dueAt: SOON })
  expect(await makeNextReport({ store, log }, never)).toBe(true)
  const done = await read(id)
  expect(done.status).toBe('COMPLETED')
  slow.go()
  expect(await first).toBe(true)
  expect(await read(id)).toEqual(done)
  expect(await partsOf(id)).toHaveLength(2)
})

test('a process that stops lets another one go on at once, and that does not count', async () => {
  const id = await ask()
  const slow = makeWaiting()
  const stopping = new AbortController()
  const first = makeNextReport(slow.maker, stopping.signal)
  await slow.there
  stopping.abort()
  await first
  expect(await rowOf(id)).toMatchObject({ status: 'PENDING', attempts: 0 })
  expect(await makeNextReport({ store, log }, never)).toBe(true)
  expect((await read(id)).status).toBe('COMPLETED')
})

test('a report that takes too long, or fails three times, or whose process ends three times, is FAILED and says why', async () => {
  const slow = await ask()
  expect(await makeNextReport({ ...makeWaiting().maker, limitMs: 200 }, never)).toBe(true)
  expect(await read(slow)).toMatchObject({
    ...{ status: 'FAILED', files: null, finishedAt: expect.any(String) },
    error: 'It took longer than 0.2 s: ask for a shorter period',
  })
  const failing = await ask()
  const verify = async () => {
    throw new Error('no such thing')
  }
  for (let i = 0; i < 3; i++) {
    expect((await read(failing)).status).toBe('PENDING')
    await setRow(failing, { dueAt: SOON })
    expect(await makeNextReport({ store, log, verify }, never)).toBe(true)
  }
  expect(await read(failing)).toMatchObject({
    status: 'FAILED',
    error: expect.stringContaining('three times'),
  })
  const { status, body } = await service.call('GET', `${path}/${failing}/download`, service.admin)
  expect([status, body.message]).toEqual([409, expect.stringContaining('It failed three times')])
  const dying = await ask()
  await db
    .updateTable('auditReports')
    .set({ status: 'RUNNING', attempts: 3, dueAt: SOON })
    .where('id', '=', dying)
    .execute()
  expect(await makeNextReport({ store, log }, never)).toBe(true)
  expect(await read(dying)).toMatchObject({
    status: 'FAILED',
    error: expect.stringContaining('begun three times'),
  })
})

test('a report that is deleted while it is made stays away', async () => {
  const id = await ask()
  const slow = makeWaiting()
  const first = makeNextReport(slow.maker, never)
  await slow.there
  expect((await service.call('DELETE', `${path}/${id}`, service.admin)).status).toBe(200)
  slow.go()
  expect(await first).toBe(true)
  expect(await partsOf(id)).toEqual([])
  expect((await service.call('GET', `${path}/${id}`, service.admin)).status).toBe(404)
})
