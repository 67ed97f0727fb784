import { sql } from 'kysely'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createMailer } from '../../../activities/mail/smtp.ts'
import { claimMails, purgeMails } from '../../../db/people/mails.ts'
import { startMailing } from '../../../worker/service/mailing.ts'
import { keep } from '../../support/keep.ts'
import { startMailbox } from '../../support/servers/mailbox.ts'
import { PASSWORD, startService } from '../../support/service.ts'
import { until } from '../../support/until.ts'

const service = await keep(startService({ signUp: 'open', rateLimits: false, emailProof: () => 'mail' }))
const { store } = service

let count = 0
async function register() {
  const email = `ada${++count}@example.com`
  const json = { firstName: 'Ada', lastName: 'Byron', email, password: PASSWORD }
  expect((await service.call('POST', '/api/auth/register', undefined, json)).status).toBe(202)
  return email
}

const begin = (port: number) => {
  const mailer = createMailer({
    host: '127.0.0.1',
    port,
    tls: 'never',
    auth: undefined,
    from: 'p@example.com',
  })
  const carrier = { store, mailer, publicUrl: 'http://x.example.com', log: pino({ level: 'silent' }) }
  return startMailing(carrier, service.bus)
}
const read = async (email: string) =>
  store.db.selectFrom('mails').selectAll().where('email', '=', email).executeTakeFirstOrThrow()
const makeDue = () => sql`update mails set due_at = now() where settled_at is null`.execute(store.db)

test('a mail waits in the database until a server takes it, and no request waits for it', async () => {
  const gone = await startMailbox()
  await gone.stop()
  const stopFirst = begin(gone.port)
  const email = await register()
  await until(async () => (await read(email)).lastError, {
    holds: (error) => !!error?.includes('ECONNREFUSED'),
  })
  expect(await read(email)).toMatchObject({ settledAt: null, attempts: 1 })
  await stopFirst()

  const box = await startMailbox()
  const stop = begin(box.port)
  await makeDue()
  // The next one wakes the sender, which takes both.
  const other = await register()
  await box.until(() => box.mails.length === 2)
  expect(box.mails.flatMap(({ to }) => to).sort()).toEqual([email, other].sort())
  await until(async () => (await read(other)).settledAt !== null && (await read(email)).settledAt !== null)
  await stop()
  await box.stop()
})

test('a mail whose process died while it sent is sent by another one, and a sent one is not sent again', async () => {
  const email = await register()
  // The process that claims these never settles them.
  expect((await claimMails(store, 10, 60_000)).map((mail) => mail.email)).toEqual([email])
  expect(await claimMails(store, 10, 60_000)).toEqual([])
  const box = await startMailbox()
  await makeDue()
  const stops = [begin(box.port), begin(box.port), begin(box.port)]
  await box.until(() => box.mails.length === 1)
  await until(async () => (await read(email)).settledAt !== null)
  for (const stop of stops) await stop()
  expect(box.mails).toHaveLength(1)
  await box.stop()
})

test('stopping breaks off what is being sent; it is sent by the next process', async () => {
  const box = await startMailbox()
  box.state.hang = true
  const stop = begin(box.port)
  const email = await register()
  await box.until(() => box.state.connections > 0)
  await stop()
  expect(await read(email)).toMatchObject({ settledAt: null, attempts: 1 })
  box.state.hang = false
  await makeDue()
  const stopNext = begin(box.port)
  await box.until(() => box.mails.length === 1)
  await stopNext()
  await box.stop()
})

test('a mail is given up if its recipient is refused, or after a day; and it is not sent if it is not needed', async () => {
  const box = await startMailbox()
  const stop = begin(box.port)
  box.state.refuse = () => Object.assign(new Error('no such mailbox'), { responseCode: 550 })
  const refused = await register()
  await until(async () => (await read(refused)).settledAt !== null)
  expect((await read(refused)).lastError).toContain('no such mailbox')
  await stop()

  const old = await register()
  await sql`update mails set created_at = now() - interval '25 hours' where email = ${old}`.execute(store.db)
  box.state.refuse = () => Object.assign(new Error('later'), { responseCode: 451 })
  const stopOld = begin(box.port)
  await until(async () => (await read(old)).settledAt !== null)
  expect((await read(old)).lastError).toContain('later')
  await stopOld()

  box.state.refuse = undefined
  const confirmed = await register()
  await service.call('POST', '/api/admin/users/confirm', service.admin, { email: confirmed })
  const stopLast = begin(box.port)
  await until(async () => (await read(confirmed)).settledAt !== null)
  await stopLast()
  expect(box.mails).toEqual([])
  await box.stop()

  await sql`update email_tokens set expires_at = now()`.execute(store.db)
  await sql`update mails set created_at = now() - interval '27 hours' where email = ${old}`.execute(store.db)
  await purgeMails(store)
  expect(await store.db.selectFrom('emailTokens').selectAll().execute()).toEqual([])
  const left = await store.db.selectFrom('mails').select('email').execute()
  expect(left.map(({ email }) => email)).not.toContain(old)
  expect(left.length).toBeGreaterThan(0)
})
