import * as v from 'valibot'
import type { Retry } from '../graph.ts'
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
export const record = v.custom<Record<string, unknown>>(
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  'must be an object',
)

export const items = v.array(v.unknown(), 'must be an array or an expression')

export const condition = v.union([v.boolean(), text], 'must be an expression or a boolean')

export const conditionAt = (path: string, value: unknown) =>
  typeof value === 'string' ? [{ path, text: value }] : []

export const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'] as const
