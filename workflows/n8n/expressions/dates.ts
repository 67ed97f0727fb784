import type { Expression, SpreadElement } from 'acorn'
import { getOwn } from '../../json.ts'
import { type JsonataCode, numberCode, quoteString, stringCode, toPlainValue } from './code.ts'
import { type CallArguments, type ChainStep, failTranslation, type Translator } from './translator.ts'

/** In milliseconds. Months and years are missing, because they are not all of the same length. */
const UNITS: Record<string, number> = {
  millisecond: 1,
  second: 1_000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
  week: 604_800_000,
}

/** The tokens of luxon's formats, and the same in JSONata's picture strings. */
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
export function startsWithDate(root: Expression, steps: ChainStep[]): boolean {
  if (root.type === 'NewExpression') return root.callee.type === 'Identifier' && root.callee.name === 'Date'
  if (root.type !== 'Identifier') return false
  if (root.name === '$now' || root.name === '$today') return true
  const [first] = steps
  return (root.name === 'DateTime' || root.name === 'Date') && first !== undefined && 'key' in first
}

/** The date that a chain begins with, in epoch milliseconds, and how many steps it uses up. */
export function readDateStart(
  root: Expression,
  steps: ChainStep[],
  translator: Translator,
): { code: JsonataCode; used: number } {
  if (root.type === 'NewExpression') {
    const [value] = root.arguments
    return { code: dateCode(value ? writeMillis(translator.read(value)) : NOW), used: 0 }
  }
  const { name } = root as { name: string }
  if (name === '$now') return { code: dateCode(NOW), used: 0 }
  if (name === '$today') {
    translator.references.noteTimeZone?.()
    return { code: dateCode(TODAY), used: 0 }
  }
  const [first, second] = steps
  const key = first && 'key' in first ? first.key : undefined
  const [value] = second && 'args' in second ? second.args : []
  return { code: callDateFunction(name, key, value, translator), used: 2 }
}

function callDateFunction(
  root: string,
  key: Expression | string | undefined,
  value: Expression | SpreadElement | undefined,
  translator: Translator,
): JsonataCode {
  if (root === 'Date' && key === 'now') return numberCode(NOW)
  if (key === 'now' || key === 'utc') return dateCode(NOW)
  if (key === 'fromISO' && value) return dateCode(writeMillis(translator.read(value)))
  if (key === 'fromMillis' && value) return dateCode(translator.read(value).text)
  return failTranslation(`calls ${root}.${typeof key === 'string' ? key : 'something'}()`)
}

function dateCode(text: string): JsonataCode {
  return { text, hint: 'date' }
}

function writeMillis({ text, hint }: JsonataCode): string {
  return hint === 'date' || hint === 'number' ? text : `$toMillis(${text})`
}

/** Calls a method of a date, in UTC. Throws an Error if the method has no counterpart. */
export function callDateMethod(
  { text }: JsonataCode,
  name: string,
  args: CallArguments,
  translator: Translator,
): JsonataCode {
  const noteTimeZone = () => translator.references.noteTimeZone?.()
  switch (name) {
    case 'toISO':
    case 'toISOString':
    case 'toString':
    case 'toJSON':
      return stringCode(`$fromMillis(${text})`)
    case 'toISODate':
      noteTimeZone()
      return stringCode(`$fromMillis(${text}, "[Y0001]-[M01]-[D01]")`)
    case 'toMillis':
    case 'valueOf':
    case 'getTime':
      return numberCode(text)
    case 'toSeconds':
      return numberCode(`(${text} / 1000)`)
    case 'toUTC':
      return dateCode(text)
    case 'toFormat':
    case 'format':
      noteTimeZone()
      return stringCode(`$fromMillis(${text}, ${quoteString(readFormat(args[0]))})`)
    case 'plus':
    case 'minus':
      return dateCode(`(${text} ${name === 'plus' ? '+' : '-'} ${readDuration(args, translator)})`)
    case 'startOf':
      if (args[0]?.type !== 'Literal' || args[0].value !== 'day')
        return failTranslation('calls startOf() with a unit other than "day"')
      noteTimeZone()
      return dateCode(`($floor(${text} / 86400000) * 86400000)`)
  }
  return failTranslation(`calls ${name}() on a date`)
}

/** The fields of a luxon date, and the picture strings that give their values. */
const FIELDS: Record<string, string> = {
  year: '[Y]',
  month: '[M]',
  day: '[D]',
  weekday: '[F0]',
  hour: '[H]',
  minute: '[m]',
  second: '[s]',
}

/** A field of a date, in UTC: $now.year */
export function readDateField(
  { text }: JsonataCode,
  key: Expression | string,
  { references }: Translator,
): JsonataCode {
  references.noteTimeZone?.()
  if (key === 'millisecond') return numberCode(`(${text} % 1000)`)
  const picture = typeof key === 'string' ? getOwn(FIELDS, key) : undefined
  if (!picture) return failTranslation(`reads ${typeof key === 'string' ? key : 'something'} of a date`)
  return numberCode(`$number($fromMillis(${text}, "${picture}"))`)
}

const UNKNOWN_DURATION = 'changes a date by a duration without literal units'

/** What plus() and minus() take, in milliseconds: `{ days: 1, hours: 2 }`, or an amount and its unit. */
function readDuration(args: CallArguments, translator: Translator): string {
  const [first, second] = args
  if (first?.type === 'ObjectExpression') {
    const parts = first.properties.map((property) => {
      if (property.type !== 'Property' || property.key.type !== 'Identifier')
        return failTranslation(UNKNOWN_DURATION)
      const amount = toPlainValue(translator.read(property.value as Expression))
      return `${amount.text} * ${findUnit(property.key.name)}`
    })
    return `(${parts.join(' + ')})`
  }
  if (first && second?.type === 'Literal')
    return `(${translator.read(first).text} * ${findUnit(String(second.value))})`
  return failTranslation(UNKNOWN_DURATION)
}

function findUnit(name: string): number {
  const unit = getOwn(UNITS, name.replace(/s$/, ''))
  return unit ?? failTranslation(`changes a date by ${name}, which are not all of the same length`)
}

/** A luxon format as a JSONata picture string. */
function readFormat(node: Expression | SpreadElement | undefined): string {
  if (node?.type !== 'Literal' || typeof node.value !== 'string')
    return failTranslation('formats a date with a computed format')
  let rest = node.value
  let picture = ''
  while (rest !== '') {
    const quoted = /^'([^']*)'/.exec(rest)
    const token = TOKENS.find(([pattern]) => pattern.test(rest))
    if (quoted) {
      picture += escapePicture(quoted[1]!)
      rest = rest.slice(quoted[0].length)
    } else if (token) {
      picture += token[1]
      rest = rest.slice(token[0].exec(rest)![0].length)
    } else if (/^[A-Za-z]/.test(rest)) return failTranslation(`formats a date as "${node.value}"`)
    else {
      picture += escapePicture(rest[0]!)
      rest = rest.slice(1)
    }
  }
  return picture
}

function escapePicture(text: string): string {
  return text.replace(/\[/g, '[[').replace(/\]/g, ']]')
}
