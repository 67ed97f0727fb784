import { type RawBuilder, sql } from 'kysely'
import type { Db } from '../../connection.ts'
import type { ViewSpan } from '../filter.ts'

/** The value in a cell of a report: times are ISO 8601 in UTC. */
export type ReportCell = string | number | boolean | null

type ReportColumn = { key: string; title: string }

/** A table of a report. `total` counts the rows that there are, of which `rows` may be only the first. */
export type ReportSection = {
  id: string
  title: string
  /** What the table says, and how it is sorted. */
  about: string
  columns: ReportColumn[]
  rows: Record<string, ReportCell>[]
  total: number
}

/** What a report is about, as one snapshot of the database sees it: `from` is inclusive, `to` exclusive. */
export type ReportPeriod = {
  db: Db
  teamId: string
  from: Date
  to: Date
  /** The numbers of the team's entries in the period, and of those of the instance's chain. */
  span: ViewSpan
  accounts: ViewSpan
  /** The first entry of the team that is not purged. */
  base: number
  signal?: AbortSignal | undefined
}

/** At most so many rows of a table, and so many UTF-16 units of a cell and of all cells of a table, are in a report. */
export const MAX_ROWS = 2_000
const MAX_CELL = 300
const MAX_UNITS = 1_000_000

/** Asks the database for rows, until the period's signal is aborted. */
export async function askRows<T>({ db, signal }: ReportPeriod, query: RawBuilder<T>): Promise<T[]> {
  const options = signal ? ({ signal, inflightQueryAbortStrategy: 'cancel query' } as const) : undefined
  return (await query.execute(db, options)).rows
}

type Raw = Record<string, unknown>

/**
 * A table of what was read. `columns` are keys and titles; the total is that of the rows' own `total`, which counts all
 * that there are, or else how many there are here.
 */
export function makeSection(
  id: string,
  title: string,
  about: string,
  columns: Record<string, string>,
  found: readonly Raw[],
): ReportSection {
  const keys = Object.keys(columns)
  const total = Number((found[0]?.total as number | undefined) ?? found.length)
  const rows: ReportSection['rows'] = []
  let units = 0
  for (const raw of found.slice(0, MAX_ROWS)) {
    const row = Object.fromEntries(keys.map((key) => [key, toCell(raw[key])]))
    for (const cell of Object.values(row)) units += typeof cell === 'string' ? cell.length : 8
    if (units > MAX_UNITS) break
    rows.push(row)
  }
  return { id, title, about, columns: keys.map((key) => ({ key, title: columns[key]! })), rows, total }
}

function toCell(value: unknown): ReportCell {
  if (value === undefined || value === null) return null
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString()
  if (typeof value === 'number' || typeof value === 'boolean') return value
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text.length <= MAX_CELL ? text : `${text.slice(0, MAX_CELL - 1).toWellFormed()}…`
}

const ENTRY_COLUMNS = {
  at: 'Time (UTC)',
  seq: 'Entry',
  who: 'By',
  role: 'As',
  ip: 'From',
  action: 'Act',
  resource: 'On',
  outcome: 'Outcome',
  details: 'Details',
}

/** The team's entries of the period with one of these acts, newest first. */
export async function listActs(
  period: ReportPeriod,
  section: { id: string; title: string; about: string },
  actions: readonly string[],
): Promise<ReportSection> {
  const { low, high } = period.span
  const some = sql`audit_entries where team_id = ${period.teamId} and action = any(${actions}) and seq between ${low} and ${high}`
  const rows = await askRows(
    period,
    sql<Raw>`select ${ENTRY_CELLS}, (select count(*) from ${some}) as total from ${some}
      order by seq desc limit ${MAX_ROWS}`,
  )
  return makeSection(section.id, section.title, section.about, ENTRY_COLUMNS, rows)
}

/** What a report shows of an entry. */
export const ENTRY_CELLS = sql`ts as at, seq, coalesce(actor_name, actor_kind) as who,
  coalesce(actor_role, actor_kind) as role, src_ip as ip, action,
  resource_type || coalesce(' ' || resource_id, '') as resource, outcome, left(details::text, 1000) as details`

/** The number of acts that an entry counts for: acts that were too many for entries of their own are counted in one. */
export const TIMES = sql`case when details->>'count' ~ '^[0-9]{1,9}$' then (details->>'count')::int else 1 end`

/** Who was behind an entry: entries of version 1 do not say who was behind a token. */
export const PERSON = sql`coalesce(user_id, case when actor_kind = 'USER' then actor_id end)`

/** The acts by which data leaves the service, and those that say where the audit, or figures, are sent, or no longer are. */
export const EXPORTS = [
  'EXECUTIONS_EXPORTED',
  'USAGE_EXPORTED',
  'WORKFLOW_EXPORTED',
  'AUDIT_EXPORTED',
  'AUDIT_SIEM_READ',
  'AUDIT_REPORT_DOWNLOADED',
  ...['AUDIT_FORWARDER_CREATED', 'AUDIT_FORWARDER_UPDATED', 'AUDIT_FORWARDER_DELETED'],
  ...[
    'SCHEDULED_REPORT_CREATED',
    'SCHEDULED_REPORT_UPDATED',
    'SCHEDULED_REPORT_DELETED',
    'SCHEDULED_REPORT_SENT',
  ],
]
