import { expect, test } from 'vitest'
import { MailError } from '../../../activities/mail/letters.ts'
import { createMailer, type SmtpOptions } from '../../../activities/mail/smtp.ts'
import { keep } from '../../support/keep.ts'
import { CERT, KEY } from '../../support/servers/certificate.ts'
import { startMailbox } from '../../support/servers/mailbox.ts'

const mailbox = await keep(startMailbox())
const options = (more: Partial<SmtpOptions> = {}): SmtpOptions => ({
  host: '127.0.0.1',
  port: mailbox.port,
  tls: 'never',
  auth: undefined,
  from: 'perdure@example.com',
  ...more,
})
const letter = { id: 'a1', to: 'ada@example.com', subject: 'Hello', text: 'A line\n.\n\0and another\r\n' }

test('a mail is plain text from the service to one address', async () => {
  await createMailer(options()).send(letter)
  const [mail] = mailbox.mails
  expect(mail).toMatchObject({ from: 'perdure@example.com', to: ['ada@example.com'] })
  expect(mail!.headers).toMatch(/^From: Perdure <perdure@example.com>\r$/m)
  expect(mail!.headers).toMatch(/^Message-ID: <a1@example.com>\r$/m)
  expect(mail!.headers).toMatch(/^Content-Type: text\/plain/m)
  expect(mail!.text).toContain('A line\r\n.\r\nand another')
})

test('a recipient that is more than one address, or more than an address, is refused and never sent', async () => {
  const mailer = createMailer(options())
  const before = mailbox.state.connections
  for (const to of [
    'a@example.com, b@example.com',
    'a@example.com;b@example.com',
    'a@example.com\r\nBcc: b@example.com',
    'a@example.com\nDATA',
    'a\0@example.com',
    'Ada <a@example.com>',
    '"a b"@example.com',
    'a@b@example.com',
    'group: a@example.com;',
    'a@example.com ',
    '@example.com',
    '',
  ]) {
    const error = await mailer.send({ ...letter, to }).catch((thrown) => thrown)
    expect([to, error]).toEqual([to, expect.any(MailError)])
    expect(error.final).toBe(true)
  }
  for (const subject of ['x\r\nBcc: b@example.com', 'x\ny', 'x\0'])
    await expect(mailer.send({ ...letter, subject })).rejects.toThrow('more than one line')
  expect(mailbox.state.connections).toBe(before)
})

test('a recipient that the server refuses for good is not tried again, one that it defers is', async () => {
  const mailer = createMailer(options())
  const refuse = (responseCode: number) => () => Object.assign(new Error('no'), { responseCode })
  for (const [code, final] of [
    [550, true],
    [451, false],
  ] as const) {
    mailbox.state.refuse = refuse(code)
    const error = await mailer.send(letter).catch((thrown) => thrown)
    expect([code, error.final]).toEqual([code, final])
  }
  mailbox.state.refuse = undefined
})

test('credentials are used; over the network they need TLS with a certificate that is trusted', async () => {
  const seen: unknown[] = []
  const box = await startMailbox({
    authOptional: false,
    allowInsecureAuth: true,
    hideSTARTTLS: false,
    key: KEY,
    cert: CERT,
    onAuth({ username, password }, session, done) {
      seen.push([username, password, session.secure])
      done(null, { user: username })
    },
  })
  const auth = { user: 'ada', pass: 'pass word' }
  await createMailer(options({ port: box.port, auth })).send(letter)
  expect(seen).toEqual([['ada', 'pass word', false]])
  for (const tls of ['required', 'offered', 'always'] as const)
    await expect(createMailer(options({ port: box.port, auth, tls })).send(letter)).rejects.toThrow(MailError)
  await box.stop()
  const clear = await startMailbox({ disabledCommands: ['STARTTLS'] })
  const sent = createMailer(options({ port: clear.port, auth, tls: 'required' })).send(letter)
  await expect(sent).rejects.toThrow(MailError)
  expect(clear.mails).toEqual([])
  await clear.stop()
  expect(seen).toHaveLength(1)
})

test('sending ends with its signal, even if the server says nothing', async () => {
  mailbox.state.hang = true
  const stop = new AbortController()
  const before = mailbox.state.connections
  const sent = createMailer(options()).send(letter, stop.signal)
  await mailbox.until(() => mailbox.state.connections > before)
  stop.abort()
  await expect(sent).rejects.toThrow(MailError)
  mailbox.state.hang = false
})
