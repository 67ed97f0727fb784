import { setImmediate as breathe } from 'node:timers/promises'
import { type Parser, parse } from 'csv-parse'
import { Hono } from 'hono'
import * as v from 'valibot'
import { readJson } from '../../activities/reading/json.ts'
import { Fault, invalid } from '../../db/fault.ts'
import type { ShownRow } from '../../db/tables/reading.ts'
import { findImported, importRows, type OpenTableExport, openTableExport } from '../../db/tables/transfer.ts'
import { setOwn } from '../../workflows/json.ts'
import { type ColumnType, keysField, ROW_KEYS } from '../../workflows/nodes/tables.ts'
import type { AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { readChunks } from '../http/body.ts'
import { type CsvCell, FORMULA, writeCsvRecord } from '../http/csv.ts'
import { streamParts, type WriteNext } from '../http/download.ts'
import { ById, documentAs } from '../http/fields.ts'
import { FilterQuery } from './fields.ts'

/** The most bytes of an import, of one of its lines, and of the lines that are written at once. */
const MOST_BYTES = 500_000_000
const MOST_LINE = 200_000
const PIECE_BYTES = 2_000_000
const PIECE_ROWS = 5_000

const ImportQuery = v.object({
  keys: v.pipe(
    v.optional(
      v.pipe(
        v.string('must be names of columns with commas between them'),
        documentAs<string>({ type: 'string' }),
        v.transform((text) => text.split(',').map((name) => name.trim())),
        keysField,
      ),
    ),
    v.description('Columns with commas between them: a row that has the same values there is changed'),
  ),
})

/** The rows of a data table as CSV. */
export function createTableCsvRoutes() {
  return new Hono<AppEnv>()
    .get(
      '/api/tables/:id/csv',
      accept({
        id: 'exportRows',
        tag: 'Data tables',
        summary: 'Export the rows of a data table',
        description:
          'A CSV file of all rows that fulfil the conditions, the oldest first, as they are at the time of the request. ' +
          'The connection is cut if the file cannot be completed, or if the client reads nothing for 30 s.',
        role: 'member',
        of: 'dataTables',
        params: ById,
        query: v.object(FilterQuery),
        responses: {
          200: {
            description: 'The file',
            type: 'text/csv',
            headers: { 'Content-Disposition': 'Holds the name of the file' },
          },
        },
      }),
      async (c) => {
        const headers = {
          'Content-Type': 'text/csv; charset=utf-8',
          'Content-Disposition': `attachment; filename="table-${new Date().toISOString().slice(0, 10)}.csv"`,
        }
        const rows = await openTableExport(c.get('scope'), c.req.valid('param').id, c.req.valid('query'))
        return c.body(
          streamParts(c, writeRowsAsCsv(rows), () => rows.close()),
          200,
          headers,
        )
      },
    )
    .post(
      '/api/tables/:id/csv',
      accept({
        id: 'importRows',
        tag: 'Data tables',
        summary: 'Import rows into a data table',
        description:
          'A CSV file whose first line has the names of columns; id, createdAt and updatedAt are not read, and an empty ' +
          'cell is an empty value. It is written in pieces of up to 5,000 rows while it comes, each of them as a whole: if ' +
          'a line is wrong, those of the pieces before are written, and the message says up to which line.',
        role: 'OPERATOR',
        of: 'dataTables',
        params: ById,
        query: ImportQuery,
        ownBody: { 'text/csv': v.string() },
        faults: [409, 422],
        responses: {
          200: {
            description: 'How many rows are new, and how many were changed',
            schema: v.object({ inserted: v.number(), updated: v.number() }),
          },
        },
      }),
      async (c) => {
        const { id } = c.req.valid('param')
        const scope = c.get('scope')
        const { columns } = await findImported(scope, id)
        if (!/^text\/csv\b/i.test(c.req.header('content-type') ?? ''))
          throw new Fault('UNSUPPORTED_TYPE', 'The body must be sent as Content-Type: text/csv (UTF-8)')
        const { keys } = c.req.valid('query')
        const types = new Map(columns.map(({ name, type }) => [name, type]))
        const done = { inserted: 0, updated: 0 }
        let upTo = 1
        for await (const { rows, lines } of readPieces(readChunks(c), types)) {
          const nameRow = (at: number) => `line ${lines[at]}`
          try {
            const { inserted, updated } = await importRows(scope, id, rows, { keys, nameRow })
            done.inserted += inserted
            done.updated += updated
          } catch (error) {
            throw tellProgress(error, upTo)
          }
          upTo = lines.at(-1)!
        }
        return c.json(done)
      },
    )
}

/** Says in an error how much of the file is written. */
function tellProgress(error: unknown, upTo: number): unknown {
  if (!(error instanceof Fault) || upTo === 1) return error
  const { code, problems } = error
  return new Fault(code, `${error.message}. The lines up to ${upTo} are written`, { problems })
}

function writeRowsAsCsv({ columns, read }: OpenTableExport): WriteNext {
  let head = writeCsvRecord(['id', ...columns.map(({ name }) => name), 'createdAt', 'updatedAt'])
  return (put) => {
    put(head)
    head = ''
    return read((row: ShownRow) => {
      const cells = columns.map(({ name, type }) => writeCell(row[name], type))
      put(writeCsvRecord([row.id, ...cells, String(row.createdAt), String(row.updatedAt)]))
    })
  }
}

function writeCell(value: unknown, type: ColumnType): CsvCell {
  if (value === null || (type !== 'json' && (typeof value === 'string' || typeof value === 'number')))
    return value as CsvCell
  return JSON.stringify(value)
}

type Piece = { rows: Record<string, unknown>[]; lines: number[] }

/** The rows of a CSV file in pieces, as its bytes come, with the lines where they end. Throws INVALID and TOO_LARGE. */
async function* readPieces(
  chunks: AsyncGenerator<Uint8Array>,
  types: Map<string, ColumnType>,
): AsyncGenerator<Piece> {
  const parser = parse({
    ...{ bom: true, info: true, skip_empty_lines: true, max_record_size: MOST_LINE },
    record_delimiter: ['\r\n', '\n', '\r'],
  })
  let failure: Error | undefined
  parser.on('error', (error) => {
    failure = error
  })
  let names: string[] | undefined
  let piece: Piece = { rows: [], lines: [] }
  let [bytes, held] = [0, 0]
  const take = () => {
    for (let next = readNext(parser); next; next = readNext(parser)) {
      if (!names) names = readNames(next.record, types)
      else {
        piece.rows.push(readCells(next.record, names, types))
        piece.lines.push(next.info.lines)
      }
    }
    if (failure) throw invalid([{ path: 'body', message: `is not valid CSV: ${failure.message}` }])
  }
  for await (const chunk of chunks) {
    bytes += chunk.byteLength
    held += chunk.byteLength
    if (bytes > MOST_BYTES) throw new Fault('TOO_LARGE', `The body must have at most ${MOST_BYTES} bytes`)
    for (let at = 0; at < chunk.byteLength; at += 32_768) {
      parser.write(chunk.subarray(at, at + 32_768))
      await breathe()
      take()
    }
    if (held < PIECE_BYTES && piece.rows.length < PIECE_ROWS) continue
    if (piece.rows.length > 0) yield piece
    piece = { rows: [], lines: [] }
    held = 0
  }
  parser.end()
  await breathe()
  take()
  if (!names) throw invalid([{ path: 'body', message: 'must have a first line with the names of columns' }])
  if (piece.rows.length > 0) yield piece
}

type Read = { record: string[]; info: { lines: number } }

function readNext(parser: Parser): Read | undefined {
  return (parser.read() as Read | null) ?? undefined
}

function readNames(record: string[], types: Map<string, ColumnType>): string[] {
  const names = record.map((name) => name.trim())
  const problems = names.flatMap((name, at) => {
    const path = `line 1, column ${at + 1}`
    if (names.indexOf(name) < at) return { path, message: 'repeats a name' }
    const isKnown = types.has(name) || ROW_KEYS.some((key) => key === name)
    return isKnown ? [] : { path, message: `must be the name of a column, unlike ${JSON.stringify(name)}` }
  })
  if (problems.length > 0) throw invalid(problems.slice(0, 500))
  return names
}

function readCells(record: string[], names: string[], types: Map<string, ColumnType>) {
  const row: Record<string, unknown> = {}
  for (const [at, name] of names.entries()) {
    const type = types.get(name)
    if (type !== undefined) setOwn(row, name, readCsvValue(record[at] ?? '', type))
  }
  return row
}

/** A cell as a value of its column; any other text stays as it is, and is refused with its line. */
function readCsvValue(cell: string, type: ColumnType): unknown {
  if (cell === '') return null
  // The apostrophe that an export puts before what a spreadsheet would take for a formula.
  const text = cell.startsWith("'") && FORMULA.test(cell) ? cell.slice(1) : cell
  if (type === 'boolean' && /^(true|false|1|0)$/i.test(text)) return /^(true|1)$/i.test(text)
  if (type !== 'json') return text
  try {
    return readJson(text).value
  } catch {
    return text
  }
}
