import { LRUCache } from 'lru-cache'
import { splitCondition, splitTemplate, type Template } from '../../workflows/expressions/expressions.ts'
import type { Rules } from '../../workflows/expressions/rules.ts'
import { isScriptText } from '../../workflows/javascript/template.ts'
import { setOwn } from '../../workflows/json.ts'
import { type CompiledScript, compileScript } from '../javascript/texts.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import { compileInTurns } from './compiled.ts'
import { expressionFailure, expressionLimit } from './failures.ts'
import { isTruthy } from './truth.ts'
import type { PlacedExpression } from './watch/watch.ts'

/** An expression in JSONata, or under the rules 2 a text that begins with `=`. */
export type AnyExpression = PlacedExpression | CompiledScript

export function isScript(expression: AnyExpression): expression is CompiledScript {
  return 'code' in expression
}

/** What a config has to be compiled: expressions with the texts they stand in, and whole texts that begin with `=`. */
type FoundSources = ({ source: string; text: string } | { script: string })[]

/** Returns a copy of the config with the values of its expressions, which are given in order, filled in. */
type FillConfig = (values: unknown[]) => unknown

const MAX_CONFIG_DEPTH = 200

/** The expressions of a config value, and the function that fills in their values if there are any. */
export async function collectExpressions(
  value: unknown,
  rules: Rules,
): Promise<{
  expressions: AnyExpression[]
  fill: FillConfig | undefined
}> {
  const found: FoundSources = []
  const fill = collectInto(found, value, rules)
  const expressions: AnyExpression[] = []
  for (const one of found) {
    if ('script' in one) expressions.push(await compileScript(one.script))
    else expressions.push({ expression: await compileInTurns(one.source, rules), text: one.text })
  }
  return { expressions, fill }
}

function collectInto(found: FoundSources, value: unknown, rules: Rules, depth = 0): FillConfig | undefined {
  if (typeof value === 'string') {
    if (rules >= 2 && isScriptText(value)) return collectScript(value, found)
    // `'=` is how a text begins that is no JavaScript.
    const text = rules >= 2 && value.startsWith("'=") ? value.slice(1) : value
    if (text.includes('{{')) return collectText(text, found)
    return text === value ? undefined : () => text
  }
  if (typeof value !== 'object' || value === null) return undefined
  if (depth > MAX_CONFIG_DEPTH) throw expressionFailure('the config is nested too deeply')
  const entries = Object.entries(value)
  const fills = entries.map(([, item]) => collectInto(found, item, rules, depth + 1))
  if (!fills.some(Boolean)) return undefined
  if (Array.isArray(value)) {
    return (values) =>
      value.map((item, i) => {
        const fill = fills[i]
        return fill ? fill(values) : item
      })
  }
  return (values) => {
    const filled: Record<string, unknown> = {}
    for (const [i, [key, item]] of entries.entries()) {
      const fill = fills[i]
      setOwn(filled, key, fill ? fill(values) : item)
    }
    return filled
  }
}

function collectScript(text: string, found: FoundSources): FillConfig {
  const at = found.push({ script: text }) - 1
  return (values) => values[at] ?? null
}

function collectText(text: string, found: FoundSources): FillConfig {
  const parts = readCached(text).map((part) =>
    typeof part === 'string' ? part : found.push({ source: part.source, text }) - 1,
  )
  const [only] = parts
  if (parts.length === 1 && typeof only === 'number') return (values) => values[only] ?? null
  return (values) => {
    let chars = 0
    const texts = parts.map((part) => {
      const written = typeof part === 'string' ? part : writeText(values[part])
      chars += written.length
      // The same big value may be in a text many times.
      if (chars > MAX_TEXT) throw expressionLimit(TOO_LONG)
      return written
    })
    return texts.join('')
  }
}

function writeText(value: unknown): string {
  if (value === undefined) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** The most characters of a text with expressions in it. */
const MAX_TEXT = 8_000_000
const TOO_LONG = `a text with expressions would have more than ${MAX_TEXT / 1_000_000} million characters`

/** Split templates, kept up to this many characters of their sources. */
const templates = new LRUCache<string, Template>({
  maxSize: 1_000_000,
  sizeCalculation: (_, text) => text.length,
})

function readCached(text: string): Template {
  const known = templates.get(text)
  if (known) return known
  try {
    const template = splitTemplate(text)
    templates.set(text, template)
    return template
  } catch (error) {
    throw expressionFailure((error as Error).message)
  }
}

/**
 * Compiles a single expression, with or without `{{ }}`, or a text that begins with `=`. Throws a NodeFailure for
 * anything else.
 */
export async function compileBareExpression(text: unknown, rules: Rules): Promise<AnyExpression> {
  if (typeof text !== 'string') throw expressionFailure('an expression must be a string')
  if (rules >= 2 && isScriptText(text)) return compileScript(text)
  try {
    return { expression: await compileInTurns(splitCondition(text).source, rules), text }
  } catch (error) {
    throw error instanceof NodeFailure ? error : expressionFailure((error as Error).message)
  }
}

/** Compiles a condition: a boolean, or an expression with or without `{{ }}`. Throws a NodeFailure. */
export async function compileCondition(condition: unknown, rules: Rules): Promise<AnyExpression | boolean> {
  if (typeof condition === 'boolean') return condition
  if (typeof condition !== 'string') throw expressionFailure('a condition must be an expression or a boolean')
  const compiled = await compileBareExpression(condition, rules)
  if (isScript(compiled) && !compiled.alone)
    throw expressionFailure('a condition must be one expression: put ={{ }} around all of it')
  return compiled
}

/** Whether the value of a condition counts as true: JavaScript's own way for JavaScript. */
export function holds(expression: AnyExpression, value: unknown): boolean {
  return isScript(expression) ? Boolean(value) : isTruthy(value)
}
