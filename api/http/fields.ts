import * as v from 'valibot'
import { isObject } from '../../workflows/json.ts'

export const uuidField = v.pipe(
  v.string('must be a string'),
  documentAs<string>({ type: 'string', format: 'uuid' }),
  v.uuid('must be a UUID'),
  v.toLowerCase(),
)

/** Path parameters: one resource by its id. */
export const ById = v.object({ id: uuidField })

/** Path parameters: a team. */
export const InTeam = v.object({ teamId: uuidField })

/** A string of `min` to `max` characters that PostgreSQL and UTF-8 can hold. */
export function boundedString(max: number, min = 1) {
  return v.pipe(
    v.string('must be a string'),
    documentAs<string>({ type: 'string', minLength: min, maxLength: max, pattern: '^[^\\u0000]*$' }),
    v.check(
      (value) => !value.includes('\0') && value.isWellFormed(),
      'must not contain NUL or broken Unicode',
    ),
    v.minLength(min, min === 1 ? 'must not be empty' : `must have at least ${min} characters`),
    v.check(
      (value) => value.length <= max || countCharacters(value) <= max,
      `must have at most ${max} characters`,
    ),
  )
}

/** A string of 1 to `max` characters that is not blank. */
export function unblankString(max: number) {
  return v.pipe(
    boundedString(max),
    documentAs<string>({ type: 'string', maxLength: max, pattern: '^[^\\u0000]*\\S[^\\u0000]*$' }),
    v.check((text) => text === '' || text.trim() !== '', 'must not be empty'),
  )
}

/** The same, without the whitespace around it. */
export function trimmedString(max: number) {
  return v.pipe(unblankString(max), v.trim())
}

/** A whole number from `min` to `max`. `notNumber` is said of what is no number at all. */
export function boundedInteger(min: number, max: number, notNumber = 'must be a number') {
  return v.pipe(
    v.number(notNumber),
    v.integer('must be a whole number'),
    v.minValue(min, `must be at least ${min}`),
    v.maxValue(max, `must be at most ${max}`),
  )
}

/** Any JSON object. Valibot's `record` would drop the keys `constructor` and `prototype`. */
export const objectField = v.custom<Record<string, unknown>>(isObject, 'must be an object')

/** An ISO 8601 date or date-time, parsed to a Date. Without an offset it is UTC. */
export const instantField = v.pipe(
  v.string('must be an ISO 8601 time'),
  v.check((text) => readInstant(text) !== undefined, 'must be an ISO 8601 time'),
  v.transform((text) => readInstant(text)!),
)

/** Replaces the JSON Schema that the OpenAPI document would derive from the checks alone. */
export function documentAs<T>(schema: Record<string, unknown>) {
  return v.metadata<T, { documentAs: Record<string, unknown> }>({ documentAs: schema })
}

// JSON Schema and PostgreSQL count code points: an emoji is one character.
function countCharacters(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}

const INSTANT = /^(?!0000)(\d{4})-(\d\d)-(\d\d)(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?)?$/

function readInstant(given: string): Date | undefined {
  // In a query, a plus sign that was not percent-encoded arrives as a space.
  const text = given.replace(' ', '+')
  const found = INSTANT.exec(text)
  if (!found) return undefined
  const [, year, month, day, time, , , offset] = found
  // Date would parse February 30 as March 2.
  const midnight = new Date(`${year}-${month}-${day}T00:00:00Z`)
  if (Number.isNaN(midnight.getTime()) || midnight.getUTCDate() !== Number(day)) return undefined
  const date = new Date(time && !offset ? `${text}Z` : text)
  return Number.isNaN(date.getTime()) ? undefined : date
}
