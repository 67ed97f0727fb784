import { setTimeout as sleep } from 'node:timers/promises'
import type { Connection, FieldPacket } from 'mysql2'
import { setOwn } from '../../workflows/json.ts'
import { connect, toMysqlError } from './mysqlconnect.ts'
import { nameMysqlType, readMysqlValue, writeMysqlParam } from './mysqlvalues.ts'
import {
  checkColumns,
  type Login,
  MAX_COLUMNS,
  MAX_SQL_BYTES,
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

const CANCEL_MS = 2_000
const CLOSE_MS = 500

/** Opens a session of MySQL or MariaDB. Throws a SqlError, or the HttpError of a connection that cannot be made. */
export async function openMysql(login: Login, tools: SqlTools): Promise<SqlSession> {
  const connection = await connect(login, tools)
  let broken: Error | undefined
  connection.on('error', (error) => {
    broken ??= error
  })

  function ask(sql: string): Promise<void> {
    return new Promise((resolve, reject) => {
      if (broken) return reject(toMysqlError(broken))
      connection.query(sql, (error) => (error ? reject(toMysqlError(error)) : resolve()))
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
      if (broken) throw toMysqlError(broken)
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
      fault ??= toMysqlError(error)
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
      const command = statement.execute(params.map(writeMysqlParam))
      limitColumns(command)
      command.on('error', fail)
      command.on('fields', (given: FieldPacket[] | undefined) => {
        if (!given || fault) return
        results++
        fields = given
        columns = given.map((field) => ({ name: field.name, type: nameMysqlType(field) }))
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
            const value = readMysqlValue(field, row[i])
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

/** The driver keeps as many columns as a server announces, before they can be counted. */
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
