import type { DateKind } from './formatcodes.ts'

const MS_OF_DAY = 86_400_000

/** The days from the first day of 1900's calendar to that of 1904's. */
export const DAYS_TO_1904 = 1_462

/** Excel's calendar has a 29 February 1900, which was no day. */
const FALSE_DAY = 60

const LAST_YEAR = 9_999

/**
 * A number of Excel as people read it, rounded to the millisecond: `2026-01-31T08:30:00`, a time of day alone as
 * `08:30:00`, and a duration as `36:00:00`. Undefined for a number that is not in Excel's calendar.
 */
export function writeSerial(serial: number, kind: DateKind, from1904: boolean): string | undefined {
  if (kind === undefined) return undefined
  const ms = Math.round(serial * MS_OF_DAY)
  if (!Number.isSafeInteger(ms)) return undefined
  if (kind === 'elapsed' || (kind === 'time' && serial < 0)) return writeDuration(ms)
  if (serial < 0) return undefined
  // Day 0 is no day: what has a time has only that.
  if (serial < 1 && (kind === 'time' || !from1904))
    return kind === 'day' ? undefined : writeDuration(ms % MS_OF_DAY)
  const date = new Date(findStart(ms, from1904) + ms)
  const year = date.getUTCFullYear()
  if (Number.isNaN(year) || year > LAST_YEAR || (!from1904 && Math.floor(ms / MS_OF_DAY) === FALSE_DAY))
    return undefined
  return date.toISOString().replace(/(?:\.000)?Z$/, '')
}

/** A date or a time of ISO 8601, as a workbook may have it, as a number of Excel; undefined for other texts. */
export function readIsoSerial(text: string, from1904: boolean): number | undefined {
  const time = /^T?(\d\d):(\d\d)(?::(\d\d(?:\.\d+)?))?$/.exec(text)
  if (time) return (Number(time[1]) * 60 + Number(time[2])) / 1_440 + Number(time[3] ?? 0) / 86_400
  if (!/^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?Z?$/.test(text)) return undefined
  const at = Date.parse(text.length === 10 || text.endsWith('Z') ? text : `${text}Z`)
  if (Number.isNaN(at)) return undefined
  const days = (at - findStart(FALSE_DAY * MS_OF_DAY, from1904)) / MS_OF_DAY
  return !from1904 && days < FALSE_DAY + 1 ? days - 1 : days
}

/** The first day of the calendar, in milliseconds since 1970, for a number of it. */
function findStart(ms: number, from1904: boolean): number {
  if (from1904) return Date.UTC(1904, 0, 1)
  return ms < FALSE_DAY * MS_OF_DAY ? Date.UTC(1899, 11, 31) : Date.UTC(1899, 11, 30)
}

function writeDuration(ms: number): string {
  const whole = Math.abs(ms)
  const pad = (number: number, length = 2) => String(Math.floor(number)).padStart(length, '0')
  const clock = `${pad(whole / 3_600_000)}:${pad((whole / 60_000) % 60)}:${pad((whole / 1_000) % 60)}`
  const rest = whole % 1_000
  return `${ms < 0 ? '-' : ''}${clock}${rest === 0 ? '' : `.${pad(rest, 3)}`}`
}
