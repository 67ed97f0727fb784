import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { TLSSocket } from 'node:tls'
import pg from 'pg'
import { carryOut, toPostgresError } from './postgresquery.ts'
import {
  chooseEncryption,
  guardStream,
  type Login,
  maySayPassword,
  passwordKept,
  SqlError,
  type SqlSession,
  type SqlTools,
  secure,
} from './session.ts'

const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])
const CANCEL_CODE = 80_877_102
const CANCEL_MS = 2_000
const CLOSE_MS = 500

/** Opens a session of PostgreSQL. Throws a SqlError, or the HttpError of a connection that cannot be made. */
export async function openPostgres(login: Login, { dial, signal }: SqlTools): Promise<SqlSession> {
  const open = () => openStream(login, { dial, signal })
  const stream = await open()
  const stop = () => stream.destroy()
  signal.addEventListener('abort', stop, { once: true })
  const client = new pg.Client({
    host: login.host,
    port: login.port,
    user: login.username,
    database: login.database,
    // As a function: for an empty one, pg would take that of the service's environment, or of its owner's .pgpass.
    password: async () => login.password,
    ssl: false,
    application_name: 'perdure',
    stream: () => preconnected(stream),
  })
  // The environment of the service says nothing of other databases.
  Object.assign(client, { replication: undefined })
  Object.assign(Reflect.get(client, 'connectionParameters'), {
    options: undefined,
    replication: undefined,
    client_encoding: 'UTF8',
  })
  if (!maySayPassword(login, stream instanceof TLSSocket)) {
    Object.assign(client, {
      _handleAuthCleartextPassword: () => {
        throw passwordKept()
      },
    })
  }
  let broken: Error | undefined
  client.on('error', (error) => {
    broken ??= error
  })
  try {
    await client.connect()
  } catch (error) {
    stream.destroy()
    signal.throwIfAborted()
    throw toPostgresError(error)
  } finally {
    signal.removeEventListener('abort', stop)
  }

  async function ask(sql: string): Promise<void> {
    try {
      if (broken) throw broken
      await client.query(sql)
    } catch (error) {
      throw toPostgresError(error)
    }
  }

  return {
    async begin({ readOnly, timeoutMs }) {
      // All in one message. Poolers refuse these as parameters of the connection.
      await ask(
        `begin${readOnly ? ' read only' : ''}; set local statement_timeout = ${timeoutMs}; ` +
          `set local lock_timeout = ${timeoutMs}; set local timezone = 'UTC'; set local datestyle = 'ISO'; ` +
          `set local intervalstyle = 'iso_8601'; set local bytea_output = 'hex'; set local extra_float_digits = 1`,
      )
    },
    async run(statement) {
      if (broken) throw toPostgresError(broken)
      return carryOut(client, statement)
    },
    commit: () => ask('commit'),
    async cancel() {
      const { processID, secretKey } = client as unknown as { processID?: number; secretKey?: number }
      const limit = AbortSignal.timeout(CANCEL_MS)
      if (processID !== undefined && secretKey !== undefined) {
        const message = Buffer.alloc(16)
        for (const [i, part] of [16, CANCEL_CODE, processID, secretKey].entries())
          message.writeInt32BE(part | 0, 4 * i)
        await openStream(login, { dial, signal: limit }).then(
          async (other) => {
            other.end(message)
            await once(other, 'close', { signal: limit }).catch(() => {})
            other.destroy()
          },
          () => {},
        )
      }
      stream.destroy()
    },
    async close() {
      await Promise.race([client.end().catch(() => {}), sleep(CLOSE_MS)])
      stream.destroy()
    },
  }
}

/** A stream that is connected, as the driver wants to connect it itself. */
function preconnected(stream: Socket): Socket {
  return Object.assign(stream, {
    connect: () => {
      process.nextTick(() => stream.emit('connect'))
      return stream
    },
  })
}

/** Connects, and encrypts the connection as the protocol has it: the server is asked whether it can. */
async function openStream(login: Login, { dial, signal }: SqlTools): Promise<Socket> {
  const socket = await dial(login.host, login.port, { signal })
  const stop = () => socket.destroy()
  signal.addEventListener('abort', stop, { once: true })
  socket.on('error', () => {})
  try {
    const { encrypt, verify } = chooseEncryption(login, socket)
    if (encrypt === 'never') return guardStream(socket)
    socket.write(SSL_REQUEST)
    const answer = await readByte(socket)
    if (answer === 'S') return guardStream(await secure(socket, login, verify), socket)
    if (answer !== 'N') throw new SqlError('lost', 'what answers there is no PostgreSQL')
    if (encrypt === 'always')
      throw new SqlError('server', 'the server does not offer TLS, which the credential asks for', '08001')
    return guardStream(socket)
  } catch (error) {
    socket.destroy()
    signal.throwIfAborted()
    throw toPostgresError(error)
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

/** Exactly one byte, so that nothing that was sent in clear text is taken for a part of what is encrypted. */
async function readByte(socket: Socket): Promise<string> {
  const ended = new AbortController()
  const end = () => ended.abort()
  socket.once('close', end).once('end', end)
  try {
    for (;;) {
      const chunk: Buffer | null = socket.read()
      if (chunk && chunk.length > 1) throw new SqlError('lost', 'what answers there is no PostgreSQL')
      if (chunk) return chunk.toString('latin1')
      await once(socket, 'readable', { signal: ended.signal })
    }
  } catch (error) {
    if (error instanceof SqlError) throw error
    throw new SqlError('lost', 'the connection was closed')
  } finally {
    socket.off('close', end).off('end', end)
    socket.removeAllListeners('readable')
  }
}
