import type { Context, MiddlewareHandler } from 'hono'
import * as v from 'valibot'
import type { Role } from '../db/acts.ts'
import { invalid } from '../db/fault.ts'
import { findOwner, type Owned } from '../db/owners.ts'
import type { Scope } from '../db/scope.ts'
import { cleanText } from '../db/text.ts'
import type { Problem } from '../workflows/graph.ts'
import { isObject } from '../workflows/inputs.ts'
import { describeIssues } from '../workflows/problem.ts'
import type { Answer, FaultStatus } from './answers.ts'
import type { AppEnv } from './app.ts'
import { readJson } from './body.ts'

type Schema = v.GenericSchema

/**
 * What a route takes and answers, and who may call it: checked here, told by the OpenAPI document. accept checks
 * the credentials, the verb the right. `role`: 'public' needs no credentials; 'user' takes anybody signed in,
 * 'session' no SDK tokens, 'instance' only the instance's admin; 'member' any role in the team, else the least one.
 * `of` says what the path's `id` names, where that tells the team whose rate limit counts: a `teamId` or
 * `workflowId` in path, query or body is found without it. `faults` are the error answers beside those that follow
 * from the rest (openapi.ts). Examples in `example` are taken as bodies by the test of all routes and callers.
 */
export type Rule = {
  /** The operation's name in the document and in generated clients. */
  id: string
  tag: string
  summary: string
  description?: string
  role: 'public' | 'user' | 'session' | 'instance' | 'member' | Role
  of?: Owned
  params?: Schema
  query?: Schema
  json?: Schema
  /** Takes a body of any type, which the handler reads itself. */
  anyBody?: boolean
  /** Request headers that the handler reads, with what they do. */
  headers?: Record<string, { description: string; pattern?: string }>
  /** A body, of those routes that take one. */
  example?: Record<string, unknown>
  faults?: readonly FaultStatus[]
  /** `default`: answers of any other status. */
  responses: Record<number, Answer> & { default?: Answer }
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
 * The one middleware in front of every handler: counts the request (429), checks the credentials (401), then params,
 * query and body with Valibot, all faults at once (400). Handlers read `c.req.valid('param' | 'query' | 'json')` and `c.get('scope')`.
 */
export function accept<const R extends Rule>(
  rule: R,
  // biome-ignore lint/suspicious/noExplicitAny: the path is the route's, as in Hono's own validator
): MiddlewareHandler<AppEnv, any, { in: In<R>; out: Out<R> }> {
  const middleware: MiddlewareHandler<AppEnv> = async (c, next) => {
    let body: Promise<unknown> | undefined
    const readOnce = () => {
      body ??= readJson(c)
      return body
    }
    await c.get('count')((scope) => findTeam(rule, c, scope, readOnce))
    if (rule.role !== 'public') c.set('scope', await c.get('authenticate')())
    const problems: Problem[] = []
    const read = (target: 'param' | 'query' | 'json', schema: Schema | undefined, value: unknown) => {
      if (!schema) return
      const parsed = v.safeParse(schema, value)
      if (parsed.success) c.req.addValidatedData(target, parsed.output as object)
      else problems.push(...nameProblems(parsed.issues, target))
    }
    read('param', rule.params, c.req.param())
    read('query', rule.query, readQuery(c))
    if (rule.json) {
      const json = await readOnce()
      // Valibot's object takes an array for an object without keys, and has its own words for the rest.
      if (!isObject(json)) problems.push({ path: 'body', message: 'must be an object' })
      else read('json', rule.json, json)
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

/** The team that a request is about, by what it names first: in the path, the query, the body. */
async function findTeam(
  rule: Rule,
  c: Context<AppEnv>,
  { store }: Scope,
  readOnce: () => Promise<unknown>,
): Promise<string | undefined> {
  const look = async (schema: Schema | undefined, given: () => unknown) => {
    for (const key of ['teamId', 'workflowId']) {
      if (!Object.hasOwn(Object((schema as { entries?: object } | undefined)?.entries), key)) continue
      const id = readId(((await given()) as Record<string, unknown> | null)?.[key])
      return { team: key === 'teamId' || !id ? id : await findOwner(store, 'workflows', id) }
    }
  }
  const inPath = await look(rule.params, () => c.req.param())
  if (inPath) return inPath.team
  const id = rule.of && readId(c.req.param('id'))
  if (rule.of) return id && findOwner(store, rule.of, id)
  return ((await look(rule.query, () => readQuery(c))) ?? (await look(rule.json, readOnce)))?.team
}

function readId(given: unknown): string | undefined {
  const parsed = v.safeParse(uuid, given)
  return parsed.success ? parsed.output : undefined
}

/** What the document shows in place of what can be read off the checks. */
export function shown<T>(schema: Record<string, unknown>) {
  return v.metadata<T, { shown: Record<string, unknown> }>({ shown: schema })
}

export const uuid = v.pipe(
  v.string('must be a text'),
  shown<string>({ type: 'string', format: 'uuid' }),
  v.regex(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i, 'must be a UUID'),
  v.toLowerCase(),
)

/** The path of one thing, and that of what a team has. */
export const ById = v.object({ id: uuid })
export const InTeam = v.object({ teamId: uuid })

/** A text of 1 (or `min`) to `max` characters that PostgreSQL and UTF-8 can hold. */
export function text(max: number, min = 1) {
  return v.pipe(
    v.string('must be a text'),
    shown<string>({ type: 'string', minLength: min, maxLength: max, pattern: '^[^\\u0000]*$' }),
    v.check((value) => !value.includes('\0') && value.isWellFormed(), 'must not hold NUL or broken Unicode'),
    v.minLength(min, min === 1 ? 'must not be empty' : `must have at least ${min} characters`),
    v.check(
      (value) => value.length <= max || countCharacters(value) <= max,
      `must have at most ${max} characters`,
    ),
  )
}

/** A name: a text with something to see, without the space around it. */
export function line(max: number) {
  return v.pipe(
    text(max),
    shown<string>({ type: 'string', maxLength: max, pattern: '^[^\\u0000]*\\S[^\\u0000]*$' }),
    v.trim(),
    v.nonEmpty('must not be empty'),
  )
}

/** A whole number in a query text, within bounds. */
export function whole(min: number, max: number) {
  return v.pipe(
    v.string('must be a whole number'),
    shown<string>({ type: 'integer', minimum: min, maximum: max }),
    v.regex(/^\d{1,15}$/, 'must be a whole number'),
    v.transform(Number),
    v.minValue(min, `must be at least ${min}`),
    v.maxValue(max, `must be at most ${max}`),
  )
}

// As JSON Schema and PostgreSQL count: an emoji is one.
function countCharacters(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}

// A key given twice comes as an array, so that a schema for one text refuses it.
function readQuery(c: Context): Record<string, string | string[]> {
  const entries = Object.entries(c.req.queries())
  return Object.fromEntries(entries.map(([key, values]) => [key, values.length === 1 ? values[0]! : values]))
}

// Valibot's own messages repeat what was sent, so they are cut; the list of all node types is not.
function nameProblems(issues: v.BaseIssue<unknown>[], target: 'param' | 'query' | 'json'): Problem[] {
  return describeIssues(issues, '').map(({ path, message }) => ({
    path: path || (target === 'json' ? 'body' : target),
    message: cleanText(message, 1_000),
  }))
}
