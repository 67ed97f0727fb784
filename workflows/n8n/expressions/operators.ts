import type { Expression } from 'acorn'
import { getOwn } from '../../json.ts'
import { booleanCode, type JsonataCode, numberCode, stringCode, toPlainValue, unknownCode } from './code.ts'
import { failTranslation, type Translator } from './translator.ts'

export function readUnary(operator: string, argument: Expression, translator: Translator): JsonataCode {
  if (operator === 'typeof') failTranslation('uses typeof')
  const { text, hint } = translator.read(argument)
  if (operator === '!') return booleanCode(`$not(${text})`)
  if (operator === '-') return numberCode(hint === 'string' ? `(-$number(${text}))` : `(-${text})`)
  if (operator === '+') return numberCode(hint === 'number' ? text : `$number(${text})`)
  return failTranslation(`uses the operator ${operator}`)
}

/** Operators that JSONata and JavaScript write alike. */
const COMPARISONS = new Set(['<', '>', '<=', '>='])
const CALCULATIONS = new Set(['-', '*', '/', '%'])

export function readBinary(
  operator: string,
  leftNode: Expression,
  rightNode: Expression,
  translator: Translator,
): JsonataCode {
  const isEquality = /^[!=]==?$/.test(operator)
  const test =
    readTypeofTest(operator, leftNode, rightNode, translator) ??
    (isEquality ? readUndefinedTest(operator, leftNode, rightNode, translator) : undefined)
  if (test) return test
  const left = translator.read(leftNode)
  const right = translator.read(rightNode)
  if (operator === '+') return readPlus(left, right, translator)
  if (isEquality) {
    const equal = operator.length === 3 ? `(${left.text} = ${right.text})` : writeLooseEquality(left, right)
    if (operator[0] === '=') return booleanCode(equal)
    return booleanCode(operator.length === 3 ? `$not${equal}` : `$not(${equal})`)
  }
  if (COMPARISONS.has(operator)) return booleanCode(`(${left.text} ${operator} ${right.text})`)
  if (!CALCULATIONS.has(operator)) return failTranslation(`uses the operator ${operator}`)
  const [a, b] = [left, right].map(({ text, hint }) => (hint === 'string' ? `$number(${text})` : text))
  return numberCode(`(${a} ${operator} ${b})`)
}

/** A comparison with undefined. === asks whether the value exists, == is also true for null. */
function readUndefinedTest(
  operator: string,
  left: Expression,
  right: Expression,
  translator: Translator,
): JsonataCode | undefined {
  const isUndefined = (node: Expression) => node.type === 'Identifier' && node.name === 'undefined'
  if (!isUndefined(left) && !isUndefined(right)) return undefined
  const { text } = translator.read(isUndefined(left) ? right : left)
  const exists = operator.length === 3 ? `$exists(${text})` : `(${text} != null)`
  return booleanCode(operator[0] === '=' ? `$not(${exists})` : exists)
}

/** JavaScript's ==: undefined equals null, and "12" equals 12. */
function writeLooseEquality(left: JsonataCode, right: JsonataCode): string {
  if (left.hint === 'null') return `$not(${right.text} != null)`
  if (right.hint === 'null') return `$not(${left.text} != null)`
  const equal = `(${left.text} = ${right.text})`
  if (left.hint === right.hint && left.hint !== 'unknown') return equal
  const mayDiffer = [left, right].some(({ hint }) => hint === 'number' || hint === 'string')
  return mayDiffer ? `($string(${left.text}) = $string(${right.text}))` : equal
}

/** `typeof value === "string"`; undefined for any other comparison. */
function readTypeofTest(
  operator: string,
  left: Expression,
  right: Expression,
  translator: Translator,
): JsonataCode | undefined {
  if (left.type !== 'UnaryExpression' || left.operator !== 'typeof' || right.type !== 'Literal')
    return undefined
  const { text } = translator.read(left.argument)
  const tests: Record<string, string> = {
    string: `($type(${text}) = "string")`,
    number: `($type(${text}) = "number")`,
    boolean: `($type(${text}) = "boolean")`,
    undefined: `$not($exists(${text}))`,
    object: `($type(${text}) in ["object", "array", "null"])`,
  }
  const test = getOwn(tests, String(right.value))
  if (!test || !/^[!=]==?$/.test(operator)) return failTranslation('uses typeof')
  return booleanCode(operator[0] === '=' ? test : `$not(${test})`)
}

/** Adds numbers and joins strings. If the types are not known, the code asks the values. */
function readPlus(leftValue: JsonataCode, rightValue: JsonataCode, translator: Translator): JsonataCode {
  const [left, right] = [toPlainValue(leftValue), toPlainValue(rightValue)]
  if (left.hint === 'number' && right.hint === 'number') return numberCode(`(${left.text} + ${right.text})`)
  if (left.hint === 'string' || right.hint === 'string') return stringCode(`(${left.text} & ${right.text})`)
  return translator.share(left, (a) =>
    translator.share(right, (b) => {
      const tests = [a, b]
        .filter(({ hint }) => hint !== 'number')
        .map(({ text }) => `$type(${text}) = "number"`)
      return unknownCode(`(${tests.join(' and ')} ? ${a.text} + ${b.text} : ${a.text} & ${b.text})`)
    }),
  )
}

/** `&&`, `||` and `??`: on booleans as JSONata's own operators, otherwise as the choice of a value. */
export function readLogical(
  operator: string,
  leftValue: JsonataCode,
  rightValue: JsonataCode,
  translator: Translator,
): JsonataCode {
  const [left, right] = [toPlainValue(leftValue), toPlainValue(rightValue)]
  const hint = left.hint === right.hint ? left.hint : 'unknown'
  if (left.hint === 'boolean' && right.hint === 'boolean' && operator !== '??') {
    return { text: `(${left.text} ${operator === '&&' ? 'and' : 'or'} ${right.text})`, hint }
  }
  return translator.share(left, ({ text }) => {
    if (operator === '&&') return { text: `($boolean(${text}) ? ${right.text} : ${text})`, hint }
    const test = operator === '||' ? `$boolean(${text})` : `${text} != null`
    return { text: `(${test} ? ${text} : ${right.text})`, hint }
  })
}
