import { expect, test } from 'vitest'
import { createCalendar } from '../../support/connectors/calendar.ts'
import { type Asked, type Reply, useVendors } from '../../support/connectors/vendor.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'

const host = await keep(shareRunning())
const start = useVendors(host)

async function startCalendar(
  events: Parameters<typeof createCalendar>[0] = [],
  change: (asked: Asked, answer: () => Reply) => Reply = (_, answer) => answer(),
) {
  const calendar = createCalendar(events)
  const vendor = await start((asked) => change(asked, () => calendar.answer(asked)))
  const act = (action: string, input: object, more: Record<string, unknown> = {}) =>
    vendor.act({ connector: 'google-calendar', action, input, ...more })
  return { ...calendar, vendor, act }
}

/** Loses the answer to the first request with this method, which is done. */
function losing(method: string) {
  let lost = false
  return (asked: Asked, answer: () => Reply): Reply => {
    const reply = answer()
    if (lost || asked.method !== method) return reply
    lost = true
    return 'cut'
  }
}

const MEETING = { start: '2026-01-31T09:00:00Z', end: '2026-01-31T10:00:00Z' }

test('an event is made with all that it says', async () => {
  const { act, vendor, events } = await startCalendar()
  const { output } = await act('createEvent', {
    ...{ calendar: 'a team@group.calendar.google.com', ...MEETING, timeZone: 'Europe/Berlin' },
    ...{ summary: 'Plan', attendees: ['a@x.test'], color: '3', showAs: 'transparent', sendUpdates: 'all' },
    ...{ conference: 'hangoutsMeet', recurrence: ['RRULE:FREQ=DAILY;COUNT=2'], guestsCanModify: false },
    reminders: { useDefault: false, overrides: [] },
    more: { source: { url: 'https://x.test/' } },
  })
  const [{ path, query, json }] = vendor.asked as [Asked]
  expect(path).toBe('/calendar/v3/calendars/a%20team%40group.calendar.google.com/events')
  expect(Object.fromEntries(query)).toEqual({ sendUpdates: 'all', conferenceDataVersion: '1' })
  const { id } = json as { id: string }
  expect(json).toEqual({
    id: expect.stringMatching(/^[0-9a-f]{32}$/),
    ...{ summary: 'Plan', attendees: [{ email: 'a@x.test' }], colorId: '3', transparency: 'transparent' },
    start: { dateTime: MEETING.start, timeZone: 'Europe/Berlin' },
    end: { dateTime: MEETING.end, timeZone: 'Europe/Berlin' },
    conferenceData: { createRequest: { requestId: id, conferenceSolutionKey: { type: 'hangoutsMeet' } } },
    ...{ recurrence: ['RRULE:FREQ=DAILY;COUNT=2'], guestsCanModify: false },
    reminders: { useDefault: false, overrides: [] },
    source: { url: 'https://x.test/' },
  })
  expect(output).toEqual({ ...events.get(id) })
})

test('days are days, and items get an event each', async () => {
  const { vendor, events } = await startCalendar()
  const graph = vendor.graph(
    {
      ...{ connector: 'google-calendar', action: 'createEvent' },
      input: { summary: '{{ $item.name }}', start: '2026-01-31', end: '2026-02-01' },
    },
    { perItem: true },
  )
  const id = await host.execute(await host.create(graph as never), {
    items: [{ name: 'a' }, { name: 'b' }],
  } as never)
  expect((await host.ended(id)).errorMessage).toBeNull()
  expect([...events.values()].map(({ summary, start: begins }) => [summary, begins])).toEqual([
    ['a', { date: '2026-01-31' }],
    ['b', { date: '2026-01-31' }],
  ])
})

test('an event whose answer is lost is made once, and an id that is taken is a failure', async () => {
  const { act, events, vendor } = await startCalendar([], losing('POST'))
  const { status, retries, output } = await act('createEvent', { ...MEETING, summary: 'Plan' })
  expect({ status, retries }).toEqual({ status: 'SUCCESS', retries: 1 })
  expect([...events.keys()]).toEqual([output.id])
  expect(output.summary).toBe('Plan')
  expect(vendor.asked.map(({ method }) => method)).toEqual(['POST', 'POST', 'GET'])
  const again = await act('createEvent', { ...MEETING, id: output.id })
  expect(again.error).toMatch(/^Google Calendar responded with 409/)
})

test('a change keeps what it does not name, and adds guests once', async () => {
  const there = { id: 'e1', summary: 'Plan', attendees: [{ email: 'a@x.test', responseStatus: 'accepted' }] }
  const { act, vendor, events } = await startCalendar([there], losing('PATCH'))
  const { status, output } = await act('updateEvent', {
    ...{ event: 'e1', start: '2026-01-31', attendees: ['b@x.test', 'a@x.test'], addAttendees: true },
  })
  expect(status).toBe('SUCCESS')
  expect(output.attendees).toEqual([...there.attendees, { email: 'b@x.test' }])
  expect(vendor.asked.at(-1)?.json).toEqual({
    start: { date: '2026-01-31', dateTime: null },
    attendees: [...there.attendees, { email: 'b@x.test' }],
  })
  await act('updateEvent', { event: 'e1', end: MEETING.end, attendees: ['c@x.test'] })
  expect(vendor.asked.at(-1)?.json).toEqual({
    end: { dateTime: MEETING.end, date: null },
    attendees: [{ email: 'c@x.test' }],
  })
  expect(events.get('e1')?.summary).toBe('Plan')
})

test('events are listed page by page, and read', async () => {
  const all = Array.from({ length: 5 }, (_, at) => ({ id: `event${at}` }))
  const { act, vendor } = await startCalendar(all)
  const { output } = await act('listEvents', { limit: 2, from: MEETING.start, query: 'plan', fields: 'id' })
  expect(output.value).toEqual(all.slice(0, 2))
  expect(Object.fromEntries(vendor.asked[0]!.query)).toEqual({
    ...{ timeMin: MEETING.start, q: 'plan', singleEvents: 'true', maxResults: '2' },
    fields: 'nextPageToken,items(id)',
  })
  expect((await act('listEvents', { single: false })).output.value).toHaveLength(5)
  expect(vendor.asked.at(-1)?.query.get('singleEvents')).toBe('false')
  expect((await act('listInstances', { event: 'event1', limit: 3 })).output.value).toHaveLength(3)
  expect((await act('getEvent', { event: 'event1', timeZone: 'UTC' })).output).toEqual({ id: 'event1' })
  expect((await act('getEvent', { event: 'none' })).error).toMatch(/^Google Calendar responded with 404/)
  expect((await act('listCalendars', {})).output.value).toEqual([{ id: 'work', summary: 'Work' }])
})

test('taken times are found, and a calendar that cannot be read is a failure', async () => {
  const { act, vendor } = await startCalendar([], (_, answer) =>
    vendor.asked.length === 1 ? { status: 429, headers: { 'retry-after': '0' } } : answer(),
  )
  const { output, retries } = await act('findBusyTimes', {
    ...{ calendar: 'work', from: MEETING.start, to: MEETING.end },
  })
  expect(retries).toBe(1)
  expect(output).toEqual({
    ...{ calendar: 'work', available: false, busy: [MEETING], timeMin: MEETING.start, timeMax: MEETING.end },
  })
  const free = await act('findBusyTimes', { calendar: 'free', from: MEETING.start, to: MEETING.end })
  expect(free.output).toMatchObject({ available: true, busy: [] })
  const none = await act('findBusyTimes', { calendar: 'none', from: MEETING.start, to: MEETING.end })
  expect(none).toMatchObject({ status: 'FAILED', error: expect.stringContaining('notFound') })
})

test('a delete whose answer is lost has deleted, and one of nothing is a failure', async () => {
  const { act, events } = await startCalendar([{ id: 'event1' }], losing('DELETE'))
  expect(await act('deleteEvent', { event: 'event1' })).toMatchObject({
    ...{ status: 'SUCCESS', output: { id: 'event1', deleted: true } },
  })
  expect(events.size).toBe(0)
  expect((await act('deleteEvent', { event: 'event1' })).error).toMatch(/410/)
})
