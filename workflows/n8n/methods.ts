import type { Expression, SpreadElement } from 'acorn'
import {
  type Code,
  enter,
  fail,
  type Hint,
  readArrow,
  type Step,
  settle,
  type Translation,
} from './javascript.ts'
import { callMoment } from './times.ts'

type Args = (Expression | SpreadElement)[]

/** `length`, of a text or a list. */
export function readLength({ text, hint }: Code): Code {
  if (hint === 'text') return { text: `$length(${text})`, hint: 'number' }
  if (hint === 'list') return { text: `$count(${text})`, hint: 'number' }
  return { text: `($type(${text}) = "string" ? $length(${text}) : $count(${text}))`, hint: 'number' }
}

/** What is longer is told once only, however often a method needs it. */
const MAX_REPEATED = 200

type Method = (self: string, args: Code[], hint: Hint) => Code | '' | undefined

const text = (text: string): Code => ({ text, hint: 'text' })
const number = (text: string): Code => ({ text, hint: 'number' })
const boolean = (text: string): Code => ({ text, hint: 'boolean' })
const list = (text: string): Code => ({ text, hint: 'list' })
const unknown = (text: string): Code => ({ text, hint: 'unknown' })

/** Methods whose arguments are values. */
const METHODS: Record<string, Method> = {
  toUpperCase: (self) => text(`$uppercase(${self})`),
  toLowerCase: (self) => text(`$lowercase(${self})`),
  // JSONata's own trim also squeezes the space inside.
  trim: (self) => text(`$replace(${self}, /^\\s+|\\s+$/, "")`),
  trimStart: (self) => text(`$replace(${self}, /^\\s+/, "")`),
  trimEnd: (self) => text(`$replace(${self}, /\\s+$/, "")`),
  padStart: (self, [width, by]) => width && text(`$pad(${self}, -(${width.text}), ${by?.text ?? '" "'})`),
  padEnd: (self, [width, by]) => width && text(`$pad(${self}, ${width.text}, ${by?.text ?? '" "'})`),
  repeat: (self, [times]) => times && text(`$join([$map([1..${times.text}], function(){${self}})], "")`),
  charAt: (self, [at]) =>
    Number(at?.text ?? 0) >= 0 ? text(`$substring(${self}, ${at?.text ?? 0}, 1)`) : undefined,
  at: (self, [at], hint) => {
    if (!at) return undefined
    const [inText, inList] = [`$substring(${self}, ${at.text}, 1)`, `(${self})[${at.text}]`]
    if (hint === 'text' || hint === 'list') return hint === 'text' ? text(inText) : unknown(inList)
    return unknown(`($type(${self}) = "string" ? ${inText} : ${inList})`)
  },
  indexOf: (self, [part, ...others], hint) => {
    if (!part || others.length > 0) return undefined
    const inText = `($contains(${self}, ${part.text}) ? $length($substringBefore(${self}, ${part.text})) : -1)`
    const inList = `($at := [$map(${self}, function($v, $i){$v = ${part.text} ? $i})]; $count($at) > 0 ? $at[0] : -1)`
    if (hint === 'text' || hint === 'list') return number(hint === 'text' ? inText : inList)
    return number(`($type(${self}) = "string" ? ${inText} : ${inList})`)
  },
  pop: (self) => unknown(`(${self})[-1]`),
  shift: (self) => unknown(`(${self})[0]`),
  toString: (self: string, args: Code[]) => (args.length > 0 ? undefined : text(`$string(${self})`)),
  toJsonString: (self) => text(`$string(${self})`),
  toNumber: (self) => number(`$number(${self})`),
  toInt: (self) => number(`$floor($number(${self}))`),
  toFloat: (self) => number(`$number(${self})`),
  toBoolean: (self) => boolean(`$boolean(${self})`),
  isEmpty: (self) => boolean(`$not($boolean(${self}))`),
  isNotEmpty: (self) => boolean(`$boolean(${self})`),
  includes: (self, [part], hint) => {
    if (!part) return undefined
    const [inText, inList] = [`$contains(${self}, ${part.text})`, `(${part.text} in ${self})`]
    if (hint === 'text' || hint === 'list') return boolean(hint === 'text' ? inText : inList)
    return boolean(`($type(${self}) = "string" ? ${inText} : ${inList})`)
  },
  startsWith: (self, [part]) =>
    part && boolean(`($substring(${self}, 0, $length(${part.text})) = ${part.text})`),
  endsWith: (self, [part]) =>
    part &&
    boolean(
      `($length(${self}) >= $length(${part.text}) and $substring(${self}, $length(${self}) - $length(${part.text})) = ${part.text})`,
    ),
  split: (self, [by]) => by && list(`$split(${self}, ${by.text})`),
  join: (self, [by]) => text(`$join([$map(${self}, $string)], ${by?.text ?? '","'})`),
  concat: (self, [more, ...others], hint) => {
    if (!more || others.length > 0) return undefined
    const [inText, inList] = [`(${self} & ${more.text})`, `$append(${self}, ${more.text})`]
    if (hint === 'text' || hint === 'list') return hint === 'text' ? text(inText) : list(inList)
    return unknown(`($type(${self}) = "string" ? ${inText} : ${inList})`)
  },
  replaceAll: (self, [from, to]) => from && to && text(`$replace(${self}, ${from.text}, ${to.text})`),
  replace: (self, [from, to]) => from && to && text(`$replace(${self}, ${from.text}, ${to.text}, 1)`),
  substring: (self, [from, to]) => from && cut(self, from, to, false),
  slice: (self, [from, to], hint) => {
    if (!from) return undefined
    if (hint === 'text') return cut(self, from, to, true)
    const range = sliceOf(self, from, to)
    if (!range || hint === 'list') return range && list(range)
    const inText = cut(self, from, to, true)
    return inText && unknown(`($type(${self}) = "string" ? ${inText.text} : ${range})`)
  },
  toFixed: (self, [digits]) => {
    const places = Number(digits?.text ?? 0)
    if (!Number.isInteger(places) || places < 0 || places > 20) return undefined
    return text(`$formatNumber(${self}, "0${places > 0 ? `.${'0'.repeat(places)}` : ''}")`)
  },
  reverse: (self) => list(`$reverse(${self})`),
  unique: (self) => list(`[$distinct(${self})]`),
  first: (self) => unknown(`(${self})[0]`),
  last: (self) => unknown(`(${self})[-1]`),
  sum: (self) => number(`$sum(${self})`),
  average: (self) => number(`$average(${self})`),
  max: (self) => number(`$max(${self})`),
  min: (self) => number(`$min(${self})`),
}

/** Part of a text; only literal bounds say which of the two ways of counting holds. */
function cut(self: string, from: Code, to: Code | undefined, backwards: boolean): Code | undefined {
  const [a, b] = [Number(from.text.replace(/[()]/g, '')), to && Number(to.text.replace(/[()]/g, ''))]
  if (!to) return backwards || a >= 0 ? text(`$substring(${self}, ${from.text})`) : undefined
  if (!Number.isInteger(a) || !Number.isInteger(b) || a < 0 || b! < a) return undefined
  return text(`$substring(${self}, ${a}, ${b! - a})`)
}

function sliceOf(self: string, from: Code, to: Code | undefined): string | undefined {
  const [a, b] = [Number(from.text.replace(/[()]/g, '')), to && Number(to.text)]
  if (Number.isInteger(a) && a < 0 && b === undefined) {
    return `[$filter(${self}, function($v, $i){$i >= $count(${self}) - ${-a}})]`
  }
  if (!Number.isInteger(a) || a < 0 || (b !== undefined && (!Number.isInteger(b) || b < 0))) return undefined
  const test = b === undefined ? `$i >= ${a}` : `$i >= ${a} and $i < ${b}`
  return `[$filter(${self}, function($v, $i){${test}})]`
}

/** Calls a method of a value. Throws where it has no counterpart. */
export function callMethod(given: Code, name: string, args: Args, at: Translation): Code {
  const moment = given.hint === 'time' ? callMoment(given, name, args, at) : undefined
  if (moment) return moment
  const self = settle(given)
  const over = callWithFunction(self, name, args, at)
  if (over) return over
  const pattern = args[0]
  if (
    (name === 'replace' || name === 'test' || name === 'match') &&
    pattern?.type === 'Literal' &&
    pattern.regex
  ) {
    return callRegex(self.text, name, pattern.regex, args[1], at)
  }
  const method = Object.hasOwn(METHODS, name) ? METHODS[name] : undefined
  if (!method) return fail(`calls ${name}()`)
  const call = (code: Code, values: Code[], rest: Args): Code => {
    const [next, ...more] = rest
    if (!next) return method(code.text, values, self.hint) || fail(`calls ${name}() this way`)
    const value = settle(at.read(next))
    if (value.text.length <= MAX_REPEATED) return call(code, [...values, value], more)
    return at.share(value, (shared) => call(code, [...values, shared], more))
  }
  return at.share(self, (code) => call(code, [], args))
}

function callWithFunction(self: Code, name: string, args: Args, at: Translation): Code | undefined {
  const { text: items } = self
  switch (name) {
    case 'map':
      return list(`[$map(${items}, ${readArrow(args[0], at).text})]`)
    case 'filter':
      return list(`[$filter(${items}, ${readArrow(args[0], at).text})]`)
    case 'find':
      return unknown(`([$filter(${items}, ${readArrow(args[0], at).text})])[0]`)
    case 'some':
      return boolean(`($count([$filter(${items}, ${readArrow(args[0], at).text})]) > 0)`)
    case 'every': {
      const not = readArrow(args[0], at, (test) => `$not(${test})`)
      return boolean(`($count([$filter(${items}, ${not.text})]) = 0)`)
    }
    case 'reduce': {
      if (!args[1]) return fail('calls reduce() without a first value')
      return unknown(`$reduce(${items}, ${readArrow(args[0], at).text}, ${settle(at.read(args[1])).text})`)
    }
  }
}

type Regex = { pattern: string; flags: string }

function writeRegex({ pattern, flags }: Regex): string {
  const kept = flags.replace(/[gu]/g, '')
  if (/[^im]/.test(kept)) return fail(`uses a regex with the flags ${flags}`)
  return `/${pattern}/${kept}`
}

/** `/a/.test(text)` */
export function testRegex(regex: Regex, { text, hint }: Code): Code {
  return boolean(`$contains(${hint === 'text' ? text : `$string(${text})`}, ${writeRegex(regex)})`)
}

function callRegex(
  self: string,
  name: string,
  regex: Regex,
  to: Expression | SpreadElement | undefined,
  at: Translation,
): Code {
  const pattern = writeRegex(regex)
  if (name !== 'replace' || !to) return fail(`calls ${name}()`)
  const limit = regex.flags.includes('g') ? '' : ', 1'
  return text(`$replace(${self}, ${pattern}, ${settle(at.read(to)).text}${limit})`)
}

const MATHS: Record<string, string> = {
  floor: '$floor',
  ceil: '$ceil',
  abs: '$abs',
  sqrt: '$sqrt',
  pow: '$power',
}

/** What a global stands for, with the steps it takes: Math.round(x), JSON.stringify(x), Number(x), $if(...). */
export function callFunction(
  root: string,
  keys: (string | undefined)[],
  steps: Step[],
  at: Translation,
): { code: Code; taken: number } | undefined {
  const callAt = steps.findIndex((step) => 'args' in step)
  const call = steps[callAt]
  if (!call || !('args' in call) || callAt > 1) return undefined
  const values = () => call.args.map((arg) => settle(at.read(arg)))
  const name = callAt === 0 ? root : `${root}.${keys[0]}`
  const code = callNamed(name, values)
  return code && { code, taken: callAt + 1 }
}

function callNamed(name: string, read: () => Code[]): Code | undefined {
  const maths = /^Math\.(\w+)$/.exec(name)?.[1]
  if (maths)
    return callMaths(
      maths,
      read().map(({ text }) => text),
    )
  const known: Record<string, (values: Code[]) => Code> = {
    Number: ([x]) => (x?.hint === 'number' ? x : number(`$number(${one(x)})`)),
    parseFloat: ([x]) => number(`$number(${one(x)})`),
    parseInt: ([x]) => number(`$floor($number(${one(x)}))`),
    String: ([x]) => text(`$string(${one(x)})`),
    Boolean: ([x]) => boolean(`$boolean(${one(x)})`),
    'JSON.stringify': ([x, , space]) => {
      // A text would be quoted once more.
      const json = space ? `$string(${one(x)}, true)` : `$string(${one(x)})`
      return x?.hint === 'text' ? fail('calls JSON.stringify() on a text') : text(json)
    },
    'Object.keys': ([x]) => list(`[$keys(${one(x)})]`),
    'Object.values': ([x]) => list(`[${enterAll(one(x))}]`),
    'Array.isArray': ([x]) => boolean(`($type(${one(x)}) = "array")`),
    encodeURIComponent: ([x]) => text(`$encodeUrlComponent(${one(x)})`),
    decodeURIComponent: ([x]) => text(`$decodeUrlComponent(${one(x)})`),
    $if: ([test, yes, no]) => unknown(`(${one(test)} ? ${one(yes)} : ${one(no)})`),
    $ifEmpty: ([x, other]) => unknown(`(${one(x)} ?: ${one(other)})`),
    $max: (values) => number(`$max([${values.map(one).join(', ')}])`),
    $min: (values) => number(`$min([${values.map(one).join(', ')}])`),
  }
  return Object.hasOwn(known, name) ? known[name]!(read()) : undefined
}

function callMaths(name: string, args: string[]): Code {
  const own = MATHS[name]
  if (own) return number(`${own}(${args.join(', ')})`)
  // Halves go up, as in JavaScript; JSONata's own rounds them to even.
  if (name === 'round') return number(`$floor(${args[0]} + 0.5)`)
  if (name === 'max' || name === 'min') return number(`$${name}([${args.join(', ')}])`)
  if (name === 'random') return number('$random()')
  return fail(`calls Math.${name}()`)
}

function one(code: Code | undefined): string {
  return code ? code.text : fail('calls a function without what it needs')
}

function enterAll(text: string): string {
  return enter(unknown(text), 'x').text.replace(/x$/, '*')
}
