import { text } from 'node:stream/consumers'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'

/** A mail that was received. `token` is that of the link in it. */
export type ReceivedMail = {
  from: string
  to: string[]
  /** Each is one line, however it was folded. */
  headers: string
  text: string
  token: string | undefined
}

/**
 * Starts an SMTP server on loopback that keeps what it receives. `taken` is called with each mail before it is
 * acknowledged: if it throws, the server refuses the mail.
 */
export async function startMailbox(options: SMTPServerOptions = {}) {
  const mails: ReceivedMail[] = []
  const waiters: (() => void)[] = []
  const wake = () => {
    for (const one of waiters.splice(0)) one()
  }
  const state = { connections: 0, refuse: undefined as (() => Error | undefined) | undefined, hang: false }
  const server = new SMTPServer({
    authOptional: true,
    hideSTARTTLS: true,
    logger: false,
    closeTimeout: 100,
    onConnect(_, done) {
      state.connections++
      wake()
      if (!state.hang) done()
    },
    onRcptTo(_, __, done) {
      done(state.refuse?.())
    },
    onData(stream, session, done) {
      void text(stream).then((raw) => {
        mails.push(readMail(raw, session.envelope))
        done()
        wake()
      })
    },
    ...options,
  })
  server.on('error', () => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.server.address() as { port: number }
  return {
    port,
    server,
    mails,
    state,
    /** Resolves once `holds` returns true. It is called again after every connection and every mail. */
    async until(holds: () => boolean): Promise<void> {
      while (!holds()) await new Promise<void>((resolve) => waiters.push(resolve))
    },
    stop: () => new Promise<void>((resolve) => server.close(() => resolve())),
  }
}

type Envelope = { mailFrom: false | { address: string }; rcptTo: { address: string }[] }

function readMail(raw: string, { mailFrom, rcptTo }: Envelope): ReceivedMail {
  const [folded = '', ...body] = raw.split('\r\n\r\n')
  const headers = folded.replaceAll(/\r\n[ \t]+/g, ' ')
  const plain = body.join('\r\n\r\n')
  return {
    from: mailFrom ? mailFrom.address : '',
    to: rcptTo.map(({ address }) => address),
    headers,
    text: plain,
    token: /token=([\w-]+)/.exec(plain)?.[1],
  }
}
