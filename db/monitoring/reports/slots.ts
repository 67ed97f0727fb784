import { DateTime } from 'luxon'
import { type Cron, parseCron } from '../../../workflows/graph/cron.ts'

/** When a report is due: a cron expression that is valid, in an IANA time zone. */
export type SlotPlan = { schedule: string; timezone: string }

const MINUTE_MS = 60_000
const DAY_MS = 86_400_000

/** February 29 may be eight years away. */
const MOST_DAYS = 3_000

/** The longest period that a report is about. */
export const MOST_PERIOD_MS = 31 * DAY_MS

/** The first slot after a time; null if there is none within eight years. */
export function findNextSlot(plan: SlotPlan, after: Date): Date | null {
  for (const slot of walkSlots(plan, after, 1)) if (slot > after) return slot
  return null
}

/** The last slot before a time, but not more than 31 days before it; null if there is none. */
export function findSlotBefore(plan: SlotPlan, before: Date): Date | null {
  for (const slot of walkSlots(plan, before, -1, 33))
    if (slot < before) return before.getTime() - slot.getTime() > MOST_PERIOD_MS ? null : slot
  return null
}

/** The slots from `first` to `last`, the latest `most` of them, the earliest first. */
export function listSlots(plan: SlotPlan, first: Date, last: Date, most: number): Date[] {
  const days = Math.ceil((last.getTime() - first.getTime()) / DAY_MS) + 2
  const slots: Date[] = []
  for (const slot of walkSlots(plan, last, -1, days)) {
    if (slot < first || slots.length === most) break
    if (slot <= last) slots.unshift(slot)
  }
  return slots
}

/**
 * The slots of the days around a time and after it, or, backwards, before it. A time of day that a day has not, because
 * the clocks go forward, is later by as much; of one that a day has twice the first counts. A schedule for every hour
 * has a slot in each hour that there is.
 */
function* walkSlots(
  { schedule, timezone }: SlotPlan,
  around: Date,
  direction: 1 | -1,
  days = MOST_DAYS,
): Generator<Date> {
  const { cron } = parseCron(schedule)
  const { year, month, day } = DateTime.fromJSDate(around, { zone: timezone })
  for (let step = -1; step <= days; step++) {
    const date = new Date(Date.UTC(year, month - 1, day) + direction * step * DAY_MS)
    if (!isDay(cron, date)) continue
    const times = new Set(cron.hour.flatMap((hour) => listTimes(cron, date, hour, timezone)))
    for (const time of [...times].sort((a, b) => direction * (a - b))) yield new Date(time)
  }
}

function isDay(cron: Cron, date: Date): boolean {
  if (!cron.month.includes(date.getUTCMonth() + 1)) return false
  const isDayOfMonth = cron.dayOfMonth.includes(date.getUTCDate())
  const isDayOfWeek = cron.dayOfWeek.includes(date.getUTCDay())
  return cron.eitherDay ? isDayOfMonth || isDayOfWeek : isDayOfMonth && isDayOfWeek
}

function listTimes(cron: Cron, date: Date, hour: number, zone: string): number[] {
  const everyHour = cron.hour.length === 24
  const findTimes = (minute: number): number[] => {
    const wall = { year: date.getUTCFullYear(), month: date.getUTCMonth() + 1, day: date.getUTCDate() }
    const time = DateTime.fromObject({ ...wall, hour, minute }, { zone })
    if (time.hour !== hour || time.minute !== minute) return everyHour ? [] : [time.toMillis()]
    const all = time.getPossibleOffsets().map((one) => one.toMillis())
    return everyHour ? all : [Math.min(...all)]
  }
  // Where the clocks stay as they are between two minutes, the ones in between need no calendar: that takes long.
  const [first, last] = [cron.minute[0]!, cron.minute.at(-1)!]
  const [begin, ...twice] = findTimes(first)
  const [end, ...again] = findTimes(last)
  if (begin !== undefined && end === begin + (last - first) * MINUTE_MS && twice.length + again.length === 0)
    return cron.minute.map((minute) => begin + (minute - first) * MINUTE_MS)
  return cron.minute.flatMap(findTimes)
}
