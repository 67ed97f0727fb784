import { expect, test } from 'vitest'
import { type Cron, findTimezone, parseCron } from '../../../workflows/graph/cron.ts'

const fieldsOf = (text: string): Omit<Cron, 'eitherDay'> & { eitherDay?: boolean } => parseCron(text).cron

test('numbers, lists, ranges, steps and names become values; 0 and 7 are both Sunday', () => {
  expect(fieldsOf('*/20 0-6/3 1,15,31 jan,MAR-apr 5-7')).toEqual({
    minute: [0, 20, 40],
    hour: [0, 3, 6],
    dayOfMonth: [1, 15, 31],
    month: [1, 3, 4],
    dayOfWeek: [0, 5, 6],
    eitherDay: true,
  })
  expect(fieldsOf('  0\t0 * *  Mon-FRI,0 ')).toMatchObject({
    dayOfWeek: [0, 1, 2, 3, 4, 5],
    eitherDay: false,
  })
  expect(fieldsOf('5 4 */10 2 7')).toMatchObject({
    dayOfMonth: [1, 11, 21, 31],
    dayOfWeek: [0],
    eitherDay: false,
  })
  expect(fieldsOf('* * * * *').dayOfWeek).toEqual([0, 1, 2, 3, 4, 5, 6])
  expect(parseCron('0 0 29 2 *').problems).toEqual([])
  expect(parseCron('0 0 31 2 1').problems).toEqual([])
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
  ['* * L * *', 'day of month: "L" is not a number from 1 to 31'],
  ['* * ? * *', 'day of month: "?" is not a number from 1 to 31'],
  ['* * * 0 *', /^month: "0" is not a number from 1 to 12 or one of JAN/],
  ['* * * * MON#2', /^day of week: "MON#2" is not a number from 0 to 7 or one of SUN/],
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
