import type { Cron } from './cron.ts'
import { fitsDay } from './days.ts'
import { findOffset, listClockChanges } from './zones.ts'

/** A cron expression that is valid, in an IANA time zone. */
export type CronPlan = { cron: Cron; timezone: string }

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** Some days come again only after 40 years, such as a Monday that is February 29 in one of few years. */
const MOST_DAYS = 40 * 366

/** A time in which the clocks stay as they are. `before` is the offset until its start, if they change there. */
type Stretch = { start: number; end: number; offset: number; before?: number }

/**
 * The instants from `from` (inclusive) to `to` (exclusive), in epoch milliseconds, at which a plan is due. The rule is
 * that of Debian's cron. If the minute or the hour begins with *, every instant is whose civil time fits. Else a civil
 * time that the clocks show twice is due at its first instant, and those that they skip are due once, at the first
 * instant after the gap. Lists all of them: keep the span short.
 */
export function listInstants({ cron, timezone }: CronPlan, from: number, to: number): number[] {
  const found: number[] = []
  const add = (at: number) => {
    if (at >= from && at < to && found.at(-1) !== at) found.push(at)
  }
  const isFirst = cron.passes === 'first'
  // A time that the clocks show twice was shown for the first time less than a day before.
  for (const { start, end, offset, before } of listStretches(timezone, from - DAY_MS, to)) {
    if (isFirst && before !== undefined && hasMatch(cron, start + before, start + offset)) add(start)
    const shown = isFirst && before !== undefined ? start + Math.max(before, offset) : start + offset
    for (const civil of listMatches(cron, Math.max(shown, from + offset), end + offset)) add(civil - offset)
  }
  return found
}

/** The instants at or after `from`, or with `backwards` those before it, from the nearest on, for at most 40 years. */
export function* walkInstants(
  plan: CronPlan,
  from: number,
  backwards = false,
): Generator<number, void, undefined> {
  const step = backwards ? -DAY_MS : DAY_MS
  const today = Math.floor(from / DAY_MS) * DAY_MS
  for (let day = today, days = 0; days < MOST_DAYS; day += step, days++) {
    if (!isNearDay(plan.cron, day)) continue
    if (!backwards) yield* listInstants(plan, Math.max(day, from), day + DAY_MS)
    else yield* listInstants(plan, day, Math.min(day + DAY_MS, from)).reverse()
  }
}

/** Whether a day that fits is, somewhere on earth, within this day of UTC. */
function isNearDay(cron: Cron, day: number): boolean {
  return [day - DAY_MS, day, day + DAY_MS].some((one) => isDay(cron, one))
}

function isDay(cron: Cron, day: number): boolean {
  const date = new Date(day)
  return cron.month.includes(date.getUTCMonth() + 1) && fitsDay(cron.days, date)
}

function listStretches(timezone: string, from: number, to: number): Stretch[] {
  const changes = listClockChanges(timezone, from, to)
  const first = changes[0]?.before ?? findOffset(timezone, from)
  const starts = [{ at: from, after: first, before: undefined }, ...changes]
  return starts.map(({ at, after, before }, i) => ({
    start: at,
    end: starts[i + 1]?.at ?? to,
    offset: after,
    ...(before === undefined ? {} : { before }),
  }))
}

/** The civil times from `from` to `to`, as if they were in UTC, that fit. */
function* listMatches(cron: Cron, from: number, to: number): Generator<number, void, undefined> {
  for (let day = Math.floor(from / DAY_MS) * DAY_MS; day < to; day += DAY_MS) {
    if (!isDay(cron, day)) continue
    for (const hour of cron.hour) {
      const start = day + hour * HOUR_MS
      if (start + HOUR_MS <= from || start >= to) continue
      for (const minute of cron.minute) {
        const time = start + minute * MINUTE_MS
        if (time >= from && time < to) yield time
      }
    }
  }
}

function hasMatch(cron: Cron, from: number, to: number): boolean {
  return !listMatches(cron, from, to).next().done
}
