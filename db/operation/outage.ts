/**
 * What an error says about the database. `away`: it can take no work now, or not this work at this moment, and
 * the same statement may succeed later. `final`: the statement or its data are at fault, or it is no error of the
 * database: trying again does not help. `unknown`: an error of the database that says neither.
 */
export type Judgement = 'away' | 'final' | 'unknown'

/** The code of an error that was thrown on the client, while a statement was built or its rows were read. */
const NOT_BUILT = 'STATEMENT_NOT_BUILT'

/** PostgreSQL's read_only_sql_transaction: it is a standby, maybe after a failover, or was set so. */
export const READ_ONLY = '25006'

/**
 * Classes of SQLSTATE, and READ_ONLY: connections, conflicts with others, resources, objects in use, an
 * operator's doing, and the system.
 */
const AWAY = /^(08|40|53|55|57|58)...$|^25006$/

/** Cardinality, data, constraints, syntax and rights, limits of a statement, and what is not supported. */
const FINAL = /^(21|22|23|42|54|0A)...$/
const SQLSTATE = /^[0-9A-Z]{5}$/

const NETWORK = /^(ECONN\w+|EPIPE|ETIMEDOUT|ENOTFOUND|EHOSTUNREACH|EHOSTDOWN|ENETUNREACH|ENETDOWN|EAI_\w+)$/

/** What pg says without a code. */
const LOST =
  /Connection terminated|Query read timeout|timeout exceeded when trying to connect|timeout expired|Client has encountered a connection error|Client was closed and is not queryable/

/** Judges an error that came out of work with the database. */
export function judgeError(error: unknown): Judgement {
  if (!(error instanceof Error)) return 'final'
  const { code, syscall } = error as { code?: unknown; syscall?: string }
  if (typeof code === 'string') {
    if (AWAY.test(code) || NETWORK.test(code)) return 'away'
    if (FINAL.test(code) || code === NOT_BUILT) return 'final'
    // A Unix socket without a listener gives ENOENT.
    if (syscall === 'connect') return 'away'
    if (isSqlState(error)) return 'unknown'
  }
  // For a host with several addresses: all were tried, and each failed.
  if (error instanceof AggregateError && error.errors.some((one) => judgeError(one) === 'away')) return 'away'
  return LOST.test(error.message) ? 'away' : 'final'
}

/** Whether the database only gives what it has, and takes no changes. */
export function isReadOnly(error: unknown): boolean {
  return (error as { code?: unknown } | null | undefined)?.code === READ_ONLY
}

/**
 * Whether it is an error of the database or of its client, whose message may have SQL and values in it. Only the log
 * may show those.
 */
export function isDatabaseError(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return isSqlState(error) || (error as { code?: unknown }).code === NOT_BUILT || judgeError(error) === 'away'
}

/** The error for a statement that the client could not build or read: `cause` is what was thrown there. */
export function notBuilt(cause: unknown): Error {
  const message = 'A statement could not be built, or its rows could not be read'
  return Object.assign(new Error(message, { cause }), { code: NOT_BUILT })
}

/** Node has codes of five letters too (EPERM, EBUSY), but only PostgreSQL says how severe an error is. */
function isSqlState(error: Error): boolean {
  const { code, severity } = error as { code?: unknown; severity?: unknown }
  return typeof code === 'string' && SQLSTATE.test(code) && severity !== undefined
}
