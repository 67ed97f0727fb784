import { connect, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { domainToASCII } from 'node:url'
import { createTransport } from 'nodemailer'
import MailComposer from 'nodemailer/lib/mail-composer'
import type { Dial } from '../egress/dial.ts'
import type { Handover } from '../messages/once.ts'
import { isMailAddress } from './addresses.ts'
import { type MailAnswer, openSmtp } from './session.ts'

export type SmtpOptions = {
  host: string
  port: number
  /** `always`: from the first byte on. The others are about STARTTLS. */
  tls: 'always' | 'required' | 'offered' | 'never'
  auth: { user: string; pass: string } | undefined
  /** The sender's address. */
  from: string
}

/** A mail of plain text to one address. `id` makes its Message-ID. */
export type Letter = { id: string; to: string; subject: string; text: string }

/** A mail to several people. An attachment with a `cid` is a picture of the HTML. */
export type ReportLetter = {
  id: string
  to: string[]
  subject: string
  text: string
  html: string
  attachments: { filename: string; cid?: string; contentType: string; content: Buffer }[]
}

export type Mailer = {
  /** Resolves when the server has taken the mail. Rejects with a MailError, or when `signal` is aborted. */
  send(letter: Letter, signal?: AbortSignal): Promise<void>
  /**
   * Sends one mail to all who get it, which is handed over as late as possible: see SmtpSession.send. Some may be refused
   * while the others get it. Rejects with errors of nodemailer, and when `signal` is aborted before it is handed over.
   */
  post(letter: ReportLetter, handover: Handover, signal: AbortSignal): Promise<MailAnswer>
}

/** `final`: the server refuses this recipient, or the mail is not one that may be sent, so do not try again. */
export class MailError extends Error {
  readonly final: boolean

  constructor(message: string, final: boolean) {
    super(message)
    this.name = 'MailError'
    this.final = final
  }
}

const CONNECT_MS = 10_000
const SILENCE_MS = 20_000
const TOTAL_MS = 60_000

/** Sends mail over SMTP, each over a connection of its own. */
export function createMailer(options: SmtpOptions): Mailer {
  const { host, port, tls, auth, from } = options
  const transport = createTransport({
    host,
    port,
    secure: tls === 'always',
    requireTLS: tls === 'required',
    ignoreTLS: tls === 'never',
    auth,
    connectionTimeout: CONNECT_MS,
    dnsTimeout: CONNECT_MS,
    greetingTimeout: CONNECT_MS,
    socketTimeout: SILENCE_MS,
    // A mail is made of strings only: nothing in it may name a file or a URL to read.
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  const domain = from.split('@')[1]
  return {
    async send({ id, to, subject, text }, signal) {
      if (!isMailAddress(to)) throw new MailError('the recipient is not a single e-mail address', true)
      if (/[\0\r\n]/.test(subject)) throw new MailError('the subject has more than one line', true)
      const limit = AbortSignal.timeout(TOTAL_MS)
      try {
        await transport.sendMail({
          from: `Perdure <${from}>`,
          to,
          envelope: { from, to },
          messageId: `<${id}@${domain}>`,
          headers: { 'Auto-Submitted': 'auto-generated' },
          subject,
          text: text.replaceAll('\0', ''),
          signal: signal ? AbortSignal.any([signal, limit]) : limit,
        })
      } catch (error) {
        const { code, responseCode = 0, message } = error as Error & { code?: string; responseCode?: number }
        const refused = code === 'EENVELOPE' && responseCode >= 550 && responseCode < 560
        throw new MailError(`${code ?? 'error'}: ${message}`, refused)
      }
    },
    async post({ id, to, subject, text, html, attachments }, handover, signal) {
      const recipients = to.map(toAscii)
      const composer = new MailComposer({
        from: `Perdure <${from}>`,
        to: recipients.map((address) => ({ name: '', address })),
        messageId: `<${id}@${domain}>`,
        headers: { 'Auto-Submitted': 'auto-generated' },
        subject: subject.replaceAll(/\p{Cc}+/gu, ' '),
        text: text.replaceAll('\0', ''),
        html: html.replaceAll('\0', ''),
        attachments,
        disableFileAccess: true,
        disableUrlAccess: true,
      })
      const bytes = await composer.compile().build()
      const login = { host, port, tls, username: auth?.user ?? '', password: auth?.pass ?? '' }
      const session = await openSmtp(login, dialDirectly, signal)
      try {
        const envelope = { from, to: recipients, size: bytes.length }
        return await session.send(envelope, Readable.from([bytes]), handover)
      } finally {
        session.close()
      }
    },
  }
}

function toAscii(address: string): string {
  if (!isMailAddress(address)) throw new MailError('a recipient is not a single e-mail address', true)
  const at = address.lastIndexOf('@')
  return `${address.slice(0, at)}@${domainToASCII(address.slice(at + 1)) || address.slice(at + 1)}`
}

/** Connects to the operator's own server, which no rule for what users aim is about. */
const dialDirectly: Dial = (host, port, { timeoutMs = CONNECT_MS, signal } = {}) => {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  const socket = connect({ host, port })
  const end = (error: unknown) => {
    socket.destroy()
    reject(error)
  }
  const onAbort = () => end(signal?.reason)
  const late = Object.assign(new Error(`no connection within ${timeoutMs} ms`), { code: 'ETIMEDOUT' })
  const timer = setTimeout(() => end(late), timeoutMs)
  signal?.addEventListener('abort', onAbort, { once: true })
  if (signal?.aborted) onAbort()
  socket.once('error', end).once('connect', () => resolve(socket))
  return promise.finally(() => {
    clearTimeout(timer)
    signal?.removeEventListener('abort', onAbort)
    socket.off('error', end)
  })
}
