import type jsonata from 'jsonata'
import type { Rules } from '../../workflows/expressions/rules.ts'

/** Whether a value counts as true, as JSONata's `$boolean` says; undefined counts as false. */
export function isTruthy(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(isTruthy)
  if (typeof value === 'object' && value !== null) return Object.keys(value).length > 0
  return Boolean(value)
}

/** Gives a compiled expression the functions whose meaning depends on the rules: under 2, `$not(nothing)` is true. */
export function bindRules(expression: jsonata.Expression, rules: Rules): jsonata.Expression {
  if (rules >= 2) expression.registerFunction('not', (value: unknown) => !isTruthy(value), '<x-:b>')
  return expression
}
