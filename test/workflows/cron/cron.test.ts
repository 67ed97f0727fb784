import { expect, test } from 'vitest'
import { parseCron } from '../../../workflows/cron/cron.ts'
import { listInstants } from '../../../workflows/cron/instants.ts'
import { findTimezone } from '../../../workflows/cron/zones.ts'

const week = [0, 1, 2, 3, 4, 5, 6]
const month = Array.from({ length: 31 }, (_, at) => at + 1)

test('numbers, lists, ranges, steps and names become values; 0 and 7 are both Sunday', () => {
  expect(parseCron('*/20 0-6/3 1,15,31 jan,MAR-apr 5-7').cron).toEqual({
    minute: [0, 20, 40],
    hour: [0, 3, 6],
    month: [1, 3, 4],
    days: [
      { dayOfMonth: [1, 15, 31], dayOfWeek: week },
      { dayOfMonth: month, dayOfWeek: [0, 5, 6] },
    ],
    passes: 'every',
  })
  expect(parseCron('  0\t0 * *  Mon-FRI,0 ').cron).toMatchObject({
    days: [{ dayOfMonth: month, dayOfWeek: [0, 1, 2, 3, 4, 5] }],
    passes: 'first',
  })
  expect(parseCron('5 4 */10 2 7').cron.days).toEqual([{ dayOfMonth: [1, 11, 21, 31], dayOfWeek: [0] }])
  expect(parseCron('* * * * *').cron.days).toEqual([{ dayOfMonth: month, dayOfWeek: week }])
  expect(parseCron('0 0 29 2 *').problems).toEqual([])
  expect(parseCron('0 0 31 2 1').problems).toEqual([])
})

/** The days of a year, as month-day, on which a cron expression is due. */
function listDays(text: string, year: number): string[] {
  const { cron, problems } = parseCron(text)
  expect(problems).toEqual([])
  const plan = { cron, timezone: 'UTC' }
  return listInstants(plan, Date.UTC(year), Date.UTC(year + 1)).map((at) =>
    new Date(at).toISOString().slice(5, 10),
  )
}

test.each([
  ['0 0 L * *', 2028, '01-31 02-29 03-31 04-30 05-31 06-30 07-31 08-31 09-30 10-31 11-30 12-31'],
  ['0 0 L 2 *', 2027, '02-28'],
  ['0 0 1,15,l 2 *', 2027, '02-01 02-15 02-28'],
  // In 2027 the last days of January, February, May and October are a Sunday, of July a Saturday.
  ['0 0 LW * *', 2027, '01-29 02-26 03-31 04-30 05-31 06-30 07-30 08-31 09-30 10-29 11-30 12-31'],
  ['0 0 15W 1-8 *', 2027, '01-15 02-15 03-15 04-15 05-14 06-15 07-15 08-16'],
  // 2027-05-01 is a Saturday, 2027-08-01 a Sunday: the day stays in its month.
  ['0 0 1w 5,8 *', 2027, '05-03 08-02'],
  // 2027-01-31 is a Sunday; only months of 31 days have it.
  ['0 0 31W 1-4 *', 2027, '01-29 03-31'],
  ['0 0 30W 2,5 *', 2027, '05-31'],
  ['0 0 28W 2 *', 2027, '02-26'],
  ['0 0 * 1-3 5L', 2027, '01-29 02-26 03-26'],
  ['0 0 * 1-3 friL', 2028, '01-28 02-25 03-31'],
  ['0 0 * 1-3 7L', 2027, '01-31 02-28 03-28'],
  ['0 0 * 1-3 MON#2', 2027, '01-11 02-08 03-08'],
  ['0 0 * 1-5 1#5', 2027, '03-29 05-31'],
  ['0 0 * 1 1#1,5L,3', 2027, '01-04 01-06 01-13 01-20 01-27 01-29'],
  // Both day fields restricted: either is enough.
  ['0 0 L 1 1#1', 2027, '01-04 01-31'],
  // A day of the month that begins with * must fit, too.
  ['0 0 */2 1 1#2,1#3', 2027, '01-11'],
])('"%s" in %i is due on %s', (text, year, days) => {
  expect(listDays(text, year).join(' ')).toBe(days)
})

test.each([
  ['', 'must have five fields: minute, hour, day of month, month, day of week; it has 0'],
  ['* * * *', 'must have five fields: minute, hour, day of month, month, day of week; it has 4'],
  ['0 * * * * *', 'must have five fields: minute, hour, day of month, month, day of week; it has 6'],
  ['@daily', /; macros such as @daily are not supported$/],
  ['@every 1m x y z', /; macros such as @daily are not supported$/],
  ['CRON_TZ=UTC 0 0 * * *', /; it has 6$/],
  ['-1 * * * *', 'minute: "-1" is not a value, range (1-5) or step (*/2, 1-5/2)'],
  ['1, * * * *', 'minute: "" is not a value, range (1-5) or step (*/2, 1-5/2)'],
  ['1.5 * * * *', 'minute: "1.5" is not a number from 0 to 59'],
  ['5/15 * * * *', 'minute: the step "5/15" needs a range, such as 5-59/15'],
  ['*/0 * * * *', 'minute: the step "0" is not a number from 1 to 59'],
  ['*/60 * * * *', 'minute: the step "60" is not a number from 1 to 59'],
  ['*-5 * * * *', 'minute: "*-5" is not a value, range (1-5) or step (*/2, 1-5/2)'],
  ['* 5-3 * * *', 'hour: the range "5-3" runs backwards'],
  ['* 24 * * *', 'hour: "24" is not a number from 0 to 23'],
  ['* * L-3 * *', 'day of month: "L-3" is none of a number from 1 to 31, L, LW and 15W'],
  ['* * 32W * *', 'day of month: "32W" is none of a number from 1 to 31, L, LW and 15W'],
  ['* * 1-5W * *', 'day of month: "1-5W" is none of a number from 1 to 31, L, LW and 15W'],
  ['0 0 30W 2 *', 'names a day that never comes'],
  ['L * * * *', 'minute: "L" is not a number from 0 to 59'],
  ['* * * * L', 'day of week: "L" is none of a number from 0 to 7, MON, FRIL and MON#2'],
  ['* * ? * *', 'day of month: "?" is none of a number from 1 to 31, L, LW and 15W'],
  ['* * * 0 *', /^month: "0" is not a number from 1 to 12 or one of JAN/],
  ['* * * * MON#6', 'day of week: "MON#6" is none of a number from 0 to 7, MON, FRIL and MON#2'],
  [`${'1 '.repeat(200)}`, 'must have at most 300 characters'],
  ['0 0 31 2,4,6,9,11 *', 'names a day that never comes'],
])('"%s" is refused', (text, message) => {
  const [problem, ...more] = parseCron(text).problems
  if (typeof message === 'string') expect(problem).toBe(message)
  else expect(problem).toMatch(message)
  expect(more).toEqual([])
})

test('a time zone is found by any of its names, in upper or lower case; offsets are no time zones', () => {
  expect(['europe/berlin', 'utc', 'US/Pacific', 'Etc/GMT+5'].map(findTimezone)).toEqual([
    'Europe/Berlin',
    'UTC',
    'America/Los_Angeles',
    'Etc/GMT+5',
  ])
  expect(['', '+01:00', 'Mars/Phobos', 'Local'].map(findTimezone)).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ])
})
