import { JSONATA_FUNCTIONS, VARIABLES_IN_SCOPE } from './expressions.ts'
import { findCounterpart } from './methods.ts'
import { coverLexemes, FILLING } from './scan.ts'

/**
 * A piece of an expression that is a habit from JavaScript, and what to write instead. It begins at `at` of the source
 * and is `length` characters long. `sure`: it is certainly wrong, since it does not parse or never gives a value.
 */
export type Habit = { message: string; at: number; length: number; sure: boolean }

/** The number of habits of one expression that are named. */
const MAX_HABITS = 10

type Rule = {
  pattern: RegExp
  say: (found: string, rest: { source: string; at: number }) => string | undefined
}

/** Before a word that is no part of a longer one, and no step of a path. */
const WORD = String.raw`(?<![\w$])(?<!\.\s*)`
const STRING = `"${FILLING}*"`
const QUOTED = `\`${FILLING}*\``

const rule = (pattern: string, say: Rule['say']): Rule => ({ pattern: new RegExp(pattern, 'g'), say })

/** Habits that JSONata cannot parse. They are looked for only in an expression that does not parse. */
const SYNTAX: Rule[] = [
  rule('!==', () => 'write "!=" instead of "!=="'),
  rule('(?<![!<>:=])={2,3}(?!>)', (found) => `write "=" instead of "${found}"`),
  rule('&&', () => 'write "and" instead of "&&"'),
  rule('\\|\\|', () => 'write "or" instead of "||"; "?:" gives a default value, as in name ?: "none"'),
  rule('!(?!=)', () => 'write $not(value) instead of !value'),
  rule(
    '\\?\\.(?=\\s*[A-Za-z_$`[(])',
    () => 'write "." instead of "?.": a path through what does not exist is nothing, and no error',
  ),
  rule('=>', () => 'write function($x) { ... } instead of x => ...'),
  rule('\\.\\.\\.', () => 'write $append(list, list) or $merge([object, object]) instead of "..."'),
  rule('<>', () => 'write "!=" instead of "<>"'),
  rule('\\+\\+|[+-]=', (found) => `there is no "${found}", since values do not change: write a + 1`),
  rule(`${WORD}typeof\\b`, () => 'write $type(value) instead of typeof value'),
  rule(`${WORD}new\\s+\\w+`, sayNew),
  rule(`${WORD}return\\b`, () => 'leave "return" out: the value is the result'),
  rule(`${WORD}(?:const|let|var)(?=\\s)`, () => 'write ( $name := value; ... ) instead of const, let or var'),
  rule(`${WORD}not(?=\\s+[\\w$\`])`, () => 'write $not(value) instead of not value'),
  rule(`${WORD}(?:AND|OR|IN)\\b`, (found) => `write "${found.toLowerCase()}" in small letters`),
  rule('[“”‘’]', (found) => `write plain quotes (") instead of ${found}`),
]

/** Habits that parse, and never give a value. */
const FAILING: Rule[] = [
  rule('\\.\\s*[A-Za-z_]\\w*(?=\\s*\\()', (found, { source }) => sayCall('method', found, source)),
  rule(`${WORD}[A-Za-z_]\\w*(?=\\s*\\()`, (found, { source }) => sayCall('function', found, source)),
  rule(
    '\\$(?=\\s*\\()',
    () => 'write $nodes.<id> instead of $("..."): an output is named by the id of its node',
  ),
  rule(`(?<=(?<!\\.\\s*)${STRING}\\s*)\\+|\\+(?=\\s*${STRING}(?!\\s*[.[]))`, () => SAY_PLUS),
  rule(QUOTED, sayTemplate),
  rule(`(?<=[\\w)\\]\`])(?<!(?<![\\w$])(?:in|and|or))\\[\\s*${STRING}\\s*\\]`, sayKey),
]

/** Habits that parse, and may be meant. */
const DOUBTFUL: Rule[] = [
  rule(
    '\\.\\s*length\\b(?!\\s*\\()',
    () =>
      '".length" reads a field; $count(list) is the number of entries of a list, $length(text) of characters',
  ),
  rule(
    `${WORD}(?:${[...VARIABLES_IN_SCOPE].join('|')})(?=\\s*[.[])`,
    (found) => `"${found}" reads a field of $input; write $${found} for what every expression sees`,
  ),
  rule(
    '(?<![\\w$-])[A-Za-z_]\\w*(?:-[A-Za-z_]\\w*)+',
    (found) =>
      `"${found}" is a subtraction; quote a name that has a hyphen: \`${found}\`. With spaces around "-" nobody asks`,
  ),
  rule(`(?<!\\.\\s*)${QUOTED}(?!\\s*:)`, (_, { source, at }) => {
    const name = source.slice(at + 1, source.indexOf('`', at + 1))
    return `backticks quote the name of a field, so this reads the field "${name}" of $input; write a text in quotes (")`
  }),
  rule(
    `${WORD}undefined\\b`,
    () => '"undefined" reads a field of $input; $exists(value) says whether there is a value',
  ),
  rule('[“”‘’]', (found) => `${found} is part of a name here; write a text in plain quotes (")`),
]

const SAY_PLUS = 'write "&" instead of "+" to join texts: "+" adds numbers, and fails for a text'

const KEYWORDS = new Set(['function', 'and', 'or', 'in'])

/**
 * The habits in an expression, in their order; `parses` says whether JSONata takes it. It takes time in
 * proportion to the length of the source, which the caller has measured.
 */
export function findHabits(source: string, parses: boolean): Habit[] {
  const code = coverLexemes(source)
  const find = (rules: Rule[], sure: boolean) => rules.flatMap((rule) => applyRule(rule, code, source, sure))
  const found = [
    ...(parses ? [] : find(SYNTAX, true)),
    ...find(FAILING, true),
    ...(parses ? [...find(DOUBTFUL, false), ...sayFunction(source)] : []),
  ].sort((a, b) => a.at - b.at || Number(b.sure) - Number(a.sure))
  // If two overlap, such as new Date and Date(, the first one says enough.
  const kept: Habit[] = []
  for (const habit of found) {
    const last = kept.at(-1)
    if (!last || habit.at >= last.at + last.length) kept.push(habit)
  }
  return kept.slice(0, MAX_HABITS)
}

function applyRule({ pattern, say }: Rule, code: string, source: string, sure: boolean): Habit[] {
  const habits: Habit[] = []
  let looked = 0
  for (const { 0: text, index: at } of code.matchAll(pattern)) {
    const message = say(text.includes(FILLING) ? source.slice(at, at + text.length) : text, { source, at })
    if (message !== undefined) habits.push({ message, at, length: text.length, sure })
    // Those that mean nothing are looked at too, so they count.
    if (habits.length === MAX_HABITS || ++looked === 100 * MAX_HABITS) break
  }
  return habits
}

function sayNew(found: string): string {
  const instead = findCounterpart(found.split(/\s+/)[1]!)
  return instead ? `write ${instead} instead of ${found}` : 'there is no "new" here: write the value itself'
}

/**
 * Neither values nor names are functions, unless the expression itself makes an object with a function in it.
 */
function sayCall(kind: 'method' | 'function', found: string, source: string): string | undefined {
  const name = found.replace(/^\.\s*/, '')
  if (KEYWORDS.has(name)) return undefined
  if (source.includes(`"${name}"`) || source.includes(`'${name}'`)) return undefined
  const own = [...JSONATA_FUNCTIONS].find((known) => known.toLowerCase() === name.toLowerCase())
  const instead = findCounterpart(name) ?? (own && `$${own}(...)`)
  const advice = instead ? `write ${instead}` : 'what can be called begins with "$", as $uppercase(text) does'
  return `there is no ${kind} ${name}: ${advice}`
}

/** How to write a template literal with `&`; undefined for a quoted name. */
function sayTemplate(quoted: string): string | undefined {
  if (!quoted.includes('${')) return undefined
  const parts = quoted.slice(1, -1).split(/\$\{([^{}]*)\}/)
  const joined = parts.flatMap((part, at) =>
    part === '' ? [] : [at % 2 === 1 ? part.trim() : JSON.stringify(part)],
  )
  const instead = joined.join(' & ')
  const example = instead.length <= 100 ? `: ${instead}` : ''
  return `backticks quote the name of a field; join texts and values with "&"${example}`
}

function sayKey(bracket: string, { source, at }: { source: string; at: number }): string {
  const name = bracket.slice(1, -1).trim().slice(1, -1)
  const step = /^[A-Za-z_]\w*$/.test(name) ? `.${name}` : `.\`${name}\``
  if (source.slice(0, at).endsWith('$nodes')) return `write $nodes${step}`
  return `write ${step} for a field: a text in [ ] is a condition that always holds, and chooses everything`
}

/** An expression that is only the name of a function. */
function sayFunction(source: string): Habit[] {
  const name = /^\$(\w+)$/.exec(source)?.[1]
  if (name === undefined || !JSONATA_FUNCTIONS.has(name)) return []
  const message = `$${name} is a function: write $${name}() to call it`
  return [{ message, at: 0, length: source.length, sure: true }]
}
