import { isObject } from '../../json.ts'
import { type Fields, objectOf } from '../ai/asking.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools } from '../mapper.ts'
import { type ProblemReporter, reportMissingOption } from '../report.ts'
import { readOptionFields } from '../send/messenger.ts'
import {
  isTemplate,
  keepText,
  listObjects,
  plainText,
  quoteValue,
  writeCode,
  writeLiteral,
} from '../texts.ts'
import {
  demandOperation,
  keepFilled,
  readGoogleSignIn,
  readMost,
  type ServiceReader,
  type ServiceWork,
  type WorkReader,
} from './action.ts'
import { AS_DAY, IN_UTC, writeDate } from './dates.ts'

/** Google's calendars. */
export const readGoogleCalendar: ServiceReader = (node, tools) => {
  const { resource = 'event' } = node.parameters
  const operation = node.parameters.operation ?? (resource === 'calendar' ? 'availability' : 'create')
  const read = demandOperation(OPERATIONS, 'Google Calendar', { resource, operation })
  const credential = readGoogleSignIn(node, 'googleCalendarOAuth2Api')
  return { connector: 'google-calendar', credential, ...read(node, tools) }
}

const OPERATIONS: Record<string, WorkReader> = {
  'calendar.availability': readBusy,
  'event.create': create,
  'event.delete': remove,
  'event.get': get,
  'event.getAll': list,
  'event.update': update,
}

/** The id of the calendar. Old versions of n8n's editor saved it encoded. */
function placeOf({ parameters }: SourceNode): Fields {
  const given = isObject(parameters.calendar) ? parameters.calendar.value : parameters.calendar
  if (isTemplate(given)) return { calendar: `={{ decodeURIComponent(${writeCode(given)} ?? '') }}` }
  const text = plainText(given) ?? ''
  return { calendar: writeLiteral(/%[0-9a-f]{2}/i.test(text) ? decodeUri(text) : text) }
}

function decodeUri(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const eventOf = (node: SourceNode): Fields => ({
  ...placeOf(node),
  event: keepText(node.parameters.eventId ?? ''),
})
const ZONE = '={{ $now.zoneName }}'
const time = (value: unknown) => `={{ ${writeDate(value, IN_UTC)} }}`
const day = (value: unknown) => `={{ ${writeDate(value, AS_DAY)} }}`
const zoneOf = (given: unknown): Fields => {
  const zone = isObject(given) ? given.value : given
  return zone === undefined || zone === '' ? {} : { timeZone: keepFilled(zone) }
}

/** What n8n's editor fills in for times from version 1.3 on. */
const usual = (node: SourceNode, key: string, standard: string) =>
  node.parameters[key] ?? (node.version >= 1.3 ? `={{ ${standard} }}` : '')

function create(node: SourceNode, { report }: MapperTools): ServiceWork {
  const fields = readOptionFields(node, 'additionalFields')
  const { allday = 'no', id, sendNotifications, ...rest } = fields
  if (isTemplate(allday)) throw new Error('an expression says whether it takes the whole day')
  const write = allday === 'yes' ? day : time
  if (sendNotifications) reportMissingOption(report, 'parameters.additionalFields.sendNotifications', true)
  const attendees = rest.attendees === undefined ? {} : { attendees: splitAddresses(rest.attendees) }
  return {
    action: 'createEvent',
    input: {
      ...placeOf(node),
      start: write(usual(node, 'start', '$now')),
      end: write(usual(node, 'end', "$now.plus(1, 'hour')")),
      timeZone: ZONE,
      ...readFields(rest, node, report),
      ...attendees,
      ...(id ? { id: keepFilled(id) } : {}),
    },
  }
}

function update(node: SourceNode, { report }: MapperTools): ServiceWork {
  const { modifyTarget = 'instance' } = node.parameters
  if (modifyTarget !== 'instance')
    throw new Error(
      'it changes the event that repeats, by the id of one of its times: use the id of the event',
    )
  const {
    allday = 'no',
    start,
    end,
    attendees,
    attendeesUi,
    timezone,
    sendNotifications,
    ...rest
  } = readOptionFields(node, 'updateFields')
  if (isTemplate(allday)) throw new Error('an expression says whether it takes the whole day')
  if (sendNotifications) reportMissingOption(report, 'parameters.updateFields.sendNotifications', true)
  const write = allday === 'yes' && start && end ? day : time
  const invited = objectOf(objectOf(attendeesUi).values)
  const { mode = 'add' } = invited
  if (isTemplate(mode)) throw new Error('an expression says whether guests are added')
  const guests = attendees ?? invited.attendees
  const isAdded = attendees === undefined && mode === 'add'
  return {
    action: 'updateEvent',
    input: {
      ...eventOf(node),
      ...(start ? { start: write(start) } : {}),
      ...(end ? { end: write(end) } : {}),
      ...(start || end ? (timezone ? zoneOf(timezone) : { timeZone: ZONE }) : {}),
      ...readFields(rest, node, report),
      ...(guests === undefined ? {} : { attendees: splitAddresses(guests) }),
      ...(guests !== undefined && isAdded ? { addAttendees: true } : {}),
    },
  }
}

const SAID: Record<string, string> = {
  ...{ color: 'color', description: 'description', location: 'location', summary: 'summary' },
  ...{
    showMeAs: 'showAs',
    visibility: 'visibility',
    maxAttendees: 'maxAttendees',
    sendUpdates: 'sendUpdates',
  },
  guestsCanInviteOthers: 'guestsCanInviteOthers',
  guestsCanModify: 'guestsCanModify',
  guestsCanSeeOtherGuests: 'guestsCanSeeOtherGuests',
}
const REPEATS = ['rrule', 'repeatFrecuency', 'repeatHowManyTimes', 'repeatUntil', 'attendees']

/** The fields of an event, of which n8n sends those that are neither empty nor false. */
function readFields(given: Fields, node: SourceNode, report: ProblemReporter): Fields {
  const { conferenceDataUi, ...fields } = given
  const { conferenceSolution } = objectOf(objectOf(conferenceDataUi).conferenceDataValues)
  for (const [key, value] of Object.entries(fields))
    if (!Object.hasOwn(SAID, key) && !REPEATS.includes(key))
      reportMissingOption(report, `parameters.fields.${key}`, value)
  const known = Object.entries(fields).filter(([key, value]) => Object.hasOwn(SAID, key) && value)
  return {
    ...Object.fromEntries(known.map(([key, value]) => [SAID[key]!, keepFilled(value)])),
    ...readRule(fields),
    ...readReminders(node),
    ...(conferenceSolution ? { conference: keepText(conferenceSolution) } : {}),
  }
}

function readRule({ rrule, repeatFrecuency, repeatHowManyTimes, repeatUntil }: Fields): Fields {
  if (rrule) return { recurrence: `={{ (rule => rule ? ['RRULE:' + rule] : null)(${writeCode(rrule)}) }}` }
  if (repeatHowManyTimes && repeatUntil)
    throw new Error('it says both how often it repeats and until when, which n8n refuses')
  const part = (name: string, code: string, sign = ';') =>
    `(value => value ? '${name}=' + String(value).toUpperCase() + '${sign}' : '')(${code})`
  const parts = [
    ...(repeatFrecuency ? [part('FREQ', writeCode(repeatFrecuency))] : []),
    ...(repeatHowManyTimes ? [part('COUNT', writeCode(repeatHowManyTimes))] : []),
    ...(repeatUntil
      ? [part('UNTIL', writeDate(repeatUntil, `date.toUTC().toFormat("yyyyMMdd'T'HHmmss")`), 'Z')]
      : []),
  ]
  if (parts.length === 0) return {}
  const join = "(rule => rule === '' ? null : ['RRULE:' + rule])"
  return { recurrence: `={{ ${join}([${parts.join(', ')}].join('')) }}` }
}

function readReminders({ parameters }: SourceNode): Fields {
  const { useDefaultReminders = true, remindersUi } = parameters
  if (useDefaultReminders === true) return {}
  const overrides = listObjects(objectOf(remindersUi).remindersValues)
  const text = JSON.stringify({ useDefault: false, ...(overrides.length > 0 ? { overrides } : {}) })
  if (text.includes('{{')) throw new Error('an expression gives its reminders')
  if (!isTemplate(useDefaultReminders)) return { reminders: JSON.parse(text) }
  return { reminders: `={{ (${writeCode(useDefaultReminders)}) ? null : JSON.parse(${quoteValue(text)}) }}` }
}

/** Addresses, of which several may stand in a text with commas between them. */
function splitAddresses(given: unknown): unknown {
  const list = Array.isArray(given) ? given : [given]
  if (!list.some(isTemplate))
    return list.flatMap((one) =>
      String(plainText(one))
        .split(',')
        .map((a) => a.trim()),
    )
  const codes = list.map((one) => `[${writeCode(one)}].flat()`)
  return `={{ [${codes.join(', ')}].flat().flatMap(one => String(one ?? '').split(',').map(address => address.trim())) }}`
}

function remove(node: SourceNode, { report }: MapperTools): ServiceWork {
  const { sendUpdates } = readOptionFields(node, 'options')
  if (sendUpdates) {
    const message =
      'n8n tells nobody of a deleted event, whatever is set there. Perdure does not either: set `sendUpdates` for that.'
    report('parameter', 'parameters.options.sendUpdates', message, sendUpdates)
  }
  return { action: 'deleteEvent', input: eventOf(node), shape: '{"success": true}' }
}

function get(node: SourceNode, { report }: MapperTools): ServiceWork {
  const { maxAttendees, returnNextInstance = false, timeZone } = readOptionFields(node, 'options')
  if (returnNextInstance !== false && node.version >= 1.3)
    throw new Error('it reads the next time of an event that repeats: use a CONNECTOR with listInstances')
  reportNext(report, 'get')
  return {
    action: 'getEvent',
    input: {
      ...eventOf(node),
      ...(maxAttendees ? { maxAttendees: keepFilled(maxAttendees) } : {}),
      ...zoneOf(timeZone),
    },
  }
}

function reportNext(report: ProblemReporter, operation: string): void {
  const message =
    'n8n adds `nextOccurrence` to events that repeat. Perdure gives them as Google does: read their times with a CONNECTOR ' +
    'and listInstances where a node needs it.'
  report('items', 'parameters.operation', message, operation)
}

function list(node: SourceNode, { report }: MapperTools): ServiceWork {
  const { version } = node
  const {
    recurringEventHandling = 'expand',
    singleEvents = false,
    ...options
  } = readOptionFields(node, 'options')
  const isNew = version >= 1.3
  if (isNew && recurringEventHandling !== 'expand')
    throw new Error('it reads one time of each event that repeats: use a CONNECTOR with listInstances')
  if (!isNew) reportNext(report, 'getAll')
  const { timeMin, timeMax, updatedMin, fields, orderBy, query, timeZone, ...rest } = options
  const { maxAttendees, iCalUID, showDeleted, showHiddenInvitations } = rest
  const from = isNew ? usual(node, 'timeMin', '$now') : timeMin
  const to = isNew ? usual(node, 'timeMax', '$now.plus(({ week: 1 }))') : timeMax
  const filled = { orderBy, query, maxAttendees, iCalUID, showDeleted, showHiddenInvitations }
  const known = Object.entries(filled).filter(([, value]) => value)
  return {
    action: 'listEvents',
    input: {
      ...placeOf(node),
      single: isNew
        ? true
        : isTemplate(singleEvents)
          ? `={{ Boolean(${writeCode(singleEvents)}) }}`
          : singleEvents,
      ...(from ? { from: time(from) } : {}),
      ...(to ? { to: time(to) } : {}),
      ...(updatedMin ? { updatedFrom: time(updatedMin) } : {}),
      ...Object.fromEntries(known.map(([key, value]) => [key, keepFilled(value)])),
      ...zoneOf(timeZone),
      ...readEventFields(fields),
      ...readMost(node, { limit: 50 }),
    },
  }
}

/** n8n names the fields of the whole answer, of which it puts out the events. */
function readEventFields(given: unknown): Fields {
  const text = plainText(given)?.replace(/\s/g, '')
  if (text === '' || text === '*' || text === 'items') return {}
  const [, inner] = /^items\((.*)\)$/s.exec(text ?? '') ?? []
  if (inner === undefined) throw new Error('it names fields of the answer in a way that is not understood')
  return { fields: inner }
}

function readBusy(node: SourceNode): ServiceWork {
  const { outputFormat = 'availability', timezone } = readOptionFields(node, 'options')
  const zone = zoneOf(timezone)
  return {
    action: 'findBusyTimes',
    input: {
      ...placeOf(node),
      from: time(usual(node, 'timeMin', '$now')),
      to: time(usual(node, 'timeMax', "$now.plus(1, 'hour')")),
      timeZone: zone.timeZone ?? ZONE,
    },
    shape: demandOperation(
      BUSY,
      'Google Calendar',
      { resource: 'calendar', operation: outputFormat },
      String(outputFormat),
    ),
  }
}

/** What n8n puts out of the times that are taken. */
const BUSY: Record<string, string> = {
  availability: '{"available": $item.available}',
  bookedSlots: '$exists($item.busy) ? $item.busy : []',
  raw:
    '{"kind": "calendar#freeBusy", "timeMin": $item.timeMin, "timeMax": $item.timeMax, ' +
    '"calendars": {$item.calendar: {"busy": [$item.busy]}}}',
}
