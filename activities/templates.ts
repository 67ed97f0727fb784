import { splitCondition, splitTemplate, type Template } from '../workflows/expressions.ts'
import { setOwn } from '../workflows/inputs.ts'
import { type Compiled, compile } from './compiled.ts'
import { NodeFailure } from './nodes/failure.ts'
import { createTextCache } from './plain.ts'

/** Fills the values of the expressions, in the order they were found, into a copy of the config. */
export type Fill = (values: unknown[]) => unknown

const MAX_CONFIG_DEPTH = 200

/** Collects the expressions of a config value; undefined where there are none and it stands as it is. */
export function collectExpressions(value: unknown, found: Compiled[], depth = 0): Fill | undefined {
  if (typeof value === 'string') return value.includes('{{') ? collectText(value, found) : undefined
  if (typeof value !== 'object' || value === null) return undefined
  if (depth > MAX_CONFIG_DEPTH) throw failure('the config is nested too deeply')
  const entries = Object.entries(value)
  const fills = entries.map(([, item]) => collectExpressions(item, found, depth + 1))
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

function collectText(text: string, found: Compiled[]): Fill {
  const parts = readCached(text).map((part) =>
    typeof part === 'string' ? part : found.push(compile(part.source)) - 1,
  )
  const [only] = parts
  if (parts.length === 1 && typeof only === 'number') return (values) => values[only] ?? null
  return (values) => parts.map((part) => (typeof part === 'string' ? part : writeText(values[part]))).join('')
}

function writeText(value: unknown): string {
  if (value === undefined) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}

const templates = createTextCache<Template>(1_000_000)

function readCached(text: string): Template {
  try {
    return templates(text, () => splitTemplate(text))
  } catch (error) {
    throw failure((error as Error).message)
  }
}

/** Compiles a text that is one expression, with or without `{{ }}`. */
export function compileBare(text: unknown): Compiled {
  if (typeof text !== 'string') throw failure('an expression must be a text')
  try {
    return compile(splitCondition(text).source)
  } catch (error) {
    throw error instanceof NodeFailure ? error : failure((error as Error).message)
  }
}

export function compileCondition(condition: unknown): Compiled | boolean {
  if (typeof condition === 'boolean') return condition
  if (typeof condition !== 'string') throw failure('a condition must be an expression or a boolean')
  return compileBare(condition)
}

/** The failure of an expression that is wrong. */
export function failure(message: string): NodeFailure {
  return new NodeFailure(message, { type: 'ExpressionFailed' })
}
