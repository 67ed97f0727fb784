import { afterEach, describe, expect, test } from 'vitest'
import { makeMessageId } from '../../../activities/mail/compose.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { nodeOf, startRunning } from '../../support/running.ts'
import { startMailbox } from '../../support/servers/mailbox.ts'
import { MAIL_USER, noMailServers, startExim } from '../../support/servers/mailservers.ts'

const host = await keep(startRunning())

const open: { stop(): Promise<unknown> }[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.stop()
})

async function mailbox(options?: Parameters<typeof startMailbox>[0]) {
  const box = await startMailbox(options)
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

describe.skipIf(noMailServers)('SEND_EMAIL with a real server (exim)', async () => {
  const exim = noMailServers ? undefined! : await keep(startExim())

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
    const key = `${sent.id}:`
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
    expect(key).toContain(sent.id)
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
