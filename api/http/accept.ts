import type { Context, MiddlewareHandler } from 'hono'
import * as v from 'valibot'
import { describeLarge, type JsonReading } from '../../activities/reading/json.ts'
import { covers, type Role } from '../../db/acts.ts'
import { invalid } from '../../db/fault.ts'
import { findOwner, type OwnedTable, readOwner } from '../../db/owners.ts'
import { demand, demandInstance, demandPerson, demandTeam, type Scope } from '../../db/scope.ts'
import { cleanText } from '../../db/text.ts'
import type { Rules } from '../../workflows/expressions/rules.ts'
import type { Graph } from '../../workflows/graph/graph.ts'
import { readGraph } from '../../workflows/graph/read.ts'
import { isObject } from '../../workflows/json.ts'
import type { Problem } from '../../workflows/problem.ts'
import { describeIssues, joinPath } from '../../workflows/problem.ts'
import { workInTurns } from '../../workflows/turns.ts'
import type { AppEnv } from '../env.ts'
import { warnLargeNumbers } from '../warnings.ts'
import { type BodyLimits, findMisplacedArrays, isArriving, readJsonBody } from './body.ts'
import { uuidField } from './fields.ts'
import type { ErrorBody, FaultStatus, ResponseSpec } from './responses.ts'

type Schema = v.GenericSchema

/**
 * The input of a route, its responses, and its callers. `accept` checks the credentials, the role and the input; the
 * verb in `db/` checks the right again. The OpenAPI document shows all of it.
 */
export type Rule = {
  /** The operation's id in the OpenAPI document, and so its name in generated clients. */
  id: string
  tag: string
  summary: string
  description?: string
  /**
   * Who may call the route. 'public': anyone, without credentials. 'user': any signed-in user or SDK token. 'session':
   * any signed-in user, but no SDK token. 'instance': only the instance's admin, signed in. 'member': any role in the
   * team. A role: that role in the team, or a higher one.
   */
  role: 'public' | 'user' | 'session' | 'instance' | 'member' | Role
  /** Refuses requests for other reasons than a role. Called once they are counted, and the role is checked. */
  guard?: (c: Context<AppEnv>) => void
  /** For a public route: whether it needs, or takes, the token of a visitor of a widget. The route itself reads it. */
  visitor?: 'needed' | 'taken'
  /** Besides the role, it needs a person who is signed in: SDK tokens are not accepted. */
  person?: true
  /**
   * The table that the path's `id` refers to, so that its team is found, for the role and the rate limit. A
   * `teamId` or `workflowId` is found without it.
   */
  of?: OwnedTable
  params?: Schema
  query?: Schema
  json?: Schema
  /** The most bytes of the body, if that is not 1.5 MB: others are refused unread, or as soon as they have come. */
  mostBytes?: number
  /** How deep a body of JSON may be, and how many values it may have, if that is less than everywhere. */
  mostDepth?: number
  mostValues?: number
  /** Finds the problems of what is too much in a body to be checked at once. */
  checkInTurns?: (body: Record<string, unknown>) => Promise<Problem[]>
  /**
   * Finds the graph in a body, at `path` of it; undefined if there is no whole one. It is read in turns with
   * other requests, its problems are reported with those of `json`, and the handler gets it as `graph`.
   */
  graph?: (body: Record<string, unknown>, c: Context<AppEnv>) => BodyGraph | undefined | Promise<BodyGraph>
  /** The route takes a body of any type, which its handler reads itself. */
  anyBody?: boolean
  /** The media types of the body that the handler reads itself, with the schema that the document shows for each. */
  ownBody?: Record<string, Schema>
  /** How errors are shown to callers that do not speak the service's own language; by default as ErrorBody in JSON. */
  showError?: (c: Context<AppEnv>, body: ErrorBody) => Response
  /** The request headers that the handler reads, and what they do. */
  headers?: Record<string, { description: string; pattern?: string }>
  /** A body that the route accepts. The document shows it, and the matrix test sends it. */
  example?: Record<string, unknown>
  /** The error responses that do not follow from the rest of the rule (`findFaultStatuses` in docs/faults.ts). */
  faults?: readonly FaultStatus[]
  /** The responses by status; `default` is for every other status. */
  responses: Record<number, ResponseSpec> & { default?: ResponseSpec }
}

/** A graph in a body, and the rules that its texts are read under. `known` is the stored graph that it changes. */
type BodyGraph = {
  nodes: unknown
  edges: unknown
  expressions: Rules
  known?: Graph
  path?: string
  imported?: true
}

/**
 * A body that people fill in, such as a sign-in: every route that reads one from a caller who has not signed in has
 * limits of its own. A message of a visitor may have 4,000 characters, each of which JSON may write as six.
 */
export const SMALL_BODY = { mostBytes: 32 * 1024, mostDepth: 4, mostValues: 100 } as const

type Target = { params: 'param'; query: 'query'; json: 'json' }
type GivenKeys<R extends Rule> = { [K in keyof Target]: R[K] extends Schema ? K : never }[keyof Target]
/** The query may be left out if it may be empty, so that a new parameter breaks no typed client. */
type FreeKeys<R extends Rule> = R['query'] extends Schema
  ? Record<never, never> extends v.InferInput<R['query']>
    ? 'query'
    : never
  : never
type In<R extends Rule> = {
  [K in Exclude<GivenKeys<R>, FreeKeys<R>> as Target[K]]: v.InferInput<Extract<R[K], Schema>>
} & { [K in FreeKeys<R> as Target[K]]?: v.InferInput<Extract<R[K], Schema>> }

type Out<R extends Rule> = {
  [K in keyof Target as R[K] extends Schema ? Target[K] : never]: v.InferOutput<Extract<R[K], Schema>>
}

const MAX_PROBLEMS = 500

/** Messages are cut, because Valibot's own repeat the input. This holds the lists of all node types and of all actions. */
const MAX_MESSAGE = 2_500

const rules = new WeakMap<object, Rule>()

/**
 * The one middleware in front of every handler. It counts the request (429), checks the credentials (401) and the role
 * in the team that the request names (403, 404), parses path parameters, query and body with Valibot, and reports all
 * problems at once (400). For a caller who may not call the route nothing is parsed, except the JSON that may hold the
 * team's id. Handlers then read `c.get('scope')` and `c.req.valid('param' | 'query' | 'json')`.
 */
export function accept<const R extends Rule>(
  rule: R,
  // biome-ignore lint/suspicious/noExplicitAny: the path is the route's, as in Hono's own validator
): MiddlewareHandler<AppEnv, any, { in: In<R>; out: Out<R> }> {
  const middleware: MiddlewareHandler<AppEnv> = async (c, next) => {
    c.set('rule', rule)
    let body: Promise<JsonReading> | undefined
    const readOnce = async () => {
      body ??= readJsonBody(c, readLimits(rule))
      return (await body).value
    }
    await c.get('countRequest')((scope) => findTeam(rule, c, scope, readOnce))
    if (rule.role !== 'public') c.set('scope', await c.get('authenticate')())
    const isLate = rule.json !== undefined && isArriving(c)
    const turn = rule.role === 'public' ? '' : await demandRole(rule, c, readOnce)
    if (rule.person) demandPerson(c.get('scope'))
    rule.guard?.(c)
    const problems: Problem[] = []
    const read = (target: 'param' | 'query' | 'json', schema: Schema | undefined, value: unknown) => {
      if (!schema) return
      const parsed = v.safeParse(schema, value)
      if (parsed.success) c.req.addValidatedData(target, parsed.output as object)
      else problems.push(...nameProblems(parsed.issues.slice(0, MAX_PROBLEMS), target))
    }
    read('param', rule.params, c.req.param())
    read('query', rule.query, readQuery(c))
    if (rule.json) {
      const json = await readOnce()
      // Valibot would accept an array as an object without keys, and its message for other types differs.
      if (!isObject(json)) problems.push({ path: 'body', message: 'must be an object' })
      else {
        read('json', rule.json, json)
        // Some schemas refuse arrays themselves.
        const named = new Set(problems.map(({ path }) => path))
        const arrays = findMisplacedArrays(rule.json, json).filter(({ path }) => !named.has(path))
        problems.push(...arrays.slice(0, MAX_PROBLEMS))
        c.set('unknownKeys', findStrangers(rule.json, json))
        c.set('largeNumbers', describeLarge(await body!))
        if (turn !== undefined && rule.checkInTurns) problems.push(...(await rule.checkInTurns(json)))
        const drawing = turn === undefined ? undefined : await rule.graph?.(json, c)
        if (drawing) problems.push(...(await readDrawing(c, drawing, turn!)))
      }
    }
    // A body may come long after its headers, and the caller's rights may have ended in the meantime.
    if (isLate && rule.role !== 'public') c.set('scope', await c.get('authenticate')({ anew: true }))
    if (problems.length > 0) throw invalid(problems.slice(0, MAX_PROBLEMS))
    await next()
  }
  rules.set(middleware, rule)
  return middleware
}

/** The limits of a rule for its body. */
function readLimits({ mostBytes: bytes, mostDepth: depth, mostValues: values }: Rule): BodyLimits {
  return { bytes, ...(depth === undefined ? {} : { depth }), ...(values === undefined ? {} : { values }) }
}

/** The keys of a body that its schema does not know, and drops, and those that it does know. */
function findStrangers(schema: Schema, body: Record<string, unknown>): AppEnv['Variables']['unknownKeys'] {
  const known = Object.keys((schema as { entries?: object }).entries ?? {})
  return { unknown: Object.keys(body).filter((key) => !known.includes(key)), known }
}

/** Reads a graph for the handler, and returns its problems. */
async function readDrawing(c: Context<AppEnv>, drawing: BodyGraph, turn: string): Promise<Problem[]> {
  const { graph, problems, warnings } = await workInTurns(
    readGraph(drawing, () => crypto.randomUUID()),
    turn,
  )
  const place = ({ path, message, ...rest }: Problem): Problem => ({
    path: drawing.path ? joinPath(drawing.path, path) : path,
    message: cleanText(message, MAX_MESSAGE),
    ...rest,
  })
  c.set('givenGraph', drawing)
  c.set('graph', graph)
  c.set('graphWarnings', [...warnings.map(place), ...warnLargeNumbers(c)])
  return problems.map(place)
}

/** The rule that a middleware was made from, for the OpenAPI document and the authorization matrix. */
export function findRule(middleware: object): Rule | undefined {
  return rules.get(middleware)
}

/**
 * Throws FORBIDDEN or NOT_FOUND unless the caller has the rule's role in the team that the request names, which
 * the verb checks again. Returns the team, '' if the route needs none, and undefined if the request names none
 * although it should, and the caller may not call the route for any team.
 */
async function demandRole(
  rule: Rule,
  c: Context<AppEnv>,
  readOnce: () => Promise<unknown>,
): Promise<string | undefined> {
  const { role } = rule
  const scope = c.get('scope')
  if (role === 'instance') demandInstance(scope)
  if (role === 'public' || role === 'user' || role === 'session' || role === 'instance') return ''
  const least = role === 'member' ? 'VIEWER' : role
  const { teamId, row } = await findNamed(rule, c, scope, readOnce)
  c.set('teamId', teamId)
  const held = teamId === undefined ? undefined : scope.roles.get(teamId)
  if (held && covers(held, least)) return teamId
  // The team of a row that is gone may still be remembered: the row decides between 403 and 404.
  if (row) demand(scope, await readOwner(scope.store, row.table, row.id), least)
  else if (teamId !== undefined) await demandTeam(scope, teamId, least)
  return teamId ?? [...scope.roles].find(([, role]) => covers(role, least))?.[0]
}

/** The team that a request names, and the row by which it does. Without a team, there is no such row. */
type Named = { teamId?: string | undefined; row?: { table: OwnedTable; id: string } }

/** Finds the team that a request is about, by the ids in its path, else in its query, else in its body. */
async function findNamed(
  rule: Rule,
  c: Context<AppEnv>,
  { store }: Scope,
  readOnce: () => Promise<unknown>,
): Promise<Named> {
  const own = async (table: OwnedTable, id: string): Promise<Named> => {
    return { teamId: await findOwner(store, table, id), row: { table, id } }
  }
  const look = async (schema: Schema | undefined, given: () => unknown): Promise<Named | undefined> => {
    for (const key of ['teamId', 'workflowId']) {
      if (!Object.hasOwn(Object((schema as { entries?: object } | undefined)?.entries), key)) continue
      const id = parseId(((await given()) as Record<string, unknown> | null)?.[key])
      if (id === undefined) return {}
      return key === 'teamId' ? { teamId: id } : own('workflows', id)
    }
  }
  const inPath = await look(rule.params, () => c.req.param())
  if (inPath) return inPath
  const id = rule.of && parseId(c.req.param('id'))
  if (rule.of) return id === undefined ? {} : own(rule.of, id)
  return (await look(rule.query, () => readQuery(c))) ?? (await look(rule.json, readOnce)) ?? {}
}

async function findTeam(...request: Parameters<typeof findNamed>): Promise<string | undefined> {
  return (await findNamed(...request)).teamId
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

function nameProblems(issues: v.BaseIssue<unknown>[], target: 'param' | 'query' | 'json'): Problem[] {
  return describeIssues(issues, '').map(({ path, message }) => ({
    path: path || (target === 'json' ? 'body' : target),
    message: cleanText(message, MAX_MESSAGE),
  }))
}
