import { getOwn, isObject } from '../../json.ts'
import { keepTexts, listObjects } from '../texts.ts'

/** The types of our conditions, by n8n's. */
const TYPES = new Set(['string', 'number', 'boolean', 'dateTime', 'array', 'object', 'any'])
type Operator = { type: string; operation: string; rightType?: string }

/** The conditions of an If, Filter or Switch node since version 2, as our `conditions`. */
export function readConditions(given: unknown): Record<string, unknown> {
  const { conditions, combinator = 'and', options } = isObject(given) ? given : {}
  const { typeValidation, caseSensitive, version } = isObject(options) ? options : {}
  return {
    combinator: combinator === 'or' ? 'or' : 'and',
    types: typeValidation === 'strict' ? 'strict' : 'loose',
    ...(caseSensitive === true ? {} : { ignoreCase: true }),
    dialect: version === 2 || version === 3 ? version : 1,
    conditions: listObjects(conditions).map(({ leftValue, rightValue, operator }) => ({
      left: keepTexts(leftValue ?? null),
      operator: readOperator(Object(operator)),
      right: keepTexts(rightValue ?? null),
    })),
  }
}

function readOperator({
  type = 'string',
  operation = 'equals',
  rightType,
}: Record<string, unknown>): Operator {
  if (!TYPES.has(String(type))) throw new Error(`it compares values of the type "${type}"`)
  return {
    type: String(type),
    operation: String(operation).replace(/[^A-Za-z]/g, ''),
    ...(rightType && TYPES.has(String(rightType)) ? { rightType: String(rightType) } : {}),
  }
}

const OLD_OPERATIONS: Record<string, string> = {
  equal: 'equals',
  notEqual: 'notEquals',
  isEmpty: 'empty',
  isNotEmpty: 'notEmpty',
  smaller: 'lt',
  smallerEqual: 'lte',
  larger: 'gt',
  largerEqual: 'gte',
}

/** The values and the operation of a comparison, if the document leaves them out. */
const DEFAULTS: Record<string, { value: unknown; operation: string }> = {
  boolean: { value: false, operation: 'equal' },
  dateTime: { value: '', operation: 'after' },
  number: { value: 0, operation: 'smaller' },
  string: { value: '', operation: 'equal' },
}

/** The conditions of version 1: a list for each type, whose values are compared as they are. */
export function readOldConditions(given: unknown, isAny: boolean): Record<string, unknown> {
  const lists = isObject(given) ? given : {}
  const conditions = Object.keys(DEFAULTS).flatMap((type) =>
    listObjects(lists[type]).map((entry) => readOldComparison(type, entry)),
  )
  return { combinator: isAny ? 'or' : 'and', types: 'none', conditions }
}

/** A comparison in the words of the first versions: {value1, operation, value2}. */
export function readOldComparison(type: string, entry: Record<string, unknown>) {
  const defaults = getOwn(DEFAULTS, type) ?? DEFAULTS.string!
  const { value1 = defaults.value, value2 = defaults.value, operation = defaults.operation } = entry
  return {
    left: keepTexts(value1),
    operator: {
      type: type === 'dateTime' ? type : 'any',
      operation: getOwn(OLD_OPERATIONS, String(operation)) ?? String(operation),
    },
    right: keepTexts(value2),
  }
}
