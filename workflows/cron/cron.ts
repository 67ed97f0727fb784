import { combineDays, type DayRule, findDayRules, isPossible } from './days.ts'

/**
 * A Unix cron expression: the values of its fields that fit, ascending, and the days. `passes` says which instants of a
 * civil time count that the clocks show twice: if the minute or the hour begins with * every one, else the first.
 */
export type Cron = {
  minute: number[]
  hour: number[]
  month: number[]
  /** A day that fits one of them fits. */
  days: DayRule[]
  passes: 'first' | 'every'
}

type FieldName = 'minute' | 'hour' | 'dayOfMonth' | 'month' | 'dayOfWeek'

/** `days` says which items a day field has besides values. */
type Field = { key: FieldName; name: string; min: number; max: number; names?: string[]; days?: string }

const MONTHS = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC']
const DAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT']

const FIELDS: Field[] = [
  { key: 'minute', name: 'minute', min: 0, max: 59 },
  { key: 'hour', name: 'hour', min: 0, max: 23 },
  { key: 'dayOfMonth', name: 'day of month', min: 1, max: 31, days: 'a number from 1 to 31, L, LW and 15W' },
  { key: 'month', name: 'month', min: 1, max: 12, names: ['', ...MONTHS] },
  {
    key: 'dayOfWeek',
    name: 'day of week',
    min: 0,
    max: 7,
    names: DAYS,
    days: 'a number from 0 to 7, MON, FRIL and MON#2',
  },
]

const MAX_LENGTH = 300
const SHAPE = 'must have five fields: minute, hour, day of month, month, day of week'

/** Reads a cron expression. `problems` says what is wrong with each field; without any, `cron` is valid. */
export function parseCron(text: string): { cron: Cron; problems: string[] } {
  const problems: string[] = []
  const cron = {} as Cron
  const parts = text.trim().split(/\s+/)
  if (text.length > MAX_LENGTH) problems.push(`must have at most ${MAX_LENGTH} characters`)
  else if (text.trim().startsWith('@')) problems.push(`${SHAPE}; macros such as @daily are not supported`)
  else if (parts.length !== FIELDS.length) {
    problems.push(`${SHAPE}; it has ${text.trim() === '' ? 0 : parts.length}`)
  }
  if (problems.length > 0) return { cron, problems }

  const rules: DayRule[][] = []
  const values = FIELDS.map((field, at) => {
    const found = readField(field, parts[at]!, problems)
    rules.push(found.rules)
    return found.values
  })
  if (problems.length > 0) return { cron, problems }
  const [minute, hour, dayOfMonth, month, dayOfWeek] = values as [
    number[],
    number[],
    number[],
    number[],
    number[],
  ]
  const days = combineDays(
    { values: dayOfMonth, rules: rules[2]!, isOpen: parts[2]!.startsWith('*') },
    { values: dayOfWeek, rules: rules[4]!, isOpen: parts[4]!.startsWith('*') },
  )
  if (!days.some((rule) => month.some((one) => isPossible(rule, one))))
    problems.push('names a day that never comes')
  const passes = parts[0]!.startsWith('*') || parts[1]!.startsWith('*') ? 'every' : 'first'
  return { cron: { minute, hour, month, days, passes }, problems }
}

/** The values of a field, and the rules of its items that are no values, such as L. */
function readField(field: Field, text: string, problems: string[]): { values: number[]; rules: DayRule[] } {
  const values = new Set<number>()
  const rules: DayRule[] = []
  for (const item of text.split(',')) {
    const found = findDayRules(field.key, item, (value) => readValue(field, value))
    const fault = found ? undefined : addItem(field, item, values)
    if (found) rules.push(...found)
    if (fault) problems.push(`${field.name}: ${fault}`)
  }
  // Both 0 and 7 are Sunday.
  if (field.key === 'dayOfWeek' && values.delete(7)) values.add(0)
  return { values: [...values].sort((a, b) => a - b), rules }
}

// Adds the values of one item (`*`, `5`, `5-10`, `*/2` or `5-10/2`), or returns what is wrong with it.
function addItem(field: Field, item: string, values: Set<number>): string | undefined {
  if (field.days && /[#?L]|\dW/i.test(item)) return `"${item}" is none of ${field.days}`
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
