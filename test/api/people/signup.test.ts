import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { pino } from 'pino'
import { beforeEach, expect, test } from 'vitest'
import { createMailer } from '../../../activities/mail/smtp.ts'
import { verifyAudit } from '../../../db/audit/verify/verify.ts'
import { purgeMails } from '../../../db/people/mails.ts'
import type { EmailProof } from '../../../db/scope.ts'
import { startMailing } from '../../../worker/service/mailing.ts'
import { keep } from '../../support/keep.ts'
import { startMailbox } from '../../support/servers/mailbox.ts'
import { PASSWORD, startService } from '../../support/service.ts'

let proof: EmailProof = 'mail'
const service = await keep(startService({ signUp: 'open', rateLimits: false, emailProof: () => proof }))
const { db } = service.store
const mailbox = await keep(startMailbox())
const mailer = createMailer({
  ...({ host: '127.0.0.1', port: mailbox.port, tls: 'never', auth: undefined } as const),
  from: 'perdure@example.com',
})
const log = pino({ level: 'silent' })
const stop = startMailing(
  { store: service.store, mailer, publicUrl: 'http://127.0.0.1:3000', log },
  service.bus,
)
await keep(Promise.resolve({ stop }))

beforeEach(() => {
  proof = 'mail'
})

const OTHER = 'another horse battery staple'
const fresh = () => `${randomBytes(6).toString('hex')}@example.com`
const register = (email: string, more: object = {}) =>
  service.call('POST', '/api/auth/register', undefined, {
    ...{ firstName: 'Ada', lastName: 'Byron', email, password: PASSWORD },
    ...more,
  })
const login = (email: string, password: string, emailToken?: string) =>
  service.call('POST', '/api/auth/login', undefined, {
    email,
    password,
    ...(emailToken ? { emailToken } : {}),
  })
const mailsTo = (email: string) => mailbox.mails.filter(({ to }) => to.includes(email))
const passMinutes = (minutes: number) =>
  sql`update mails set created_at = created_at - ${minutes} * interval '1 minute'`.execute(db)

async function readToken(email: string, nth = 0): Promise<string> {
  await mailbox.until(() => mailsTo(email).length > nth)
  return mailsTo(email)[nth]!.token!
}

test('known and unknown addresses get the same answer, and the owner of a known one is told', async () => {
  const known = await service.signUp()
  const unknown = fresh()
  const [first, second] = [await register(known.email), await register(unknown)]
  expect([first.status, first.body]).toEqual([202, second.body])
  expect([second.status, Object.keys(second.body)]).toEqual([202, ['message']])
  await mailbox.until(() => mailsTo(known.email).length > 0 && mailsTo(unknown).length > 0)
  const [told] = mailsTo(known.email)
  expect(told!.headers).toContain('Subject: You have an account already')
  expect(told!.token).toBeUndefined()
  expect(told!.headers + told!.text).not.toMatch(/Ada|Byron/)
  // Nothing has changed for the owner.
  expect((await login(known.email, PASSWORD)).status).toBe(200)
  // Nobody fills a mailbox with it, and the answer stays the same.
  for (let more = 0; more < 3; more++) expect((await register(known.email)).body).toEqual(first.body)
  expect(await db.selectFrom('mails').select('id').where('email', '=', known.email).execute()).toHaveLength(1)
  const chain = '00000000-0000-0000-0000-000000000000'
  const entries = await db
    .selectFrom('auditEntries')
    .select(['action', 'actorId'])
    .where('teamId', '=', chain)
    .where('resourceId', '=', known.id)
    .where('action', '=', 'SIGN_UP_REPEATED')
    .execute()
  expect(entries).toEqual(Array(4).fill({ action: 'SIGN_UP_REPEATED', actorId: null }))
  expect((await verifyAudit(service.store, chain)).findings).toEqual([])
  // What is wrong is told to both alike.
  for (const email of [known.email, fresh()])
    expect((await register(email, { password: 'short' })).body.errors).toMatchObject([{ path: 'password' }])
})

test('of two at once for one new address both get the same answer', async () => {
  const email = fresh()
  const both = await Promise.all([register(email), register(email)])
  expect(both.map(({ status }) => status)).toEqual([202, 202])
})

test('a new account signs in once its link was opened; until then only the right password tells so', async () => {
  const email = fresh()
  await register(email)
  const token = await readToken(email)
  const early = await login(email, PASSWORD)
  expect([early.status, early.body.message]).toEqual([403, expect.stringContaining('open the link')])
  expect(early.headers.getSetCookie()).toEqual([])
  const wrong = await login(email, OTHER)
  expect([wrong.status, wrong.body.message]).toEqual([401, (await login(fresh(), OTHER)).body.message])
  // Neither a wrong password nor a wrong token opens it.
  expect((await login(email, OTHER, token)).status).toBe(401)
  expect((await login(email, PASSWORD, `${token.slice(1)}A`)).status).toBe(403)
  // No team can have it before.
  const add = () =>
    service.call('POST', `/api/teams/${service.teamId}/members`, service.admin, { email, role: 'OPERATOR' })
  expect((await add()).status).toBe(404)

  const opened = await login(email.toUpperCase(), PASSWORD, token)
  expect([opened.status, opened.body.email]).toEqual([200, email])
  const me = await service.call('GET', '/api/auth/me', await service.signIn(email))
  expect(me.body).toMatchObject({ email, emailConfirmed: true, pendingEmail: null })
  expect((await add()).status).toBe(201)
})

test('the right password has another link mailed, but not more than one a minute', async () => {
  const email = fresh()
  await register(email)
  await readToken(email)
  expect((await login(email, PASSWORD)).status).toBe(403)
  await passMinutes(2)
  expect((await login(email, PASSWORD)).status).toBe(403)
  const again = await readToken(email, 1)
  expect(mailsTo(email)).toHaveLength(2)
  expect((await login(email, PASSWORD, again)).status).toBe(200)
})

test('nobody keeps an address from its owner by signing up with it', async () => {
  const email = fresh()
  await register(email, { password: OTHER })
  const ofStranger = await readToken(email)
  await passMinutes(2)
  await register(email)
  const own = await readToken(email, 1)
  // The owner of the mailbox does not open the stranger's account: they do not know its password.
  expect((await login(email, PASSWORD, ofStranger)).status).toBe(401)
  expect((await login(email, PASSWORD, own)).status).toBe(200)
  // The stranger never gets in, and is told nothing else than before.
  expect((await login(email, OTHER)).status).toBe(401)
  expect((await login(email, OTHER, ofStranger)).status).toBe(409)
  await passMinutes(2)
  expect((await register(email, { password: OTHER })).status).toBe(202)
  await mailbox.until(() => mailsTo(email).length === 3)
  expect(mailsTo(email)[2]!.token).toBeUndefined()
})

test('accounts whose link is never opened are removed', async () => {
  const email = fresh()
  await register(email)
  await readToken(email)
  const count = async () =>
    (await db.selectFrom('users').select('id').where('pendingEmail', '=', email).execute()).length
  await purgeMails(service.store)
  expect(await count()).toBe(1)
  await sql`update users set created_at = now() - interval '27 hours' where pending_email = ${email}`.execute(
    db,
  )
  // A clock that is set back a little must not matter, nor a mail that is not noted as sent yet.
  const open = () =>
    db.selectFrom('mails').select('id').where('email', '=', email).where('settledAt', 'is', null)
  await expect.poll(() => open().execute()).toEqual([])
  await sql`update email_tokens set expires_at = now() - interval '1 hour' where email = ${email}`.execute(db)
  await purgeMails(service.store)
  expect(await count()).toBe(0)
})

test("without mail a known address is a 409, and the instance's admin can open what waits for a link", async () => {
  const email = fresh()
  await register(email)
  await readToken(email)
  proof = 'operator'
  const vouched = await service.call('POST', '/api/admin/users/confirm', service.admin, { email })
  expect(vouched.body).toMatchObject({ email, emailConfirmed: true })
  expect((await login(email, PASSWORD)).status).toBe(200)
  proof = 'mail'
  expect((await login(email, PASSWORD)).status).toBe(200)
  proof = 'operator'
  expect((await register(email)).status).toBe(409)
})
