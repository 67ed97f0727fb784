import { DateTime, type DurationLikeObject, type DurationUnit } from 'luxon'
import { invalidConfig, NodeFailure } from '../kit/failure.ts'

/** What DATE does with `into`: a text, a number or an object of a date. */
export type DateWork = {
  operation: string
  value?: unknown
  format?: unknown
  inputFormat?: unknown
  amount?: unknown
  unit?: unknown
  units?: unknown
  from?: unknown
  to?: unknown
  iso?: unknown
  utc?: unknown
  midnight?: unknown
}

/** The text that n8n, whose operations these are, would write; null and undefined stay what they are. */
export function computeDate(work: DateWork, zone: string, ownZone: boolean): unknown {
  const { operation } = work
  const unit = String(work.unit) as keyof DurationLikeObject
  const write = (date: DateTime) => String(work.utc === true ? date.toUTC() : date)
  const read = (value: unknown) => readLoosely(value, zone, work.inputFormat)
  switch (operation) {
    case 'now': {
      const now = DateTime.now().setZone(zone)
      return String(work.midnight === true ? now.startOf('day') : now)
    }
    case 'add':
      return write(read(work.value).plus({ [unit]: Number(work.amount) }))
    case 'subtract':
      return write(read(work.value).minus({ [unit]: Number(work.amount) }))
    case 'startOf':
      return String(read(work.value).startOf(readUnit(unit)))
    case 'roundUp':
      return String(
        read(work.value)
          .plus({ [unit]: 1 })
          .startOf(readUnit(unit)),
      )
    case 'extract': {
      const date = read(work.value)
      return unit === ('week' as never) ? date.weekNumber : date.get(readUnit(unit) as 'year')
    }
    case 'difference': {
      const units = [work.units].flat().map((one) => String(one)) as DurationUnit[]
      const difference = read(work.to).diff(read(work.from), units)
      return work.iso === true ? String(difference) : difference.toObject()
    }
    case 'format': {
      if (work.value === null || work.value === undefined) return work.value
      const date = readLoosely(work.value, ownZone ? zone : undefined, work.inputFormat)
      return date.toFormat(String(work.format))
    }
  }
  throw invalidConfig('operation', 'is unknown')
}

function readUnit(unit: unknown): Parameters<DateTime['startOf']>[0] {
  return String(unit).replace(/s$/, '') as Parameters<DateTime['startOf']>[0]
}

const MAX_CHARS = 200

/** Reads a date: a number of up to eleven digits counts seconds. A text without an offset is in UTC. */
function readLoosely(value: unknown, zone: string | undefined, format: unknown): DateTime {
  const text = String(value).slice(0, MAX_CHARS)
  const offset = /\+(\d\d)/.exec(text)?.[1]
  const target = zone ?? (offset && typeof value === 'string' ? `Etc/GMT-${Number(offset)}` : 'Etc/UTC')
  const date = parseLoosely(value, text, format).setZone(target)
  if (date.isValid) return date
  throw new NodeFailure('Invalid date format', { type: 'InvalidInput' })
}

function parseLoosely(value: unknown, text: string, format: unknown): DateTime {
  const utc = { zone: 'UTC' }
  if (format) return DateTime.fromFormat(text, String(format), utc)
  let number = typeof value === 'boolean' || text.trim() === '' ? Number.NaN : Number(value)
  if (!Number.isNaN(number)) {
    if (!Number.isInteger(number)) number = Math.round(number * 1000)
    return String(number).length < 12 ? DateTime.fromSeconds(number, utc) : DateTime.fromMillis(number, utc)
  }
  const readers = [DateTime.fromISO, DateTime.fromRFC2822, DateTime.fromSQL]
  const found = readers.map((read) => read(text, utc)).find((date) => date.isValid)
  return found ?? DateTime.fromMillis(Date.parse(text), utc)
}
