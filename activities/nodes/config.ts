import * as v from 'valibot'
import { invalidConfig } from './failure.ts'
import type { NodeContext } from './node.ts'

/**
 * Renders a key of the config and holds it against what it must be; a text that reads as a number is one where the
 * schema asks for it. Nothing is undefined. Throws InvalidConfig, which names the key.
 */
export async function readKey<S extends v.GenericSchema>(
  { config, bindings, evaluator }: NodeContext,
  key: string,
  schema: S,
): Promise<v.InferOutput<S>> {
  const value = await evaluator.render(config[key], bindings)
  const parsed = v.safeParse(schema, value ?? undefined)
  if (parsed.success) return parsed.output
  // So numbers come out of queries, headers, CSV and texts around an expression.
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : Number.NaN
  const again = Number.isNaN(number) ? parsed : v.safeParse(schema, number)
  if (again.success) return again.output
  throw invalidConfig(key, value === null || value === undefined ? 'is nothing' : parsed.issues[0].message)
}

/** Renders a key into a text: numbers and booleans as written, objects as JSON. Throws InvalidConfig for nothing. */
export async function readText({ config, bindings, evaluator }: NodeContext, key: string): Promise<string> {
  const value = await evaluator.render(config[key], bindings)
  if (value === null || value === undefined) throw invalidConfig(key, 'is nothing')
  return typeof value === 'string' ? value : JSON.stringify(value)
}
