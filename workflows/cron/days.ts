/**
 * Days that fit: those of the month that are of the week, too (0 is Sunday). `length` restricts them to months of that
 * many days.
 */
export type DayRule = { dayOfMonth: number[]; dayOfWeek: number[]; length?: number }

/** One of the two day fields. `isOpen`: it begins with *, which counts as unrestricted in cron, even with a step. */
type DayField = { values: number[]; rules: DayRule[]; isOpen: boolean }

const ALL_DAYS = listFrom(1, 31)
const ALL_WEEK = listFrom(0, 6)
const WORK_WEEK = listFrom(1, 5)
const FRIDAY = 5
const MONDAY = 1
const LENGTHS = [28, 29, 30, 31]
const LONGEST = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

/** As in cron, a day that fits either field is enough if both are restricted, else it must fit both. */
export function combineDays(month: DayField, week: DayField): DayRule[] {
  const ofMonth = [...plain({ dayOfMonth: month.values, dayOfWeek: ALL_WEEK }), ...month.rules]
  const ofWeek = [...plain({ dayOfMonth: ALL_DAYS, dayOfWeek: week.values }), ...week.rules]
  if (!month.isOpen && !week.isOpen) return [...ofMonth, ...ofWeek]
  return ofMonth.flatMap((one) => ofWeek.flatMap((other) => intersect(one, other)))
}

function plain(rule: DayRule): DayRule[] {
  return rule.dayOfMonth.length > 0 && rule.dayOfWeek.length > 0 ? [rule] : []
}

function intersect(one: DayRule, other: DayRule): DayRule[] {
  if (one.length !== undefined && other.length !== undefined && one.length !== other.length) return []
  const length = one.length ?? other.length
  return plain({
    dayOfMonth: one.dayOfMonth.filter((day) => other.dayOfMonth.includes(day)),
    dayOfWeek: one.dayOfWeek.filter((day) => other.dayOfWeek.includes(day)),
    ...(length === undefined ? {} : { length }),
  })
}

/**
 * The rules of an item of a day field that is more than values: L (the last day), LW (the last from Monday to Friday),
 * 15W (the day from Monday to Friday of the same month that is nearest to the 15th), 5L (the last Friday), 1#2 (the
 * second Monday). Undefined for other items. `read` reads a value of the field.
 */
export function findDayRules(
  field: string,
  item: string,
  read: (text: string) => number | undefined,
): DayRule[] | undefined {
  if (field === 'dayOfMonth') {
    if (/^L$/i.test(item)) return LENGTHS.map((length) => ({ ...onDay(length, ALL_WEEK), length }))
    if (/^LW$/i.test(item)) return LENGTHS.flatMap((length) => listNearest(length, length))
    const day = read(/^(\d+)W$/i.exec(item)?.[1] ?? '')
    if (day === undefined) return undefined
    // Only at the end of a month its length matters. A month without the day is left out.
    if (day < LENGTHS[0]!) return listNearest(day)
    return LENGTHS.filter((length) => length >= day).flatMap((length) => listNearest(day, length))
  }
  if (field !== 'dayOfWeek') return undefined
  const [, named = '', nth = ''] = /^(\w+?)(?:L|#([1-5]))$/i.exec(item) ?? []
  const value = read(named)
  if (value === undefined) return undefined
  const dayOfWeek = [value % 7]
  if (nth === '')
    return LENGTHS.map((length) => ({ dayOfMonth: listFrom(length - 6, length), dayOfWeek, length }))
  const last = 7 * Number(nth)
  return [{ dayOfMonth: listFrom(last - 6, Math.min(31, last)), dayOfWeek }]
}

/** The day from Monday to Friday that is nearest to a day of the month, in the same month. */
function listNearest(day: number, length?: number): DayRule[] {
  const ifSaturday = day > 1 ? onDay(day - 1, [FRIDAY]) : onDay(3, [MONDAY])
  const ifSunday = day === length ? onDay(day - 2, [FRIDAY]) : onDay(day + 1, [MONDAY])
  return [onDay(day, WORK_WEEK), ifSaturday, ifSunday].map((rule) => ({
    ...rule,
    ...(length === undefined ? {} : { length }),
  }))
}

function onDay(day: number, dayOfWeek: number[]): DayRule {
  return { dayOfMonth: [day], dayOfWeek }
}

/** Whether a month (1 to 12) has a day that fits, at least in some year. */
export function isPossible({ dayOfMonth, length }: DayRule, month: number): boolean {
  const longest = LONGEST[month - 1]!
  if (length !== undefined && length !== longest && !(month === 2 && length === 28)) return false
  return dayOfMonth[0]! <= longest
}

/** Whether a date, as UTC midnight in epoch milliseconds, fits one of the rules. */
export function fitsDay(rules: readonly DayRule[], date: Date): boolean {
  const [day, weekday] = [date.getUTCDate(), date.getUTCDay()]
  return rules.some(
    ({ dayOfMonth, dayOfWeek, length }) =>
      dayOfMonth.includes(day) &&
      dayOfWeek.includes(weekday) &&
      (length === undefined || length === countMonthDays(date.getUTCFullYear(), date.getUTCMonth() + 1)),
  )
}

/** How many days a month (1 to 12) has. */
export function countMonthDays(year: number, month: number): number {
  return new Date(Date.UTC(year, month, 0)).getUTCDate()
}

function listFrom(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, at) => first + at)
}
