import * as v from 'valibot'
import type { OpenedCredential } from '../../db/credentials/open.ts'
import { isObject } from '../../workflows/json.ts'
import { type SqlMode, sqlParamsField, sqlRowsField } from '../../workflows/nodes/databases.ts'
import { describeIssue } from '../../workflows/problem.ts'
import { openSentNote, type SentNote, uncertain } from '../database/once.ts'
import { openSession } from '../database/open.ts'
import { takePlace } from '../database/places.ts'
import { type Written, writeRowsAsSql } from '../database/rows.ts'
import {
  MAX_SQL_BYTES,
  readLogin,
  SqlError,
  type SqlResult,
  type SqlSession,
  type SqlTools,
  type Statement,
  tooLarge,
  tooManyRows,
} from '../database/session.ts'
import { HttpError } from '../http/httperror.ts'
import { invalidConfig, NodeFailure } from './kit/failure.ts'
import type { NodeContext, NodeResult, NodeRunner } from './kit/node.ts'

const DEFAULT_ROWS = 1_000
/** The most rows that come back of those that are written. */
const MOST_RETURNED = 10_000
const DEFAULT_TIMEOUT_MS = 30_000
const MAX_MESSAGE = 1_000

/** How long a server may take to sign the node in, and again to begin the transaction: its place is wanted by others. */
const ANSWER_MS = 15_000

/** How much later than the server the client ends a statement: only if the server does not do it itself. */
const LATE_MS = 1_000

/** The transaction failed because of others that were carried out at the same time: nothing was done. */
const PASSING = new Set(['40001', '40P01', '40001/1213', 'HY000/1205'])

/** The server does not take connections at the moment. */
const BUSY = /^(53300|57P03|57P01|57P02|08004\/1040|HY000\/1203)$/

const TIMED_OUT = new Set(['57014', 'HY000/3024', '70100/1969', '70100/1317'])

/**
 * DATABASE_QUERY: outputs {rows, rowCount, columns}. One transaction: a failure of whatever kind leaves nothing behind.
 * Retried: a database that cannot be reached or has no room (DatabaseUnreachable), serialization failures and deadlocks
 * (DatabaseFailed). Final: what the database refuses (DatabaseFailed), more than `timeoutMs` (DatabaseTimeout), more
 * rows or bytes than allowed (TooManyItems, OutputTooLarge), and a statement that was sent and not answered
 * (DatabaseUncertain), unless it is `readOnly` or may be carried out twice (`repeat`).
 */
export const runDatabaseQuery: NodeRunner = (context) => queryDatabase(context, openSentNote)

/** As runDatabaseQuery, with another note of what was sent: that of a tool of an agent. */
export async function queryDatabase(
  context: NodeContext,
  openNote: (context: NodeContext) => Promise<SentNote>,
): Promise<NodeResult> {
  const { config, signal } = context
  const { dial, credentials } = context
  if (!dial || !credentials) throw new Error('a database is only reached by attempts')
  const credential = await credentials.open(config.credentialId, 'DATABASE')
  const { statements, rowCount } = await readStatements(context, readLogin(credential).dialect)
  const readOnly = config.readOnly === true
  const repeats = readOnly || config.repeat === true
  if (statements.length === 0) return { output: { rows: [], rowCount: 0, columns: [] } }
  const note = repeats ? undefined : await openNote(context)
  const leave = await takePlace(credential.teamId, signal)
  const stage: Stage = { noted: false, sent: false, committing: false, repeats }
  try {
    const session = await openInTime(credential, { dial, signal })
    const done = await transact(session, { context, statements, readOnly, note, stage })
    return { output: rowCount === undefined ? done : { ...done, rowCount } }
  } catch (error) {
    const failure = describeFault(error, stage)
    if (stage.noted && failure?.type !== 'DatabaseUncertain') await note?.undone()
    throw failure ?? error
  } finally {
    leave()
  }
}

async function openInTime(credential: OpenedCredential, { dial, signal }: SqlTools): Promise<SqlSession> {
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(noAnswer()), ANSWER_MS)
  try {
    return await openSession(credential, { dial, signal: AbortSignal.any([signal, late.signal]) })
  } finally {
    clearTimeout(timer)
  }
}

function noAnswer(): SqlError {
  return new SqlError('lost', `the server did not answer within ${ANSWER_MS} ms`)
}

/** How far the statement has come, and whether it may be carried out again. */
type Stage = { noted: boolean; sent: boolean; committing: boolean; repeats: boolean }

type Transaction = {
  context: NodeContext
  statements: Statement[]
  readOnly: boolean
  note: SentNote | undefined
  stage: Stage
}

async function transact(
  session: SqlSession,
  { context: { config, signal }, statements, readOnly, note, stage }: Transaction,
): Promise<SqlResult> {
  const timeoutMs = (config.timeoutMs as number | undefined) ?? DEFAULT_TIMEOUT_MS
  const ending = new AbortController()
  let cancelled: Promise<void> | undefined
  const cancel = (why: unknown) => {
    ending.abort(why)
    cancelled ??= session.cancel()
  }
  const onAbort = () => cancel(signal.reason)
  let timer: NodeJS.Timeout | undefined
  if (signal.aborted) onAbort()
  else signal.addEventListener('abort', onAbort, { once: true })
  try {
    timer = setTimeout(() => cancel(noAnswer()), ANSWER_MS)
    await session.begin({ readOnly, timeoutMs })
    clearTimeout(timer)
    stage.noted = note !== undefined
    await note?.begin()
    ending.signal.throwIfAborted()
    stage.sent = true
    const late = new SqlError('server', `the statement took longer than ${timeoutMs} ms`, '57014')
    timer = setTimeout(() => cancel(late), timeoutMs + LATE_MS)
    const result = await runAll(session, statements)
    stage.committing = true
    await session.commit()
    return result
  } catch (error) {
    // The transaction is not committed, so the server undoes it: with a rollback, or when the connection ends.
    throw ending.signal.aborted && !stage.committing ? ending.signal.reason : error
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
    await (cancelled ?? session.close())
  }
}

/** Several statements write rows, and each may return some. */
async function runAll(session: SqlSession, statements: Statement[]): Promise<SqlResult> {
  const [first, ...others] = statements
  const all = await runOne(session, first!, 0)
  let bytes = others.length > 0 ? weigh(all) : 0
  for (const [i, statement] of others.entries()) {
    const result = await runOne(session, statement, i + 1)
    all.rowCount += result.rowCount
    bytes += weigh(result)
    if (bytes > MAX_SQL_BYTES) throw tooLarge()
    if (all.rows.length + result.rows.length > MOST_RETURNED) throw tooManyRows(MOST_RETURNED)
    for (const row of result.rows) all.rows.push(row)
  }
  return all
}

const weigh = ({ rows }: SqlResult) => (rows.length === 0 ? 0 : Buffer.byteLength(JSON.stringify(rows)))

async function runOne(session: SqlSession, statement: Statement, at: number): Promise<SqlResult> {
  const result = await session.run(statement)
  if (result.rowCount < (statement.least ?? 0)) throw new SqlError('input', `rows[${at}] is not in the table`)
  return result
}

async function readStatements(
  { config, evaluator, bindings }: NodeContext,
  dialect: 'postgresql' | 'mysql',
): Promise<{ statements: Statement[]; rowCount?: number }> {
  const { params = [], rows = [] } = (await evaluator.render(
    { params: config.params ?? [], rows: config.rows ?? [] },
    bindings,
  )) as Record<string, unknown>
  const read = <S extends v.GenericSchema>(key: string, schema: S, value: unknown): v.InferOutput<S> => {
    const { issues, output } = v.safeParse(schema, value)
    if (issues) throw invalidConfig(key, describeIssue(issues[0]))
    return output
  }
  const mode = (config.mode as SqlMode | undefined) ?? 'query'
  if (mode !== 'query') {
    const { table, columns, keys, returning, skipKnown, mustExist } = config as Omit<Written, 'mode' | 'rows'>
    const given = read('rows', sqlRowsField, isObject(rows) ? [rows] : rows)
    const written = { mode, table, columns, keys, returning, skipKnown, mustExist, rows: given }
    const statements = writeRowsAsSql(dialect, written, MOST_RETURNED)
    // MySQL counts a row that an upsert changes twice.
    return mode === 'upsert' ? { statements, rowCount: given.length } : { statements }
  }
  const maxRows = (config.maxRows as number | undefined) ?? DEFAULT_ROWS
  return {
    statements: [{ sql: config.query as string, params: read('params', sqlParamsField, params), maxRows }],
  }
}

/** The failure of the node for an error of the database; undefined for any other error. */
function describeFault(error: unknown, { sent, repeats }: Stage): NodeFailure | undefined {
  if (error instanceof HttpError) {
    const isRefused = error.kind === 'refused-address'
    const isFinal = isRefused || error.kind === 'bad-url'
    if (error.kind === 'aborted') return undefined
    return new NodeFailure(`The database cannot be reached: ${error.message}`, {
      type: isRefused ? 'HttpRefusedAddress' : 'DatabaseUnreachable',
      retryable: !isFinal,
    })
  }
  if (!(error instanceof SqlError)) return undefined
  const { kind, code } = error
  const message =
    error.message.length > MAX_MESSAGE ? `${error.message.slice(0, MAX_MESSAGE)}...` : error.message
  if (kind === 'lost') {
    if (sent && !repeats) return uncertain(message)
    return new NodeFailure(`The connection to the database was lost: ${message}`, {
      type: 'DatabaseUnreachable',
      retryable: true,
    })
  }
  if (kind === 'limit') {
    const type = message.includes(' MB') ? 'OutputTooLarge' : 'TooManyItems'
    return new NodeFailure(`Nothing was done: ${message}`, { type })
  }
  if (kind === 'input')
    return new NodeFailure(`The database was asked for nothing: ${message}`, { type: 'InvalidInput' })
  if (TIMED_OUT.has(code))
    return new NodeFailure(`The database gave up: ${message} (${code})`, { type: 'DatabaseTimeout' })
  const isBusy = !sent && BUSY.test(code)
  return new NodeFailure(`The database refused: ${message}${code && ` (${code})`}`, {
    type: isBusy ? 'DatabaseUnreachable' : 'DatabaseFailed',
    retryable: isBusy || PASSING.has(code),
  })
}
