import { CODE_WORK, readCode } from '../javascript/code.ts'
import { readScript } from '../javascript/reads.ts'
import { measureScript, parseScript, type ScriptSyntaxError } from '../javascript/syntax.ts'
import { isScriptText, type ScriptTemplate, splitScript } from '../javascript/template.ts'
import type { Problem } from '../problem.ts'
import type { Work } from '../turns.ts'
import { findBareText, findLostSign } from './baretext.ts'
import {
  eachPart,
  measureExpression,
  PAGE_VARIABLES,
  quoteSource,
  type Reads,
  readMeasured,
  splitCondition,
} from './expressions.ts'
import { findHabits, type Habit } from './habits.ts'
import { locate, type TextPlace } from './place.ts'
import type { Rules, TextKind } from './rules.ts'

const MAX_CONFIG_DEPTH = 100
const MAX_EXPRESSIONS = 1_000

/** Units of work: to find the end of an expression, for each character; to list an object, for each entry. */
const SCAN_WORK = 0.1
const SCRIPT_SCAN_WORK = 0.5
const ENTRY_WORK = 0.02

/**
/**
 * The nodes that a config refers to, what is wrong with its expressions, and what in them may be a mistake, each
 * with its path. `place` finds where a node is named, `isName` says that it may be by its name. `context`: an
 * expression reads names without a variable. `pairs`: one asks for the item of a node that an item came from.
 */
export type References = {
  nodes: { id: string; path: string; place: () => TextPlace; isName?: true }[]
  problems: Problem[]
  warnings: Problem[]
  context: boolean
  pairs: boolean
}

/** How many units of work are left for parsing expressions. Below 0 no more are read. */
export type Meter = { left: number }

/**
 * Finds every node that a config refers to and what is wrong with its expressions. The strings at the paths (within the
 * config) of `conditions` are read as conditions or as code, all others as templates. Keys are not read. Under the
 * rules 2 a text that begins with `=` is JavaScript. With `advises` it also looks for likely mistakes. `texts` says for
 * a path which texts are no expressions, or know more variables.
 */
export function* findReferences(
  value: unknown,
  path: string,
  conditions: { path: string; text: string; code?: true }[] = [],
  meter: Meter = { left: Number.POSITIVE_INFINITY },
  language: Rules = 1,
  advises = false,
  texts: (path: string) => TextKind | undefined = () => undefined,
): Work<References> {
  const rules = advises ? language : undefined
  const found: References = { nodes: [], problems: [], warnings: [], context: false, pairs: false }
  const bare = new Set(conditions.map((condition) => condition.path))
  const code = new Set(conditions.flatMap((condition) => (condition.code ? [condition.path] : [])))
  let count = 0
  function* visit(item: string | object, key: string, depth: number): Work<void> {
    const at = key === '' || key.startsWith('[') ? path + key : `${path}.${key}`
    const kind = texts(key)
    if (kind === 'plain') return
    if (typeof item === 'string') {
      if (code.has(key)) {
        yield* readCodeInto(found, item, at, meter)
        return
      }
      // Counted before any is parsed.
      if (!bare.has(key)) count += item.split('{{').length - 1
      const reading = {
        path: at,
        isCondition: bare.has(key),
        found,
        meter,
        rules,
        kind,
      }
      const read = language >= 2 && isScriptText(item) ? readScriptText : readText
      if (read === readScriptText && advises && !bare.has(key)) found.warnings.push(...findLostSign(item, at))
      if (bare.has(key) || count <= MAX_EXPRESSIONS) yield* read(item, reading)
      else {
        const message = `a node must have at most ${MAX_EXPRESSIONS} expressions`
        found.problems.push({ path: at, message })
      }
      return
    }
    if (depth > MAX_CONFIG_DEPTH) {
      found.problems.push({ path: at, message: 'is nested too deeply' })
      return
    }
    const keys = Array.isArray(item) ? undefined : Object.keys(item)
    yield 1 + ENTRY_WORK * (keys ?? (item as unknown[])).length
    for (const name of keys ?? (item as unknown[]).keys()) {
      if (meter.left < 0) return
      const entry: unknown = item[name as keyof typeof item]
      const isPlain = typeof entry === 'string' && bare.size === 0 && !mayBeMeant(entry, rules)
      if (isPlain || (typeof entry !== 'string' && !isNested(entry))) continue
      yield* visit(entry, typeof name === 'number' ? `${key}[${name}]` : joinPath(key, name), depth + 1)
    }
  }
  if (typeof value === 'string' || isNested(value)) yield* visit(value, '', 0)
  return found
}

function isNested(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

/** Whether a text has expressions, or may have been meant to have some. */
function mayBeMeant(text: string, rules: Rules | undefined): boolean {
  return (
    text.includes('{{') || (rules !== undefined && (text.includes('$') || (rules >= 2 && isScriptText(text))))
  )
}

const NO_ARGS = 'unknown variable $args: only the settings of a tool of an agent have it'
const noPage = (name: string) =>
  `unknown variable $${name}: only the pagination and the pages of an HTTP_REQUEST have it`

type Reading = {
  path: string
  /** Which variables the text knows besides the usual ones. */
  kind: TextKind | undefined
  isCondition: boolean
  found: References
  meter: Meter
  rules: Rules | undefined
}

/** Reads the expressions of one string, and adds what they refer to and what is wrong with them. */
function* readText(text: string, { path, isCondition, found, meter, rules, kind }: Reading): Work<void> {
  let from = 0
  try {
    for (const part of isCondition ? [splitCondition(text)] : eachPart(text)) {
      if (typeof part === 'string') {
        if (rules !== undefined) found.warnings.push(...findBareText(part, text, from, path))
        from += part.length
        continue
      }
      const { source } = part
      const at = text.indexOf(source, from)
      from = isCondition ? at : text.indexOf('}}', at + source.length) + 2
      yield SCAN_WORK * source.length
      const units = measureExpression(source)
      meter.left -= units
      if (meter.left < 0) throw new Error(TOO_MUCH)
      yield units
      const place = (within: number, length: number) => locate(text, at + within, length)
      const { args, page } = readSource(source, place, path, found, rules) ?? {}
      if (args && kind !== 'args') found.problems.push({ path, message: NO_ARGS })
      if (page !== undefined && kind !== 'page') found.problems.push({ path, message: noPage(page) })
    }
  } catch (error) {
    found.problems.push({ path, message: (error as Error).message })
  }
}

type PlaceWithin = (at: number, length: number) => TextPlace

function readSource(
  source: string,
  place: PlaceWithin,
  path: string,
  found: References,
  rules: Rules | undefined,
): Reads | undefined {
  const name = (habits: Habit[]): Problem[] =>
    habits.map(({ message, at, length }) => ({
      path,
      message: `${message} (character ${at + 1} of ${quoteSource(source)})`,
      ...place(at, length),
    }))
  let reads: Reads
  try {
    reads = readMeasured(source)
  } catch (error) {
    const habits = rules === undefined ? [] : findHabits(source, false)
    const { message, at = 0, length = 1 } = error as Error & { at?: number; length?: number }
    const problems = habits.length > 0 ? name(habits) : [{ path, message, ...place(at, length) }]
    found.problems.push(...problems)
    return undefined
  }
  if (reads.context) found.context = true
  for (const id of reads.nodes) {
    found.nodes.push({ id, path, place: () => place(Math.max(0, findName(source, id)), id.length) })
  }
  if (rules === undefined) {
    for (const message of reads.problems) found.problems.push({ path, message })
    return reads
  }
  const habits = findHabits(source, true)
  const sure = habits.filter((habit) => habit.sure)
  const isRefused = rules > 1
  if (isRefused) found.problems.push(...name(sure))
  found.warnings.push(...name(isRefused ? habits.filter((habit) => !habit.sure) : habits))
  for (const message of reads.problems) {
    // The habit names $nodes["id"] more clearly than this message.
    if (isRefused && sure.length > 0 && message.startsWith('$nodes needs')) continue
    const [variable] = /\$\w+/.exec(message) ?? []
    const at = variable === undefined ? -1 : findName(source, variable)
    found.problems.push({ path, message, ...(at < 0 ? {} : place(at, variable!.length)) })
  }
  return reads
}

/** The place of a name in an expression as a whole word; -1 if it does not occur. */
function findName(source: string, name: string): number {
  for (let at = source.indexOf(name); at >= 0; at = source.indexOf(name, at + 1)) {
    const around = [source[at - 1] ?? ' ', source[at + name.length] ?? ' ']
    if (around.every((character) => !/\w/.test(character))) return at
  }
  return -1
}

/** Reads a node's code, and adds what it refers to and what is wrong with it. */
function* readCodeInto(found: References, text: string, path: string, meter: Meter): Work<void> {
  const units = CODE_WORK * text.length
  meter.left -= units
  if (meter.left < 0) {
    found.problems.push({ path, message: TOO_MUCH })
    return
  }
  yield units
  const reads = readCode(text)
  for (const id of reads.nodes) {
    const place = () => locate(text, Math.max(0, findName(text, id)), id.length)
    // `$nodes.fetch` names a node by its id, `$('Fetch')` also by its name.
    found.nodes.push({ id, path, place, ...(reads.listed.has(id) ? { isName: true } : {}) })
  }
  if (reads.paired.size > 0) found.pairs = true
  for (const message of reads.problems) found.problems.push({ path, message })
}

/**
 * Reads a text that begins with `=`: a template in JavaScript. Each expression is parsed twice, to find its end
 * and to read it.
 */
function* readScriptText(text: string, { path, isCondition, found, meter, kind }: Reading): Work<void> {
  yield SCRIPT_SCAN_WORK * text.length
  let template: ScriptTemplate
  try {
    template = splitScript(text)
  } catch (error) {
    found.problems.push({ path, message: (error as Error).message })
    return
  }
  const { parts, alone } = template
  if (isCondition && !alone) {
    const message = 'a condition must be one expression: put ={{ }} around all of it'
    found.problems.push({ path, message, ...locate(text, 0, text.length) })
  }
  for (const part of parts) {
    if (typeof part === 'string') continue
    const { source, start } = part
    const problem = (message: string, position: number) =>
      found.problems.push({ path, message, ...locate(text, start + position, 1) })
    try {
      const units = measureScript(source)
      meter.left -= units
      if (meter.left < 0) throw new Error(TOO_MUCH)
      yield units
      const reads = readScript(source, parseScript(source))
      for (const id of reads.nodes) {
        const at = Math.max(0, source.indexOf(id))
        found.nodes.push({ id, path, isName: true, place: () => locate(text, start + at, id.length) })
      }
      if (reads.paired.size > 0) found.pairs = true
      if (reads.roots.has('args') && kind !== 'args') problem(NO_ARGS, source.indexOf('$args'))
      for (const name of kind === 'page' ? [] : PAGE_VARIABLES)
        if (reads.roots.has(name)) problem(noPage(name), source.indexOf(`$${name}`))
      for (const { message, position } of reads.found) problem(message, position)
    } catch (error) {
      const { message, position = 0 } = error as Partial<ScriptSyntaxError> & Error
      problem(message, position)
    }
  }
}

const TOO_MUCH =
  'has an expression that would take too long to read together with those before it: make the expressions ' +
  'shorter, or move some of them to a sub-workflow'

function joinPath(key: string, name: string): string {
  if (!/^[\p{L}_$][\p{L}\p{N}_$-]*$/u.test(name)) return `${key}[${JSON.stringify(name)}]`
  return key === '' ? name : `${key}.${name}`
}
