import type { Context, MiddlewareHandler } from 'hono'
import * as v from 'valibot'
import type { Role } from '../db/acts.ts'
import { invalid } from '../db/fault.ts'
import { cleanText } from '../db/text.ts'
import type { Problem } from '../workflows/graph.ts'
import { joinPath } from '../workflows/problem.ts'
import type { AppEnv } from './app.ts'
import { readJson } from './body.ts'

type Schema = v.GenericSchema

/**
 * What a route takes and who may call it. 'public' needs no credentials; for the others `role` says who passes
 * ('user': anybody signed in; 'member': any member or Viewer token): accept checks the credentials, the verb the
 * team's right. `responses` describes the answers by status, for the OpenAPI document.
 */
export type Rule = {
  summary: string
  role: 'public' | 'user' | 'member' | Role
  params?: Schema
  query?: Schema
  json?: Schema
  responses?: Record<number, { description: string; schema?: Schema }>
}

type Target = { params: 'param'; query: 'query'; json: 'json' }
type In<R extends Rule> = {
  [K in keyof Target as R[K] extends Schema ? Target[K] : never]: v.InferInput<Extract<R[K], Schema>>
}
type Out<R extends Rule> = {
  [K in keyof Target as R[K] extends Schema ? Target[K] : never]: v.InferOutput<Extract<R[K], Schema>>
}

const MAX_PROBLEMS = 500

const rules = new WeakMap<object, Rule>()

/**
 * The one middleware in front of every handler: checks the credentials (401), then params, query and body with
 * Valibot, all faults at once (400). Handlers read `c.req.valid('param' | 'query' | 'json')` and `c.get('scope')`.
 */
export function accept<const R extends Rule>(
  rule: R,
  // biome-ignore lint/suspicious/noExplicitAny: the path is the route's, as in Hono's own validator
): MiddlewareHandler<AppEnv, any, { in: In<R>; out: Out<R> }> {
  const middleware: MiddlewareHandler = async (c, next) => {
    if (rule.role !== 'public') c.set('scope', await c.get('authenticate')())
    const problems: Problem[] = []
    const read = (target: 'param' | 'query' | 'json', schema: Schema | undefined, value: unknown) => {
      if (!schema) return
      const parsed = v.safeParse(schema, value)
      if (parsed.success) c.req.addValidatedData(target, parsed.output as object)
      else problems.push(...parsed.issues.map((issue) => describeIssue(issue, target)))
    }
    read('param', rule.params, c.req.param())
    read('query', rule.query, readQuery(c))
    if (rule.json) {
      const body = await readJson(c)
      // Valibot's object takes an array for an object without keys.
      if (Array.isArray(body)) problems.push({ path: 'body', message: 'must be an object' })
      else read('json', rule.json, body)
    }
    if (problems.length > 0) throw invalid(problems.slice(0, MAX_PROBLEMS))
    await next()
  }
  rules.set(middleware, rule)
  return middleware
}

/** The rule that a middleware was made from: for the OpenAPI document and the authorization matrix. */
export function findRule(middleware: object): Rule | undefined {
  return rules.get(middleware)
}

export const uuid = v.pipe(
  v.string('must be a text'),
  v.regex(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i, 'must be a UUID'),
  v.toLowerCase(),
)

/** A text of 1 (or `min`) to `max` characters that PostgreSQL and UTF-8 can hold. */
export function text(max: number, min = 1) {
  return v.pipe(
    v.string('must be a text'),
    v.check((value) => !value.includes('\0') && value.isWellFormed(), 'must not hold NUL or broken Unicode'),
    v.minLength(min, min === 1 ? 'must not be empty' : `must have at least ${min} characters`),
    v.maxLength(max, `must have at most ${max} characters`),
  )
}

/** A whole number in a query text, within bounds. */
export function whole(min: number, max: number) {
  return v.pipe(
    v.string('must be a whole number'),
    v.regex(/^\d{1,15}$/, 'must be a whole number'),
    v.transform(Number),
    v.minValue(min, `must be at least ${min}`),
    v.maxValue(max, `must be at most ${max}`),
  )
}

// A key given twice comes as an array, so that a schema for one text refuses it.
function readQuery(c: Context): Record<string, string | string[]> {
  const entries = Object.entries(c.req.queries())
  return Object.fromEntries(entries.map(([key, values]) => [key, values.length === 1 ? values[0]! : values]))
}

// Valibot's own messages repeat what was sent, so they are cut.
function describeIssue(issue: v.BaseIssue<unknown>, target: 'param' | 'query' | 'json'): Problem {
  const path = (issue.path ?? []).reduce((to, item) => joinPath(to, item.key as string | number), '')
  const missing = issue.kind === 'schema' && issue.input === undefined
  return {
    path: path || (target === 'json' ? 'body' : target),
    message: missing ? 'is required' : cleanText(issue.message, 300),
  }
}
