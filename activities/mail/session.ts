import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import ipaddr from 'ipaddr.js'
import SMTPConnection from 'nodemailer/lib/smtp-connection'
import type { Dial } from '../egress/dial.ts'
import type { Handover } from '../send/once.ts'

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

/** From whom a mail is, to whom it goes, and how many bytes it has. */
type Envelope = { from: string; to: string[]; size: number }

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
  send(envelope: Envelope, message: Readable, handover: Handover): Promise<MailAnswer>
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

/** An open connection to a server. */
type State = {
  socket: Socket
  connection: SMTPConnection
  signal: AbortSignal
  onAbort: () => void
  /** Rejects when the connection ends, whatever is waited for. */
  broken: PromiseWithResolvers<never>
  isOver: boolean
}

/**
 * Connects to an SMTP server and signs in if the server asks for that. Throws an HttpError if it cannot be reached,
 * errors of nodemailer (see smtpFailure), and the signal's reason.
 */
export async function openSmtp(login: MailLogin, dial: Dial, signal: AbortSignal): Promise<SmtpSession> {
  const { host, port, username = '', password = '', authentication } = login
  const socket = await dial(host, port, { timeoutMs: CONNECT_MS, signal })
  const state = watchConnection(createConnection(login, socket), socket, signal)
  const { connection } = state
  try {
    await ask<void>(state, (done) => connection.connect(done))
    const signedIn = authentication !== 'none' && connection.allowsAuth && password !== ''
    const user = { user: username, pass: password }
    if (signedIn) await ask<boolean>(state, (done) => connection.login(user, done))
    const { remoteAddress = '' } = socket
    return {
      signedIn,
      warning: warnOfWay({ host, remoteAddress, authentication, isSecure: connection.secure }),
      send: (envelope, message, handover) => sendMail(state, envelope, message, handover),
      close() {
        // The response to QUIT is not awaited.
        if (!state.isOver) connection.quit()
        signal.removeEventListener('abort', state.onAbort)
        connection.close()
      },
    }
  } catch (error) {
    breakOff(state)
    throw error
  }
}

function createConnection(login: MailLogin, socket: Socket): SMTPConnection {
  const { host, port } = login
  const { how, verified } = chooseTls(login, 465, socket)
  return new SMTPConnection({
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
}

/** Notes when the connection ends, and ends it when the signal is aborted. */
function watchConnection(connection: SMTPConnection, socket: Socket, signal: AbortSignal): State {
  const broken = Promise.withResolvers<never>()
  broken.promise.catch(() => {})
  const end = (error: unknown) => {
    state.isOver = true
    broken.reject(error)
  }
  const onAbort = () => {
    end(signal.reason)
    connection.close()
  }
  const state: State = { socket, connection, signal, onAbort, broken, isOver: false }
  connection.on('error', end)
  connection.on('end', () => end(lostConnection()))
  if (signal.aborted) onAbort()
  else signal.addEventListener('abort', onAbort, { once: true })
  return state
}

/** What the connection answers to what `run` asks of it. */
function ask<T>(
  { broken }: State,
  run: (done: (error?: Error | null, value?: T) => void) => void,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  run((error, value) => (error ? reject(error) : resolve(value as T)))
  return Promise.race([broken.promise, promise])
}

function breakOff({ socket, connection, signal, onAbort }: State): void {
  signal.removeEventListener('abort', onAbort)
  connection.close()
  socket.destroy()
}

async function sendMail(
  state: State,
  envelope: Envelope,
  message: Readable,
  handover: Handover,
): Promise<MailAnswer> {
  const { connection, signal, onAbort } = state
  let stopped: { error: unknown } | undefined
  let noting: Promise<void> | undefined
  let isOut = false
  async function* hold() {
    try {
      for await (const part of message) yield part
      noting = handover.begin()
      await noting
      if (state.isOver) throw lostConnection()
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
    const { accepted, rejected, response } = await ask<MailAnswer>(state, (done) =>
      connection.send(envelope, held, done as never),
    )
    return { accepted, rejected, response: response.slice(0, 1_000) }
  } catch (error) {
    for (const stream of [held, message]) stream.on('error', () => {}).destroy()
    breakOff(state)
    state.isOver = true
    await noting?.catch(() => {})
    // The only response after the last bytes is the one to the mail.
    if (!isOut || (error as { code?: string }).code === 'EMESSAGE') handover.refused()
    throw stopped ? stopped.error : error
  }
}

/** What leaves this machine in clear text, or to a server that takes mail of all who reach it, deserves a warning. */
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
