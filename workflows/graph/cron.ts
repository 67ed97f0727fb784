/**
 * The values that each of the five fields of a Unix cron expression matches, ascending; Sunday is 0.
 * `eitherDay` is true if both day fields are restricted: then a day that matches either of them is enough.
 */
export type Cron = Record<FieldName, number[]> & { eitherDay: boolean }

type FieldName = 'minute' | 'hour' | 'dayOfMonth' | 'month' | 'dayOfWeek'

type Field = { key: FieldName; name: string; min: number; max: number; names?: string[] }

const MONTHS = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC']
const DAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT']

const FIELDS: Field[] = [
  { key: 'minute', name: 'minute', min: 0, max: 59 },
  { key: 'hour', name: 'hour', min: 0, max: 23 },
  { key: 'dayOfMonth', name: 'day of month', min: 1, max: 31 },
  { key: 'month', name: 'month', min: 1, max: 12, names: ['', ...MONTHS] },
  { key: 'dayOfWeek', name: 'day of week', min: 0, max: 7, names: DAYS },
]

const LONGEST = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
const MAX_LENGTH = 300
const SHAPE = 'must have five fields: minute, hour, day of month, month, day of week'

/** Reads a cron expression. `problems` says what is wrong with each field; without any, `cron` is valid. */
export function parseCron(text: string): { cron: Cron; problems: string[] } {
  const problems: string[] = []
  const cron = { eitherDay: false } as Cron
  const parts = text.trim().split(/\s+/)
  if (text.length > MAX_LENGTH) problems.push(`must have at most ${MAX_LENGTH} characters`)
  else if (text.trim().startsWith('@')) problems.push(`${SHAPE}; macros such as @daily are not supported`)
  else if (parts.length !== FIELDS.length) {
    problems.push(`${SHAPE}; it has ${text.trim() === '' ? 0 : parts.length}`)
  }
  if (problems.length > 0) return { cron, problems }

  FIELDS.forEach((field, at) => {
    cron[field.key] = readField(field, parts[at]!, problems)
  })
  if (problems.length > 0) return { cron, problems }
  // As in cron, a field that begins with * counts as unrestricted, even with a step.
  cron.eitherDay = !parts[2]!.startsWith('*') && !parts[4]!.startsWith('*')
  const never = !cron.eitherDay && cron.month.every((month) => cron.dayOfMonth[0]! > LONGEST[month - 1]!)
  if (never) problems.push('names a day that never comes')
  return { cron, problems }
}

function readField(field: Field, text: string, problems: string[]): number[] {
  const values = new Set<number>()
  for (const item of text.split(',')) {
    const fault = addItem(field, item, values)
    if (fault) problems.push(`${field.name}: ${fault}`)
  }
  // Both 0 and 7 are Sunday.
  if (field.key === 'dayOfWeek' && values.delete(7)) values.add(0)
  return [...values].sort((a, b) => a - b)
}

// Adds the values of one item (`*`, `5`, `5-10`, `*/2` or `5-10/2`), or returns what is wrong with it.
function addItem(field: Field, item: string, values: Set<number>): string | undefined {
  const [, from = '', to, step] = /^([^-/]+)(?:-([^-/]+))?(?:\/([^-/]+))?$/.exec(item) ?? []
  if (from === '' || (from === '*' && to !== undefined)) {
    return `"${item}" is not a value, range (1-5) or step (*/2, 1-5/2)`
  }
  const { min, max } = field
  const lowest = from === '*' ? min : readValue(field, from)
  const highest = from === '*' ? (field.key === 'dayOfWeek' ? 6 : max) : to ? readValue(field, to) : lowest
  if (lowest === undefined || highest === undefined) {
    const names = field.names ? ` or one of ${field.names.filter(Boolean).join(', ')}` : ''
    return `"${lowest === undefined ? from : to}" is not a number from ${min} to ${max}${names}`
  }
  if (lowest > highest) return `the range "${from}-${to}" runs backwards`
  if (step !== undefined && from !== '*' && to === undefined) {
    return `the step "${item}" needs a range, such as ${from}-${max}/${step}`
  }
  const stride = step === undefined ? 1 : /^\d{1,2}$/.test(step) ? Number(step) : 0
  if (stride < 1 || stride > max) return `the step "${step}" is not a number from 1 to ${max}`
  for (let value = lowest; value <= highest; value += stride) values.add(value)
  return undefined
}

function readValue({ min, max, names }: Field, text: string): number | undefined {
  const named = names?.indexOf(text.toUpperCase()) ?? -1
  if (named >= 0) return named
  const value = /^\d{1,2}$/.test(text) ? Number(text) : -1
  return value >= min && value <= max ? value : undefined
}

/** The IANA name of a time zone, as Temporal knows it; undefined for other names and offsets (+01:00). */
export function findTimezone(name: string): string | undefined {
  if (!/^[A-Za-z]/.test(name)) return undefined
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone
  } catch {
    return undefined
  }
}
