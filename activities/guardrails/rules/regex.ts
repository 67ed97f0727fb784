import { RE2JS } from 're2js'
import type { RuleConfigs } from '../../../db/guardrails/rules.ts'
import { translatePattern } from '../../patterns.ts'
import { type Find, keepSome } from './places.ts'

/** A pattern is as long as its program: each step of it may be looked at for each character of a text. */
const MAX_PROGRAM = 10_000

/** How many are counted. The text behind a match may have to be read again for the next one. */
const MAX_COUNTED = 100

/** A step takes some hundred bytes; a character of a list of keywords takes some forty. */
const STEP_SIZE = 3

const FLAGS: Record<string, number> = {
  i: RE2JS.CASE_INSENSITIVE,
  m: RE2JS.MULTILINE,
  s: RE2JS.DOTALL,
}

/** Finds the matches of a pattern in the unchanged text. Throws an Error that says why RE2 refuses the pattern. */
export function compileRegex({ pattern, flags }: RuleConfigs['REGEX']): Find {
  const compiled = compile(pattern, flags)
  const steps = compiled.programSize()
  if (steps > MAX_PROGRAM) throw new Error('is too large: its repetitions add up to too much')
  if (findsNothing(compiled))
    throw new Error('finds an empty match in any text, as x* does: every text would break the rule')
  const find = (text: string) => keepSome(eachSpan(compiled, text), MAX_COUNTED)
  return Object.assign(find, { size: STEP_SIZE * steps })
}

/** Whether it matches between any two characters. */
function findsNothing(compiled: RE2JS): boolean {
  return [...eachSpan(compiled, '\u{1}')].some(({ start, end }) => start === end)
}

function compile(pattern: string, flags: string): RE2JS {
  try {
    const all = [...flags].reduce((sum, flag) => sum | FLAGS[flag]!, 0)
    return RE2JS.compile(translatePattern(pattern), all)
  } catch (error) {
    const said = String((error as Error).message).replace(/^error parsing regexp: /, '')
    throw new Error(`is not one of RE2, which has no look-around and no back-references: ${said}`)
  }
}

function* eachSpan(compiled: RE2JS, text: string) {
  const matcher = compiled.matcher(text)
  while (matcher.find()) yield { start: matcher.start(), end: matcher.end() }
}
