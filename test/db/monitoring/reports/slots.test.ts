import { expect, test } from 'vitest'
import { findNextSlot, findSlotBefore, listSlots } from '../../../../db/monitoring/reports/slots.ts'

const at = (text: string) => new Date(text)

/** The slots that follow a time, one after the other. */
function follow(schedule: string, timezone: string, from: string, count: number): string[] {
  const slots: string[] = []
  for (let slot = findNextSlot({ schedule, timezone }, at(from)); slot && slots.length < count; ) {
    slots.push(slot.toISOString().replace(':00.000Z', ''))
    slot = findNextSlot({ schedule, timezone }, slot)
  }
  return slots
}

test('a slot is the next time that all fields allow, in the time zone', () => {
  expect(follow('30 7 * * MON', 'UTC', '2026-11-23T07:30:00Z', 2)).toEqual([
    '2026-11-30T07:30',
    '2026-12-07T07:30',
  ])
  expect(follow('0 0 1 * *', 'Asia/Kolkata', '2026-01-01T00:00:00Z', 2)).toEqual([
    '2026-01-31T18:30',
    '2026-02-28T18:30',
  ])
  expect(follow('15 * * * *', 'UTC', '2026-12-31T22:59:00Z', 3)).toEqual([
    '2026-12-31T23:15',
    '2027-01-01T00:15',
    '2027-01-01T01:15',
  ])
  // Both day fields: either is enough.
  expect(follow('0 9 1 * FRI', 'UTC', '2026-04-28T00:00:00Z', 3)).toEqual([
    '2026-05-01T09:00',
    '2026-05-08T09:00',
    '2026-05-15T09:00',
  ])
  expect(follow('0 0 29 2 *', 'UTC', '2096-03-01T00:00:00Z', 1)).toEqual(['2104-02-29T00:00'])
  // The zone's date is another one than that of UTC.
  expect(follow('0 1 * * *', 'Pacific/Kiritimati', '2026-06-01T10:59:00Z', 2)).toEqual([
    '2026-06-01T11:00',
    '2026-06-02T11:00',
  ])
})

test('a time that a day does not have is due after the gap, and one that it has twice comes once', () => {
  // In Berlin, 2026-03-29 has no 02:30, and 2026-10-25 has two.
  expect(follow('30 2 * * *', 'Europe/Berlin', '2026-03-28T00:00:00Z', 3)).toEqual([
    '2026-03-28T01:30',
    '2026-03-29T01:00',
    '2026-03-30T00:30',
  ])
  expect(follow('30 2 * * *', 'Europe/Berlin', '2026-10-24T00:00:00Z', 3)).toEqual([
    '2026-10-24T00:30',
    '2026-10-25T00:30',
    '2026-10-26T01:30',
  ])
  expect(follow('30 2,3 * * *', 'Europe/Berlin', '2026-03-29T00:00:00Z', 2)).toEqual([
    '2026-03-29T01:00',
    '2026-03-29T01:30',
  ])
})

test('a slot in every hour is in each hour that there is', () => {
  expect(follow('0 * * * *', 'Europe/Berlin', '2026-10-24T23:30:00Z', 4)).toEqual([
    '2026-10-25T00:00',
    '2026-10-25T01:00',
    '2026-10-25T02:00',
    '2026-10-25T03:00',
  ])
  expect(follow('0 * * * *', 'Europe/Berlin', '2026-03-28T23:30:00Z', 3)).toEqual([
    '2026-03-29T00:00',
    '2026-03-29T01:00',
    '2026-03-29T02:00',
  ])
})

test('slots in several minutes of an hour are each a slot, also when the clocks change', () => {
  expect(follow('*/20 * * * *', 'Europe/Berlin', '2026-10-24T23:40:00Z', 7)).toEqual([
    ...['2026-10-25T00:00', '2026-10-25T00:20', '2026-10-25T00:40', '2026-10-25T01:00'],
    ...['2026-10-25T01:20', '2026-10-25T01:40', '2026-10-25T02:00'],
  ])
  expect(follow('*/30 2 * * *', 'Europe/Berlin', '2026-10-24T23:00:00Z', 5)).toEqual([
    ...['2026-10-25T00:00', '2026-10-25T00:30', '2026-10-25T01:00', '2026-10-25T01:30', '2026-10-26T01:00'],
  ])
  expect(follow('*/30 1,2 * * *', 'Europe/Berlin', '2026-03-29T00:00:00Z', 4)).toEqual([
    ...['2026-03-29T00:30', '2026-03-29T23:00', '2026-03-29T23:30', '2026-03-30T00:00'],
  ])
  // Lord Howe's clocks go forward by half an hour, from 02:00 to 02:30.
  expect(follow('*/15 * * * *', 'Australia/Lord_Howe', '2026-10-03T15:15:00Z', 3)).toEqual([
    ...['2026-10-03T15:30', '2026-10-03T15:45', '2026-10-03T16:00'],
  ])
  expect(follow('0,45 2 * * *', 'Australia/Lord_Howe', '2026-10-03T15:00:00Z', 2)).toEqual([
    ...['2026-10-03T15:30', '2026-10-03T15:45'],
  ])
})

test('the slot before is looked for in the last 31 days', () => {
  const daily = { schedule: '0 7 * * *', timezone: 'UTC' }
  expect(findSlotBefore(daily, at('2026-11-23T07:00:00Z'))).toEqual(at('2026-11-22T07:00:00Z'))
  expect(findSlotBefore(daily, at('2026-11-23T07:00:00.001Z'))).toEqual(at('2026-11-23T07:00:00Z'))
  const monthly = { schedule: '0 0 1 * *', timezone: 'America/New_York' }
  expect(findSlotBefore(monthly, at('2026-08-01T04:00:00Z'))).toEqual(at('2026-07-01T04:00:00Z'))
  expect(findSlotBefore({ schedule: '0 0 1 1 *', timezone: 'UTC' }, at('2026-08-01T00:00:00Z'))).toBeNull()
})

test('of the slots of a time the latest are listed', () => {
  const hourly = { schedule: '5 * * * *', timezone: 'UTC' }
  const listed = listSlots(hourly, at('2026-01-01T00:05:00Z'), at('2026-11-01T12:05:00Z'), 3)
  expect(listed).toEqual([at('2026-11-01T10:05:00Z'), at('2026-11-01T11:05:00Z'), at('2026-11-01T12:05:00Z')])
  expect(listSlots(hourly, at('2026-01-01T00:05:00Z'), at('2026-01-01T01:04:00Z'), 50)).toEqual([
    at('2026-01-01T00:05:00Z'),
  ])
})
