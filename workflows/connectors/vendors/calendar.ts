import type { Connector, ConnectorAction, ConnectorStep } from '../connector.ts'
import {
  choiceInput,
  flagInput,
  limitInput,
  listInput,
  nameInput,
  objectInput,
  recordInput,
  textInput,
  usually,
  wholeNumberInput,
} from '../schemas.ts'
import { describeSetup, GOOGLE_SIGN_IN } from './google.ts'

const place = {
  calendar: usually(
    'primary',
    nameInput('Calendar', 'The calendar: its id, or primary for the own one.', { 'x-options': 'calendars' }),
  ),
}
const one = { event: nameInput('Event', 'The id of the event.') }
const EVENTS = '/calendar/v3/calendars/{{ $input.calendar }}/events'
const EVENT = `${EVENTS}/{{ $input.event }}`

const WHEN = 'A time such as 2026-01-31T09:00:00Z, or a day such as 2026-01-31.'
const said = {
  summary: textInput('Title', 'What the event is called.'),
  description: textInput('Description', 'What is said of it.'),
  location: textInput('Place', 'Where it is.'),
  attendees: listInput(textInput('Address', 'An address.'), 'Guests', 'The addresses of the guests.'),
  recurrence: listInput(
    textInput('Rule', 'A rule.'),
    'Repeats',
    'Rules of RFC 5545, such as RRULE:FREQ=WEEKLY;COUNT=4.',
  ),
  timeZone: textInput('Time zone', 'That of times without one, such as Europe/Berlin.'),
  color: textInput('Colour', 'The number of a colour, 1 to 11.'),
  showAs: choiceInput(['opaque', 'transparent'], 'Show as', 'Whether the time is taken.', ['Busy', 'Free']),
  visibility: choiceInput(
    ['default', 'public', 'private', 'confidential'],
    'Visibility',
    'Which people see what the event is about.',
  ),
  guestsCanInviteOthers: flagInput('Guests invite', 'Guests may invite others.'),
  guestsCanModify: flagInput('Guests change', 'Guests may change the event.'),
  guestsCanSeeOtherGuests: flagInput('Guests see guests', 'Guests see which others there are.'),
  reminders: recordInput(
    'Reminders',
    'As {"useDefault": false, "overrides": [{"method": "popup", "minutes": 10}]}. Without it those of the calendar.',
  ),
  conference: choiceInput(
    ['hangoutsMeet', 'eventHangout', 'eventNamedHangout'],
    'Conference',
    'Adds a video conference.',
    ['Google Meet', 'Hangout', 'Named Hangout'],
  ),
  more: recordInput('More', 'Further fields of the event, as the Calendar API names them.'),
}
const guests = {
  sendUpdates: choiceInput(['all', 'externalOnly', 'none'], 'Tell guests', 'Which guests get a mail.'),
}
const attending = { maxAttendees: wholeNumberInput('Guests', 'How many guests are named.', { minimum: 1 }) }

/** A time or a day. The other of both is emptied: a change keeps what it does not name. */
const at = (key: string, other: string) =>
  `{{ $exists($input.${key}) ? ($contains($input.${key}, "T") ? ` +
  `$merge([{"dateTime": $input.${key}${other}}, $exists($input.timeZone) ? {"timeZone": $input.timeZone} : {}]) : ` +
  `{"date": $input.${key}${other.replace('"date"', '"dateTime"')}}) : null }}`

const REQUEST =
  '{"createRequest": {"requestId": $execution.key, "conferenceSolutionKey": {"type": $input.conference}}}'
const write = (other: string): Record<string, unknown> => ({
  ...Object.fromEntries(
    ['summary', 'description', 'location', 'recurrence', 'visibility', 'reminders'].map((key) => [
      key,
      `{{ $input.${key} }}`,
    ]),
  ),
  ...Object.fromEntries(
    ['guestsCanInviteOthers', 'guestsCanModify', 'guestsCanSeeOtherGuests'].map((key) => [
      key,
      `{{ $input.${key} }}`,
    ]),
  ),
  colorId: '{{ $input.color }}',
  transparency: '{{ $input.showAs }}',
  start: at('start', other),
  end: at('end', other),
  conferenceData: `{{ $exists($input.conference) ? ${REQUEST} : null }}`,
})
const told = {
  ...{ sendUpdates: '{{ $input.sendUpdates }}', maxAttendees: '{{ $input.maxAttendees }}' },
  conferenceDataVersion: '{{ $exists($input.conference) ? "1" : null }}',
}
const ADDRESSES = '[$input.attendees.{"email": $}]'

/** The event that is sent: the fields that have a value, and those that are written as the API has them. */
const joined = (
  fields: Record<string, unknown>,
  name: string,
): { name: string; make: string; of: object } => ({
  name,
  make: 'calendarEvent',
  of: { fields, more: '{{ $input.more }}' },
})

const read: ConnectorStep = {
  name: 'read',
  when: '$args.create.status = 409',
  method: 'GET',
  path: `${EVENTS}/{{ $nodes.event.id }}`,
}

const CHANGES: Record<string, ConnectorAction> = {
  createEvent: {
    name: 'Create an event',
    summary: 'Puts an event into a calendar.',
    safety: 'REPEATABLE',
    input: objectInput(
      {
        ...place,
        start: nameInput('Begins', WHEN),
        end: nameInput('Ends', `${WHEN} A day is the one after the last.`),
        ...said,
        ...guests,
        ...attending,
        id: textInput('Id', 'An id of your own: 5 to 1,024 of the signs 0 to 9 and a to v.'),
      },
      ['start', 'end'],
    ),
    steps: [
      joined(
        {
          ...write(''),
          id: '{{ $input.id ? $input.id : $execution.key }}',
          attendees: `{{ $exists($input.attendees) ? ${ADDRESSES} : null }}`,
        },
        'event',
      ),
      { name: 'create', method: 'POST', path: EVENTS, query: told, body: '{{ $nodes.event }}', done: [409] },
      read,
    ],
    result: '{{ $exists($nodes.read) ? $nodes.read : $nodes.create }}',
  },
  updateEvent: {
    name: 'Change an event',
    summary: 'Changes the named fields of an event; the others stay.',
    safety: 'REPEATABLE',
    input: objectInput(
      {
        ...{ ...place, ...one },
        ...{ start: nameInput('Begins', WHEN), end: nameInput('Ends', WHEN) },
        ...said,
        addAttendees: flagInput('Add guests', 'Those who are invited stay, and the named guests are added.'),
        ...guests,
        ...attending,
      },
      ['event'],
    ),
    steps: [
      {
        name: 'before',
        when: '$input.addAttendees and $exists($input.attendees)',
        method: 'GET',
        path: EVENT,
      },
      joined(
        {
          ...write(', "date": null'),
          attendees:
            `{{ $exists($input.attendees) ? ($there := $nodes.before.attendees; ` +
            `[$there, ${ADDRESSES}[$not(email in $there.email)]]) : null }}`,
        },
        'event',
      ),
      { name: 'update', method: 'PATCH', path: EVENT, query: told, body: '{{ $nodes.event }}' },
    ],
  },
  deleteEvent: {
    name: 'Delete an event',
    summary: 'Takes an event out of a calendar.',
    safety: 'REPEATABLE',
    input: objectInput({ ...place, ...one, ...guests }, ['event']),
    steps: [
      {
        name: 'delete',
        method: 'DELETE',
        path: EVENT,
        query: { sendUpdates: '{{ $input.sendUpdates }}' },
        done: [404, 410],
      },
    ],
    result: '{{ {"id": $input.event, "deleted": true} }}',
  },
}

const times = {
  from: textInput('From', 'Only what ends after this time, such as 2026-01-31T00:00:00Z.'),
  to: textInput('To', 'Only what begins before this time.'),
}
const zone = { timeZone: textInput('Time zone', 'The zone in which times are told.') }
const listed = { items: '$item.items', next: '$item.nextPageToken', into: { query: 'pageToken' } }

const READING: Record<string, ConnectorAction> = {
  listEvents: {
    name: 'List events',
    summary: 'Reads the events of a calendar: all, or those of a time, or with some words.',
    safety: 'REPEATABLE',
    input: objectInput({
      ...{ ...place, ...times },
      query: textInput('Words', 'Only events that have these words.'),
      single: usually(
        true,
        flagInput('Each time', 'An event that repeats is listed for each time, and not once with its rule.'),
      ),
      orderBy: choiceInput(
        ['startTime', 'updated'],
        'Order',
        'By their begin (each time), or their last change.',
      ),
      updatedFrom: textInput('Changed since', 'Only those that were changed after this time.'),
      iCalUID: textInput('iCalendar id', 'Only the event with this id.'),
      showDeleted: flagInput('Deleted too', 'With events that were deleted.'),
      showHiddenInvitations: flagInput('Hidden too', 'With invitations that are not shown.'),
      fields: textInput(
        'Fields',
        'What is said of each event, such as id,summary,start. All, unless it is set.',
      ),
      ...{ ...attending, ...zone },
      limit: limitInput(),
    }),
    steps: [
      {
        name: 'list',
        method: 'GET',
        path: EVENTS,
        query: {
          ...{ timeMin: '{{ $input.from }}', timeMax: '{{ $input.to }}', q: '{{ $input.query }}' },
          singleEvents: '{{ $input.single ? "true" : "false" }}',
          ...{ orderBy: '{{ $input.orderBy }}', updatedMin: '{{ $input.updatedFrom }}' },
          ...{ iCalUID: '{{ $input.iCalUID }}', maxAttendees: '{{ $input.maxAttendees }}' },
          showDeleted: '{{ $input.showDeleted ? "true" : null }}',
          showHiddenInvitations: '{{ $input.showHiddenInvitations ? "true" : null }}',
          timeZone: '{{ $input.timeZone }}',
          fields: '{{ $input.fields ? "nextPageToken,items(" & $input.fields & ")" : null }}',
          maxResults: '{{ $input.limit < 250 ? $input.limit : 250 }}',
        },
        pages: { ...listed, limit: '$input.limit' },
      },
    ],
  },
  listInstances: {
    name: 'List times of an event',
    summary: 'Reads each time of an event that repeats.',
    safety: 'REPEATABLE',
    input: objectInput({ ...place, ...one, ...times, ...zone, limit: limitInput() }, ['event']),
    steps: [
      {
        name: 'list',
        method: 'GET',
        path: `${EVENT}/instances`,
        query: {
          ...{ timeMin: '{{ $input.from }}', timeMax: '{{ $input.to }}', timeZone: '{{ $input.timeZone }}' },
          maxResults: '{{ $input.limit < 250 ? $input.limit : 250 }}',
        },
        pages: { ...listed, limit: '$input.limit' },
      },
    ],
  },
  getEvent: {
    name: 'Get an event',
    summary: 'Reads an event.',
    safety: 'REPEATABLE',
    input: objectInput({ ...place, ...one, ...attending, ...zone }, ['event']),
    steps: [
      {
        name: 'get',
        method: 'GET',
        path: EVENT,
        query: { maxAttendees: '{{ $input.maxAttendees }}', timeZone: '{{ $input.timeZone }}' },
      },
    ],
  },
  findBusyTimes: {
    name: 'Find taken times',
    summary: 'Says whether a calendar is free between two times, and which times are taken.',
    safety: 'REPEATABLE',
    input: objectInput(
      {
        ...place,
        from: nameInput('From', 'A time such as 2026-01-31T09:00:00Z.'),
        to: nameInput('To', 'A time after it.'),
        ...zone,
      },
      ['from', 'to'],
    ),
    steps: [
      {
        name: 'query',
        method: 'POST',
        path: '/calendar/v3/freeBusy',
        body: {
          ...{ timeMin: '{{ $input.from }}', timeMax: '{{ $input.to }}', timeZone: '{{ $input.timeZone }}' },
          items: '{{ [{"id": $input.calendar}] }}',
        },
      },
      {
        name: 'found',
        make: 'calendarBusy',
        of: { calendar: '{{ $input.calendar }}', answer: '{{ $nodes.query }}' },
      },
    ],
  },
  listCalendars: {
    name: 'List calendars',
    summary: 'Reads which calendars the account has.',
    safety: 'REPEATABLE',
    input: objectInput({ limit: limitInput() }),
    steps: [
      {
        name: 'list',
        method: 'GET',
        path: '/calendar/v3/users/me/calendarList',
        pages: { ...listed, limit: '$input.limit' },
      },
    ],
  },
}

/** Google's Calendar API, version 3: developers.google.com/workspace/calendar/api/v3/reference. */
export const GOOGLE_CALENDAR: Connector = {
  name: 'google-calendar',
  title: 'Google Calendar',
  summary: 'Events in calendars.',
  version: 1,
  server: 'https://www.googleapis.com',
  signIn: [...GOOGLE_SIGN_IN],
  setup: describeSetup('Google Calendar API', ['https://www.googleapis.com/auth/calendar']),
  options: {
    calendars: {
      steps: [{ name: 'list', method: 'GET', path: '/calendar/v3/users/me/calendarList' }],
      list: '$nodes.list.items.{"value": id, "label": summary}',
    },
  },
  actions: { ...READING, ...CHANGES },
}
