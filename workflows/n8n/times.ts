import type { Expression, SpreadElement } from 'acorn'
import { type Code, fail, type Step, settle, type Translation } from './javascript.ts'

const UNITS: Record<string, number> = {
  millisecond: 1,
  second: 1_000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
  week: 604_800_000,
}

/** Luxon's tokens as XPath's pictures, which JSONata takes. */
const TOKENS: [RegExp, string][] = [
  [/^yyyy/, '[Y0001]'],
  [/^yy/, '[Y01]'],
  [/^(MM|LL)(?![ML])/, '[M01]'],
  [/^(MMMM|LLLL)/, '[MNn]'],
  [/^(MMM|LLL)/, '[MNn,3-3]'],
  [/^(M|L)/, '[M1]'],
  [/^dd/, '[D01]'],
  [/^d/, '[D1]'],
  [/^HH/, '[H01]'],
  [/^H/, '[H1]'],
  [/^hh/, '[h01]'],
  [/^h/, '[h1]'],
  [/^mm/, '[m01]'],
  [/^m/, '[m1]'],
  [/^ss/, '[s01]'],
  [/^s/, '[s1]'],
  [/^SSS/, '[f001]'],
  [/^EEEE|^cccc/, '[FNn]'],
  [/^EEE|^ccc/, '[FNn,3-3]'],
  [/^a/, '[PN]'],
]

const NOW = '$millis()'
const TODAY = '($floor($millis() / 86400000) * 86400000)'

/** Whether a chain begins with a date: $now, $today, DateTime.now(), new Date(), Date.now(). */
export function isMoment(root: Expression, steps: Step[]): boolean {
  if (root.type === 'NewExpression') return root.callee.type === 'Identifier' && root.callee.name === 'Date'
  if (root.type !== 'Identifier') return false
  if (root.name === '$now' || root.name === '$today') return true
  const [first] = steps
  return (root.name === 'DateTime' || root.name === 'Date') && first !== undefined && 'key' in first
}

/** That date in epoch milliseconds. */
export function findMoment(root: Expression, steps: Step[], at: Translation): { code: Code; taken: number } {
  const time = (text: string, taken: number) => ({ code: { text, hint: 'time' as const }, taken })
  if (root.type === 'NewExpression') {
    const [arg] = root.arguments
    return time(arg ? toMillis(at.read(arg)) : NOW, 0)
  }
  const { name } = root as { name: string }
  if (name === '$now') return time(NOW, 0)
  if (name === '$today') {
    at.names.zoned?.()
    return time(TODAY, 0)
  }
  const [first, second] = steps
  const key = first && 'key' in first ? first.key : undefined
  const [arg] = second && 'args' in second ? second.args : []
  if (name === 'Date' && key === 'now') return { code: { text: NOW, hint: 'number' }, taken: 2 }
  if (key === 'now' || key === 'utc') return time(NOW, 2)
  if (key === 'fromISO' && arg) return time(toMillis(at.read(arg)), 2)
  if (key === 'fromMillis' && arg) return time(at.read(arg).text, 2)
  return fail(`calls ${name}.${typeof key === 'string' ? key : 'something'}()`)
}

function toMillis(code: Code): string {
  if (code.hint === 'time' || code.hint === 'number') return code.text
  return `$toMillis(${code.text})`
}

/** Methods of dates, in UTC; undefined for those that every value has. */
export function callMoment(
  { text }: Code,
  name: string,
  args: (Expression | SpreadElement)[],
  at: Translation,
): Code | undefined {
  switch (name) {
    case 'toISO':
    case 'toISOString':
    case 'toString':
    case 'toJSON':
      return { text: `$fromMillis(${text})`, hint: 'text' }
    case 'toISODate':
      at.names.zoned?.()
      return { text: `$fromMillis(${text}, "[Y0001]-[M01]-[D01]")`, hint: 'text' }
    case 'toMillis':
    case 'valueOf':
    case 'getTime':
      return { text, hint: 'number' }
    case 'toSeconds':
      return { text: `(${text} / 1000)`, hint: 'number' }
    case 'toUTC':
      return { text, hint: 'time' }
    case 'toFormat':
    case 'format':
      at.names.zoned?.()
      return { text: `$fromMillis(${text}, ${JSON.stringify(readFormat(args[0]))})`, hint: 'text' }
    case 'plus':
    case 'minus':
      return { text: `(${text} ${name === 'plus' ? '+' : '-'} ${readSpan(args, at)})`, hint: 'time' }
    case 'startOf':
      if (args[0]?.type === 'Literal' && args[0].value === 'day') {
        at.names.zoned?.()
        return { text: `($floor(${text} / 86400000) * 86400000)`, hint: 'time' }
      }
      return fail('calls startOf() of other than the day')
  }
  return fail(`calls ${name}() of a date`)
}

const PARTS: Record<string, string> = {
  year: '[Y]',
  month: '[M]',
  day: '[D]',
  weekday: '[F0]',
  hour: '[H]',
  minute: '[m]',
  second: '[s]',
}

/** What luxon has as fields of a date, in UTC. */
export function readPart({ text }: Code, key: Expression | string, { names }: Translation): Code {
  names.zoned?.()
  if (key === 'millisecond') return { text: `(${text} % 1000)`, hint: 'number' }
  const picture = typeof key === 'string' && Object.hasOwn(PARTS, key) ? PARTS[key] : undefined
  if (!picture) return fail(`reads ${typeof key === 'string' ? key : 'something'} of a date`)
  return { text: `$number($fromMillis(${text}, "${picture}"))`, hint: 'number' }
}

function readSpan(args: (Expression | SpreadElement)[], at: Translation): string {
  const [first, second] = args
  if (first?.type === 'ObjectExpression') {
    const parts = first.properties.map((property) => {
      if (property.type !== 'Property' || property.key.type !== 'Identifier')
        return fail('adds to a date this way')
      return `${settle(at.read(property.value as Expression)).text} * ${unitOf(property.key.name)}`
    })
    return `(${parts.join(' + ')})`
  }
  if (first && second?.type === 'Literal') return `(${at.read(first).text} * ${unitOf(String(second.value))})`
  return fail('adds to a date this way')
}

function unitOf(name: string): number {
  const unit = UNITS[name.replace(/s$/, '')]
  return unit ?? fail(`adds ${name}, which are not all of one length, to a date`)
}

function readFormat(node: Expression | SpreadElement | undefined): string {
  if (node?.type !== 'Literal' || typeof node.value !== 'string')
    return fail('formats a date by a computed format')
  let rest = node.value
  let picture = ''
  while (rest !== '') {
    const quoted = /^'([^']*)'/.exec(rest)
    const token = TOKENS.find(([pattern]) => pattern.test(rest))
    if (quoted) {
      picture += protect(quoted[1]!)
      rest = rest.slice(quoted[0].length)
    } else if (token) {
      picture += token[1]
      rest = rest.slice(token[0].exec(rest)![0].length)
    } else if (/^[A-Za-z]/.test(rest)) return fail(`formats a date by ${node.value}`)
    else {
      picture += protect(rest[0]!)
      rest = rest.slice(1)
    }
  }
  return picture
}

function protect(text: string): string {
  return text.replace(/\[/g, '[[').replace(/\]/g, ']]')
}
