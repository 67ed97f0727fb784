import { getOwn, isObject } from '../json.ts'
import { type JsonataCode, quoteString } from './expressions/code.ts'
import type { ParameterReader } from './parameters.ts'
import type { ProblemReporter } from './report.ts'

type ConditionTools = { reader: ParameterReader; report: ProblemReporter }

/**
 * The conditions of an If, Filter or Switch node as one JSONata expression. `path` says where in the node
 * they are. `isAny` is for old versions, where another parameter says whether one condition is enough.
 */
export function readConditions(given: unknown, path: string, tools: ConditionTools, isAny = false): string {
  const conditions = isObject(given) ? given : {}
  return Array.isArray(conditions.conditions)
    ? readList(conditions, path, tools)
    : readLists(conditions, path, tools, isAny)
}

/** The form since version 2 of the If node: one list, in which every condition has an operator. */
function readList(given: Record<string, unknown>, path: string, tools: ConditionTools): string {
  const options = isObject(given.options) ? given.options : {}
  const tests = (given.conditions as unknown[]).map((entry, i) => {
    const { leftValue, rightValue, operator } = Object(entry)
    const entryPath = `${path}.conditions[${i}]`
    const { type = 'string', operation = 'equals' } = Object(operator)
    const test = writeComparison({
      type: String(type),
      operation: String(operation),
      left: tools.reader.readCode(leftValue, `${entryPath}.leftValue`),
      right: tools.reader.readCode(rightValue, `${entryPath}.rightValue`),
      isLoose: options.typeValidation === 'loose',
      ignoreCase: options.caseSensitive === false,
    })
    return test ?? replaceUnknown(`${entryPath}.operator`, `${type}.${operation}`, entry, tools)
  })
  return joinTests(tests, given.combinator === 'or')
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

/** The form of version 1: a list for each type, to which n8n converts the values. */
function readLists(
  given: Record<string, unknown>,
  path: string,
  tools: ConditionTools,
  isAny: boolean,
): string {
  const tests = Object.entries(given).flatMap(([type, list]) =>
    (Array.isArray(list) ? list : []).map((entry, i) => {
      const { value1, value2, operation = type === 'number' ? 'smaller' : 'equal' } = Object(entry)
      const entryPath = `${path}.${type}[${i}]`
      const test = writeComparison({
        type,
        operation: getOwn(OLD_OPERATIONS, String(operation)) ?? String(operation),
        left: tools.reader.readCode(value1, `${entryPath}.value1`),
        right: tools.reader.readCode(value2, `${entryPath}.value2`),
        isLoose: true,
        ignoreCase: false,
      })
      return test ?? replaceUnknown(`${entryPath}.operation`, `${type}.${operation}`, entry, tools)
    }),
  )
  return joinTests(tests, isAny)
}

function joinTests(tests: string[], isAny: boolean): string {
  if (tests.length === 0) return 'true'
  return tests.length === 1 ? tests[0]! : tests.map((test) => `(${test})`).join(isAny ? ' or ' : ' and ')
}

/** Reports a comparison that has no counterpart. The code in its place fails the node. */
function replaceUnknown(
  path: string,
  comparison: string,
  original: unknown,
  { report }: ConditionTools,
): string {
  const message =
    `n8n compares with "${comparison}", which Perdure cannot translate. The node fails when it evaluates ` +
    'the condition: write it as a JSONata expression.'
  report('parameter', path, message, original)
  return `$error(${quoteString(`The n8n comparison "${comparison}" was not imported`)})`
}

type Comparison = {
  type: string
  operation: string
  left: JsonataCode
  right: JsonataCode
  /** Whether values of another type are converted. */
  isLoose: boolean
  ignoreCase: boolean
}

/** One comparison as JSONata. Undefined if it has no counterpart. */
export function writeComparison(comparison: Comparison): string | undefined {
  const { type, operation, left, right } = comparison
  const raw = left.text
  const isMissing = `$not(${raw} != null)`
  const a = writeOperand(left, comparison)
  const b = writeOperand(right, comparison)
  switch (operation) {
    case 'exists':
      return `(${raw} != null)`
    case 'notExists':
      return isMissing
    case 'empty':
      return type === 'object' || type === 'array'
        ? `$not($boolean(${raw}))`
        : `(${isMissing} or ${raw} = "")`
    case 'true':
    case 'false':
      return `(${comparison.isLoose ? `$boolean(${a})` : a} = ${operation})`
    case 'equals':
      return `(${a} = ${b})`
    case 'gt':
    case 'after':
      return `(${a} > ${b})`
    case 'lt':
    case 'before':
      return `(${a} < ${b})`
    case 'gte':
    case 'afterOrEquals':
      return `(${a} >= ${b})`
    case 'lte':
    case 'beforeOrEquals':
      return `(${a} <= ${b})`
    case 'contains':
      return type === 'array' ? `(${b} in ${a})` : `$contains(${a}, ${b})`
    case 'startsWith':
      return `($substring(${a}, 0, $length(${b})) = ${b})`
    case 'endsWith':
      return `($length(${a}) >= $length(${b}) and $substring(${a}, $length(${a}) - $length(${b})) = ${b})`
    case 'regex':
      return writeRegexTest(raw, right)
  }
  return writeLengthTest(comparison) ?? writeNegation(comparison)
}

/** One side of a comparison, converted to its type. */
function writeOperand(code: JsonataCode, { type, isLoose, ignoreCase }: Comparison): string {
  if (type === 'number' && code.hint !== 'number' && (isLoose || code.hint === 'string'))
    return `$number(${code.text})`
  if (type === 'dateTime') return code.hint === 'number' ? code.text : `$toMillis(${code.text})`
  if (type === 'boolean' && code.hint === 'string') return `(${code.text} = "true")`
  return ignoreCase && type === 'string' ? `$lowercase(${code.text})` : code.text
}

/** Comparisons of an array's length, such as lengthGt. */
function writeLengthTest(comparison: Comparison): string | undefined {
  const { type, operation, left } = comparison
  const ofNumbers = /^length(Equals|NotEquals|Gt|Lt|Gte|Lte)$/.exec(operation)?.[1]
  if (!ofNumbers || type !== 'array') return undefined
  return writeComparison({
    ...comparison,
    type: 'number',
    operation: lowerFirst(ofNumbers),
    left: { text: `$count(${left.text})`, hint: 'number' },
  })
}

/** The opposite of another comparison, such as notEquals. */
function writeNegation(comparison: Comparison): string | undefined {
  const positive = /^not([A-Z]\w*)$/.exec(comparison.operation)?.[1]
  if (!positive) return undefined
  const test = writeComparison({ ...comparison, operation: lowerFirst(positive) })
  return test && `$not(${test})`
}

function lowerFirst(name: string): string {
  return name[0]!.toLowerCase() + name.slice(1)
}

/** JSONata has regexes only as literals, so the pattern must be a literal too. */
function writeRegexTest(text: string, { text: pattern, hint }: JsonataCode): string | undefined {
  if (hint !== 'string' || !pattern.startsWith('"')) return undefined
  const given = JSON.parse(pattern) as string
  const parts = /^\/(.*)\/([a-z]*)$/s.exec(given)
  const flags = (parts?.[2] ?? '').replace(/[gu]/g, '')
  if (/[^im]/.test(flags)) return undefined
  const source = (parts?.[1] ?? given).replace(/\\.|\//g, (part) => (part === '/' ? '\\/' : part))
  return source === '' ? undefined : `$contains(${text}, /${source}/${flags})`
}
