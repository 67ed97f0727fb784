import type { DateTime } from 'luxon'
import type { Conditions, Operator } from '../../../workflows/nodes/conditions.ts'
import { type CastType, castValue, readLargeWhole } from './casts.ts'
import { NodeFailure } from './failure.ts'
import type { NodeContext } from './node.ts'

type Test = Conditions['conditions'][number]
type Searcher = (text: string, pattern: string) => Promise<boolean>

/**
 * Whether conditions hold whose values have been rendered. Regular expressions run in an evaluator process.
 * Throws a NodeFailure (InvalidInput) for a value that is not of the condition's type.
 */
export async function testConditions(
  { combinator, conditions, ...options }: Conditions,
  { evaluator, bindings }: Pick<NodeContext, 'evaluator' | 'bindings'>,
): Promise<boolean> {
  const search: Searcher = async (text, pattern) =>
    (await evaluator.convert({ kind: 'search', text, pattern }, bindings)) === true
  const wanted = combinator === 'or'
  for (const [at, test] of conditions.entries()) {
    if ((await testOne(test, at, options, search)) === wanted) return wanted
  }
  return !wanted
}

type Options = Omit<Conditions, 'combinator' | 'conditions'>

async function testOne(test: Test, at: number, options: Options, search: Searcher): Promise<boolean> {
  const { left, right, operator } = test
  if (options.types === 'none') return compareBare(operator, left, right, search)
  const a = readSide(left, operator.type, options)
  const b = readSide(right, operator.rightType ?? operator.type, options)
  const strict = options.types !== 'loose'
  if (!a) throw wrongType(left, operator.type, strict, at)
  const ignoresRight = SINGLE.has(operator.operation)
  if (!b && !ignoresRight) throw wrongType(right, operator.rightType ?? operator.type, strict, at)
  return compare(operator, a.cast, b?.cast, options.ignoreCase === true, search)
}

const SINGLE = new Set(['exists', 'notExists', 'empty', 'notEmpty', 'true', 'false'])

function readSide(value: unknown, type: CastType, { types, dialect = 3 }: Options) {
  if (value === null || value === undefined || type === 'any') return { cast: value }
  const loose = types === 'loose'
  if (type === 'boolean' && loose) return (dialect >= 2 && castValue(value, type)) || { cast: Boolean(value) }
  if (type === 'number' && dialect >= 3) {
    const isEmpty = typeof value === 'string' ? value.trim() === '' : Array.isArray(value) && !value.length
    if (isEmpty) return { cast: undefined }
  }
  if (!loose && type !== 'dateTime' && !isOfType(value, type)) return undefined
  // Two ids that differ in their last digit are not equal, as they would be once rounded.
  const exact = type === 'number' ? readLargeWhole(value) : undefined
  return exact === undefined ? castValue(value, type) : { cast: exact }
}

function isOfType(value: unknown, type: CastType): boolean {
  if (type === 'array') return Array.isArray(value)
  return type === 'object' ? typeof value === 'object' : typeof value === type
}

function wrongType(value: unknown, type: string, strict: boolean, at: number): NodeFailure {
  const a = (name: string) => `${/^[aeio]/.test(name) ? 'an' : 'a'} ${name}`
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
  const shown = text.length > 200 ? `${text.slice(0, 200)}...` : text
  const message = strict
    ? `Wrong type: '${shown}' is ${a(typeof value)} but was expecting ${a(type)} [condition ${at}]`
    : `Conversion error: the ${typeof value} '${shown}' can't be converted to ${a(type)} [condition ${at}]`
  return new NodeFailure(message, { type: 'InvalidInput' })
}

async function compare(
  { type, operation }: Operator,
  left: unknown,
  right: unknown,
  ignoreCase: boolean,
  search: Searcher,
): Promise<boolean> {
  const exists = left !== null && left !== undefined
  if (operation === 'exists') return exists
  if (operation === 'notExists') return !exists
  const negated = /^not([A-Z])(\w*)$/.exec(operation)
  if (negated) {
    // A date that is missing is neither equal nor unequal to another one.
    if (type === 'dateTime' && operation === 'notEquals' && (!left || !right)) return false
    const positive = negated[1]!.toLowerCase() + negated[2]!
    return !(await compare({ type, operation: positive }, left, right, ignoreCase, search))
  }
  switch (type) {
    case 'string':
      return compareText(operation, left ?? '', right ?? '', ignoreCase, search)
    case 'array':
      return compareList(operation, (left ?? []) as unknown[], right, ignoreCase)
    case 'object':
      return operation === 'empty' && (!left || Object.keys(left).length === 0)
    case 'boolean':
      if (operation === 'true' || operation === 'false') return Boolean(left) === (operation === 'true')
      return operation === 'empty' ? !exists : operation === 'equals' && left === right
    case 'dateTime':
      if (operation === 'empty') return !exists
      if (!left || !right) return false
      return compareOrder(operation, (left as DateTime).toMillis(), (right as DateTime).toMillis())
    case 'number':
      return operation === 'empty'
        ? !exists
        : compareOrder(operation, left as number | bigint, right as number | bigint)
  }
  return false
}

async function compareText(
  operation: string,
  left: unknown,
  right: unknown,
  ignoreCase: boolean,
  search: Searcher,
): Promise<boolean> {
  const fold = (text: unknown) => (ignoreCase ? String(text).toLowerCase() : String(text))
  const [a, b] = [fold(left), fold(right)]
  if (operation === 'empty') return a === ''
  if (operation === 'equals') return a === b
  if (operation === 'contains') return a.includes(b)
  if (operation === 'startsWith') return a.startsWith(b)
  if (operation === 'endsWith') return a.endsWith(b)
  return operation === 'regex' && search(a, String(right))
}

function compareList(operation: string, list: unknown[], right: unknown, ignoreCase: boolean): boolean {
  if (operation === 'empty') return list.length === 0
  if (operation === 'contains') {
    if (!ignoreCase || typeof right !== 'string') return list.includes(right)
    const wanted = right.toLowerCase()
    return list.some((one) => typeof one === 'string' && one.toLowerCase() === wanted)
  }
  const ofLength = /^length([A-Z])(\w*)$/.exec(operation)
  if (!ofLength) return false
  const inner = ofLength[1]!.toLowerCase() + ofLength[2]!
  const right_ = right as number
  return inner === 'notEquals' ? list.length !== right_ : compareOrder(inner, list.length, right_)
}

/** JavaScript's own comparison: null counts as 0 before and after another number. */
function compareOrder(operation: string, a: number | bigint, b: number | bigint): boolean {
  switch (operation) {
    case 'equals':
      return a === b
    case 'gt':
    case 'after':
      return a > b
    case 'lt':
    case 'before':
      return a < b
    case 'gte':
    case 'afterOrEquals':
      return a >= b
    case 'lte':
    case 'beforeOrEquals':
      return a <= b
  }
  return false
}

/** Compares values as they are, without asking for their type. Dates are read first. */
async function compareBare(
  { type, operation }: Operator,
  given: unknown,
  other: unknown,
  search: Searcher,
): Promise<boolean> {
  const [left, right] = type === 'dateTime' ? [toMillis(given), toMillis(other)] : [given, other]
  const negated = /^not([A-Z])(\w*)$/.exec(operation)
  if (negated) {
    const positive = negated[1]!.toLowerCase() + negated[2]!
    return !(await compareBare({ type: 'any', operation: positive }, left, right, search))
  }
  const [a, b] = [left || 0, right || 0] as [number, number]
  const text = (value: unknown) => String(value || '')
  switch (operation) {
    case 'equals':
      return left === right
    case 'empty':
      if (typeof left === 'object' && left !== null) return Object.keys(left).length === 0
      return left === null || left === undefined || left === ''
    case 'contains':
      return text(left).includes(text(right))
    case 'startsWith':
      return demandText(left).startsWith(String(right))
    case 'endsWith':
      return demandText(left).endsWith(String(right))
    case 'regex':
      return search(text(left), text(right))
  }
  return compareOrder(operation, a, b)
}

function demandText(value: unknown): string {
  if (typeof value === 'string') return value
  const text = `The value "${String(value).slice(0, 200)}" must be a string to be compared by its beginning or end`
  throw new NodeFailure(text, { type: 'InvalidInput' })
}

function toMillis(value: unknown): number {
  const millis = typeof value === 'string' ? new Date(value).getTime() : value
  if (typeof millis === 'number' && !Number.isNaN(millis)) return millis
  throw new NodeFailure(`The value "${String(value).slice(0, 200)}" is not a valid DateTime.`, {
    type: 'InvalidInput',
  })
}
