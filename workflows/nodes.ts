import * as v from 'valibot'
import type { Retry } from './graph.ts'
import { object } from './object.ts'

/**
 * How a node runs. `trigger`: its output is what started the run. `pure`: computes from its inputs alone, in a
 * segment. `wait`: pure up to an instant, then a timer. `effect`: touches the world, an activity of its own.
 */
export type NodeKind = 'trigger' | 'pure' | 'wait' | 'effect'

export type NodeType = {
  kind: NodeKind
  summary: string
  /** What a config must be when saved: a text with `{{ }}` may stand where a value is computed. */
  config: v.GenericSchema<unknown, Record<string, unknown>>
  /** Source handles beside the main one; a function where the config names them. `null` is the main handle. */
  handles: (config: Record<string, unknown>) => (string | null)[]
  /** Config keys whose whole text is an expression, with or without `{{ }}`: `condition`, `cases[].condition`. */
  conditions?: (config: Record<string, unknown>) => { path: string; text: string }[]
  retry: Required<Retry>
  timeoutMs: number
}

const ONCE: Required<Retry> = {
  maxAttempts: 1,
  initialIntervalMs: 1_000,
  backoffCoefficient: 2,
  maxIntervalMs: 60_000,
}

const MAIN = () => [null]

/** True for a text that holds at least one `{{`: its value is known only when the node runs. */
export function isTemplate(value: unknown): value is string {
  return typeof value === 'string' && value.includes('{{')
}

/** A value that may also be a template, checked again by its own schema once rendered. */
function computed<S extends v.GenericSchema>(schema: S) {
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

const text = v.pipe(v.string('must be a text'), v.nonEmpty('must not be empty'))
const duration = v.pipe(
  v.number('must be a number of milliseconds'),
  v.integer('must be a whole number of milliseconds'),
  v.minValue(0, 'must not be negative'),
  v.maxValue(366 * 86_400_000, 'must be at most 366 days'),
)
// Valibot's own record takes arrays, and drops the keys `constructor` and `prototype`.
const record = v.custom<Record<string, unknown>>(
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  'must be an object',
)
const condition = v.union([v.boolean(), text], 'must be an expression or a boolean')
const handle = v.pipe(
  v.string('must be a text'),
  v.regex(/^[A-Za-z0-9_-]{1,100}$/, 'must be 1 to 100 letters, digits, _ or -'),
)
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'] as const
const hookPath = v.pipe(
  v.string('must be a text'),
  v.regex(/^[A-Za-z0-9_-]{1,100}$/, 'must be 1 to 100 letters, digits, _ or -'),
)

const conditionAt = (path: string, value: unknown) =>
  typeof value === 'string' ? [{ path, text: value }] : []

/** Every node type: adding one touches this table and one file in activities/nodes/. */
export const NODES = {
  MANUAL_TRIGGER: {
    kind: 'trigger',
    summary: 'Starts a run by hand or over the API; its output is the data of the call.',
    config: v.object({}),
    handles: MAIN,
    retry: ONCE,
    timeoutMs: 10_000,
  },
  WEBHOOK_TRIGGER: {
    kind: 'trigger',
    summary:
      'Starts a run for each call of /hooks/:workflowId/:path; its output is {body, query, headers, method}.',
    config: v.object({
      path: hookPath,
      method: v.optional(v.picklist(METHODS, `must be one of ${METHODS.join(', ')}`), 'POST'),
      secretHeader: v.optional(object({ name: text, value: text })),
    }),
    handles: MAIN,
    retry: ONCE,
    timeoutMs: 10_000,
  },
  SET: {
    kind: 'pure',
    summary: 'Outputs exactly its values.',
    config: v.object({ values: record }),
    handles: MAIN,
    retry: ONCE,
    timeoutMs: 10_000,
  },
  IF_ELSE: {
    kind: 'pure',
    summary: 'Passes its input on by the handle true or false.',
    config: v.object({ condition }),
    handles: () => ['true', 'false'],
    conditions: (config) => conditionAt('condition', config.condition),
    retry: ONCE,
    timeoutMs: 10_000,
  },
  SWITCH: {
    kind: 'pure',
    summary: 'Passes its input on by the handle of the first case that holds, else by default.',
    config: v.object({
      cases: v.pipe(
        v.array(object({ handle, condition }), 'must be an array'),
        v.maxLength(100, 'must hold at most 100 cases'),
        v.check(
          (cases) => new Set(cases.map((c) => c.handle)).size === cases.length,
          'must not name a handle twice',
        ),
        v.check(
          (cases) => !cases.some((c) => c.handle === 'default'),
          'the handle default is the last one already',
        ),
      ),
    }),
    handles: (config) => [
      ...(Array.isArray(config.cases) ? config.cases.map((c) => String(c?.handle)) : []),
      'default',
    ],
    conditions: (config) =>
      (Array.isArray(config.cases) ? config.cases : []).flatMap((c, i) =>
        conditionAt(`cases[${i}].condition`, c?.condition),
      ),
    retry: ONCE,
    timeoutMs: 10_000,
  },
  MERGE: {
    kind: 'pure',
    summary: 'Joins branches: combine merges objects in edge order, append makes one array of them.',
    config: v.object({
      mode: v.optional(v.picklist(['combine', 'append'], 'must be combine or append'), 'combine'),
    }),
    handles: MAIN,
    retry: ONCE,
    timeoutMs: 10_000,
  },
  FILTER: {
    kind: 'pure',
    summary: 'Outputs {items}: those of its items for which the condition holds ($item, $index).',
    config: v.object({
      items: computed(v.array(v.unknown(), 'must be an array or an expression')),
      condition,
    }),
    handles: MAIN,
    conditions: (config) => conditionAt('condition', config.condition),
    retry: ONCE,
    timeoutMs: 10_000,
  },
  HTTP_REQUEST: {
    kind: 'effect',
    summary: 'Calls a URL; retries 429, 5xx and network errors; outputs {status, headers, body}.',
    config: v.object({
      url: text,
      method: v.optional(computed(v.picklist(METHODS, `must be one of ${METHODS.join(', ')}`)), 'GET'),
      headers: v.optional(
        v.record(v.string(), v.union([v.string(), v.number(), v.boolean()]), 'must be an object'),
      ),
      query: v.optional(record),
      body: v.optional(v.unknown()),
      bodyType: v.optional(v.picklist(['json', 'form', 'text'], 'must be json, form or text'), 'json'),
      responseType: v.optional(v.picklist(['json', 'text'], 'must be json or text')),
      timeoutMs: v.optional(
        computed(
          v.pipe(
            duration,
            v.minValue(1, 'must be at least 1'),
            v.maxValue(3_600_000, 'must be at most an hour'),
          ),
        ),
      ),
    }),
    handles: MAIN,
    retry: { maxAttempts: 3, initialIntervalMs: 1_000, backoffCoefficient: 2, maxIntervalMs: 30_000 },
    timeoutMs: 300_000,
  },
  WAIT: {
    kind: 'wait',
    summary: 'Waits for a duration or until an instant, then passes its input on.',
    config: v.pipe(
      v.object({
        durationMs: v.optional(computed(duration)),
        until: v.optional(computed(v.pipe(v.string(), v.isoTimestamp('must be an ISO 8601 time')))),
      }),
      v.check(
        (config) => (config.durationMs === undefined) !== (config.until === undefined),
        'must hold either durationMs or until',
      ),
    ),
    handles: MAIN,
    retry: ONCE,
    timeoutMs: 10_000,
  },
  STOP_AND_ERROR: {
    kind: 'pure',
    summary: 'Fails with its message.',
    config: v.object({ message: text }),
    handles: MAIN,
    retry: ONCE,
    timeoutMs: 10_000,
  },
  NO_OP: {
    kind: 'pure',
    summary: 'Passes its input on.',
    config: v.object({}),
    handles: MAIN,
    retry: ONCE,
    timeoutMs: 10_000,
  },
} as const satisfies Record<string, NodeType>

export type NodeTypeName = keyof typeof NODES

/** The table's row for a type, or undefined for a type nobody knows (a stored graph may be older or newer). */
export function nodeType(type: string): NodeType | undefined {
  return Object.hasOwn(NODES, type) ? NODES[type as NodeTypeName] : undefined
}
