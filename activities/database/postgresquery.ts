import pg from 'pg'
import { setOwn } from '../../workflows/json.ts'
import { createPacer } from '../expressions/pace.ts'
import { HttpError } from '../http/httperror.ts'
import { nameSqlType, readSqlValue } from './postgresvalues.ts'
import {
  checkColumns,
  MAX_SQL_BYTES,
  type SqlColumn,
  SqlError,
  type SqlResult,
  type Statement,
  tooLarge,
  tooManyRows,
} from './session.ts'

/** The number of rows that are asked for at once: between them others get their turn. */
const ROWS_AT_ONCE = 200

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
export function carryOut(client: pg.Client, { sql, params, maxRows }: Statement): Promise<SqlResult> {
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
      if (fault) return reject(toPostgresError(fault))
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
          reject(toPostgresError(fault))
        } else reject(toPostgresError(fault ?? error))
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

export function toPostgresError(error: unknown): unknown {
  if (error instanceof SqlError || error instanceof HttpError) return error
  const { message, code = '' } = error as Error & { code?: string }
  return error instanceof pg.DatabaseError
    ? new SqlError('server', message, code)
    : new SqlError('lost', message || code || 'the connection was closed')
}
