import * as v from 'valibot'
import { documentAs, instantField } from './fields.ts'

/** The query parameters of every paged list: `page` counts from 0, `size` is 1 to 100 (default 20). */
export const paging = {
  page: v.optional(queryInteger(0, 1_000_000), '0'),
  size: v.optional(queryInteger(1, 100), '20'),
}

/** The query parameters of a time range: `from` is inclusive, `to` is exclusive. */
export const timeRange = { from: v.optional(instantField), to: v.optional(instantField) }

/** Checks that an object's `from` is not after its `to`. The problem is reported at `from`. */
export function checkTimeRange<T extends { from?: Date | undefined; to?: Date | undefined }>() {
  const isForward = ({ from, to }: T) => !from || !to || from <= to
  return v.forward(v.check<T, string>(isForward, 'must not be after to'), ['from'] as never)
}

/** A whole number from `min` to `max`, both inclusive, in a query or a path. */
export function queryInteger(min: number, max: number) {
  return v.pipe(
    v.string('must be a whole number'),
    documentAs<string>({ type: 'integer', minimum: min, maximum: max }),
    v.regex(/^-?\d{1,15}$/, 'must be a whole number'),
    v.transform(Number),
    v.minValue(min, `must be at least ${min}`),
    v.maxValue(max, `must be at most ${max}`),
  )
}

/** Whether something is deleted although it is used, in a query: `description` says what that means. */
export function forceField(description: string) {
  return v.pipe(
    v.optional(
      v.pipe(
        v.picklist(['true', 'false'], 'must be true or false'),
        v.transform((text) => text === 'true'),
      ),
    ),
    v.description(description),
  )
}
