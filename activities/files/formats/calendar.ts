import ICAL from 'ical.js'
import { isObject } from '../../../workflows/json.ts'
import { NodeFailure } from '../../nodes/kit/failure.ts'
import { excessiveFile, invalidFile } from './faults.ts'

const MAX_ENTRIES = 50_000

const KINDS = ['vevent', 'vtodo', 'vjournal']

/** Keys of an item by the names of properties that have one text. */
const TEXTS: Record<string, string> = {
  uid: 'uid',
  summary: 'summary',
  description: 'description',
  location: 'location',
  url: 'url',
  status: 'status',
  organizer: 'organizer',
  rrule: 'rule',
}

const DATES: Record<string, string> = {
  dtstart: 'start',
  dtend: 'end',
  due: 'due',
  completed: 'completed',
  'recurrence-id': 'recurrenceId',
  dtstamp: 'stamp',
  created: 'created',
  'last-modified': 'updated',
}

/**
 * The entries of a calendar (iCalendar): items of {kind, uid, summary, start, end, allDay ...}, in the order of the
 * file. A date is a text: `2026-01-31` for a whole day, with a `Z` at its end in UTC, else local in `timezone`, or
 * floating. Entries that repeat are one item with their `rule`; they are never expanded. Throws a NodeFailure
 * (InvalidInput, FileTooLarge).
 */
export function readCalendar(
  name: string,
  text: string,
): { items: Record<string, unknown>[]; calendar: string | null } {
  let calendars: ICAL.Component[]
  try {
    const parsed = ICAL.parse(text) as unknown[]
    const lists = typeof parsed[0] === 'string' ? [parsed] : (parsed as unknown[][])
    calendars = lists.map((list) => new ICAL.Component(list as never))
  } catch (error) {
    throw invalidFile(name, `is not a calendar that can be read: ${(error as Error).message.slice(0, 300)}`)
  }
  if (!calendars.some((calendar) => calendar.name === 'vcalendar'))
    throw invalidFile(name, 'is not a calendar: it has no VCALENDAR')
  const entries = calendars.flatMap((calendar) =>
    calendar.getAllSubcomponents().filter((one) => KINDS.includes(one.name)),
  )
  if (entries.length > MAX_ENTRIES)
    throw excessiveFile(name, `has ${entries.length} entries; at most ${MAX_ENTRIES} are read`)
  return {
    items: entries.map(describeEntry),
    calendar: (calendars[0]!.getFirstPropertyValue('x-wr-calname') as string | null) ?? null,
  }
}

function describeEntry(entry: ICAL.Component): Record<string, unknown> {
  const item: Record<string, unknown> = { kind: entry.name.slice(1) }
  for (const [property, key] of Object.entries(TEXTS)) {
    const value = entry.getFirstPropertyValue(property)
    if (value !== null) item[key] = String(value)
  }
  for (const [property, key] of Object.entries(DATES)) {
    const found = entry.getFirstProperty(property)
    const value = found?.getFirstValue()
    if (!found || value === null || value === undefined) continue
    item[key] = String(value)
    if (property !== 'dtstart') continue
    item.allDay = value instanceof ICAL.Time && value.isDate
    const zone = found.getParameter('tzid')
    if (zone !== undefined) item.timezone = String(zone)
  }
  const duration = entry.getFirstPropertyValue('duration')
  if (duration !== null) item.duration = String(duration)
  const except = entry.getAllProperties('exdate').flatMap((one) => one.getValues().map(String))
  if (except.length > 0) item.except = except
  const attendees = entry.getAllProperties('attendee')
  if (attendees.length > 0) item.attendees = attendees.map(describeAttendee)
  const categories = entry.getAllProperties('categories').flatMap((one) => one.getValues().map(String))
  if (categories.length > 0) item.categories = categories
  return item
}

function describeAttendee(attendee: ICAL.Property): Record<string, unknown> {
  const told = (parameter: string) => {
    const value = attendee.getParameter(parameter)
    return value === undefined ? null : String(value)
  }
  const address = String(attendee.getFirstValue()).replace(/^mailto:/i, '')
  return { address, name: told('cn'), status: told('partstat') }
}

/** The keys that an entry to be written may have. */
const WRITTEN = [
  'uid',
  'summary',
  'description',
  'location',
  'url',
  'status',
  'start',
  'end',
  'allDay',
  'timezone',
  'rule',
  'stamp',
  'organizer',
]

/** The keys whose texts may have several lines. iCalendar knows no way to write a line break in the others. */
const LINES = ['summary', 'description', 'location']

const DATE = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d+)?Z?)?$/

/**
 * A calendar of events: `start` is required, as the dates that readCalendar gives, or in UTC as JSON has them. `now` is
 * their time stamp where they have none. Throws a NodeFailure (InvalidInput) that names all faults of the first item
 * that has some.
 */
export function writeCalendar(items: unknown[], now: Date): string {
  const calendar = new ICAL.Component('vcalendar')
  calendar.addPropertyWithValue('version', '2.0')
  calendar.addPropertyWithValue('prodid', '-//Perdure//Perdure//EN')
  for (const [at, item] of items.entries()) calendar.addSubcomponent(writeEvent(at, item, now))
  return `${calendar.toString()}\r\n`
}

function writeEvent(at: number, item: unknown, now: Date): ICAL.Component {
  const faults = isObject(item) ? findFaults(item) : ['must be an object']
  if (faults.length > 0)
    throw new NodeFailure(`the event at index ${at}: ${faults.join('; ')}`, { type: 'InvalidInput' })
  const given = item as Record<string, string | boolean | null | undefined>
  const event = new ICAL.Component('vevent')
  const stamp = String(given.stamp ?? now.toISOString())
  event.addPropertyWithValue('uid', String(given.uid ?? `${at}-${stamp}@perdure`))
  event.addPropertyWithValue('dtstamp', readTime(stamp))
  const zone = typeof given.timezone === 'string' ? given.timezone : undefined
  addTime(event, 'dtstart', String(given.start), zone)
  if (typeof given.end === 'string') addTime(event, 'dtend', given.end, zone)
  for (const key of ['summary', 'description', 'location', 'url', 'status', 'organizer'])
    if (typeof given[key] === 'string') event.addPropertyWithValue(key, given[key].replace(/\r\n?/g, '\n'))
  if (typeof given.rule === 'string') event.addPropertyWithValue('rrule', ICAL.Recur.fromString(given.rule))
  return event
}

function findFaults(item: Record<string, unknown>): string[] {
  const faults: string[] = []
  for (const key of Object.keys(item)) if (!WRITTEN.includes(key)) faults.push(`${key} is no key of an event`)
  for (const key of WRITTEN) {
    const value = item[key]
    if (value === undefined || value === null) continue
    if (key === 'allDay') {
      if (typeof value !== 'boolean') faults.push('allDay must be true or false')
    } else if (typeof value !== 'string') faults.push(`${key} must be a string`)
    else if (!LINES.includes(key) && /\p{Cc}/u.test(value))
      faults.push(`${key} must be a single line without control characters`)
    else if (/[^\P{Cc}\t\r\n]/u.test(value)) faults.push(`${key} must not have control characters`)
    else if (['start', 'end', 'stamp'].includes(key) && !isDate(value))
      faults.push(`${key} must be a date such as 2026-01-31, 2026-01-31T08:30:00 or 2026-01-31T08:30:00Z`)
    else if (key === 'rule' && !isRule(value))
      faults.push('rule must be one of iCalendar, such as FREQ=DAILY;COUNT=3')
  }
  if (item.start === undefined || item.start === null) faults.push('start is required')
  return faults
}

function isDate(text: string): boolean {
  return DATE.test(text) && !Number.isNaN(Date.parse(text))
}

function isRule(text: string): boolean {
  try {
    return Boolean(ICAL.Recur.fromString(text).freq)
  } catch {
    return false
  }
}

function addTime(event: ICAL.Component, name: string, text: string, zone: string | undefined): void {
  const property = new ICAL.Property(name)
  const time = readTime(text)
  property.setValue(time)
  if (zone !== undefined && !time.isDate && !text.endsWith('Z')) property.setParameter('tzid', zone)
  event.addProperty(property)
}

function readTime(text: string): ICAL.Time {
  return text.includes('T')
    ? ICAL.Time.fromDateTimeString(text.replace(/\.\d+/, ''))
    : ICAL.Time.fromDateString(text)
}
