import type jsonata from 'jsonata'
import type { Rules } from '../../workflows/expressions/rules.ts'
import { nameType, quoteShort } from '../../workflows/problem.ts'
import { isFunction } from './plain.ts'

/** Whether a value counts as true, as JSONata's `$boolean` says; undefined counts as false. */
export function isTruthy(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(isTruthy)
  if (typeof value === 'object' && value !== null) return Object.keys(value).length > 0
  return Boolean(value)
}

/** Gives a compiled expression the functions whose meaning depends on the rules: under 2, `$not(nothing)` is true. */
export function bindRules(expression: jsonata.Expression, rules: Rules): jsonata.Expression {
  if (rules >= 2)
    expression.registerFunction('not', (value: unknown) => isFunction(value) || !isTruthy(value), '<x-:b>')
  return expression
}

/** The warning about a condition's value; undefined if it is a boolean or nothing. */
export function describeTruth(value: unknown): string | undefined {
  if (value === undefined || typeof value === 'boolean') return undefined
  const shown =
    typeof value === 'string'
      ? quoteShort(value)
      : typeof value === 'number'
        ? String(value)
        : nameType(value)
  return `the condition gave ${shown}, which counts as ${isTruthy(value)}: compare it with something`
}
