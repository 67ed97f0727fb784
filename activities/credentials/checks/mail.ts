import { connect as connectTls } from 'node:tls'
import type { ImapTransportOptions } from 'imapflow'
import { smtpFailure } from '../../mail/failures.ts'
import { chooseTls, type MailLogin, openSmtp } from '../../mail/session.ts'
import type { CredentialCheck } from './check.ts'

/** Signs in at the SMTP server, and sends nothing. */
export const checkSmtp: CredentialCheck = async ({ data }, { dial, signal }) => {
  const login = data as MailLogin
  try {
    const session = await openSmtp(login, dial, signal)
    session.close()
    const said = session.signedIn
      ? `Signed in at ${login.host} as ${login.username}`
      : login.authentication === 'none'
        ? `Connected to ${login.host}, without signing in`
        : `Connected to ${login.host}, which asks nobody to sign in`
    return session.warning === null ? said : `${said}. ${session.warning}`
  } catch (error) {
    throw smtpFailure(login.host, error)
  }
}

/** Signs in at the IMAP server, and opens no mailbox. */
export const checkImap: CredentialCheck = async ({ data }, { dial, signal }) => {
  const login = data as MailLogin
  const { host, port, username = '', password = '' } = login
  // Loaded only by a process that needs it, as every start would take longer by it.
  const { ImapFlow } = await import('imapflow')
  const socket = await dial(host, port, { signal })
  const { how, verified } = chooseTls(login, 993, socket)
  const secure = ({ host, servername, tls }: ImapTransportOptions, done: () => void) =>
    connectTls({ ...tls, socket, host, ...(servername ? { servername } : {}) }, done)
  const client = new ImapFlow({
    host,
    port,
    secure: how === 'at once',
    ...(how === 'if offered' ? {} : { doSTARTTLS: how === 'required' }),
    tls: { rejectUnauthorized: verified },
    auth: { user: username, pass: password },
    logger: false,
    verifyOnly: true,
    // The socket is there already, by the rules of egress.
    transport: {
      connect(options, done) {
        if (options.secure) return secure(options, done)
        setImmediate(done)
        return socket
      },
      upgrade: (_, options, done) => secure(options, done),
    },
  })
  const onAbort = () => client.close()
  signal.addEventListener('abort', onAbort, { once: true })
  client.on('error', () => {})
  try {
    signal.throwIfAborted()
    await client.connect()
    return `Signed in at ${host} as ${username}`
  } catch (error) {
    signal.throwIfAborted()
    const { authenticationFailed, responseText, message } = error as Error & {
      authenticationFailed?: boolean
      responseText?: string
    }
    const why = responseText ?? message
    throw new Error(authenticationFailed ? `${host} refused the sign-in: ${why}` : `${host}: ${why}`)
  } finally {
    signal.removeEventListener('abort', onAbort)
    client.close()
    socket.destroy()
  }
}
