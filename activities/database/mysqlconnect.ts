import type { Socket } from 'node:net'
import mysql, { type Connection } from 'mysql2'
import { HttpError } from '../http/httperror.ts'
import {
  chooseEncryption,
  guardStream,
  type Login,
  maySayPassword,
  passwordKept,
  SqlError,
  type SqlTools,
} from './session.ts'

const CONNECT_MS = 10_000

/** Connects and signs in, encrypted as the login asks for. Throws a SqlError, an HttpError, or the signal's reason. */
export async function connect(login: Login, { dial, signal }: SqlTools): Promise<Connection> {
  const open = async (encrypted: boolean | undefined) => {
    const socket = await dial(login.host, login.port, { signal })
    const { encrypt, verify } = chooseEncryption(login, socket)
    const tls = encrypted ?? encrypt !== 'never'
    return { socket, encrypt, signIn: () => signIn(login, socket, signal, { tls, verify }) }
  }
  const { encrypt, signIn: first } = await open(undefined)
  try {
    return await first()
  } catch (error) {
    signal.throwIfAborted()
    if (encrypt !== 'offered' || !(error instanceof SqlError) || error.code !== NO_TLS) throw error
  }
  return (await open(false)).signIn()
}

const NO_TLS = 'HANDSHAKE_NO_SSL_SUPPORT'

function signIn(
  login: Login,
  socket: Socket,
  signal: AbortSignal,
  { tls, verify }: { tls: boolean; verify: boolean },
): Promise<Connection> {
  return new Promise((resolve, reject) => {
    const stop = () => socket.destroy()
    signal.addEventListener('abort', stop, { once: true })
    const end = (error: unknown) => {
      signal.removeEventListener('abort', stop)
      socket.destroy()
      reject(signal.aborted ? signal.reason : toMysqlError(error))
    }
    const connection = mysql.createConnection({
      host: login.host,
      port: login.port,
      user: login.username,
      password: login.password,
      database: login.database,
      stream: guardStream(socket),
      connectTimeout: CONNECT_MS,
      charset: 'utf8mb4',
      multipleStatements: false,
      // A server must not ask for files of this machine; one that does all the same gets an empty one.
      flags: ['-LOCAL_FILES'],
      ...(maySayPassword(login, tls) ? {} : { authPlugins: guardedPlugins }),
      dateStrings: true,
      jsonStrings: true,
      supportBigNumbers: true,
      rowsAsArray: true,
      // Rows are read without code that is made from the names of columns.
      disableEval: true,
      ...(tls
        ? {
            ssl: {
              rejectUnauthorized: verify,
              verifyIdentity: verify,
              ...(login.ca === undefined ? {} : { ca: login.ca }),
            },
          }
        : {}),
    })
    guardTls(connection, socket)
    limitWarnings(connection)
    connection.once('error', end)
    connection.once('connect', () => {
      signal.removeEventListener('abort', stop)
      connection.off('error', end)
      resolve(connection)
    })
  })
}

/** The driver writes a line to the log for each packet that is out of order. Some proxies send a few. */
function limitWarnings(connection: Connection): void {
  let count = 0
  connection.on('warn' as 'error', (warning: Error) => {
    if (++count > MAX_WARNINGS) throw warning
  })
}

const MAX_WARNINGS = 10

/** The ways to sign in that give the password away under a key that the server itself has sent, without that. */
const guardedPlugins = (() => {
  const { caching_sha2_password: caching, sha256_password: plain } = mysql.authPlugins
  const onServerPublicKey = () => {
    throw passwordKept()
  }
  return {
    caching_sha2_password: caching({ onServerPublicKey }),
    sha256_password: plain({ onServerPublicKey }),
  }
})()

/** The encrypted stream takes the place of the first one in the middle of the handshake: it needs a guard too. */
function guardTls(connection: Connection, socket: Socket): void {
  const inner = connection as unknown as { startTLS(done: (error?: Error) => void): void; stream: Socket }
  const start = inner.startTLS.bind(connection)
  inner.startTLS = (done) => {
    start(done)
    guardStream(inner.stream, socket)
  }
}

export function toMysqlError(error: unknown): unknown {
  if (error instanceof SqlError || error instanceof HttpError) return error
  const {
    message,
    code = '',
    errno,
    sqlState,
  } = error as Error & {
    code?: string
    errno?: number
    sqlState?: string
  }
  if (code === NO_TLS)
    return new SqlError('server', 'the server does not offer TLS, which the credential asks for', code)
  return sqlState !== undefined && errno !== undefined
    ? new SqlError('server', message, `${sqlState}/${errno}`)
    : new SqlError('lost', message || code || 'the connection was closed')
}
