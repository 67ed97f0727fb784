import * as v from 'valibot'
import { splitCondition } from '../expressions/expressions.ts'
import { isScriptText, splitScript } from '../javascript/template.ts'
import { isObject } from '../json.ts'
import { describeIssue } from '../problem.ts'
import type { NodeKind, Retry } from '../run/plan.ts'
import type { NodeType } from './nodetype.ts'

const ONCE: Required<Retry> = {
  maxAttempts: 1,
  initialIntervalMs: 1_000,
  backoffCoefficient: 2,
  maxIntervalMs: 60_000,
}

/** A row of the table. The defaults: one attempt of at most ten seconds, and the main handle only. */
export function nodeTypeRow<const K extends NodeKind>(
  kind: K,
  row: Pick<NodeType, 'summary' | 'config'> & Partial<Omit<NodeType, 'kind'>>,
): NodeType & { kind: K } {
  return { handles: () => [null], retry: ONCE, timeoutMs: 10_000, ...row, kind }
}

/** Whether the value is a string with a `{{`, so that its value is known only when the node is executed. */
function isTemplate(value: unknown): value is string {
  return typeof value === 'string' && value.includes('{{')
}

/** A schema for a value or a template, which is checked again, by `schema`, once it is rendered. */
export function computed<S extends v.GenericSchema>(schema: S) {
  const complain = (value: unknown) => {
    const [issue] = v.safeParse(schema, value).issues ?? []
    return issue ? describeIssue(issue) : 'Invalid value'
  }
  const template = v.pipe(
    v.string(),
    v.check(
      (value) => isTemplate(value),
      (issue) => complain(issue.input),
    ),
  )
  return v.union([template, schema], (issue) => complain(issue.input))
}

export const textField = v.pipe(v.string('must be a string'), v.nonEmpty('must not be empty'))

/** For a secret that is either written under `key`, or kept in a credential. The written one counts. */
export function demandSecret<T extends object>(key: string, isDue: (value: T) => boolean = () => true) {
  return v.rawCheck<T>(({ dataset, addIssue }) => {
    if (!dataset.typed || !isDue(dataset.value)) return
    const given = dataset.value as Record<string, unknown>
    if (given[key] !== undefined || given.credentialId !== undefined) return
    const path = { type: 'object', origin: 'value', input: given, key, value: undefined } as const
    addIssue({ message: 'is required, unless credentialId is set', path: [path as v.ObjectPathItem] })
  })
}

/** For handles, paths of webhooks and names of events. */
export const nameField = v.pipe(
  v.string('must be a string'),
  v.regex(/^[A-Za-z0-9_-]{1,100}$/, 'must be 1 to 100 letters, digits, _ or -'),
)

/** Names a credential by its literal id, so that every reader sees which one, and no expression chooses another. */
export const credentialField = v.pipe(
  v.string('must be the id of a credential'),
  v.uuid('must be the id of a credential'),
  v.toLowerCase(),
)

/** Milliseconds, up to the length of a leap year. */
export const durationField = v.pipe(
  v.number('must be a number of milliseconds'),
  v.integer('must be a whole number of milliseconds'),
  v.minValue(0, 'must not be negative'),
  v.maxValue(366 * 86_400_000, 'must be at most 366 days'),
)

// Valibot's own record schema accepts arrays, and drops the keys `constructor` and `prototype`.
export const anyObject = v.custom<Record<string, unknown>>(isObject, 'must be an object')

/** A switch that is on where it is missing. The default is only told: what is stored stays as it was written. */
export const usuallyOn = v.pipe(v.boolean('must be true or false'), v.metadata({ default: true }))

export const itemsField = v.array(v.unknown(), 'must be an array or an expression in {{ }}')

export const conditionField = v.union([v.boolean(), textField], 'must be an expression or a boolean')

export const conditionAt = (path: string, value: unknown) =>
  typeof value === 'string' ? [{ path, text: value }] : []

export const HTTP_METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'] as const

export function wholeNumber(min: number, max: number) {
  return v.pipe(
    v.number('must be a number'),
    v.integer('must be a whole number'),
    v.minValue(min, `must be at least ${min}`),
    v.maxValue(max, `must be at most ${max}`),
  )
}

export const oneOf = <const T extends string[]>(...options: T) =>
  v.picklist(options, `must be ${options.slice(0, -1).join(', ')} or ${options.at(-1)}`)

/** The form of the numbers of a JSON text that are too large to be held exactly. Without it they are texts. */
export const largeNumbersField = oneOf('text', 'number')
/** The form of a number that JavaScript cannot hold exactly: a text of its digits, or the nearest number. */
export type LargeNumbers = v.InferOutput<typeof largeNumbersField>
export const LARGE_NUMBERS =
  'What becomes of integers beyond 2^53: a text of their digits, unless it is number, which rounds them.'

/** A string that is never a template: it becomes a key of the output. */
export const labelField = v.pipe(
  textField,
  v.check((value) => !value.includes('{{'), 'must be a string without {{ }}'),
)

/** A value of each item: a key, a path (`address.city`), or one expression in `{{ }}` that reads `$item`. */
export const itemField = v.pipe(
  v.string('must be a field of the items, or an expression in {{ }}'),
  v.nonEmpty('must not be empty'),
  v.check((value) => !value.includes('{{') || isOneExpression(value), 'must be one expression in {{ }}'),
)

/** Whether a text is one expression with nothing around it, whose value keeps its type. */
export function isOneExpression(value: string): boolean {
  try {
    if (isScriptText(value)) return splitScript(value).alone
    return value.startsWith('{{') && splitCondition(value) !== undefined
  } catch {
    return false
  }
}

/** A schema for one entry, or an array of 1 to `max` entries, whose problems are named by their index. */
export function oneOrMany<S extends v.GenericSchema>(schema: S, message: string, max = 20) {
  const list = v.pipe(
    v.array(schema),
    v.minLength(1, 'must not be empty'),
    v.maxLength(max, `must have at most ${max} entries`),
  )
  const union = v.union([schema, list], message)
  // Valibot's union says of an array with a wrong entry only that it fits neither.
  const run: (typeof union)['~run'] = (dataset, config) =>
    Array.isArray(dataset.value) ? list['~run'](dataset, config) : union['~run'](dataset, config)
  return { ...union, '~run': run }
}

/**
 * Requires further keys of a config depending on its `operation`: `needs` maps each operation to its keys.
 */
export function demandKeys<T extends { operation?: unknown }>(needs: Record<string, string[]>) {
  return v.rawCheck<T>(({ dataset, addIssue }) => {
    if (!dataset.typed) return
    const { operation } = dataset.value
    for (const key of needs[String(operation)] ?? []) {
      if ((dataset.value as Record<string, unknown>)[key] !== undefined) continue
      const path = { type: 'object', origin: 'value', input: dataset.value, key, value: undefined } as const
      addIssue({ message: `is required for the operation ${operation}`, path: [path as v.ObjectPathItem] })
    }
  })
}

/** Refuses keys of a config that have no meaning in its `operation`: `allowed` has those of each. */
export function allowKeys<T extends { operation?: unknown }>(allowed: Record<string, string[]>) {
  return v.rawCheck<T>(({ dataset, addIssue }) => {
    if (!dataset.typed) return
    const config = dataset.value as Record<string, unknown>
    const own = allowed[String(config.operation)] ?? []
    for (const key of new Set(Object.values(allowed).flat())) {
      if (config[key] === undefined || own.includes(key)) continue
      const path = { type: 'object', origin: 'value', input: config, key, value: config[key] } as const
      const message = `has no meaning in the operation ${config.operation}`
      addIssue({ message, path: [path as v.ObjectPathItem] })
    }
  })
}
