import { type RawBuilder, sql } from 'kysely'

const ISO = `'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'`

/**
 * SQL for the text of a time as it is hashed and signed: ISO 8601 with milliseconds, in UTC. What no clock has shown
 * gets another text, because to_char writes a year before Christ like one after, and nothing for infinity.
 */
export function timeTextOf(column: string): string {
  return `case when ${column} >= '0001-01-01 00:00:00+00' and ${column} < '10000-01-01 00:00:00+00'
    then to_char(${column} at time zone 'UTC', ${ISO}) else ${column}::text end`
}

/** The same as a part of a statement; `column` is a name of ours, or an expression. */
export function timeText(column: string): RawBuilder<string> {
  return sql.raw(timeTextOf(column))
}
