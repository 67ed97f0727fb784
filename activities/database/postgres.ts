import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { TLSSocket } from 'node:tls'
import pg from 'pg'
import { setOwn } from '../../workflows/json.ts'
import { createPacer } from '../expressions/pace.ts'
import { HttpError } from '../http/httperror.ts'
import { nameSqlType, readSqlValue } from './postgresvalues.ts'
import {
  checkColumns,
  chooseEncryption,
  guardStream,
  type Login,
  MAX_SQL_BYTES,
  maySayPassword,
  passwordKept,
  type SqlColumn,
  SqlError,
  type SqlResult,
  type SqlSession,
  type SqlTools,
  type Statement,
  secure,
  tooLarge,
  tooManyRows,
} from './session.ts'

const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])
const CANCEL_CODE = 80_877_102
const CANCEL_MS = 2_000
const CLOSE_MS = 500

/** How many rows are asked for at once: between them others get their turn. */
const ROWS_AT_ONCE = 200

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
    throw toSqlError(error)
  } finally {
    signal.removeEventListener('abort', stop)
  }

  async function ask(sql: string): Promise<void> {
    try {
      if (broken) throw broken
      await client.query(sql)
    } catch (error) {
      throw toSqlError(error)
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
      if (broken) throw toSqlError(broken)
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
    throw toSqlError(error)
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

type Wire = {
  parse(message: object, more?: boolean): void
  bind(message: object, more?: boolean): void
  describe(message: object, more?: boolean): void
  execute(message: object, more?: boolean): void
  flush(): void
  sync(): void
  sendCopyFail(message: string): void
}

/**
 * One statement in the extended protocol, which takes one statement only and parameters beside it. Values are kept as
 * the server writes them until `carryOut` reads them.
 */
function carryOut(client: pg.Client, { sql, params, maxRows }: Statement): Promise<SqlResult> {
  const pace = createPacer()
  let wire: Wire
  let fields: { name: string; dataTypeID: number }[] = []
  let columns: SqlColumn[] = []
  let command = ''
  let bytes = 0
  let fault: unknown
  const rows: Record<string, unknown>[] = []
  return new Promise<SqlResult>((resolve, reject) => {
    const fail = (error: unknown) => {
      fault ??= error
    }
    const end = () => {
      if (fault) return reject(toSqlError(fault))
      if (command === '') return reject(new SqlError('lost', 'the server did not say what it has done'))
      // If the rows come in parts, the server counts only those of the last part.
      const counted = columns.length > 0 ? rows.length : Number(/(\d+)$/.exec(command)?.[1] ?? 0)
      resolve({ rows, rowCount: counted, columns })
    }
    // The methods that pg calls for what the server sends (`Submittable`).
    const query = {
      submit(connection: unknown) {
        wire = connection as Wire
        try {
          wire.parse({ text: sql, types: [] }, true)
          wire.bind({ values: params.map(writeParam) }, true)
          wire.describe({ type: 'P' }, true)
          wire.execute({ rows: ROWS_AT_ONCE }, true)
          wire.flush()
        } catch (error) {
          return error
        }
      },
      handleRowDescription(message: { fields: typeof fields }) {
        fields = message.fields
        columns = fields.map(({ name, dataTypeID }) => ({ name, type: nameSqlType(dataTypeID) }))
        try {
          checkColumns(columns)
        } catch (error) {
          fail(error)
        }
      },
      handleDataRow({ fields: texts }: { fields: (string | null)[] }) {
        if (fault) return
        try {
          if (rows.length === maxRows) throw tooManyRows(maxRows)
          const row: Record<string, unknown> = {}
          for (const [i, { name, dataTypeID }] of fields.entries()) {
            const text = texts[i] ?? null
            bytes += name.length + 4 + (text === null ? 4 : Buffer.byteLength(text))
            if (bytes > MAX_SQL_BYTES) throw tooLarge()
            setOwn(row, name, text === null ? null : readSqlValue(dataTypeID, text))
          }
          rows.push(row)
        } catch (error) {
          fail(error)
        }
      },
      async handlePortalSuspended() {
        // Whatever else it has is of no use: the transaction is given up.
        if (fault) return wire.sync()
        await pace()
        wire.execute({ rows: ROWS_AT_ONCE }, true)
        wire.flush()
      },
      handleCommandComplete({ text }: { text: string }) {
        command = text
        wire.sync()
      },
      handleEmptyQuery() {
        fail(new SqlError('input', 'the query has no statement'))
        wire.sync()
      },
      handleCopyInResponse() {
        fail(new SqlError('input', 'COPY is not possible: use the mode upsert'))
        wire.sendCopyFail('not supported')
      },
      handleCopyData() {
        fail(new SqlError('input', 'COPY is not possible: select the rows'))
      },
      handleError(error: Error) {
        // Without this the server waits, after an error that it has sent; a connection that is lost hears nothing.
        if (error instanceof pg.DatabaseError) {
          fail(error)
          wire.sync()
          // pg no longer tells this query when the server is ready.
          reject(toSqlError(fault))
        } else reject(toSqlError(fault ?? error))
      },
      handleReadyForQuery: end,
    }
    client.query(query)
  })
}

/** A parameter as PostgreSQL reads it: lists are arrays, objects are JSON. */
function writeParam(value: unknown): string | null {
  if (value === null || value === undefined) return null
  if (Array.isArray(value)) return `{${value.map(writeElement).join(',')}}`
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

function writeElement(value: unknown): string {
  if (value === null || value === undefined) return 'NULL'
  const text = writeParam(value)!
  return Array.isArray(value) ? text : `"${text.replace(/[\\"]/g, '\\$&')}"`
}

function toSqlError(error: unknown): unknown {
  if (error instanceof SqlError || error instanceof HttpError) return error
  const { message, code = '' } = error as Error & { code?: string }
  return error instanceof pg.DatabaseError
    ? new SqlError('server', message, code)
    : new SqlError('lost', message || code || 'the connection was closed')
}
