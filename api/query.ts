import * as v from 'valibot'
import { whole } from './accept.ts'

/** The query parameters of every paged list: `page` counts from 0, `size` is 1 to 100. */
export const paging = {
  page: v.optional(whole(0, 1_000_000), '0'),
  size: v.optional(whole(1, 100), '20'),
}

const SHAPE = /^(?!0000)\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?)?$/

/** An ISO 8601 date or time in a query text, UTC where it names no offset, as a Date. */
export const instant = v.pipe(
  v.string('must be an ISO 8601 time'),
  // An offset's plus sign that was not percent-encoded arrives as a space.
  v.transform((text) => text.replace(' ', '+')),
  v.regex(SHAPE, 'must be an ISO 8601 time'),
  v.check(isOnCalendar, 'must be a day of the calendar'),
  v.transform(
    (text) => new Date(/T.*(Z|[+-]\d\d:?\d\d)$/.test(text) || !text.includes('T') ? text : `${text}Z`),
  ),
  v.check((date) => !Number.isNaN(date.getTime()), 'must be an ISO 8601 time'),
)

/** `from` inclusive, `to` exclusive. */
export const span = { from: v.optional(instant), to: v.optional(instant) }

/** Whether a span of time does not run backwards; for a check on the whole query. */
export function isForward({ from, to }: { from?: Date | undefined; to?: Date | undefined }): boolean {
  return !from || !to || from <= to
}

// Date takes the 30th of February for the 2nd of March.
function isOnCalendar(text: string): boolean {
  const [year, month, day] = text.slice(0, 10).split('-').map(Number)
  return month! >= 1 && month! <= 12 && day! >= 1 && day! <= new Date(Date.UTC(year!, month!, 0)).getUTCDate()
}
