import type { DataColumn, DataRow } from './data.ts'

export const TYPES = ['text', 'number', 'boolean', 'date', 'json'] as const

const OPS = {
  eq: 'is',
  ne: 'is not',
  gt: 'is above',
  gte: 'is at least',
  lt: 'is below',
  lte: 'is at most',
  in: 'is one of',
  contains: 'contains',
  startsWith: 'starts with',
  empty: 'is empty',
  notEmpty: 'is not empty',
  blank: 'has no text',
  notBlank: 'has a text',
} as const

export type Op = keyof typeof OPS

/** A condition while it is made: its value is a text, of `in` one a line. */
export type Condition = { column: string; op: Op; text: string }

/** The ways in which values of a type are compared, as choices. */
export function listOps(type: DataColumn['type']): { value: Op; label: string }[] {
  const all = Object.entries(OPS) as [Op, string][]
  return all
    .filter(([op]) => {
      if (op === 'empty' || op === 'notEmpty') return true
      if (op === 'blank' || op === 'notBlank') return type === 'text'
      if (type === 'json') return false
      if (type === 'boolean') return op === 'eq' || op === 'ne'
      return type === 'text' || (op !== 'contains' && op !== 'startsWith')
    })
    .map(([value, label]) => ({ value, label }))
}

const VALUELESS: readonly Op[] = ['empty', 'notEmpty', 'blank', 'notBlank']

export const hasValue = (op: Op) => !VALUELESS.includes(op)

/** The conditions as the API takes them; '' for none. */
export function writeWhere(columns: readonly DataColumn[], conditions: readonly Condition[]): string {
  if (conditions.length === 0) return ''
  return JSON.stringify(
    conditions.map(({ column, op, text }) => {
      if (!hasValue(op)) return { column, op }
      if (op === 'in') return { column, op, value: text.split('\n').filter((line) => line !== '') }
      const isBoolean = columns.find(({ name }) => name === column)?.type === 'boolean'
      return { column, op, value: isBoolean ? text === 'true' : text }
    }),
  )
}

/** The conditions of an address; what is none is left out. */
export function readWhere(where: string): Condition[] {
  try {
    const given: unknown = JSON.parse(where || '[]')
    if (!Array.isArray(given)) return []
    return given.flatMap((one: { column?: unknown; op?: unknown; value?: unknown } | null) => {
      if (typeof one?.column !== 'string' || !Object.hasOwn(OPS, String(one.op))) return []
      const text = Array.isArray(one.value) ? one.value.join('\n') : String(one.value ?? '')
      return [{ column: one.column, op: one.op as Op, text }]
    })
  } catch {
    return []
  }
}

/** A value as people read it. Dates are those of UTC, as they are kept: a day is the same day everywhere. */
export function showValue(type: DataColumn['type'], value: unknown): string {
  if (value === null || value === undefined) return ''
  if (type === 'boolean') return value === true ? 'Yes' : 'No'
  if (type === 'json') return JSON.stringify(value)
  if (type !== 'date') return String(value)
  const [day, time = ''] = String(value).split('T')
  return time === '00:00:00.000Z' ? day! : `${day} ${time.replace('.000Z', 'Z').replace('Z', ' UTC')}`
}

/** A value as it is typed. */
export function typeValue(type: DataColumn['type'], value: unknown): string {
  if (value === null || value === undefined) return ''
  return type === 'json' ? JSON.stringify(value, null, 2) : String(value)
}

/** The value that was typed; null for none. What is no number and no date is refused by the API. Throws for text that is no JSON. */
export function readTyped(type: DataColumn['type'], text: string): unknown {
  if (text === '') return null
  if (type === 'boolean') return text === 'true'
  return type === 'json' ? JSON.parse(text) : text
}

/** What a row is called: its first text, or the end of its id. */
export function nameDataRow(columns: readonly DataColumn[], row: DataRow): string {
  const texts = columns.filter(({ type }) => type === 'text').map(({ name }) => row[name])
  const found = texts.find((one) => typeof one === 'string' && one.trim() !== '')
  return typeof found === 'string' ? found.slice(0, 60) : row.id.slice(-12)
}

/** 12 bytes, 3.4 KB, 5.6 MB, as the limits of plans count them. */
export function showBytes(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`
  const [size, unit] = bytes < 1_000_000 ? [bytes / 1_000, 'KB'] : [bytes / 1_000_000, 'MB']
  return `${size.toLocaleString(undefined, { maximumFractionDigits: 1 })} ${unit}`
}
