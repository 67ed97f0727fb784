import type { CallToolResult, Tool } from '@modelcontextprotocol/server'
import type { Context } from 'hono'
import type { RouterRoute } from 'hono/types'
import { covers, type Role } from '../../db/acts.ts'
import { isObject } from '../../workflows/json.ts'
import { OWN_TOOL } from '../../workflows/nodes/mcp.ts'
import { createSchemaConverter, type JsonSchema, resolveSchema } from '../docs/jsonschema.ts'
import type { AppEnv } from '../env.ts'
import { findRule, type Rule } from '../http/accept.ts'
import { notePart } from '../http/ratelimit.ts'
import { isTooLarge, refuseCall, tell, writeRefusal } from './result.ts'

/** The operations of the HTTP API that are tools, too: each with the role, the input and the effects that it has there. */
const OPERATIONS = [
  'listWorkflows',
  'readWorkflow',
  'listTeamExecutions',
  'readExecution',
  'listNodeExecutions',
  'listNodeTypes',
  'executeWorkflow',
  'retryExecution',
  'rerunExecution',
  'cancelExecution',
  'createWorkflow',
  'validateWorkflow',
  'updateWorkflow',
  'publishWorkflow',
]

/** Headers of the MCP request that the operation gets, too: who asks, from where, and under which name of the service. */
const PASSED = ['authorization', 'host', 'user-agent', 'x-forwarded-for', 'traceparent', 'tracestate']

/** What the team's token says, so that no argument does. */
const OF_TOKEN = 'teamId'

/** The schemas of all node types would fill a model's context: they are read one by one. */
const MAX_ALTERNATIVES = 20
const READ_ELSEWHERE = `${OWN_TOOL}list_node_types says which types there are, and what the config of each holds.`

type Place = 'path' | 'query' | 'body'
type Schema = JsonSchema & Pick<Tool['inputSchema'], 'type'>
type Operation = {
  tool: Tool
  least: Role
  method: string
  path: string
  takesKey: boolean
  /** Where each argument goes. */
  places: Map<string, Place>
  /** Where the id of the team goes; undefined if it goes nowhere. */
  team: Place | undefined
}

/** The HTTP API, which the tools call without a network. */
export type Api = {
  readonly routes: RouterRoute[]
  fetch: (request: Request, env?: object) => Response | Promise<Response>
}
export type Operations = ReturnType<typeof createOperations>

/** The service's own tools, made of its routes when they are first asked for. */
export function createOperations(api: Api) {
  let known: Map<string, Operation> | undefined
  const find = () => (known ??= readOperations(api.routes))
  return {
    /** The tools of a role. */
    list: (role: Role): Tool[] =>
      [...find().values()].filter(({ least }) => covers(role, least)).map(({ tool }) => tool),
    has: (name: string): boolean => find().has(name),
    /** Calls the operation of this name as the caller of the MCP request. */
    async call(
      c: Context<AppEnv>,
      name: string,
      args: Record<string, unknown>,
      { teamId, key }: { teamId: string; key: string | undefined },
    ): Promise<CallToolResult> {
      const operation = find().get(name)!
      const strangers = Object.keys(args).filter((arg) => !operation.places.has(arg))
      if (strangers.length > 0) {
        const problems = strangers.map((path) => ({ path, message: 'is no argument of this tool' }))
        return refuseCall(writeRefusal('The arguments are not valid', problems))
      }
      return readResponse(await api.fetch(makeRequest(c, operation, args, { teamId, key }), c.env as object))
    },
  }
}

function readOperations(routes: RouterRoute[]): Map<string, Operation> {
  const operations = routes.flatMap(({ method, path, handler }) => {
    const rule = findRule(handler)
    return rule && OPERATIONS.includes(rule.id) ? [describeOperation(rule, method, path)] : []
  })
  const at = ({ tool }: Operation) => OPERATIONS.findIndex((id) => nameTool(id) === tool.name)
  operations.sort((a, b) => at(a) - at(b))
  return new Map(operations.map((operation) => [operation.tool.name, operation]))
}

/** `listWorkflows` is the tool perdure_list_workflows. */
function nameTool(id: string): string {
  return OWN_TOOL + id.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

function describeOperation(rule: Rule, method: string, path: string): Operation {
  const { convert, components } = createSchemaConverter()
  const properties: Record<string, JsonSchema> = {}
  const required = new Set<string>()
  const places = new Map<string, Place>()
  let team: Place | undefined
  for (const [place, given] of [
    ['path', rule.params],
    ['query', rule.query],
    ['body', rule.json],
  ] as const) {
    if (!given) continue
    const schema = resolveSchema(convert(given), components)
    for (const [key, shape] of Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>)) {
      if (key === OF_TOKEN) {
        team = place
        continue
      }
      if (places.has(key)) throw new Error(`${rule.id} has two arguments ${key}`)
      places.set(key, place)
      properties[key] = shape
      const due = place === 'path' || ((schema.required ?? []) as string[]).includes(key)
      if (due) required.add(key)
    }
  }
  const shown = {
    type: 'object' as const,
    properties,
    ...(required.size > 0 ? { required: [...required] } : {}),
    additionalProperties: false,
  }
  const isRead = method === 'GET'
  return {
    tool: {
      name: nameTool(rule.id),
      title: rule.summary,
      description: [`${rule.summary}.`, rule.description].filter(Boolean).join(' '),
      inputSchema: bringAlong(shown, components),
      annotations: {
        readOnlyHint: isRead,
        idempotentHint: isRead || method === 'PUT',
        openWorldHint: !isRead,
      },
    },
    least: rule.role === 'member' || rule.role === 'user' ? 'VIEWER' : (rule.role as Role),
    method,
    path,
    takesKey: Object.hasOwn(rule.headers ?? {}, 'Idempotency-Key'),
    places,
    team,
  }
}

/** The schema with the components that it refers to, each with those that it refers to. */
function bringAlong(schema: Schema, components: Record<string, JsonSchema>): Tool['inputSchema'] {
  const $defs: Record<string, JsonSchema> = {}
  const add = (from: unknown) => {
    for (const [, name] of JSON.stringify(from).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      if (Object.hasOwn($defs, name!)) continue
      $defs[name!] = cutAlternatives(components[name!]!, components)
      add($defs[name!])
    }
  }
  add(schema)
  const whole = Object.keys($defs).length > 0 ? { ...schema, $defs } : schema
  return JSON.parse(JSON.stringify(whole).replaceAll('#/components/schemas/', '#/$defs/'))
}

/** A schema with very many alternatives is cut to what they have in common: all but `type` and `config`. */
function cutAlternatives(schema: JsonSchema, components: Record<string, JsonSchema>): JsonSchema {
  const [first, ...others] = (schema.oneOf ?? []) as JsonSchema[]
  if (!first || others.length < MAX_ALTERNATIVES) return schema
  const { properties, ...rest } = resolveSchema(first, components)
  const common = { ...(properties as object), type: { type: 'string' }, config: { type: 'object' } }
  return { ...rest, properties: common, description: `${schema.description} ${READ_ELSEWHERE}` }
}

function makeRequest(
  c: Context<AppEnv>,
  { method, path, places, team, takesKey }: Operation,
  args: Record<string, unknown>,
  { teamId, key }: { teamId: string; key: string | undefined },
): Request {
  const given: Record<Place, Map<string, unknown>> = { path: new Map(), query: new Map(), body: new Map() }
  for (const [name, value] of Object.entries(args)) given[places.get(name)!].set(name, value)
  if (team) given[team].set(OF_TOKEN, teamId)
  const filled = path.replace(/:(\w+)/g, (_, name) => encodeURIComponent(write(given.path.get(name)) || '-'))
  const url = new URL(filled, c.req.url)
  for (const [name, value] of given.query) url.searchParams.set(name, write(value))
  const headers = new Headers({ 'x-request-id': c.get('requestId') })
  for (const name of PASSED) {
    const value = c.req.header(name)
    if (value !== undefined) headers.set(name, value)
  }
  if (key !== undefined && takesKey) headers.set('idempotency-key', key)
  const init: RequestInit = { method, headers, signal: c.req.raw.signal }
  if (method !== 'GET') {
    headers.set('content-type', 'application/json')
    init.body = JSON.stringify(Object.fromEntries(given.body))
  }
  return notePart(new Request(url, init))
}

function write(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}

async function readResponse(response: Response): Promise<CallToolResult> {
  const text = await response.text()
  const { status, headers } = response
  if (isTooLarge(text))
    return refuseCall(
      `The answer has ${text.length} characters, which is too much for a tool: ask for less, or read it over the HTTP API`,
    )
  if (text === '') return status < 400 ? tell({ done: true }) : refuseCall(`The service answered ${status}`)
  const value: unknown = JSON.parse(text)
  if (status < 400) return tell(isObject(value) ? value : { items: value })
  const { message, errors } = value as { message: string; errors?: { path: string; message: string }[] }
  const retryAfter = headers.get('retry-after')
  return refuseCall(writeRefusal(message, errors, retryAfter === null ? undefined : Number(retryAfter)))
}
