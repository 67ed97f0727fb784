import type { Expression } from 'acorn'
import { type Code, fail, settle, type Translation } from './javascript.ts'

export function readUnary(operator: string, argument: Expression, at: Translation): Code {
  if (operator === 'typeof') fail('uses typeof')
  const { text, hint } = at.read(argument)
  if (operator === '!') return { text: `$not(${text})`, hint: 'boolean' }
  if (operator === '-')
    return { text: hint === 'text' ? `(-$number(${text}))` : `(-${text})`, hint: 'number' }
  if (operator === '+') return { text: hint === 'number' ? text : `$number(${text})`, hint: 'number' }
  return fail(`uses the operator ${operator}`)
}

const COMPARED: Record<string, string> = { '<': '<', '>': '>', '<=': '<=', '>=': '>=' }
const COUNTED: Record<string, string> = { '-': '-', '*': '*', '/': '/', '%': '%' }

export function readBinary(
  operator: string,
  leftNode: Expression,
  rightNode: Expression,
  at: Translation,
): Code {
  const kind = readTypeof(operator, leftNode, rightNode, at)
  if (kind) return kind
  const undefinedAt = [leftNode, rightNode].findIndex(
    (n) => n.type === 'Identifier' && n.name === 'undefined',
  )
  if (undefinedAt >= 0 && /^[!=]==?$/.test(operator)) {
    const { text } = at.read(undefinedAt === 0 ? rightNode : leftNode)
    const there = operator.length === 3 ? `$exists(${text})` : `(${text} != null)`
    return { text: operator[0] === '=' ? `$not(${there})` : there, hint: 'boolean' }
  }
  const left = at.read(leftNode)
  const right = at.read(rightNode)
  if (operator === '+') return readPlus(left, right, at)
  const equal = `(${left.text} = ${right.text})`
  switch (operator) {
    case '===':
      return { text: equal, hint: 'boolean' }
    case '!==':
      return { text: `$not${equal}`, hint: 'boolean' }
    case '==':
    case '!=': {
      // To null, undefined is equal too; text and number by the number.
      const loose = looselyEqual(left, right, equal)
      return { text: operator === '==' ? loose : `$not(${loose})`, hint: 'boolean' }
    }
  }
  if (COMPARED[operator]) return { text: `(${left.text} ${operator} ${right.text})`, hint: 'boolean' }
  if (!COUNTED[operator]) return fail(`uses the operator ${operator}`)
  const [a, b] = [left, right].map(({ text, hint }) => (hint === 'text' ? `$number(${text})` : text))
  return { text: `(${a} ${operator} ${b})`, hint: 'number' }
}

function looselyEqual(left: Code, right: Code, equal: string): string {
  if (left.hint === 'null') return `$not(${right.text} != null)`
  if (right.hint === 'null') return `$not(${left.text} != null)`
  if (left.hint === right.hint && left.hint !== 'unknown') return equal
  const numeric = [left, right].some(({ hint }) => hint === 'number')
  if (numeric || [left, right].some(({ hint }) => hint === 'text')) {
    return `($string(${left.text}) = $string(${right.text}))`
  }
  return equal
}

function readTypeof(
  operator: string,
  left: Expression,
  right: Expression,
  at: Translation,
): Code | undefined {
  if (left.type !== 'UnaryExpression' || left.operator !== 'typeof' || right.type !== 'Literal')
    return undefined
  const { text } = at.read(left.argument)
  const tests: Record<string, string> = {
    string: `($type(${text}) = "string")`,
    number: `($type(${text}) = "number")`,
    boolean: `($type(${text}) = "boolean")`,
    undefined: `$not($exists(${text}))`,
    object: `($type(${text}) in ["object", "array", "null"])`,
  }
  const test = tests[String(right.value)]
  if (!test || !/^[!=]==?$/.test(operator)) return fail('uses typeof')
  return { text: operator[0] === '=' ? test : `$not(${test})`, hint: 'boolean' }
}

/** Adds numbers, joins texts; where only the values tell which, they decide. */
function readPlus(given: Code, other: Code, at: Translation): Code {
  const [left, right] = [settle(given), settle(other)]
  if (left.hint === 'number' && right.hint === 'number')
    return { text: `(${left.text} + ${right.text})`, hint: 'number' }
  if (left.hint === 'text' || right.hint === 'text')
    return { text: `(${left.text} & ${right.text})`, hint: 'text' }
  return at.share(left, (a) =>
    at.share(right, (b) => {
      const tests = [a, b]
        .filter(({ hint }) => hint !== 'number')
        .map(({ text }) => `$type(${text}) = "number"`)
      return {
        text: `(${tests.join(' and ')} ? ${a.text} + ${b.text} : ${a.text} & ${b.text})`,
        hint: 'unknown',
      }
    }),
  )
}

export function readLogical(operator: string, given: Code, other: Code, at: Translation): Code {
  const [left, right] = [settle(given), settle(other)]
  const hint = left.hint === right.hint ? left.hint : 'unknown'
  if (left.hint === 'boolean' && right.hint === 'boolean' && operator !== '??') {
    return { text: `(${left.text} ${operator === '&&' ? 'and' : 'or'} ${right.text})`, hint }
  }
  return at.share(left, ({ text }) => {
    if (operator === '&&') return { text: `($boolean(${text}) ? ${right.text} : ${text})`, hint }
    const test = operator === '||' ? `$boolean(${text})` : `${text} != null`
    return { text: `(${test} ? ${text} : ${right.text})`, hint }
  })
}
