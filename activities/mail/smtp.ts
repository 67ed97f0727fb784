import { createTransport } from 'nodemailer'
import { isMailAddress } from './addresses.ts'

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

export type Mailer = {
  /** Resolves when the server has taken the mail. Rejects with a MailError, or when `signal` is aborted. */
  send(letter: Letter, signal?: AbortSignal): Promise<void>
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
  }
}
