import * as v from 'valibot'
import { splitCondition } from '../expressions.ts'
import type { Retry } from '../graph.ts'
import { isObject } from '../inputs.ts'
import type { NodeKind, NodeType } from '../nodes.ts'

const ONCE: Required<Retry> = {
  maxAttempts: 1,
  initialIntervalMs: 1_000,
  backoffCoefficient: 2,
  maxIntervalMs: 60_000,
}

/** A row of the table: one attempt of ten seconds at most, leaving by the main handle, where it says nothing else. */
export function node<const K extends NodeKind>(
  kind: K,
  row: Pick<NodeType, 'summary' | 'config'> & Partial<Omit<NodeType, 'kind'>>,
): NodeType & { kind: K } {
  return { handles: () => [null], retry: ONCE, timeoutMs: 10_000, ...row, kind }
}

/** True for a text that holds at least one `{{`: its value is known only when the node runs. */
function isTemplate(value: unknown): value is string {
  return typeof value === 'string' && value.includes('{{')
}

/** A value that may also be a template, checked again by its own schema once rendered. */
export function computed<S extends v.GenericSchema>(schema: S) {
  const complain = (value: unknown) => v.safeParse(schema, value).issues?.[0]?.message ?? 'Invalid value'
  const template = v.pipe(
    v.string(),
    v.check(
      (value) => isTemplate(value),
      (issue) => complain(issue.input),
    ),
  )
  return v.union([template, schema], (issue) => complain(issue.input))
}

export const text = v.pipe(v.string('must be a text'), v.nonEmpty('must not be empty'))

/** 1 to 100 letters, digits, _ or -: handles, paths of webhooks, names of events. */
export const name = v.pipe(
  v.string('must be a text'),
  v.regex(/^[A-Za-z0-9_-]{1,100}$/, 'must be 1 to 100 letters, digits, _ or -'),
)

/** Milliseconds, up to a leap year. */
export const duration = v.pipe(
  v.number('must be a number of milliseconds'),
  v.integer('must be a whole number of milliseconds'),
  v.minValue(0, 'must not be negative'),
  v.maxValue(366 * 86_400_000, 'must be at most 366 days'),
)

// Valibot's own record takes arrays, and drops the keys `constructor` and `prototype`.
export const record = v.custom<Record<string, unknown>>(isObject, 'must be an object')

export const items = v.array(v.unknown(), 'must be an array or an expression in {{ }}')

export const condition = v.union([v.boolean(), text], 'must be an expression or a boolean')

export const conditionAt = (path: string, value: unknown) =>
  typeof value === 'string' ? [{ path, text: value }] : []

export const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'] as const

export function whole(min: number, max: number) {
  return v.pipe(
    v.number('must be a number'),
    v.integer('must be a whole number'),
    v.minValue(min, `must be at least ${min}`),
    v.maxValue(max, `must be at most ${max}`),
  )
}

export const choice = <const T extends string[]>(...options: T) =>
  v.picklist(options, `must be ${options.slice(0, -1).join(', ')} or ${options.at(-1)}`)

/** A name that stands as it is written: it becomes a key of the output. */
export const label = v.pipe(
  text,
  v.check((value) => !value.includes('{{'), 'must be a plain text'),
)

/** Where each item has a value: a key, a path (`address.city`), or one expression of `$item` in `{{ }}`. */
export const field = v.pipe(
  v.string('must be a field of the items, or an expression of $item'),
  v.nonEmpty('must not be empty'),
  v.check((value) => !value.includes('{{') || isExpression(value), 'must be one expression in {{ }}'),
)

function isExpression(value: string): boolean {
  try {
    return value.startsWith('{{') && splitCondition(value) !== undefined
  } catch {
    return false
  }
}

/** One entry, or a list of up to `max`. */
export function oneOrMany<S extends v.GenericSchema>(schema: S, message: string, max = 20) {
  const list = v.pipe(
    v.array(schema),
    v.minLength(1, 'must not be empty'),
    v.maxLength(max, `must hold at most ${max}`),
  )
  return v.union([schema, list], message)
}

/** Names the keys that a config with this `operation` lacks. */
export function demandKeys<T extends { operation?: unknown }>(needs: Record<string, string[]>) {
  return v.rawCheck<T>(({ dataset, addIssue }) => {
    if (!dataset.typed) return
    const { operation } = dataset.value
    for (const key of needs[String(operation)] ?? []) {
      if ((dataset.value as Record<string, unknown>)[key] !== undefined) continue
      const path = { type: 'object', origin: 'value', input: dataset.value, key, value: undefined } as const
      addIssue({ message: `is required to ${operation}`, path: [path as v.ObjectPathItem] })
    }
  })
}
