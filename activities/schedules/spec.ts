import type { CalendarSpec, IntervalSpec } from '@temporalio/client'
import type { Cron } from '../../workflows/cron/cron.ts'
import { countMonthDays, type DayRule, fitsDay } from '../../workflows/cron/days.ts'
import { type CronPlan, listInstants } from '../../workflows/cron/instants.ts'
import { type ClockChange, listClockChanges } from '../../workflows/cron/zones.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/**
 * The number of years after the year of registration for which the instants are exact; each year they are registered
 * anew.
 */
export const EXACT_YEARS = 10
/** Temporal makes up times beside the hours that change, too: at 01:30 for every second hour in Jerusalem, for example. */
const MARGIN_MS = 3 * HOUR_MS
/** The years that a calendar of Temporal may name. */
const FIRST_YEAR = 2000
const LAST_YEAR = 2100
/** An interval of 40 years is a single instant, for all that matters. */
const ONCE_MS = 40 * 365 * DAY_MS

/** What Temporal's ScheduleSpec has of ours. */
export type Spec = { calendars: CalendarSpec[]; intervals: IntervalSpec[]; timezone: string }

/** Hours of a day in which the clocks change, and which the calendars leave out. */
type Gap = { year: number; month: number; day: number; date: Date; hours: number[] }

/**
 * What makes Temporal fire at the instants of a plan. Its calendars have a rule of their own for civil times that come
 * twice or are skipped, so they leave out the hours in which the clocks change, from the year before `year` to ten years
 * after it, and what is due in these is listed, instant by instant.
 */
export function describeSpec(plan: CronPlan, year: number): Spec {
  const { cron, timezone } = plan
  const changes = listClockChanges(timezone, Date.UTC(year - 1), Date.UTC(year + EXACT_YEARS + 1))
  const shifted = changes.length > 0 ? shiftToUtc(cron, changes) : undefined
  if (shifted) return { calendars: listCalendars(shifted, []), intervals: [], timezone: 'UTC' }
  const gaps: Gap[] = []
  const instants = new Set<number>()
  for (const change of changes) {
    const own = findGaps(cron, change)
    gaps.push(...own)
    for (const at of own.length > 0 ? listChanged(plan, change, own) : []) instants.add(at)
  }
  const intervals = [...instants].map((at) => ({ every: ONCE_MS, offset: at % ONCE_MS }))
  return { calendars: listCalendars(cron, gaps), intervals, timezone }
}

/**
 * A cron of every hour of every day, in a zone whose clocks are always a whole number of hours apart, is the same in UTC
 * but for its minutes. Else its instants would be thousands.
 */
function shiftToUtc(cron: Cron, changes: ClockChange[]): Cron | undefined {
  const shifts = new Set(changes.flatMap(({ before, after }) => [mod(before, HOUR_MS), mod(after, HOUR_MS)]))
  const isOfEveryDay = cron.days.some(
    ({ dayOfMonth, dayOfWeek, length }) =>
      dayOfMonth.length === 31 && dayOfWeek.length === 7 && length === undefined,
  )
  if (shifts.size > 1 || !isOfEveryDay || cron.hour.length < 24 || cron.month.length < 12) return undefined
  if (cron.passes === 'first') return undefined
  const [shift] = shifts
  const minute = cron.minute.map((one) => mod(one - shift! / 60_000, 60)).sort((a, b) => a - b)
  return { ...cron, minute }
}

/** The hours around a change of the clocks in which something would be due. */
function findGaps(cron: Cron, { at, before, after }: ClockChange): Gap[] {
  const from = Math.floor((at + Math.min(before, after)) / HOUR_MS) * HOUR_MS - MARGIN_MS
  const byDay = new Map<number, number[]>()
  for (let hour = from; hour < at + Math.max(before, after) + MARGIN_MS; hour += HOUR_MS) {
    const day = Math.floor(hour / DAY_MS) * DAY_MS
    const date = new Date(day)
    const number = (hour - day) / HOUR_MS
    const isDue =
      cron.month.includes(date.getUTCMonth() + 1) && fitsDay(cron.days, date) && cron.hour.includes(number)
    if (isDue) byDay.set(day, [...(byDay.get(day) ?? []), number])
  }
  return [...byDay].map(([day, hours]) => {
    const date = new Date(day)
    return { year: date.getUTCFullYear(), month: date.getUTCMonth() + 1, day: date.getUTCDate(), date, hours }
  })
}

/** The instants in the hours that are left out, and at the first instant after a gap. */
function listChanged(plan: CronPlan, { at, before, after }: ClockChange, gaps: Gap[]): number[] {
  return listInstants(plan, at - DAY_MS, at + DAY_MS).filter((one) => {
    const civil = one + (one < at ? before : after)
    const hour = Math.floor(mod(civil, DAY_MS) / HOUR_MS)
    const day = civil - mod(civil, DAY_MS)
    return one === at || gaps.some(({ date, hours }) => date.getTime() === day && hours.includes(hour))
  })
}

/** Months with the years in which they count: all if they are not named. */
type Months = { months: number[]; years?: number[] }

function listCalendars(cron: Cron, gaps: Gap[]): CalendarSpec[] {
  return cron.days.flatMap((rule) =>
    listMonths(rule, cron.month).flatMap((months) => leaveOut(cron, rule, months, gaps)),
  )
}

/** The months that have as many days as a rule demands. */
function listMonths({ length }: DayRule, months: number[]): Months[] {
  if (length === undefined) return [{ months }]
  const years = listYears()
  const fitting = months.filter((month) => month !== 2 && countMonthDays(2001, month) === length)
  const february = months.includes(2) ? years.filter((year) => countMonthDays(year, 2) === length) : []
  return [
    ...(fitting.length > 0 ? [{ months: fitting }] : []),
    ...(february.length > 0 ? [{ months: [2], years: february }] : []),
  ]
}

function leaveOut(
  cron: Cron,
  rule: DayRule,
  { months, years = listYears() }: Months,
  gaps: Gap[],
): CalendarSpec[] {
  const own = gaps.filter(
    ({ year, month, date }) => months.includes(month) && years.includes(year) && fitsDay([rule], date),
  )
  const whole = months.filter((month) => own.every((gap) => gap.month !== month))
  const calendars = [writeCalendar(cron, rule, { months: whole, years })]
  for (const [month, ofMonth] of Map.groupBy(own, (gap) => gap.month)) {
    const byYear = Map.groupBy(ofMonth, ({ year }) => year)
    const rest = years.filter((year) => !byYear.has(year))
    calendars.push(writeCalendar(cron, rule, { months: [month], years: rest }))
    // Most zones change their clocks on one of seven days of a month.
    const alike = Map.groupBy(byYear, ([, all]) => JSON.stringify(all.map(({ day, hours }) => [day, hours])))
    for (const group of alike.values()) {
      const span = { months: [month], years: group.map(([year]) => year) }
      const [[, days]] = group as [[number, Gap[]]]
      const dayOfMonth = rule.dayOfMonth.filter((day) => !days.some((gap) => gap.day === day))
      calendars.push(writeCalendar(cron, { ...rule, dayOfMonth }, span))
      for (const { day, hours } of days) {
        const hour = cron.hour.filter((one) => !hours.includes(one))
        calendars.push(writeCalendar({ ...cron, hour }, { ...rule, dayOfMonth: [day] }, span))
      }
    }
  }
  return calendars.flatMap((calendar) => calendar ?? [])
}

const WEEK = ['SUNDAY', 'MONDAY', 'TUESDAY', 'WEDNESDAY', 'THURSDAY', 'FRIDAY', 'SATURDAY'] as const
const YEAR = [
  'JANUARY',
  'FEBRUARY',
  'MARCH',
  'APRIL',
  'MAY',
  'JUNE',
  'JULY',
  'AUGUST',
  'SEPTEMBER',
  'OCTOBER',
  'NOVEMBER',
  'DECEMBER',
] as const

/** Undefined if nothing is left of it. */
function writeCalendar(
  { minute, hour }: Cron,
  { dayOfMonth, dayOfWeek }: DayRule,
  { months, years }: Required<Months>,
): CalendarSpec | undefined {
  if ([hour, dayOfMonth, months, years].some((list) => list.length === 0)) return undefined
  return {
    minute: listRanges(minute),
    hour: listRanges(hour),
    dayOfMonth: listRanges(dayOfMonth),
    dayOfWeek: dayOfWeek.map((day) => WEEK[day]!),
    month: months.map((month) => YEAR[month - 1]!),
    ...(years.length === LAST_YEAR - FIRST_YEAR + 1 ? {} : { year: listRanges(years) }),
  }
}

function listYears(): number[] {
  return Array.from({ length: LAST_YEAR - FIRST_YEAR + 1 }, (_, at) => FIRST_YEAR + at)
}

/** Ascending numbers as ranges of those that follow each other. */
function listRanges(numbers: number[]): { start: number; end: number }[] {
  const ranges: { start: number; end: number }[] = []
  for (const one of numbers) {
    const last = ranges.at(-1)
    if (last && last.end === one - 1) last.end = one
    else ranges.push({ start: one, end: one })
  }
  return ranges
}

/** The remainder as mathematics has it: never negative. */
function mod(value: number, by: number): number {
  return ((value % by) + by) % by
}
