import type { Expression, SpreadElement } from 'acorn'
import { getOwn } from '../../json.ts'
import {
  booleanCode,
  type JsonataCode,
  listCode,
  numberCode,
  stringCode,
  toPlainValue,
  unknownCode,
  type ValueHint,
} from './code.ts'
import { callDateMethod } from './dates.ts'
import { type CallArguments, failTranslation, type Translator } from './translator.ts'

/** Calls a method of a value. Throws an Error if the method has no counterpart. */
export function callMethod(
  value: JsonataCode,
  name: string,
  args: CallArguments,
  translator: Translator,
): JsonataCode {
  if (value.hint === 'date') return callDateMethod(value, name, args, translator)
  const self = toPlainValue(value)
  const withCallback = callWithCallback(self, name, args, translator)
  if (withCallback) return withCallback
  const [pattern] = args
  const takesRegex = name === 'replace' || name === 'test' || name === 'match'
  if (takesRegex && pattern?.type === 'Literal' && pattern.regex) {
    return callWithRegex(self.text, name, pattern.regex, args[1], translator)
  }
  const method = getOwn(METHODS, name)
  if (!method) return failTranslation(`calls ${name}(), which Perdure does not have`)
  return translator.share(self, ({ text }) =>
    readArguments(args, translator, (values) => {
      return (
        method(text, values, self.hint) ||
        failTranslation(`calls ${name}() with arguments that Perdure does not support`)
      )
    }),
  )
}

/** Longer arguments are bound to variables, because a method may write an argument several times. */
const MAX_REPEATED = 200

function readArguments(
  [next, ...rest]: CallArguments,
  translator: Translator,
  use: (values: JsonataCode[]) => JsonataCode,
  values: JsonataCode[] = [],
): JsonataCode {
  if (!next) return use(values)
  const value = toPlainValue(translator.read(next))
  const readRest = (one: JsonataCode) => readArguments(rest, translator, use, [...values, one])
  return value.text.length <= MAX_REPEATED ? readRest(value) : translator.share(value, readRest)
}

/** The `length` of a string or a list. */
export function readLength({ text, hint }: JsonataCode): JsonataCode {
  if (hint === 'string') return numberCode(`$length(${text})`)
  if (hint === 'list') return numberCode(`$count(${text})`)
  return numberCode(`($type(${text}) = "string" ? $length(${text}) : $count(${text}))`)
}

/** Undefined, or an empty string, if the arguments are not supported. */
type Method = (self: string, args: JsonataCode[], hint: ValueHint) => JsonataCode | '' | undefined

/** Methods whose arguments are values. */
const METHODS: Record<string, Method> = {
  toUpperCase: (self) => stringCode(`$uppercase(${self})`),
  toLowerCase: (self) => stringCode(`$lowercase(${self})`),
  // JSONata's $trim also shortens the spaces inside.
  trim: (self) => stringCode(`$replace(${self}, /^\\s+|\\s+$/, "")`),
  trimStart: (self) => stringCode(`$replace(${self}, /^\\s+/, "")`),
  trimEnd: (self) => stringCode(`$replace(${self}, /\\s+$/, "")`),
  padStart: (self, [width, by]) =>
    width && stringCode(`$pad(${self}, -(${width.text}), ${by?.text ?? '" "'})`),
  padEnd: (self, [width, by]) => width && stringCode(`$pad(${self}, ${width.text}, ${by?.text ?? '" "'})`),
  repeat: (self, [times]) =>
    times && stringCode(`$join([$map([1..${times.text}], function(){${self}})], "")`),
  charAt: (self, [at]) =>
    Number(at?.text ?? 0) >= 0 ? stringCode(`$substring(${self}, ${at?.text ?? 0}, 1)`) : undefined,
  at: (self, [at], hint) => {
    if (!at) return undefined
    const inString = stringCode(`$substring(${self}, ${at.text}, 1)`)
    return chooseByType(self, hint, inString, unknownCode(`(${self})[${at.text}]`))
  },
  indexOf: (self, [part, ...others], hint) => {
    if (!part || others.length > 0) return undefined
    const inString = `($contains(${self}, ${part.text}) ? $length($substringBefore(${self}, ${part.text})) : -1)`
    const inList = `($at := [$map(${self}, function($v, $i){$v = ${part.text} ? $i})]; $count($at) > 0 ? $at[0] : -1)`
    return chooseByType(self, hint, numberCode(inString), numberCode(inList))
  },
  pop: (self) => unknownCode(`(${self})[-1]`),
  shift: (self) => unknownCode(`(${self})[0]`),
  toString: (self: string, args: JsonataCode[]) =>
    args.length > 0 ? undefined : stringCode(`$string(${self})`),
  toJsonString: (self) => stringCode(`$string(${self})`),
  toNumber: (self) => numberCode(`$number(${self})`),
  toInt: (self) => numberCode(`$floor($number(${self}))`),
  toFloat: (self) => numberCode(`$number(${self})`),
  toBoolean: (self) => booleanCode(`$boolean(${self})`),
  isEmpty: (self) => booleanCode(`$not($boolean(${self}))`),
  isNotEmpty: (self) => booleanCode(`$boolean(${self})`),
  includes: (self, [part], hint) => {
    if (!part) return undefined
    const inString = booleanCode(`$contains(${self}, ${part.text})`)
    return chooseByType(self, hint, inString, booleanCode(`(${part.text} in ${self})`))
  },
  startsWith: (self, [part]) =>
    part && booleanCode(`($substring(${self}, 0, $length(${part.text})) = ${part.text})`),
  endsWith: (self, [part]) =>
    part &&
    booleanCode(
      `($length(${self}) >= $length(${part.text}) and $substring(${self}, $length(${self}) - $length(${part.text})) = ${part.text})`,
    ),
  split: (self, [by]) => by && listCode(`$split(${self}, ${by.text})`),
  join: (self, [by]) => stringCode(`$join([$map(${self}, $string)], ${by?.text ?? '","'})`),
  concat: (self, [more, ...others], hint) => {
    if (!more || others.length > 0) return undefined
    const inString = stringCode(`(${self} & ${more.text})`)
    return chooseByType(self, hint, inString, listCode(`$append(${self}, ${more.text})`))
  },
  replaceAll: (self, [from, to]) => from && to && stringCode(`$replace(${self}, ${from.text}, ${to.text})`),
  replace: (self, [from, to]) => from && to && stringCode(`$replace(${self}, ${from.text}, ${to.text}, 1)`),
  substring: (self, [from, to]) => from && cutString(self, from, to, false),
  slice: (self, [from, to], hint) => {
    if (!from) return undefined
    if (hint === 'string') return cutString(self, from, to, true)
    const inList = cutList(self, from, to)
    if (!inList || hint === 'list') return inList
    const inString = cutString(self, from, to, true)
    return inString && chooseByType(self, hint, inString, inList)
  },
  toFixed: (self, [digits]) => {
    const places = Number(digits?.text ?? 0)
    if (!Number.isInteger(places) || places < 0 || places > 20) return undefined
    return stringCode(`$formatNumber(${self}, "0${places > 0 ? `.${'0'.repeat(places)}` : ''}")`)
  },
  reverse: (self) => listCode(`$reverse(${self})`),
  unique: (self) => listCode(`[$distinct(${self})]`),
  first: (self) => unknownCode(`(${self})[0]`),
  last: (self) => unknownCode(`(${self})[-1]`),
  sum: (self) => numberCode(`$sum(${self})`),
  average: (self) => numberCode(`$average(${self})`),
  max: (self) => numberCode(`$max(${self})`),
  min: (self) => numberCode(`$min(${self})`),
}

/** Strings and lists share some methods. If the hint does not say which it is, the code asks the value. */
function chooseByType(
  self: string,
  hint: ValueHint,
  inString: JsonataCode,
  inList: JsonataCode,
): JsonataCode {
  if (hint === 'string') return inString
  if (hint === 'list') return inList
  const text = `($type(${self}) = "string" ? ${inString.text} : ${inList.text})`
  return inString.hint === inList.hint ? { text, hint: inString.hint } : unknownCode(text)
}

/**
 * Part of a string. JavaScript counts negative bounds from the end in slice() (`fromEnd`), but not in
 * substring(), so two bounds are supported only as literals.
 */
function cutString(
  self: string,
  from: JsonataCode,
  to: JsonataCode | undefined,
  fromEnd: boolean,
): JsonataCode | undefined {
  const [a, b] = [readNumber(from.text), to && readNumber(to.text)]
  if (!to) return fromEnd || a >= 0 ? stringCode(`$substring(${self}, ${from.text})`) : undefined
  if (!Number.isInteger(a) || !Number.isInteger(b) || a < 0 || b! < a) return undefined
  return stringCode(`$substring(${self}, ${a}, ${b! - a})`)
}

/** NaN for code that is not a literal. A negative literal is in parentheses. */
function readNumber(text: string): number {
  return Number(text.replace(/[()]/g, ''))
}

/** Part of a list, by literal bounds. */
function cutList(self: string, from: JsonataCode, to: JsonataCode | undefined): JsonataCode | undefined {
  const [a, b] = [readNumber(from.text), to && Number(to.text)]
  if (Number.isInteger(a) && a < 0 && b === undefined) {
    return listCode(`[$filter(${self}, function($v, $i){$i >= $count(${self}) - ${-a}})]`)
  }
  if (!Number.isInteger(a) || a < 0 || (b !== undefined && (!Number.isInteger(b) || b < 0))) return undefined
  const test = b === undefined ? `$i >= ${a}` : `$i >= ${a} and $i < ${b}`
  return listCode(`[$filter(${self}, function($v, $i){${test}})]`)
}

/** Methods that take a function. */
function callWithCallback(
  { text: items }: JsonataCode,
  name: string,
  args: CallArguments,
  translator: Translator,
): JsonataCode | undefined {
  const readCallback = () => readArrow(args[0], translator).text
  switch (name) {
    case 'map':
      return listCode(`[$map(${items}, ${readCallback()})]`)
    case 'filter':
      return listCode(`[$filter(${items}, ${readCallback()})]`)
    case 'find':
      return unknownCode(`([$filter(${items}, ${readCallback()})])[0]`)
    case 'some':
      return booleanCode(`($count([$filter(${items}, ${readCallback()})]) > 0)`)
    case 'every': {
      const isNot = readArrow(args[0], translator, (test) => `$not(${test})`)
      return booleanCode(`($count([$filter(${items}, ${isNot.text})]) = 0)`)
    }
    case 'reduce': {
      if (!args[1]) return failTranslation('calls reduce() without a first value')
      const first = () => toPlainValue(translator.read(args[1]!)).text
      return unknownCode(`$reduce(${items}, ${readCallback()}, ${first()})`)
    }
  }
}

/** An arrow function of one expression, as a function of JSONata. `wrap` changes what it returns. */
function readArrow(
  node: Expression | SpreadElement | undefined,
  translator: Translator,
  wrap: (text: string) => string = (text) => text,
): JsonataCode {
  if (node?.type !== 'ArrowFunctionExpression' || node.body.type === 'BlockStatement' || node.async) {
    return failTranslation('passes something other than an arrow function of one expression')
  }
  const scope = new Map(translator.scope)
  const parameters = node.params.map((parameter) => {
    if (parameter.type !== 'Identifier') return failTranslation('destructures the parameter of a function')
    const text = `$v_${parameter.name.replace(/\W/g, '_')}`
    scope.set(parameter.name, unknownCode(text))
    return text
  })
  const body = toPlainValue(translator.read(node.body, scope))
  return { text: `function(${parameters.join(', ')}){${wrap(body.text)}}`, hint: body.hint }
}

type Regex = { pattern: string; flags: string }

/** `/a/.test(value)` */
export function testRegex(regex: Regex, { text, hint }: JsonataCode): JsonataCode {
  return booleanCode(`$contains(${hint === 'string' ? text : `$string(${text})`}, ${writeRegex(regex)})`)
}

function callWithRegex(
  self: string,
  name: string,
  regex: Regex,
  replacement: Expression | SpreadElement | undefined,
  translator: Translator,
): JsonataCode {
  const pattern = writeRegex(regex)
  if (name !== 'replace' || !replacement) return failTranslation(`calls ${name}() with a regex`)
  const limit = regex.flags.includes('g') ? '' : ', 1'
  const by = toPlainValue(translator.read(replacement)).text
  return stringCode(`$replace(${self}, ${pattern}, ${by}${limit})`)
}

function writeRegex({ pattern, flags }: Regex): string {
  const kept = flags.replace(/[gu]/g, '')
  if (/[^im]/.test(kept)) return failTranslation(`uses a regex with the flags ${flags}`)
  return `/${pattern}/${kept}`
}
