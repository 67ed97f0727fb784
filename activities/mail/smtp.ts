import { connect, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { createTransport } from 'nodemailer'
import type { Dial } from '../egress/dial.ts'
import type { Handover } from '../send/once.ts'
import { isMailAddress } from './addresses.ts'
import { type Letter, MailError, type RichLetter, writeLetter } from './letters.ts'
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

export type Mailer = {
  /** Resolves when the server has taken the mail. Rejects with a MailError, or when `signal` is aborted. */
  send(letter: Letter, signal?: AbortSignal): Promise<void>
  /**
   * Sends a mail that is handed over as late as possible: see SmtpSession.send. Rejects with errors of nodemailer, and when
   * `signal` is aborted before it is handed over.
   */
  post(letter: RichLetter, handover: Handover, signal: AbortSignal): Promise<MailAnswer>
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
    async send({ id, to, subject, text, headers }, signal) {
      if (!isMailAddress(to)) throw new MailError('the recipient is not a single e-mail address', true)
      if (/[\0\r\n]/.test(subject)) throw new MailError('the subject has more than one line', true)
      const limit = AbortSignal.timeout(TOTAL_MS)
      try {
        await transport.sendMail({
          from: `Perdure <${from}>`,
          to,
          envelope: { from, to },
          messageId: `<${id}@${domain}>`,
          headers: { 'Auto-Submitted': 'auto-generated', ...headers },
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
    async post(letter, handover, signal) {
      const { envelope, bytes } = await writeLetter(letter, { name: 'Perdure', address: from })
      const login = { host, port, tls, username: auth?.user ?? '', password: auth?.pass ?? '' }
      const session = await openSmtp(login, dialDirectly, signal)
      try {
        return await session.send(envelope, Readable.from([bytes]), handover)
      } finally {
        session.close()
      }
    },
  }
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
