import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { pino } from 'pino'
import { beforeEach, describe, expect, test } from 'vitest'
import { createMailer } from '../../../activities/mail/smtp.ts'
import { verifyAudit } from '../../../db/audit/verify/verify.ts'
import type { EmailProof } from '../../../db/scope.ts'
import { startMailing } from '../../../worker/service/mailing.ts'
import { keep } from '../../support/keep.ts'
import { startMailbox } from '../../support/servers/mailbox.ts'
import { PASSWORD, startService } from '../../support/service.ts'

let proof: EmailProof = 'mail'
const publicUrl = 'http://127.0.0.1:3000'
const service = await keep(startService({ signUp: 'open', rateLimits: false, emailProof: () => proof }))
const { db } = service.store
const mailbox = await keep(startMailbox())
const from = 'perdure@example.com'
const mailer = createMailer({ host: '127.0.0.1', port: mailbox.port, tls: 'never', auth: undefined, from })
const stopMailing = startMailing(
  { store: service.store, mailer, publicUrl, log: pino({ level: 'silent' }) },
  service.bus,
)
await keep(Promise.resolve({ stop: stopMailing }))

beforeEach(() => {
  proof = 'mail'
})

const fresh = () => `${randomBytes(6).toString('hex')}@example.com`

/**
 * Registers as long as no mail is sent, signs in, and returns the cookie of the account; where mail is sent by now, it has
 * its link mailed. (Who registers where mail is sent has no account before the link is opened: signup.test.ts.)
 */
async function register(email = fresh()) {
  const json = { firstName: 'Ada', lastName: 'Byron', email, password: PASSWORD }
  const now = proof
  if (now === 'mail') proof = 'operator'
  const made = await service.call('POST', '/api/auth/register', undefined, json)
  expect(made.status).toBe(201)
  proof = now
  const cookie = await service.signIn(email)
  if (now === 'mail') await resend(cookie)
  return { id: made.body.id as string, email, cookie }
}

/** The tokens that were mailed to an address, once there are `count`. */
async function readTokens(email: string, count = 1): Promise<string[]> {
  const find = () => mailbox.mails.filter(({ to, token }) => token && to.includes(email))
  await mailbox.until(() => find().length >= count)
  return find().map(({ token }) => token!)
}

const add = (email: string, as = service.admin) =>
  service.call('POST', `/api/teams/${service.teamId}/members`, as, { email, role: 'OPERATOR' })
const me = async (cookie: string) => (await service.call('GET', '/api/auth/me', cookie)).body
const put = (cookie: string, json: object) =>
  service.call('PUT', '/api/auth/me', cookie, { currentPassword: PASSWORD, ...json })
const confirm = (cookie: string, token: string) =>
  service.call('POST', '/api/auth/email/confirm', cookie, { token })
const resend = (cookie: string) => service.call('POST', '/api/auth/email/resend', cookie)
const vouch = (json: object, as = service.admin) => service.call('POST', '/api/admin/users/confirm', as, json)

/** Lets time pass for what limits the mails. */
const passMinutes = (minutes: number) =>
  sql`update mails set created_at = created_at - ${minutes} * interval '1 minute'`.execute(db)

describe('an e-mail without proof', () => {
  test('gets no membership that is meant for its owner, and the response says what to do', async () => {
    const squatter = await register()
    expect(await me(squatter.cookie)).toMatchObject({ emailConfirmed: false, pendingEmail: null })
    const refused = await add(squatter.email)
    expect([refused.status, refused.body.message]).toEqual([
      409,
      'This e-mail is not confirmed yet: they open the link that was mailed to them, or sign in and ask for another ' +
        'mail. Then add them again',
    ])
    proof = 'operator'
    const alone = await add(squatter.email)
    expect([alone.status, alone.body.message]).toEqual([
      409,
      expect.stringContaining('npx perdure user confirm'),
    ])
    // They may sign in and make teams of their own.
    expect((await service.call('POST', '/api/teams', squatter.cookie, { name: 'Own' })).status).toBe(201)
    // An ADMIN of a team of their own proves nothing.
    expect((await vouch({ email: squatter.email }, squatter.cookie)).status).toBe(403)
    expect((await me(squatter.cookie)).teams).toHaveLength(1)
  })

  test('counts on a developer’s own machine, as long as it is that', async () => {
    proof = 'none'
    const ada = await register()
    expect(await me(ada.cookie)).toMatchObject({ emailConfirmed: true })
    expect((await resend(ada.cookie)).status).toBe(409)
    expect((await add(ada.email)).status).toBe(201)
    const email = fresh()
    expect((await put(ada.cookie, { email })).body).toMatchObject({ email, pendingEmail: null })
    const bob = await register()
    proof = 'operator'
    expect((await add(bob.email)).status).toBe(409)
    expect(await me(bob.cookie)).toMatchObject({ emailConfirmed: false })
  })
})

describe('the link in the mail', () => {
  test('confirms the address once, by a POST of the account that asked for it', async () => {
    const ada = await register()
    const eve = await register()
    const [token = ''] = await readTokens(ada.email)
    const mail = mailbox.mails.find(({ to }) => to.includes(ada.email))!
    expect(mail).toMatchObject({ from, to: [ada.email] })
    expect(mail.text).toContain(`${publicUrl}/#/confirm?token=${token}`)
    // Nothing that the one who registered has written is sent to a stranger.
    expect(mail.headers + mail.text).not.toMatch(/Ada|Byron/)
    expect(mail.headers).toMatch(/^Content-Transfer-Encoding: 7bit$/m)
    expect(mail.headers).toMatch(/^Auto-Submitted: auto-generated$/m)
    // What only opens links confirms nothing.
    await service.request('/')
    expect((await me(ada.cookie)).emailConfirmed).toBe(false)

    for (const [cookie, wrong] of [
      [eve.cookie, token],
      [ada.cookie, `${token.slice(1)}A`],
      [ada.cookie, 'nonsense'],
    ] as const) {
      const { status, body } = await confirm(cookie, wrong)
      expect([status, body.errors[0].path]).toEqual([400, 'token'])
    }
    expect((await confirm('', token)).status).toBe(401)
    expect((await confirm(await service.token('ADMIN'), token)).status).toBe(403)
    const both = await Promise.all([1, 2].map(() => confirm(ada.cookie, token)))
    expect(both.map(({ status }) => status).sort()).toEqual([200, 400])
    expect(both.find(({ status }) => status === 200)!.body).toEqual(await me(ada.cookie))
    expect(await me(ada.cookie)).toMatchObject({ email: ada.email, emailConfirmed: true })
    expect((await add(ada.email)).status).toBe(201)
    expect((await resend(ada.cookie)).status).toBe(409)
  })

  test('expires, and is stored as a hash only', async () => {
    const ada = await register()
    const [token = ''] = await readTokens(ada.email)
    const rows = await db.selectFrom('emailTokens').selectAll().where('userId', '=', ada.id).execute()
    expect(rows).toHaveLength(1)
    expect(rows[0]!.expiresAt.getTime() - rows[0]!.createdAt.getTime()).toBe(24 * 3_600_000)
    expect(JSON.stringify(await db.selectFrom('mails').selectAll().execute())).not.toContain(token)
    await db.updateTable('emailTokens').set({ expiresAt: new Date() }).where('userId', '=', ada.id).execute()
    expect((await confirm(ada.cookie, token)).status).toBe(400)
  })

  test('is mailed again on request; the earlier one works too; too many requests are 429', async () => {
    const ada = await register()
    const early = await resend(ada.cookie)
    expect(early.status).toBe(429)
    expect(Number(early.headers.get('retry-after'))).toBeLessThanOrEqual(60)
    for (let sent = 2; sent <= 5; sent++) {
      await passMinutes(2)
      const both = await Promise.all([1, 2].map(() => resend(ada.cookie)))
      expect(both.map(({ status }) => status).sort()).toEqual([200, 429])
      await readTokens(ada.email, sent)
    }
    await passMinutes(2)
    const sixth = await resend(ada.cookie)
    expect(sixth.status).toBe(429)
    expect(Number(sixth.headers.get('retry-after'))).toBeGreaterThan(60)
    // Another account cannot fill the mailbox either, but it can be made.
    const [first = '', , , , last = ''] = await readTokens(ada.email)
    const eve = await register()
    await passMinutes(2)
    expect((await put(eve.cookie, { email: ada.email })).status).toBe(429)
    expect(await me(eve.cookie)).toMatchObject({ pendingEmail: null })
    expect((await confirm(ada.cookie, first)).status).toBe(200)
    expect((await confirm(ada.cookie, last)).status).toBe(400)
  })
})

describe('a change of the e-mail', () => {
  test('takes effect when the new one is confirmed; the old one is told', async () => {
    const ada = await service.signUp()
    const [wrong, right] = [fresh(), fresh()]
    expect((await put(ada.cookie, { email: wrong })).body).toMatchObject({
      email: ada.email,
      pendingEmail: wrong,
    })
    const changed = await put(ada.cookie, { email: right, firstName: 'Augusta' })
    expect(changed.body).toMatchObject({
      firstName: 'Augusta',
      email: ada.email,
      emailConfirmed: true,
      pendingEmail: right,
    })
    // The same wish again changes nothing and sends nothing.
    expect((await put(ada.cookie, { email: right })).status).toBe(200)
    const [stale = ''] = await readTokens(wrong)
    const [token = ''] = await readTokens(right)
    await expect(service.signIn(right)).rejects.toThrow('401')
    expect(await service.signIn(ada.email)).toMatch(/=/)
    expect((await confirm(ada.cookie, stale)).status).toBe(400)
    expect((await confirm(ada.cookie, token)).body).toMatchObject({ email: right, pendingEmail: null })
    await expect(service.signIn(ada.email)).rejects.toThrow('401')
    expect(await service.signIn(right)).toMatch(/=/)
    await mailbox.until(() =>
      mailbox.mails.some(({ to, text }) => to.includes(ada.email) && /changed/.test(text)),
    )
    expect((await add(ada.email)).status).toBe(404)
    expect((await add(right)).status).toBe(201)
  })

  test('can be withdrawn, and reading and writing the account back does not withdraw it', async () => {
    const ada = await service.signUp()
    const email = fresh()
    const { body } = await put(ada.cookie, { email })
    expect((await put(ada.cookie, { ...body, firstName: 'A' })).body).toMatchObject({ pendingEmail: email })
    const [token = ''] = await readTokens(email)
    expect((await put(ada.cookie, { pendingEmail: null })).body).toMatchObject({ pendingEmail: null })
    expect((await confirm(ada.cookie, token)).status).toBe(400)
  })

  test('to a confirmed one tells only its owner; without mail it is 409; of two who want the same, who confirms first gets it', async () => {
    const [ada, eve] = [await service.signUp(), await service.signUp()]
    const wanted = await put(ada.cookie, { email: eve.email.toUpperCase() })
    expect([wanted.status, wanted.body.pendingEmail]).toEqual([200, eve.email.toUpperCase()])
    const told = () => mailbox.mails.filter(({ to }) => to[0]?.toLowerCase() === eve.email)
    await mailbox.until(() => told().length > 0)
    expect(told().map(({ headers, token }) => [/account already/.test(headers), token])).toEqual([
      [true, undefined],
    ])
    proof = 'operator'
    const other = await service.signUp()
    expect((await put(other.cookie, { email: eve.email })).status).toBe(409)
    proof = 'mail'
    const email = fresh()
    expect((await put(ada.cookie, { email })).status).toBe(200)
    const [first = ''] = await readTokens(email)
    await passMinutes(2)
    expect((await put(eve.cookie, { email })).status).toBe(200)
    const tokens = await readTokens(email, 2)
    const second = tokens.find((token) => token !== first)!
    const both = await Promise.all([confirm(ada.cookie, first), confirm(eve.cookie, second)])
    expect(both.map(({ status }) => status).sort()).toEqual([200, 409])
    const users = await db.selectFrom('users').select('id').where('email', '=', email).execute()
    expect(users).toHaveLength(1)
  })

  test('takes the address from an account that has never proven it', async () => {
    const squatter = await register()
    const owner = await service.signUp()
    await passMinutes(2)
    expect((await put(owner.cookie, { email: squatter.email })).status).toBe(200)
    const tokens = await readTokens(squatter.email, 2)
    const results = [await confirm(owner.cookie, tokens[0]!), await confirm(owner.cookie, tokens[1]!)]
    expect(results.map(({ status }) => status).sort()).toEqual([200, 400])
    expect(await me(owner.cookie)).toMatchObject({ email: squatter.email, emailConfirmed: true })
    const released = expect.stringMatching(/^released-[0-9a-f-]{36}@perdure\.invalid$/)
    expect((await me(squatter.cookie)).email).not.toContain(squatter.id)
    expect(await me(squatter.cookie)).toMatchObject({ email: released, emailConfirmed: false })
    for (const token of tokens) expect((await confirm(squatter.cookie, token)).status).toBe(400)
    expect((await resend(squatter.cookie)).body.message).toContain('set another one')
    expect((await put(squatter.cookie, { email: owner.email })).status).toBe(200)
  })

  test('of two accounts to the address that the other one has not proven succeeds for both at once', async () => {
    const [ada, eve] = [await register(), await register()]
    await passMinutes(2)
    expect((await put(ada.cookie, { email: eve.email })).status).toBe(200)
    expect((await put(eve.cookie, { email: ada.email })).status).toBe(200)
    // Each got the mail for its own address, and then the other one's for it.
    const [, forEve = ''] = await readTokens(ada.email, 2)
    const [, forAda = ''] = await readTokens(eve.email, 2)
    const both = await Promise.all([confirm(ada.cookie, forAda), confirm(eve.cookie, forEve)])
    expect(both.map(({ status }) => status)).toEqual([200, 200])
    expect(await me(ada.cookie)).toMatchObject({ email: eve.email, emailConfirmed: true })
    expect(await me(eve.cookie)).toMatchObject({ email: ada.email, emailConfirmed: true })
  })

  test('in another spelling needs no confirmation', async () => {
    const ada = await service.signUp()
    const email = ada.email.toUpperCase()
    expect((await put(ada.cookie, { email })).body).toMatchObject({
      email,
      emailConfirmed: true,
      pendingEmail: null,
    })
  })

  test('by a process of the release before is not confirmed', async () => {
    const ada = await service.signUp()
    await db.updateTable('users').set({ email: fresh() }).where('id', '=', ada.id).execute()
    expect(await me(ada.cookie)).toMatchObject({ emailConfirmed: false })
  })
})

describe("the word of the instance's admin", () => {
  test('confirms an address, or a change to it, where no mail is sent; it is audited', async () => {
    proof = 'operator'
    const ada = await register()
    expect((await resend(ada.cookie)).body.message).toContain('npx perdure user confirm')
    const eve = await service.signUp('ADMIN')
    expect((await vouch({ email: ada.email }, eve.cookie)).status).toBe(403)
    expect((await vouch({ email: ada.email }, await service.token('ADMIN'))).status).toBe(403)
    expect((await vouch({ email: fresh() })).status).toBe(404)
    const confirmed = await vouch({ email: ada.email.toUpperCase() })
    const shown = { id: ada.id, firstName: 'Ada', lastName: 'Byron', email: ada.email }
    expect([confirmed.status, confirmed.body]).toEqual([
      200,
      { ...shown, emailConfirmed: true, pendingEmail: null },
    ])
    const email = fresh()
    expect((await put(ada.cookie, { email })).body).toMatchObject({ email: ada.email, pendingEmail: email })
    expect((await vouch({ email })).body).toMatchObject({ id: ada.id, email, pendingEmail: null })
    expect(await me(ada.cookie)).toMatchObject({ email, emailConfirmed: true, pendingEmail: null })
    const chain = '00000000-0000-0000-0000-000000000000'
    const entries = await db
      .selectFrom('auditEntries')
      .select(['action', 'resourceType', 'actorId'])
      .where('teamId', '=', chain)
      .where('resourceId', '=', ada.id)
      .where('action', '=', 'EMAIL_CONFIRMED')
      .execute()
    const entry = { action: 'EMAIL_CONFIRMED', resourceType: 'USER', actorId: service.user.id }
    expect(entries).toEqual([entry, entry])
    expect((await verifyAudit(service.store, chain)).findings).toEqual([])
  })

  test('must say whose it is if several want it', async () => {
    proof = 'operator'
    const [squatter, owner] = [await register(), await service.signUp()]
    await put(owner.cookie, { email: squatter.email })
    const { status, body } = await vouch({ email: squatter.email })
    expect([status, body.message]).toEqual([409, expect.stringContaining(owner.id)])
    expect(body.message).toContain(squatter.id)
    expect((await vouch({ email: squatter.email, userId: service.user.id })).status).toBe(404)
    expect((await vouch({ email: squatter.email, userId: owner.id })).body).toMatchObject({ id: owner.id })
    expect((await me(squatter.cookie)).email).toContain('released-')
  })
})
