import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createOutsides } from '../../../activities/egress/outside.ts'
import { keep } from '../../support/keep.ts'
import { lacks } from '../../support/programs.ts'
import { AUTHORITY, CERT } from '../../support/servers/certificate.ts'
import { useLoopback } from '../../support/servers/loopback.ts'
import { MAIL_USER, startDovecot, startExim } from '../../support/servers/mailservers.ts'
import { startService } from '../../support/service.ts'

// The certificate of both servers is for 127.0.0.1, but its authority is known only where a test says so.
const usual = getCACertificates('default')
afterAll(() => setDefaultCACertificates(usual))
const trust = (authority: string) => setDefaultCACertificates([...usual, authority])

const outside = createOutsides({ allowLoopback: true, allow: [] })
afterAll(() => outside.close())
const { call, teamId, admin } = await keep(startService({ rateLimits: false, outside }))
const { serveTcp } = useLoopback()

let made = 0
async function check(type: 'SMTP' | 'IMAP', data: object) {
  const input = {
    teamId,
    name: `${type} ${++made}`,
    type,
    data: { host: '127.0.0.1', ...MAIL_USER, ...data },
  }
  const { body } = await call('POST', '/api/credentials', admin, input)
  const tested = await call('POST', `/api/credentials/${body.id}/test?teamId=${teamId}`, admin)
  expect(tested.status).toBe(200)
  expect(tested.text).not.toContain(MAIL_USER.password)
  const { status, message } = tested.body
  return { status, message }
}

describe.skipIf(lacks('mailServers'))('with real servers (exim, dovecot)', () => {
  let servers: Record<'SMTP' | 'IMAP', Awaited<ReturnType<typeof startDovecot>>>
  beforeAll(async () => {
    servers = { SMTP: await startExim(), IMAP: await startDovecot() }
  })
  afterAll(async () => {
    await servers?.SMTP.stop()
    await servers?.IMAP.stop()
  })

  describe.each(['SMTP', 'IMAP'] as const)('%s', (type) => {
    test('signs in, in every kind of TLS', async () => {
      const { plain, tls } = servers[type].ports
      const signedIn = { status: 'SUCCESS', message: 'Signed in at 127.0.0.1 as ada' }
      trust(CERT)
      expect(await check(type, { port: plain })).toEqual(signedIn)
      expect(await check(type, { port: plain, tls: 'required' })).toEqual(signedIn)
      expect(await check(type, { port: plain, tls: 'never' })).toEqual(signedIn)
      expect(await check(type, { port: tls, tls: 'always' })).toEqual(signedIn)
    })

    test('says that the password is wrong', async () => {
      const { status, message } = await check(type, { port: servers[type].ports.plain, password: 'wrong-41' })
      expect(status).toBe('FAILED')
      expect(message).toMatch(/^127\.0\.0\.1 refused the sign-in: /)
    })

    test('says that the certificate is not to be trusted, or is for another name', async () => {
      const { plain, tls } = servers[type].ports
      trust(AUTHORITY)
      for (const data of [
        { port: plain, tls: 'required' },
        { port: tls, tls: 'always' },
      ]) {
        expect(await check(type, data)).toEqual({
          status: 'FAILED',
          message: expect.stringMatching(/certificate/),
        })
      }
      trust(CERT)
      expect(await check(type, { port: tls, tls: 'always', host: 'localhost' })).toEqual({
        status: 'FAILED',
        message: expect.stringMatching(/does not match certificate|altnames/),
      })
    })
  })
})

describe.each(['SMTP', 'IMAP'] as const)('%s', (type) => {
  test('says that nobody is there, or nobody who may be reached', async () => {
    expect(await check(type, { port: 1 })).toEqual({
      status: 'FAILED',
      message: expect.stringMatching(/connection refused/),
    })
    expect(await check(type, { host: '169.254.169.254', port: 25 })).toEqual({
      status: 'FAILED',
      message: expect.stringMatching(/not a public address/),
    })
  })

  test('sends no password to a server that offers no TLS, where that is required', async () => {
    let heard = ''
    const url = await serveTcp((socket) => {
      socket.write(type === 'SMTP' ? '220 plain ESMTP\r\n' : '* OK [CAPABILITY IMAP4rev1] plain\r\n')
      socket.on('data', (part) => {
        heard += part
        for (const line of String(part).split('\r\n').filter(Boolean)) {
          const [tag, verb] = line.split(' ')
          if (type === 'IMAP')
            socket.write(
              verb === 'CAPABILITY'
                ? `* CAPABILITY IMAP4rev1 AUTH=PLAIN\r\n${tag} OK\r\n`
                : `${tag} BAD no\r\n`,
            )
          else socket.write(tag === 'EHLO' ? '250-plain\r\n250 AUTH PLAIN\r\n' : '502 no\r\n')
        }
      })
    })
    const { status } = await check(type, { port: Number(new URL(url).port), tls: 'required' })
    expect(status).toBe('FAILED')
    expect(heard).toMatch(type === 'SMTP' ? /^EHLO/ : /CAPABILITY|LOGOUT|^$/)
    expect(heard).not.toMatch(/AUTH|LOGIN/)
    expect(heard).not.toContain(Buffer.from(`\0ada\0${MAIL_USER.password}`).toString('base64'))
  })
})
