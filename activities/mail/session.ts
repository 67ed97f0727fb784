import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import ipaddr from 'ipaddr.js'
import SMTPConnection from 'nodemailer/lib/smtp-connection'
import type { Dial } from '../egress/dial.ts'
import type { Handover } from '../messages/once.ts'

/** Where to sign in, and how. */
export type MailLogin = {
  host: string
  port: number
  username?: string
  password?: string
  /** `none`: it is not asked who sends, and nothing is said. */
  authentication?: 'password' | 'none'
  tls?: 'auto' | 'always' | 'required' | 'offered' | 'never'
}

/** What the server says of a mail that it has taken, at least for some. */
export type MailAnswer = { accepted: string[]; rejected: string[]; response: string }

export type SmtpSession = {
  /** Whether the server wanted to know who we are. */
  signedIn: boolean
  /** A warning about the way that the mail takes, for the user; null if there is no reason to warn. */
  warning: string | null
  /**
   * Sends one mail. It is handed over right before the last bytes, without which the server takes nothing: if that
   * fails they are never sent, and its error is thrown. Once they are sent, only an answer, the end of the connection
   * or a long silence ends the sending, and no abort.
   */
  send(
    envelope: { from: string; to: string[]; size: number },
    message: Readable,
    handover: Handover,
  ): Promise<MailAnswer>
  close(): void
}

const CONNECT_MS = 10_000
const GREETING_MS = 30_000

/** Servers may look at a mail for long before they answer. */
const SILENCE_MS = 120_000

/** Which kind of TLS a login gets at an address that was connected to, and whether the certificate must fit. */
export function chooseTls(
  { tls = 'auto', port }: Pick<MailLogin, 'tls' | 'port'>,
  implicitPort: number,
  { remoteAddress = '' }: Pick<Socket, 'remoteAddress'>,
): { how: 'at once' | 'required' | 'if offered' | 'none'; verified: boolean } {
  if (tls === 'never') return { how: 'none', verified: true }
  if (tls === 'always' || (tls === 'auto' && port === implicitPort)) return { how: 'at once', verified: true }
  if (tls === 'offered') return { how: 'if offered', verified: true }
  if (tls === 'required' || !isLoopback(remoteAddress)) return { how: 'required', verified: true }
  // A connection within this machine needs no secrecy, and a certificate for it is seldom to be had.
  return { how: 'if offered', verified: false }
}

function isLoopback(address: string): boolean {
  return ipaddr.isValid(address) && ipaddr.process(address).range() === 'loopback'
}

/**
 * Connects to an SMTP server and signs in if the server asks for that. Throws an HttpError if it cannot be reached,
 * errors of nodemailer (see smtpFailure), and the signal's reason.
 */
export async function openSmtp(login: MailLogin, dial: Dial, signal: AbortSignal): Promise<SmtpSession> {
  const { host, port, username = '', password = '', authentication } = login
  const socket = await dial(host, port, { timeoutMs: CONNECT_MS, signal })
  const { how, verified } = chooseTls(login, 465, socket)
  const connection = new SMTPConnection({
    host,
    port,
    connection: socket,
    secure: how === 'at once',
    requireTLS: how === 'required',
    ignoreTLS: how === 'none',
    tls: { rejectUnauthorized: verified },
    connectionTimeout: CONNECT_MS + GREETING_MS,
    greetingTimeout: GREETING_MS,
    socketTimeout: SILENCE_MS,
    maxResponseSize: 64 * 1024,
  })
  const broken = Promise.withResolvers<never>()
  broken.promise.catch(() => {})
  let isOver = false
  const end = (error: unknown) => {
    isOver = true
    broken.reject(error)
  }
  connection.on('error', end)
  connection.on('end', () => end(lostConnection()))
  const onAbort = () => {
    end(signal.reason)
    connection.close()
  }
  if (signal.aborted) onAbort()
  else signal.addEventListener('abort', onAbort, { once: true })
  const ask = <T>(run: (done: (error?: Error | null, value?: T) => void) => void): Promise<T> => {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    run((error, value) => (error ? reject(error) : resolve(value as T)))
    return Promise.race([broken.promise, promise])
  }
  const close = () => {
    signal.removeEventListener('abort', onAbort)
    connection.close()
    socket.destroy()
  }

  async function send(
    envelope: { from: string; to: string[]; size: number },
    message: Readable,
    handover: Handover,
  ): Promise<MailAnswer> {
    let stopped: { error: unknown } | undefined
    let noting: Promise<void> | undefined
    let isOut = false
    async function* hold() {
      try {
        for await (const part of message) yield part
        noting = handover.begin()
        await noting
        if (isOver) throw lostConnection()
        isOut = true
        signal.removeEventListener('abort', onAbort)
      } catch (error) {
        stopped ??= { error }
        // nodemailer changes what it gets.
        throw new Error('The sending was stopped')
      }
    }
    const held = Readable.from(hold(), { objectMode: false })
    try {
      const { accepted, rejected, response } = await ask<MailAnswer>((done) =>
        connection.send(envelope, held, done as never),
      )
      return { accepted, rejected, response: response.slice(0, 1_000) }
    } catch (error) {
      for (const stream of [held, message]) stream.on('error', () => {}).destroy()
      close()
      isOver = true
      await noting?.catch(() => {})
      // The only response after the last bytes is the one to the mail.
      if (!isOut || (error as { code?: string }).code === 'EMESSAGE') handover.refused()
      throw stopped ? stopped.error : error
    }
  }

  try {
    await ask<void>((done) => connection.connect(done))
    const signedIn = authentication !== 'none' && connection.allowsAuth && password !== ''
    if (signedIn) await ask<boolean>((done) => connection.login({ user: username, pass: password }, done))
    const { remoteAddress = '' } = socket
    return {
      signedIn,
      warning: warnOfWay({ host, remoteAddress, authentication, isSecure: connection.secure }),
      send,
      close() {
        // The response to QUIT is not awaited.
        if (!isOver) connection.quit()
        signal.removeEventListener('abort', onAbort)
        connection.close()
      },
    }
  } catch (error) {
    close()
    throw error
  }
}

/** A mail that leaves this machine in clear text, or for a server that takes mail of anyone, deserves a warning. */
function warnOfWay({
  host,
  remoteAddress,
  authentication,
  isSecure,
}: {
  host: string
  remoteAddress: string
  authentication: MailLogin['authentication']
  isSecure: boolean
}): string | null {
  if (isLoopback(remoteAddress)) return null
  const said = [
    ...(isSecure ? [] : [`Mail goes to ${host} without TLS: others on the way can read and change it`]),
    ...(authentication === 'none'
      ? [`Nobody signs in at ${host}, so it may take mail of whoever reaches it`]
      : []),
  ]
  return said.length > 0 ? said.join('. ') : null
}

function lostConnection(): Error {
  return Object.assign(new Error('The connection was closed'), { code: 'ECONNECTION' })
}
