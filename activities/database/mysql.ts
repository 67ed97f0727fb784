import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import mysql, { type Connection, type FieldPacket } from 'mysql2'
import { setOwn } from '../../workflows/json.ts'
import { HttpError } from '../http/httperror.ts'
import {
  checkColumns,
  chooseEncryption,
  guardStream,
  type Login,
  MAX_COLUMNS,
  MAX_SQL_BYTES,
  maySayPassword,
  passwordKept,
  type SqlColumn,
  SqlError,
  type SqlResult,
  type SqlSession,
  type SqlTools,
  type Statement,
  tooLarge,
  tooManyColumns,
  tooManyRows,
} from './session.ts'
import { readJsonColumn, readNumber, readTime } from './values.ts'

const CONNECT_MS = 10_000
const CANCEL_MS = 2_000
const CLOSE_MS = 500
const { Types } = mysql

/** Opens a session of MySQL or MariaDB. Throws a SqlError, or the HttpError of a connection that cannot be made. */
export async function openMysql(login: Login, tools: SqlTools): Promise<SqlSession> {
  const connection = await connect(login, tools)
  let broken: Error | undefined
  connection.on('error', (error) => {
    broken ??= error
  })

  function ask(sql: string): Promise<void> {
    return new Promise((resolve, reject) => {
      if (broken) return reject(toSqlError(broken))
      connection.query(sql, (error) => (error ? reject(toSqlError(error)) : resolve()))
    })
  }

  /** Sets what only one of MySQL and MariaDB knows. */
  async function askIfKnown(sql: string): Promise<void> {
    await ask(sql).catch((error) => {
      if (!(error instanceof SqlError && error.code === UNKNOWN_VARIABLE)) throw error
    })
  }

  return {
    async begin({ readOnly, timeoutMs }) {
      const seconds = Math.max(1, Math.ceil(timeoutMs / 1_000))
      await ask(
        `set session time_zone = '+00:00', session innodb_lock_wait_timeout = ${seconds}, session lock_wait_timeout = ${seconds}`,
      )
      await askIfKnown(`set session max_execution_time = ${timeoutMs}`)
      await askIfKnown(`set session max_statement_time = ${timeoutMs / 1_000}`)
      // Also for what begins another transaction by itself.
      if (readOnly) await ask('set session transaction read only')
      await ask(`start transaction${readOnly ? ' read only' : ''}`)
    },
    async run(statement) {
      if (broken) throw toSqlError(broken)
      return carryOut(connection, statement)
    },
    commit: () => ask('commit'),
    async cancel() {
      const { threadId } = connection
      const limit = AbortSignal.timeout(CANCEL_MS)
      if (Number.isInteger(threadId)) {
        const kill = async () => {
          const other = await connect(login, { dial: tools.dial, signal: limit })
          other.on('error', () => {})
          await new Promise((resolve) => other.query(`kill query ${threadId}`, resolve))
          other.destroy()
        }
        await Promise.race([kill().catch(() => {}), sleep(CANCEL_MS)])
      }
      connection.destroy()
    },
    async close() {
      await Promise.race([new Promise((resolve) => connection.end(resolve)), sleep(CLOSE_MS)])
      connection.destroy()
    },
  }
}

/** SQLSTATE of a variable that the server does not know. */
const UNKNOWN_VARIABLE = 'HY000/1193'

async function connect(login: Login, { dial, signal }: SqlTools): Promise<Connection> {
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
      reject(signal.aborted ? signal.reason : toSqlError(error))
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

/** One statement, prepared: so it is one only, and its parameters are beside it. */
function carryOut(connection: Connection, { sql, params, maxRows }: Statement): Promise<SqlResult> {
  return new Promise((resolve, reject) => {
    let fault: unknown
    let columns: SqlColumn[] = []
    let fields: FieldPacket[] = []
    let results = 0
    let bytes = 0
    let affected = 0
    const rows: Record<string, unknown>[] = []
    const fail = (error: unknown) => {
      fault ??= toSqlError(error)
      reject(fault)
    }
    /** Gives up: what still comes is not read. */
    const giveUp = (error: unknown) => {
      fail(error)
      connection.destroy()
    }
    connection.once('error', fail)
    connection.prepare(sql, (refused, prepared) => {
      if (refused) return fail(refused)
      const statement = prepared as unknown as {
        parameters: unknown[]
        execute(values: unknown[]): NodeJS.EventEmitter
      }
      const count = statement.parameters.length
      if (count !== params.length) {
        const message = `the query has ${count} parameters (?), and params has ${params.length} values`
        return fail(new SqlError('input', message))
      }
      const command = statement.execute(params.map(writeParam))
      limitColumns(command)
      command.on('error', fail)
      command.on('fields', (given: FieldPacket[] | undefined) => {
        if (!given || fault) return
        results++
        fields = given
        columns = given.map((field) => ({ name: field.name, type: nameType(field) }))
        try {
          checkColumns(columns)
          if (results > 1)
            throw new SqlError('input', 'the statement gives several results: only one can be used')
        } catch (error) {
          giveUp(error)
        }
      })
      command.on('result', (row: unknown) => {
        if (fault) return
        if (!Array.isArray(row)) {
          affected = (row as { affectedRows?: number }).affectedRows ?? 0
          return
        }
        try {
          if (rows.length === maxRows) throw tooManyRows(maxRows)
          const item: Record<string, unknown> = {}
          for (const [i, field] of fields.entries()) {
            const value = readValue(field, row[i])
            bytes += field.name.length + 4 + (typeof value === 'string' ? Buffer.byteLength(value) : 8)
            if (bytes > MAX_SQL_BYTES) throw tooLarge()
            setOwn(item, field.name, value)
          }
          rows.push(item)
        } catch (error) {
          giveUp(error)
        }
      })
      command.on('end', () => {
        connection.off('error', fail)
        if (!fault) resolve({ rows, rowCount: results > 0 ? rows.length : affected, columns })
      })
    })
  })
}

/** The driver keeps as many columns as a server announces, before they can be checked. */
function limitColumns(command: NodeJS.EventEmitter): void {
  let count: unknown
  Object.defineProperty(command, '_fieldCount', {
    get: () => count,
    set(next) {
      if (Number(next) > MAX_COLUMNS) throw tooManyColumns()
      count = next
    },
  })
}

/** Lists and objects are JSON, as there are no arrays. */
function writeParam(value: unknown): unknown {
  if (typeof value === 'object' && value !== null) return JSON.stringify(value)
  // As digits: a number would be sent as a fraction, which a LIMIT does not take.
  return typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : value
}

const MAX_BIT_BYTES = 8

const NAMES: Record<number, string> = Object.fromEntries(
  Object.entries(Types).flatMap(([name, code]) =>
    typeof code === 'number' ? [[code, name.toLowerCase()]] : [],
  ),
)

function nameType({ columnType = -1 }: FieldPacket): string {
  return NAMES[columnType] ?? 'text'
}

function readValue(field: FieldPacket, value: unknown): unknown {
  const { columnType } = field
  if (value === null || value === undefined) return null
  if (Buffer.isBuffer(value)) {
    if (columnType === Types.BIT && value.length <= MAX_BIT_BYTES)
      return readNumber(BigInt(`0x${value.toString('hex') || '0'}`).toString())
    return value.toString('base64')
  }
  if (typeof value !== 'string') {
    if (typeof value === 'number' && !Number.isFinite(value)) return String(value)
    return typeof value === 'bigint' ? readNumber(value.toString()) : value
  }
  if (columnType === Types.NEWDECIMAL || columnType === Types.DECIMAL) return readNumber(value)
  if (columnType === Types.TIMESTAMP) return readTime(value, 'Z')
  if (columnType === Types.DATETIME) return readTime(value, '')
  if (columnType === Types.JSON) return readJsonColumn(value)
  return value
}

function toSqlError(error: unknown): unknown {
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
