import * as v from 'valibot'
import type { UsageQuery } from '../../db/monitoring/usage/totals.ts'
import { uuidField } from '../http/fields.ts'
import { checkTimeRange, timeRange } from '../http/query.ts'
import { timeSchema } from '../http/responses.ts'

const DEFAULT_DAYS = 30
const MOST_DAYS = 3_660
const DAY_MS = 86_400_000

/** Since when calls count by default. */
const findStart = () => new Date(Date.now() - DEFAULT_DAYS * DAY_MS)

export type AskedSpan = { from?: Date | undefined; to?: Date | undefined; workflowId?: string | undefined }

export const checkDefaultStart = <T extends AskedSpan>() =>
  v.forward(
    v.check<T, string>(
      ({ from, to }) => from !== undefined || to === undefined || to >= findStart(),
      `must not be more than ${DEFAULT_DAYS} days ago without from`,
    ),
    ['to'] as never,
  )

export const checkDefaultEnd = <T extends AskedSpan>() =>
  v.forward(
    v.check<T, string>(
      ({ from, to }) => from === undefined || to !== undefined || from.getTime() <= Date.now(),
      'must not be in the future without to',
    ),
    ['from'] as never,
  )

export const checkLength = <T extends AskedSpan>() =>
  v.forward(
    v.check<T, string>(
      ({ from = findStart(), to = new Date() }) => to.getTime() - from.getTime() <= MOST_DAYS * DAY_MS,
      `must be at most ${MOST_DAYS} days before to`,
    ),
    ['from'] as never,
  )

/** The query parameters of what tells of calls to models. */
export const usageSpan = {
  from: v.pipe(
    timeRange.from,
    v.description(`Inclusive, by when calls began. ${DEFAULT_DAYS} days ago by default`),
  ),
  to: v.pipe(timeRange.to, v.description('Exclusive. Now by default')),
  workflowId: v.pipe(
    v.optional(uuidField),
    v.description('Only the calls of this workflow, also of one that is deleted'),
  ),
}

/** A span of calls that may be as long as one likes. */
export const UsageSpan = v.pipe(v.object(usageSpan), checkTimeRange(), checkDefaultStart(), checkDefaultEnd())

/** How an answer names the span. */
export const periodSchema = v.object({ from: timeSchema, to: timeSchema })

/** The span that a request asks for, and how its answer names it. */
export function readSpan({ from = findStart(), to, workflowId }: AskedSpan): {
  query: UsageQuery
  period: { from: Date; to: Date }
} {
  return { query: { from, to, workflowId }, period: { from, to: to ?? new Date() } }
}
