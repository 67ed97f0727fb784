import { isObject } from '../inputs.ts'
import { type Code, quote } from './javascript.ts'
import type { Complain } from './report.ts'
import type { Reader } from './values.ts'

type Tools = { reader: Reader; complain: Complain }

/** A condition of IF, FILTER and SWITCH, in JSONata; `path` is where it stands among the parameters. */
export function readConditions(given: unknown, path: string, tools: Tools, any?: boolean): string {
  const conditions = isObject(given) ? given : {}
  return Array.isArray(conditions.conditions)
    ? readNew(conditions, path, tools)
    : readOld(conditions, path, tools, any ?? false)
}

/** IF 2 and the like: one list, each with its operator's type and name. */
function readNew(given: Record<string, unknown>, path: string, tools: Tools): string {
  const options = isObject(given.options) ? given.options : {}
  const tests = (given.conditions as unknown[]).map((entry, i) => {
    const { leftValue, rightValue, operator } = Object(entry)
    const at = `${path}.conditions[${i}]`
    const { type = 'string', operation = 'equals' } = Object(operator)
    const test = {
      type: String(type),
      operation: String(operation),
      left: tools.reader.code(leftValue, `${at}.leftValue`),
      right: tools.reader.code(rightValue, `${at}.rightValue`),
      loose: options.typeValidation === 'loose',
      ignoreCase: options.caseSensitive === false,
    }
    return writeTest(test) ?? unknown(`${at}.operator`, `${type}.${operation}`, entry, tools)
  })
  return joinTests(tests, given.combinator === 'or')
}

const OLD: Record<string, string> = {
  equal: 'equals',
  notEqual: 'notEquals',
  isEmpty: 'empty',
  isNotEmpty: 'notEmpty',
  smaller: 'lt',
  smallerEqual: 'lte',
  larger: 'gt',
  largerEqual: 'gte',
}

/** IF 1: lists by type, whose values n8n brings to that type. */
function readOld(given: Record<string, unknown>, path: string, tools: Tools, any: boolean): string {
  const tests = Object.entries(given).flatMap(([type, list]) =>
    (Array.isArray(list) ? list : []).map((entry, i) => {
      const { value1, value2, operation = type === 'number' ? 'smaller' : 'equal' } = Object(entry)
      const at = `${path}.${type}[${i}]`
      const test = {
        type,
        operation: OLD[operation] ?? String(operation),
        left: tools.reader.code(value1, `${at}.value1`),
        right: tools.reader.code(value2, `${at}.value2`),
        loose: true,
        ignoreCase: false,
      }
      return writeTest(test) ?? unknown(`${at}.operation`, `${type}.${operation}`, entry, tools)
    }),
  )
  return joinTests(tests, any)
}

function joinTests(tests: string[], any: boolean): string {
  if (tests.length === 0) return 'true'
  return tests.length === 1 ? tests[0]! : tests.map((test) => `(${test})`).join(any ? ' or ' : ' and ')
}

function unknown(path: string, what: string, original: unknown, { complain }: Tools): string {
  const message = `The comparison ${what} has no counterpart`
  complain('parameter', path, message, original)
  return `$error(${quote(message)})`
}

type Test = { type: string; operation: string; left: Code; right: Code; loose: boolean; ignoreCase: boolean }

/** One comparison of a rule, as n8n makes it; undefined for one that there is none of. */
export function writeTest({ type, operation, left, right, loose, ignoreCase }: Test): string | undefined {
  const fold = (code: Code) => (ignoreCase && type === 'string' ? `$lowercase(${code.text})` : code.text)
  const [a, b] = [left, right].map((code) => {
    if (type === 'number' && code.hint !== 'number' && (loose || code.hint === 'text'))
      return `$number(${code.text})`
    if (type === 'dateTime') return code.hint === 'number' ? code.text : `$toMillis(${code.text})`
    if (type === 'boolean' && code.hint === 'text') return `(${code.text} = "true")`
    return fold(code)
  }) as [string, string]
  const raw = left.text
  const none = `$not(${raw} != null)`
  const not = (test: string | undefined) => test && `$not(${test})`
  const positive = /^not([A-Z])(\w*)$/.exec(operation)
  switch (operation) {
    case 'exists':
      return `(${raw} != null)`
    case 'notExists':
      return none
    case 'empty':
      return type === 'object' || type === 'array' ? `$not($boolean(${raw}))` : `(${none} or ${raw} = "")`
    case 'notEmpty':
      return not(writeTest({ type, operation: 'empty', left, right, loose, ignoreCase }))
    case 'true':
    case 'false':
      return `(${loose ? `$boolean(${a})` : a} = ${operation})`
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
      return writeRegex(raw, right)
  }
  const size = /^length(Equals|NotEquals|Gt|Lt|Gte|Lte)$/.exec(operation)?.[1]
  if (size && type === 'array') {
    const compared = writeTest({
      type: 'number',
      operation: size[0]!.toLowerCase() + size.slice(1),
      left: { text: `$count(${raw})`, hint: 'number' },
      right,
      loose,
      ignoreCase,
    })
    return compared
  }
  if (!positive) return undefined
  const rest = `${positive[1]!.toLowerCase()}${positive[2]}`
  return not(writeTest({ type, operation: rest, left, right, loose, ignoreCase }))
}

/** JSONata has regexes as literals only. */
function writeRegex(text: string, { text: pattern, hint }: Code): string | undefined {
  if (hint !== 'text' || !pattern.startsWith('"')) return undefined
  const given = JSON.parse(pattern) as string
  const parts = /^\/(.*)\/([a-z]*)$/s.exec(given)
  const flags = (parts?.[2] ?? '').replace(/[gu]/g, '')
  if (/[^im]/.test(flags)) return undefined
  const source = (parts?.[1] ?? given).replace(/\\.|\//g, (part) => (part === '/' ? '\\/' : part))
  return source === '' ? undefined : `$contains(${text}, /${source}/${flags})`
}
