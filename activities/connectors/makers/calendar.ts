import { isObject } from '../../../workflows/json.ts'
import { NodeFailure } from '../../nodes/kit/failure.ts'
import type { Maker } from './maker.ts'

/** What the actions of Google Calendar work out. */
export const CALENDAR_MAKERS: Record<string, Maker> = { calendarEvent: joinFields, calendarBusy: readBusy }

/** An event of the fields that have a value, with those that a person writes as the API has them. */
function joinFields({ fields, more }: { fields: object; more: object | null }): object {
  const given = Object.entries(fields).filter(([, value]) => value !== null && value !== undefined)
  return { ...Object.fromEntries(given), ...more }
}

type Busy = { timeMin?: string; timeMax?: string; calendars?: Record<string, unknown> }

/** The times that are taken in one calendar. Throws a NodeFailure (InvalidResponse) where Google does not say it. */
function readBusy({ calendar, answer }: { calendar: string; answer: Busy }): object {
  const { timeMin, timeMax, calendars } = answer
  const [found] = Object.values(calendars ?? {})
  const { busy, errors } = isObject(found) ? found : {}
  if (!Array.isArray(busy) || errors !== undefined) {
    const [first] = Array.isArray(errors) ? errors : []
    const reason = isObject(first) ? String(first.reason) : 'no answer for it'
    throw new NodeFailure(`Google Calendar does not say when ${calendar} is taken: ${reason}`, {
      type: 'InvalidResponse',
    })
  }
  return { calendar, available: busy.length === 0, busy, timeMin, timeMax }
}
