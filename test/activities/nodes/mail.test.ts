import { randomBytes } from 'node:crypto'
import { text } from 'node:stream/consumers'
import { sql } from 'kysely'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { edges } from '../../support/engine/graphs.ts'
import { runWithFiles } from '../../support/files/withfiles.ts'
import { keep } from '../../support/keep.ts'
import { lacks } from '../../support/programs.ts'
import { nodeOf, startRunning } from '../../support/running.ts'
import { startMailbox } from '../../support/servers/mailbox.ts'
import { MAIL_USER, startExim } from '../../support/servers/mailservers.ts'

const host = await keep(startRunning())

const open: { stop(): Promise<unknown> }[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.stop()
})

async function mailbox(options: NonNullable<Parameters<typeof startMailbox>[0]> = {}) {
  const onAuth: typeof options.onAuth = ({ username }, _, done) => done(null, { user: username })
  const box = await startMailbox({ onAuth, ...options })
  open.push(box)
  return box
}

let numbers = 0
async function credential(data: object, type = 'SMTP'): Promise<string> {
  const body = { teamId: host.teamId, name: `mail ${++numbers}`, type, data }
  return (await host.ask<{ id: string }>('POST', '/api/credentials', body)).id
}

const login = (port: number, more: object = {}) => ({
  host: '127.0.0.1',
  port,
  ...MAIL_USER,
  from: 'Perdure <robot@perdure.test>',
  ...more,
})

type Sent = { status: string; error: string; output: Record<string, unknown>; id: string; retries: number }

/** Sends a mail, once unless the config says otherwise, and returns what became of the node. */
async function send(config: object, { data = {}, ...more }: Record<string, unknown> = {}): Promise<Sent> {
  const node = { id: 'mail', type: 'SEND_EMAIL', config: { subject: 's', text: 't', ...config } }
  const graph = {
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
      { retry: { maxAttempts: 1 }, ...node, ...more },
    ],
    edges: edges('start -> mail'),
  }
  const id = await host.execute(await host.create(graph as never), data as never)
  const run = await host.ended(id)
  const { status, errorMessage, outputData, retryCount } = nodeOf(run, 'mail')
  return {
    status,
    error: errorMessage ?? '',
    output: outputData as Record<string, unknown>,
    id,
    retries: retryCount,
  }
}

describe.skipIf(lacks('mailServers'))('SEND_EMAIL with a real server (exim)', () => {
  let exim: Awaited<ReturnType<typeof startExim>>
  beforeAll(async () => {
    exim = await startExim()
  })
  afterAll(() => exim?.stop())

  test('a mail arrives as the node says, with names, copies, headers and both texts', async () => {
    const credentialId = await credential(login(exim.ports.plain))
    const sent = await send(
      {
        credentialId,
        to: ['Ada Byron <ada@example.com>', '{{ $input.friend }}'],
        cc: '"Hopper, Grace" <grace@example.com>, zoë <zoe@bücher.example>',
        bcc: 'hidden@example.com',
        replyTo: 'answers@example.com',
        subject: 'Grüße an {{ $input.name }}',
        text: 'Hello {{ $input.name }}\n.\nA line with a dot alone\n',
        html: '<p>Hello <b>{{ $input.name }}</b></p>',
        headers: { 'List-Unsubscribe': '<https://example.com/u>', 'X-Own': '{{ $input.name }}' },
      },
      { data: { name: 'Ada', friend: 'friend@example.com' } },
    )
    expect(sent).toMatchObject({ status: 'SUCCESS' })
    expect(sent.output).toMatchObject({
      accepted: [
        'ada@example.com',
        'friend@example.com',
        'grace@example.com',
        'zoe@xn--bcher-kva.example',
        'hidden@example.com',
      ],
      rejected: [],
      response: expect.stringMatching(/^250 /),
      messageId: expect.stringMatching(/^<[0-9a-f]{32}@perdure\.test>$/),
    })
    await expect.poll(() => exim.mails().length).toBe(1)
    const [mail = ''] = exim.mails()
    const head = mail.slice(0, mail.indexOf('\n\n'))
    expect(head).toContain(`Message-ID: ${sent.output.messageId}`)
    expect(head).toContain('From: Perdure <robot@perdure.test>')
    expect(head).toMatch(/^To: Ada Byron <ada@example\.com>, friend@example\.com$/m)
    expect(head).toContain('"Hopper, Grace" <grace@example.com>')
    expect(head).toContain('Reply-To: answers@example.com')
    expect(head).toContain('List-Unsubscribe: <https://example.com/u>')
    expect(head).toContain('X-Own: Ada')
    expect(head).toMatch(/^Subject: =\?UTF-8\?/m)
    expect(head.replace(/^Envelope-to:.*(\n\s.*)*/m, '')).not.toContain('hidden@example.com')
    expect(mail).toContain('Hello Ada\n.\nA line with a dot alone')
    expect(mail).toContain('<p>Hello <b>Ada</b></p>')
  })

  test('attachments arrive byte by byte, whatever they are called', async () => {
    const credentialId = await credential(login(exim.ports.plain))
    const bytes = randomBytes(2_000_000)
    const before = exim.mails().length
    const run = await runWithFiles(
      host,
      {
        type: 'SEND_EMAIL',
        config: { ...ADA, credentialId, subject: 's', attachments: '{{ $input.files }}' },
      },
      [
        { name: 'Grüße "1".pdf', mimeType: 'application/pdf', bytes },
        { name: 'a.eml', mimeType: 'message/rfc822', bytes: Buffer.from('Subject: x\r\n\r\n.\r\n') },
        { name: 'a.csv', mimeType: 'text/csv; charset=ISO-8859-1', bytes: Buffer.from([0xfc, 10]) },
        { name: 'b.txt', mimeType: 'text/plain', bytes: Buffer.from('Grüße') },
        { name: 'c.txt', mimeType: 'text/plain', bytes: Buffer.from('\ufeffG', 'utf16le') },
        { name: 'd.txt', mimeType: 'text/plain', bytes: Buffer.from([0xfc, 10]) },
      ],
    )
    expect(nodeOf(run, 'node')).toMatchObject({ status: 'SUCCESS', errorMessage: null })
    await expect.poll(() => exim.mails().length).toBe(before + 1)
    const mail = exim.mails().find((one) => one.includes('application/pdf')) ?? ''
    expect(mail).toContain('Content-Type: application/octet-stream; name=a.eml')
    expect(mail).toContain('Content-Type: text/csv; charset=iso-8859-1; name=a.csv')
    expect(mail).toContain('Content-Type: text/plain; charset=utf-8; name=b.txt')
    expect(mail).toContain('Content-Type: text/plain; charset=utf-16; name=c.txt')
    // Nobody knows which charset this is.
    expect(mail).toContain('Content-Type: text/plain; name=d.txt')
    const part = mail.slice(mail.indexOf('Content-Type: application/pdf'))
    const base64 = part.slice(part.indexOf('\n\n') + 2, part.indexOf('\n--'))
    expect(Buffer.from(base64, 'base64').equals(bytes)).toBe(true)
  })

  test('some recipients may be refused; if all are, the node fails, for good or for now', async () => {
    const credentialId = await credential(login(exim.ports.plain))
    const some = await send({ credentialId, to: 'ada@example.com, refused@example.com' })
    expect(some).toMatchObject({
      status: 'SUCCESS',
      output: { accepted: ['ada@example.com'], rejected: ['refused@example.com'] },
    })
    const three = { retry: { maxAttempts: 3, initialIntervalMs: 10, maxIntervalMs: 10 } }
    const none = await send({ credentialId, to: 'refused@example.com' }, three)
    expect(none).toMatchObject({ status: 'FAILED', retries: 0 })
    expect(none.error).toMatch(/refused the mail: 550 no such mailbox/)
    const later = await send({ credentialId, to: 'later@example.com, refused@example.com' }, three)
    expect(later).toMatchObject({ status: 'FAILED', retries: 2 })
    expect(later.error).toMatch(/45\d come again/)
  })

  test('a wrong password is final, and stands in no message', async () => {
    const credentialId = await credential(login(exim.ports.plain, { password: 'wrong-horse-97' }))
    const sent = await send({ credentialId, to: 'ada@example.com' }, { retry: { maxAttempts: 3 } })
    expect(sent).toMatchObject({ status: 'FAILED', retries: 0 })
    expect(sent.error).toMatch(/127\.0\.0\.1 refused the sign-in: 535/)
    expect(sent.error).not.toMatch(/wrong-horse/)
  })

  test('TLS from the first byte on, and STARTTLS, with a certificate that does not fit are refused', async () => {
    const before = exim.mails().length
    for (const [port, tls] of [
      [exim.ports.tls, 'always'],
      [exim.ports.plain, 'required'],
    ] as const) {
      const credentialId = await credential(login(port, { tls }))
      const sent = await send({ credentialId, to: 'ada@example.com' }, { retry: { maxAttempts: 3 } })
      expect(sent).toMatchObject({ status: 'FAILED', retries: 0 })
      expect(sent.error).toMatch(/No TLS with 127\.0\.0\.1: .*certificate/)
    }
    expect(exim.mails()).toHaveLength(before)
  })
})

const ADA = { to: 'ada@example.com', from: 'robot@perdure.test' }
const idOf = (mail = '') => /^Message-ID: (.*)$/m.exec(mail)?.[1]

/** A server whose answer to each mail is what `answer` says: an error, nothing at all, or undefined to take it. */
// A mail without its end makes reading it reject.
const noMail = () => {}

async function answering(answer: (count: number) => Error | 'hang up' | undefined) {
  const raw: string[] = []
  const box = await mailbox({
    onData(stream, _, done) {
      void text(stream).then((mail) => {
        raw.push(mail)
        const said = answer(raw.length)
        if (said !== 'hang up') return done(said)
        for (const one of box.server.connections) (one as { _socket: { destroy(): void } })._socket.destroy()
      }, noMail)
    },
  })
  return { ...box, raw, credentialId: await credential(login(box.port)) }
}

const refusal = (responseCode: number, message: string) => Object.assign(new Error(message), { responseCode })
const three = { retry: { maxAttempts: 3, initialIntervalMs: 10, maxIntervalMs: 10 } }

describe('SEND_EMAIL never sends a mail twice', () => {
  test('a broken connection before the answer: it may have been sent, and no attempt sends it again', async () => {
    const { raw, credentialId } = await answering(() => 'hang up')
    const sent = await send({ ...ADA, credentialId }, three)
    expect(sent).toMatchObject({ status: 'FAILED', retries: 0 })
    expect(sent.error).toMatch(/^The mail may have been sent, but no answer came/)
    expect(raw).toHaveLength(1)
  })

  test('unless the node says repeat: then it is the same mail once more, with the same Message-ID', async () => {
    const { raw, credentialId } = await answering((count) => (count < 3 ? 'hang up' : undefined))
    const sent = await send({ ...ADA, credentialId, repeat: true }, three)
    expect(sent).toMatchObject({ status: 'SUCCESS', retries: 2 })
    expect(raw).toHaveLength(3)
    expect(new Set(raw.map(idOf))).toEqual(new Set([sent.output.messageId]))
  })

  test('what the server refuses at the end was not sent: for good it fails, for now it comes again', async () => {
    const never = await answering(() => refusal(554, 'no spam here'))
    const refused = await send({ ...ADA, credentialId: never.credentialId }, three)
    expect(refused).toMatchObject({ status: 'FAILED', retries: 0 })
    expect(refused.error).toMatch(/refused the mail: 554 no spam here/)
    expect(never.raw).toHaveLength(1)

    const later = await answering((count) => (count < 3 ? refusal(451, 'greylisted') : undefined))
    const sent = await send({ ...ADA, credentialId: later.credentialId }, three)
    expect(sent).toMatchObject({ status: 'SUCCESS', retries: 2 })
    expect(new Set(later.raw.map(idOf)).size).toBe(1)
  })

  test('a connection that cannot be made is tried again', async () => {
    const box = await mailbox()
    await box.stop()
    const credentialId = await credential(login(box.port))
    const sent = await send({ ...ADA, credentialId }, three)
    expect(sent).toMatchObject({ status: 'FAILED', retries: 2 })
    expect(sent.error).toMatch(/connection refused/)
  })

  /** Makes PostgreSQL refuse to note this until `release` is called. */
  async function refuseNotes(event: 'insert' | 'update') {
    const { db } = host.store
    await sql`create function refuse_note() returns trigger language plpgsql as
      $$ begin raise exception 'shutting down' using errcode = '57P03'; end $$`.execute(db)
    await sql`create trigger refuse_note before ${sql.raw(event)} on message_notes
      for each row execute function refuse_note()`.execute(db)
    return { release: () => sql`drop function refuse_note cascade`.execute(db) }
  }

  test('PostgreSQL away before the end of the mail: nothing is sent until it is back', async () => {
    const { raw, state, until, credentialId } = await answering(() => undefined)
    const { release } = await refuseNotes('insert')
    const sending = send({ ...ADA, credentialId })
    await until(() => state.connections >= 2)
    expect(raw).toHaveLength(0)
    await release()
    expect(await sending).toMatchObject({ status: 'SUCCESS' })
    expect(raw).toHaveLength(1)
  })

  test('PostgreSQL away after the answer: what came of it is stored later, and the mail not sent again', async () => {
    const { raw, state, credentialId } = await answering(() => undefined)
    const { release } = await refuseNotes('update')
    const sending = send({ ...ADA, credentialId })
    await expect.poll(() => raw.length).toBe(1)
    await new Promise((resolve) => setTimeout(resolve, 500))
    await release()
    expect(await sending).toMatchObject({ status: 'SUCCESS' })
    expect(raw).toHaveLength(1)
    expect(state.connections).toBe(1)
  })

  test('a call that nobody waits for any more notes the answer, and the next attempt answers with it', async () => {
    let take = () => {}
    const box = await mailbox({
      onData(stream, _, done) {
        void text(stream).then(() => {
          take = () => done()
        })
      },
    })
    const credentialId = await credential(login(box.port))
    const late = { timeoutMs: 1_500, retry: { maxAttempts: 2, initialIntervalMs: 10 } }
    const sending = send({ ...ADA, credentialId }, late)
    const notes = () =>
      host.store.db.selectFrom('messageNotes').selectAll().where('state', '=', 'SENDING').execute()
    await expect.poll(async () => (await notes()).length, { timeout: 10_000 }).toBe(1)
    await new Promise((resolve) => setTimeout(resolve, 2_000))
    take()
    const sent = await sending
    expect(sent).toMatchObject({ status: 'SUCCESS', retries: 1 })
    expect(box.state.connections).toBe(1)
    await host.store.db.deleteFrom('executions').where('id', '=', sent.id).execute()
    const left = host.store.db.selectFrom('messageNotes').selectAll().where('executionId', '=', sent.id)
    expect(await left.execute()).toEqual([])
  })
})

describe('what a mail may not have', () => {
  test.each([
    ['subject', { subject: '{{ $input.bad }}' }, 'subject must not contain a line break or NUL'],
    ['to', { to: '{{ $input.bad }}' }, 'to must not contain a line break or NUL'],
    ['replyTo', { replyTo: '{{ $input.bad }}' }, 'replyTo must not contain a line break'],
    ['headers', { headers: { 'X-A': '{{ $input.bad }}' } }, 'headers.X-A must be a single line'],
    ['a header', { headers: { Bcc: 'eve@example.com' } }, 'headers.Bcc cannot be set'],
    [
      'an address',
      { cc: 'ada@example.com, nobody' },
      'cc must have only e-mail addresses, and "nobody" is none',
    ],
    ['two senders', { from: 'a@example.com, b@example.com' }, 'from must be a single address'],
    ['nobody', { to: '{{ $input.nothing }}' }, 'to must have an address'],
    ['many', { to: '{{ $input.many }}' }, 'to must, with cc and bcc, have at most 50 addresses'],
    ['a long text', { text: '{{ $input.long }}' }, 'text must have at most 1048576 bytes'],
    ['no text', { text: '{{ $input.nothing }}' }, 'text must have a value'],
    ['a file', { attachments: ['{{ $input.bad }}'] }, 'attachments[0] must be a file'],
    ['a path', { attachments: [{ path: '/etc/passwd' }] }, 'attachments[0] must be a file'],
    [
      'a file of others',
      { attachments: [{ file: { id: crypto.randomUUID(), name: 'a', mimeType: 'a/b', bytes: 1 } }] },
      'The value names a file that is none of this execution',
    ],
  ])('%s', async (_, config, message) => {
    const { state, credentialId } = await answering(() => undefined)
    const data = {
      bad: 'a@example.com\r\nBcc: eve@example.com',
      long: 'x'.repeat(1_100_000),
      many: Array.from({ length: 51 }, (_, i) => `a${i}@example.com`),
    }
    const sent = await send({ ...ADA, credentialId, ...config }, { data, ...three })
    expect(sent).toMatchObject({ status: 'FAILED', retries: 0 })
    expect(sent.error).toContain(message)
    expect(state.connections).toBe(0)
  })

  test('a credential that is no mail server is refused when the workflow is saved', async () => {
    const imap = await credential({ host: 'a.example', port: 993, ...MAIL_USER }, 'IMAP')
    await expect(send({ ...ADA, credentialId: imap })).rejects.toThrow(/400.*config\.credentialId/)
    await expect(send({ ...ADA })).rejects.toThrow(/400.*config\.credentialId/)
  })
})
