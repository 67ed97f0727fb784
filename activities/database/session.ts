import { isIP, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import ipaddr from 'ipaddr.js'
import type { OpenedCredential } from '../../db/credentials/open.ts'
import type { Dial } from '../egress/dial.ts'

/** The most bytes that the rows of a statement may have. */
export const MAX_SQL_BYTES = 8 * 1024 * 1024

/** The bytes that may come over a connection, with those that a protocol adds; nothing is read beyond them. */
const MAX_WIRE_BYTES = 4 * MAX_SQL_BYTES
const LOOK_EVERY_MS = 20

export type SqlColumn = { name: string; type: string }
export type SqlResult = { rows: Record<string, unknown>[]; rowCount: number; columns: SqlColumn[] }

/** One statement with the values of its parameters. `maxRows`: more than that is an error. */
/** `least`: the rows that it must be about, else the whole transaction is given up. */
export type Statement = { sql: string; params: unknown[]; maxRows: number; least?: number }

/** A connection to a database, signed in, for one transaction. Every method rejects with a SqlError. */
export type SqlSession = {
  /** Begins the transaction. Neither a statement nor its wait for a lock takes longer than `timeoutMs`. */
  begin(options: { readOnly: boolean; timeoutMs: number }): Promise<void>
  run(statement: Statement): Promise<SqlResult>
  commit(): Promise<void>
  /** Has the server end the statement, over a connection of its own, and closes this one. Never rejects. */
  cancel(): Promise<void>
  /** Undoes what was not committed, and closes the connection. Never rejects. */
  close(): Promise<void>
}

/**
 * What went wrong with a database. `server`: it refused, with its `code` (a SQLSTATE) in words for users, and nothing
 * was done. `lost`: the connection broke. `limit`: the answer is more than the node may have. `input`: the statement
 * and its parameters do not fit each other.
 */
export class SqlError extends Error {
  readonly kind: 'server' | 'lost' | 'limit' | 'input'
  readonly code: string

  constructor(kind: SqlError['kind'], message: string, code = '') {
    super(message)
    this.name = 'SqlError'
    this.kind = kind
    this.code = code
  }
}

/** What a session is opened with. `signal` ends the opening, not the session. */
export type SqlTools = { dial: Dial; signal: AbortSignal }

/** The data of a DATABASE credential. */
export type Login = {
  host: string
  port: number
  database: string
  username: string
  password: string
  dialect: 'postgresql' | 'mysql'
  tls: 'auto' | 'required' | 'unverified' | 'never'
  ca?: string
}

/** Reads a DATABASE credential. What it leaves out is the usual. */
export function readLogin({ data }: OpenedCredential): Login {
  const login = { dialect: 'postgresql', tls: 'auto', ...data } as Login
  return { ...login, host: login.host.replace(/^\[|\]$/g, '') }
}

/**
 * How a connection is encrypted: always, or only if the server can. `auto` is encrypted and verified to a public
 * address; to an inner one encrypted if the server can, and verified if the credential has the authority's certificate.
 */
export function chooseEncryption(
  { tls, ca }: Login,
  socket: Socket,
): { encrypt: 'always' | 'offered' | 'never'; verify: boolean } {
  if (tls === 'never') return { encrypt: 'never', verify: false }
  if (tls === 'unverified') return { encrypt: 'always', verify: false }
  const { remoteAddress = '' } = socket
  const isPublic = !ipaddr.isValid(remoteAddress) || ipaddr.process(remoteAddress).range() === 'unicast'
  const strict = tls === 'required' || ca !== undefined || isPublic
  return { encrypt: strict ? 'always' : 'offered', verify: strict }
}

/** Encrypts a connection. The certificate must be for the host of the login, if it is verified. */
export async function secure(socket: Socket, { host, ca }: Login, verify: boolean): Promise<TLSSocket> {
  const stream = connectTls({
    socket,
    host,
    ...(isIP(host) ? {} : { servername: host }),
    ...(ca === undefined ? {} : { ca }),
    rejectUnauthorized: verify,
  })
  await new Promise<void>((resolve, reject) => {
    stream.once('secureConnect', resolve)
    stream.once('error', reject)
    stream.once('close', () => reject(new Error('the connection was closed during the TLS handshake')))
  })
  return stream
}

/**
 * Has what a driver throws while it reads, since the other side does not keep to the protocol, end the connection and
 * not the process; and ends it when far more comes than a statement may give.
 */
export function guardStream<S extends Socket>(stream: S, socket: Socket = stream): S {
  const emit = stream.emit.bind(stream) as (...event: unknown[]) => boolean
  Object.assign(stream, {
    emit(...event: unknown[]) {
      try {
        return emit(...event)
      } catch (error) {
        stream.destroy(error as Error)
        return true
      }
    },
  })
  const timer = setInterval(() => {
    if (socket.bytesRead > MAX_WIRE_BYTES) stream.destroy(tooLarge())
  }, LOOK_EVERY_MS)
  socket.once('close', () => clearInterval(timer))
  stream.on('error', () => {})
  return stream
}

export function tooLarge(): SqlError {
  const most = MAX_SQL_BYTES / 1_048_576
  return new SqlError('limit', `the statement gives more than ${most} MB: select less, or in several parts`)
}

export function tooManyRows(maxRows: number): SqlError {
  const way = 'add a LIMIT to the query, or set maxRows (at most 10000)'
  return new SqlError('limit', `the statement gives more than ${maxRows} rows, of which none is used: ${way}`)
}

/** The most columns of a result: MySQL's, of whom a row has the most. */
export const MAX_COLUMNS = 4_096

export function tooManyColumns(): SqlError {
  return new SqlError('limit', `the result has more than ${MAX_COLUMNS} columns: select less`)
}

/** The names of a result's columns: two of one name would become one. */
export function checkColumns(columns: SqlColumn[]): void {
  if (columns.length > MAX_COLUMNS) throw tooManyColumns()
  const seen = new Set<string>()
  for (const { name } of columns) {
    if (seen.has(name))
      throw new SqlError(
        'input',
        `the result has several columns named ${name.slice(0, 100)}: name them apart with AS`,
      )
    seen.add(name)
  }
}

/**
 * Whether the server may be told the password itself, or get it under a key that it sends: over an encrypted
 * connection, or if the credential asks for no encryption. Otherwise an attacker in between, who has removed the
 * encryption, could read it.
 */
export function maySayPassword({ tls }: Login, isEncrypted: boolean): boolean {
  return isEncrypted || tls === 'never'
}

export function passwordKept(): SqlError {
  const message =
    'the server wants the password itself, over a connection that is not encrypted: let it offer TLS, or another way to sign in'
  return new SqlError('server', message, '28000')
}
