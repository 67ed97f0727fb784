import { DateTime, type DurationLikeObject, type DurationUnit } from 'luxon'
import * as v from 'valibot'
import { timeUnitField } from '../../workflows/nodes/data.ts'
import { findFormatFault } from '../../workflows/nodes/dateformats.ts'
import { renderKey, renderText } from './kit/config.ts'
import { invalidConfig } from './kit/failure.ts'
import { putInto } from './kit/into.ts'
import type { NodeContext, NodeRunner } from './kit/node.ts'
import { computeDate, type DateWork } from './lists/dates.ts'

const MAX_CHARS = 1_000
const EPOCH = /^-?\d{11,16}$/
const amount = v.pipe(v.number('must be a number'), v.finite('must be finite'))

/**
 * DATE: outputs {date (UTC), local (with the zone's offset), epochMs, text (in `format`, or null without
 * one)}; the operation `difference` outputs {difference} in its unit. Dates are read as ISO 8601, SQL, RFC
 * 2822 or HTTP dates, as epoch milliseconds, or in inputFormat. A date without an offset is in the time zone.
 * With `into` it puts a text or a number into a field of its item, see lists/dates.ts.
 */
export const runDate: NodeRunner = async (context) => {
  const { operation, into } = context.config
  const zone = await findZone(context)
  if (into !== undefined) {
    const work = (await context.evaluator.render(context.config, context.bindings)) as DateWork
    readZone(DateTime.now().setZone(zone))
    return { output: putInto(context, computeDate(work, zone, context.config.timezone !== undefined)) }
  }
  if (operation === 'difference') {
    const [from, to] = [await readDate(context, 'from', zone), await readDate(context, 'to', zone)]
    const by = (await renderKey(context, 'unit', timeUnitField)) as DurationUnit
    return { output: { difference: to.diff(from, by).as(by) } }
  }
  const start =
    operation === 'now' ? readZone(DateTime.now().setZone(zone)) : await readDate(context, 'value', zone)
  const date = await moveDate(context, start)
  if (!date.isValid || Math.abs(date.year) > 9_999)
    throw invalidConfig('value', 'must lead to a date within the years -9999 to 9999')
  return {
    output: {
      date: new Date(date.toMillis()).toISOString(),
      local: date.toISO(),
      epochMs: date.toMillis(),
      text: await writeDate(context, date),
    },
  }
}

/** The node's own time zone, or the one of its workflow. */
async function findZone(context: NodeContext): Promise<string> {
  if (context.config.timezone !== undefined) return renderText(context, 'timezone')
  return String(context.bindings.execution.timezone ?? 'UTC')
}

async function moveDate(context: NodeContext, date: DateTime): Promise<DateTime> {
  const { operation } = context.config
  if (operation === 'now' || operation === 'parse' || operation === 'format') return date
  const by = (await renderKey(context, 'unit', timeUnitField)) as keyof DurationLikeObject
  if (operation === 'startOf') return date.startOf(by as Parameters<DateTime['startOf']>[0])
  if (operation === 'endOf') return date.endOf(by as Parameters<DateTime['endOf']>[0])
  const many = await renderKey(context, 'amount', amount)
  if (operation === 'add') return date.plus({ [by]: many })
  if (operation === 'subtract') return date.minus({ [by]: many })
  throw invalidConfig('operation', 'is unknown')
}

async function writeDate(context: NodeContext, date: DateTime): Promise<string | null> {
  if (context.config.format === undefined) return null
  const format = await readFormat(context, 'format')
  try {
    return date.setLocale(await readLocale(context)).toFormat(format)
  } catch {
    throw invalidConfig('locale', 'must be a language such as en or de-CH')
  }
}

async function readDate(context: NodeContext, key: string, zone: string): Promise<DateTime> {
  const value = await context.evaluator.render(context.config[key], context.bindings)
  if (typeof value === 'number' && context.config.inputFormat === undefined) {
    return check(key, readZone(DateTime.fromMillis(value, { zone })))
  }
  const text = (await readShort(context, key)).trim()
  if (context.config.inputFormat !== undefined) return readFormatted(context, key, text, zone)
  const readers = [DateTime.fromISO, DateTime.fromSQL, DateTime.fromRFC2822, DateTime.fromHTTP]
  const read = readers.map((reader) => readZone(reader(text, { zone }))).find((date) => date.isValid)
  // Queries, headers and CSV give epoch milliseconds as strings.
  if (!read && EPOCH.test(text)) return check(key, readZone(DateTime.fromMillis(Number(text), { zone })))
  return check(key, read)
}

// In an evaluator process: the regular expression that luxon makes of a format may run for ages.
async function readFormatted(
  context: NodeContext,
  key: string,
  text: string,
  zone: string,
): Promise<DateTime> {
  const format = await readFormat(context, 'inputFormat')
  const locale = await readLocale(context)
  const millis = await context.evaluator.convert(
    { kind: 'date', text, format, zone, locale },
    context.bindings,
  )
  if (typeof millis !== 'number')
    throw invalidConfig(key, `must be a date in the format ${JSON.stringify(format)}`)
  return readZone(DateTime.fromMillis(millis, { zone }))
}

/** A format that luxon understands: it writes letters that it does not know as they are. */
async function readFormat(context: NodeContext, key: 'format' | 'inputFormat'): Promise<string> {
  const format = await readShort(context, key)
  const fault = findFormatFault(format)
  if (fault) throw invalidConfig(key, fault)
  return format
}

async function readLocale(context: NodeContext): Promise<string> {
  return context.config.locale === undefined ? 'en' : readShort(context, 'locale')
}

async function readShort(context: NodeContext, key: string): Promise<string> {
  const text = await renderText(context, key)
  if (text.length > MAX_CHARS) throw invalidConfig(key, `must have at most ${MAX_CHARS} characters`)
  return text
}

function readZone(date: DateTime): DateTime {
  if (date.invalidReason === 'unsupported zone') {
    throw invalidConfig('timezone', 'must be a time zone such as Europe/Berlin')
  }
  return date
}

function check(key: string, date: DateTime | undefined): DateTime {
  if (date?.isValid) return date
  throw invalidConfig(key, 'must be a date: ISO 8601, epoch milliseconds, or in the inputFormat')
}
