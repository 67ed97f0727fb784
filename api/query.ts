import * as v from 'valibot'
import { whole } from './accept.ts'

/** The query parameters of every paged list: `page` counts from 0, `size` is 1 to 100. */
export const paging = {
  page: v.optional(whole(0, 1_000_000), '0'),
  size: v.optional(whole(1, 100), '20'),
}

/** An ISO 8601 date or time in a query text, as a Date; UTC where it names no offset. */
export const instant = v.pipe(
  v.string('must be an ISO 8601 time'),
  v.check((text) => readInstant(text) !== undefined, 'must be an ISO 8601 time'),
  v.transform((text) => readInstant(text)!),
)

/** `from` inclusive, `to` exclusive. */
export const span = { from: v.optional(instant), to: v.optional(instant) }

/** Whether a span of time does not run backwards; for a check on the whole query. */
export function isForward({ from, to }: { from?: Date | undefined; to?: Date | undefined }): boolean {
  return !from || !to || from <= to
}

const SHAPE = /^(?!0000)(\d{4})-(\d\d)-(\d\d)(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?)?$/

function readInstant(given: string): Date | undefined {
  // An offset's plus sign that was not percent-encoded arrives as a space.
  const text = given.replace(' ', '+')
  const found = SHAPE.exec(text)
  if (!found) return undefined
  const [, year, month, day, time, , , offset] = found
  // Date takes the 30th of February for the 2nd of March.
  const midnight = new Date(`${year}-${month}-${day}T00:00:00Z`)
  if (Number.isNaN(midnight.getTime()) || midnight.getUTCDate() !== Number(day)) return undefined
  const date = new Date(time && !offset ? `${text}Z` : text)
  return Number.isNaN(date.getTime()) ? undefined : date
}
