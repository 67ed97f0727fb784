import * as v from 'valibot'
import { invalidConfig } from './failure.ts'
import type { NodeContext } from './node.ts'

/**
 * Renders a key of the config and checks it against the schema, which sees null as undefined. If the schema
 * refuses a string that reads as a number, the number is tried. Throws a NodeFailure (InvalidConfig) that
 * names the key.
 */
export async function renderKey<S extends v.GenericSchema>(
  { config, bindings, evaluator }: NodeContext,
  key: string,
  schema: S,
): Promise<v.InferOutput<S>> {
  const value = await evaluator.render(config[key], bindings)
  const parsed = v.safeParse(schema, value ?? undefined)
  if (parsed.success) return parsed.output
  // Queries, headers, CSV and templates with text around an expression give numbers as strings.
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : Number.NaN
  const again = Number.isNaN(number) ? parsed : v.safeParse(schema, number)
  if (again.success) return again.output
  const isEmpty = value === null || value === undefined
  throw invalidConfig(key, isEmpty ? 'must have a value, but it is empty' : parsed.issues[0].message)
}

/** Renders a key to a string; other values become JSON. Throws a NodeFailure (InvalidConfig) for null. */
export async function renderText({ config, bindings, evaluator }: NodeContext, key: string): Promise<string> {
  const value = await evaluator.render(config[key], bindings)
  if (value === null || value === undefined) throw invalidConfig(key, 'must have a value, but it is empty')
  return typeof value === 'string' ? value : JSON.stringify(value)
}
