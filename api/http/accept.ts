import type { Context, MiddlewareHandler } from 'hono'
import * as v from 'valibot'
import type { Role } from '../../db/acts.ts'
import { invalid } from '../../db/fault.ts'
import { findOwner, type OwnedTable } from '../../db/owners.ts'
import type { Scope } from '../../db/scope.ts'
import { cleanText } from '../../db/text.ts'
import { isObject } from '../../workflows/json.ts'
import type { Problem } from '../../workflows/problem.ts'
import { describeIssues } from '../../workflows/problem.ts'
import type { AppEnv } from '../env.ts'
import { isArriving, readJsonBody } from './body.ts'
import { uuidField } from './fields.ts'
import type { FaultStatus, ResponseSpec } from './responses.ts'

type Schema = v.GenericSchema

/**
 * What a route takes, how it responds, and who may call it. `accept` checks the input and the credentials;
 * the verb in `db/` checks the right. The OpenAPI document shows all of it.
 */
export type Rule = {
  /** The operation's id in the OpenAPI document, and so its name in generated clients. */
  id: string
  tag: string
  summary: string
  description?: string
  /**
   * Who may call the route. 'public': anybody, without credentials. 'user': any signed-in user or SDK token.
   * 'session': any signed-in user, but no SDK token. 'instance': only the instance's admin, signed in.
   * 'member': any role in the team. A role: that role in the team, or a higher one.
   */
  role: 'public' | 'user' | 'session' | 'instance' | 'member' | Role
  /**
   * The table that the path's `id` refers to, so that the rate limit finds its team. A `teamId` or
   * `workflowId` is found without it.
   */
  of?: OwnedTable
  params?: Schema
  query?: Schema
  json?: Schema
  /** The route takes a body of any type, which its handler reads itself. */
  anyBody?: boolean
  /** The request headers that the handler reads, and what they do. */
  headers?: Record<string, { description: string; pattern?: string }>
  /** A body that the route accepts. The document shows it, and the matrix test sends it. */
  example?: Record<string, unknown>
  /** The error responses that do not follow from the rest of the rule (`findFaultStatuses` in docs/faults.ts). */
  faults?: readonly FaultStatus[]
  /** The responses by status; `default` is for every other status. */
  responses: Record<number, ResponseSpec> & { default?: ResponseSpec }
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
 * The one middleware in front of every handler. It counts the request (429), checks the credentials (401),
 * parses path parameters, query and body with Valibot, and reports all problems at once (400). Handlers then
 * read `c.get('scope')` and `c.req.valid('param' | 'query' | 'json')`.
 */
export function accept<const R extends Rule>(
  rule: R,
  // biome-ignore lint/suspicious/noExplicitAny: the path is the route's, as in Hono's own validator
): MiddlewareHandler<AppEnv, any, { in: In<R>; out: Out<R> }> {
  const middleware: MiddlewareHandler<AppEnv> = async (c, next) => {
    let body: Promise<unknown> | undefined
    const readOnce = () => {
      body ??= readJsonBody(c)
      return body
    }
    await c.get('countRequest')((scope) => findTeam(rule, c, scope, readOnce))
    if (rule.role !== 'public') c.set('scope', await c.get('authenticate')())
    const isLate = rule.json !== undefined && isArriving(c)
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
      // Valibot would accept an array as an object without keys, and its message for other types differs.
      if (!isObject(json)) problems.push({ path: 'body', message: 'must be an object' })
      else read('json', rule.json, json)
    }
    // A body may come long after its headers, from somebody whose rights have ended in the meantime.
    if (isLate && rule.role !== 'public') c.set('scope', await c.get('authenticate')({ anew: true }))
    if (problems.length > 0) throw invalid(problems.slice(0, MAX_PROBLEMS))
    await next()
  }
  rules.set(middleware, rule)
  return middleware
}

/** The rule that a middleware was made from, for the OpenAPI document and the authorization matrix. */
export function findRule(middleware: object): Rule | undefined {
  return rules.get(middleware)
}

/** Finds the team that a request is about, by the ids in its path, else in its query, else in its body. */
async function findTeam(
  rule: Rule,
  c: Context<AppEnv>,
  { store }: Scope,
  readOnce: () => Promise<unknown>,
): Promise<string | undefined> {
  const look = async (schema: Schema | undefined, given: () => unknown) => {
    for (const key of ['teamId', 'workflowId']) {
      if (!Object.hasOwn(Object((schema as { entries?: object } | undefined)?.entries), key)) continue
      const id = parseId(((await given()) as Record<string, unknown> | null)?.[key])
      return { team: key === 'teamId' || !id ? id : await findOwner(store, 'workflows', id) }
    }
  }
  const inPath = await look(rule.params, () => c.req.param())
  if (inPath) return inPath.team
  const id = rule.of && parseId(c.req.param('id'))
  if (rule.of) return id && findOwner(store, rule.of, id)
  return ((await look(rule.query, () => readQuery(c))) ?? (await look(rule.json, readOnce)))?.team
}

function parseId(given: unknown): string | undefined {
  const parsed = v.safeParse(uuidField, given)
  return parsed.success ? parsed.output : undefined
}

// A key that is given more than once becomes an array, which the schema of a single value rejects.
function readQuery(c: Context): Record<string, string | string[]> {
  const entries = Object.entries(c.req.queries())
  return Object.fromEntries(entries.map(([key, values]) => [key, values.length === 1 ? values[0]! : values]))
}

// Messages are cut, because Valibot's own repeat the input. 1,000 characters hold the list of all node types.
function nameProblems(issues: v.BaseIssue<unknown>[], target: 'param' | 'query' | 'json'): Problem[] {
  return describeIssues(issues, '').map(({ path, message }) => ({
    path: path || (target === 'json' ? 'body' : target),
    message: cleanText(message, 1_000),
  }))
}
