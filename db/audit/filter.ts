import { sql } from 'kysely'

/** `from` is inclusive, `to` exclusive, by the time; `after` and `before` are exclusive, by the number. */
export type ViewFilter = {
  from?: Date | undefined
  to?: Date | undefined
  after?: number | undefined
  before?: number | undefined
  /** Only this many of the newest in the span. */
  newest?: number | undefined
  action?: string | undefined
  userId?: string | undefined
  resourceType?: string | undefined
  resourceId?: string | undefined
  outcome?: string | undefined
}

/** Numbers of entries, both inclusive. There are none if `low` is greater than `high`. */
export type ViewSpan = { low: number; high: number }

/** Entries of version 1 do not say who was behind a token. */
export const personBehind = sql<
  string | null
>`coalesce(user_id, case when actor_kind = 'USER' then actor_id end)`
