import { expect, test } from 'vitest'
import { parseCron } from '../../../workflows/cron/cron.ts'
import { listInstants, walkInstants } from '../../../workflows/cron/instants.ts'
import { findOffset, listClockChanges } from '../../../workflows/cron/zones.ts'

const planOf = (text: string, timezone: string) => ({ cron: parseCron(text).cron, timezone })

/** When a plan is due in a span of UTC, as hours and minutes. */
function list(text: string, zone: string, from: string, to: string): string {
  const found = listInstants(planOf(text, zone), Date.parse(`${from}Z`), Date.parse(`${to}Z`))
  return found.map((at) => new Date(at).toISOString().slice(11, 16)).join(' ')
}

test('a fixed time that the clocks show twice is due at its first instant', () => {
  expect(list('30 1 7 11 *', 'America/New_York', '2027-11-07T00:00', '2027-11-08T12:00')).toBe('05:30')
  expect(list('30 2 * * *', 'Europe/Berlin', '2027-10-31T00:00', '2027-10-31T12:00')).toBe('00:30')
  // Lord Howe goes back by half an hour, at 02:00 to 01:30.
  expect(list('15,45 1 * * *', 'Australia/Lord_Howe', '2027-04-03T12:00', '2027-04-03T18:00')).toBe(
    '14:15 14:45',
  )
})

test('fixed times that the clocks skip are due once, at the first instant after the gap', () => {
  expect(list('0,15,30 2 * * *', 'Europe/Berlin', '2027-03-28T00:00', '2027-03-28T12:00')).toBe('01:00')
  expect(list('30 2 * * *', 'Australia/Lord_Howe', '2026-10-03T12:00', '2026-10-03T18:00')).toBe('15:30')
  // Cairo has no midnight on 2027-04-30: clocks go from 00:00 to 01:00.
  expect(list('0 0 * * *', 'Africa/Cairo', '2027-04-29T12:00', '2027-04-30T12:00')).toBe('22:00')
  // What is due then anyway is due once.
  expect(list('30 2 * * *', 'Europe/Berlin', '2027-03-28T00:00', '2027-03-28T01:01')).toBe('01:00')
  expect(list('0,30 2,3 * * *', 'Europe/Berlin', '2027-03-28T00:00', '2027-03-28T12:00')).toBe('01:00 01:30')
})

test('where the minute or the hour begins with *, every instant that fits is due, and no other', () => {
  expect(list('*/15 2 31 10 *', 'Europe/Berlin', '2027-10-31T00:00', '2027-10-31T12:00')).toBe(
    '00:00 00:15 00:30 00:45 01:00 01:15 01:30 01:45',
  )
  expect(list('*/15 2 * * *', 'Europe/Berlin', '2027-03-28T00:00', '2027-03-28T12:00')).toBe('')
  expect(list('30 * * * *', 'America/New_York', '2027-11-07T04:00', '2027-11-07T08:00')).toBe(
    '04:30 05:30 06:30 07:30',
  )
})

test('a time every quarter of an hour is so in all zones, whatever the clocks do', () => {
  for (const zone of [
    'America/New_York',
    'Europe/Berlin',
    'Australia/Lord_Howe',
    'Antarctica/Troll',
    'Asia/Gaza',
  ]) {
    for (const { at } of listClockChanges(zone, Date.UTC(2026, 0), Date.UTC(2030, 0))) {
      const found = listInstants(planOf('*/15 * * * *', zone), at - 7_200_000, at + 7_200_000)
      expect(found.map((one) => (one - found[0]!) / 900_000)).toEqual(Array.from({ length: 16 }, (_, i) => i))
    }
  }
})

test('the changes of a zone are found to the millisecond', () => {
  expect(listClockChanges('Europe/Berlin', Date.UTC(2027, 0), Date.UTC(2028, 0))).toEqual([
    { at: Date.UTC(2027, 2, 28, 1), before: 3_600_000, after: 7_200_000 },
    { at: Date.UTC(2027, 9, 31, 1), before: 7_200_000, after: 3_600_000 },
  ])
  expect(listClockChanges('Asia/Kolkata', Date.UTC(2000, 0), Date.UTC(2040, 0))).toEqual([])
  expect(findOffset('America/St_Johns', Date.UTC(2027, 0))).toBe(-12_600_000)
})

test('instants are found a long way off, in both directions', () => {
  const plan = planOf('0 0 29 2 *', 'UTC')
  expect(walkInstants(plan, Date.UTC(2096, 2, 1)).next().value).toBe(Date.UTC(2104, 1, 29))
  expect(walkInstants(plan, Date.UTC(2096, 1, 29), true).next().value).toBe(Date.UTC(2092, 1, 29))
  expect(walkInstants(plan, Date.UTC(2096, 1, 29)).next().value).toBe(Date.UTC(2096, 1, 29))
})
