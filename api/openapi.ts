import type { RouterRoute } from 'hono/types'
import { findRule, type Rule } from './accept.ts'
import { type Answer, ErrorAnswer, InputErrorAnswer } from './answers.ts'
import { createConverter, type JsonSchema, resolve, sample } from './jsonschema.ts'
import { describeRole, findRoles, findSecurity, isInTeam } from './roles.ts'
import { COOKIE } from './session.ts'

export type Operation = {
  operationId: string
  tags: string[]
  summary: string
  description: string
  security: Record<string, never[]>[]
  'x-roles': string[]
  parameters?: JsonSchema[]
  requestBody?: { required: boolean; content: Content }
  responses: Record<string, Reply | Reference>
}
export type Content = Record<string, { schema?: JsonSchema; example?: unknown }>
/** An answer; those to faults stand in `components.responses` and are referred to. */
export type Reply = { description: string; headers?: JsonSchema; content?: Content; links?: JsonSchema }
export type Reference = { $ref: string }

/** A document of OpenAPI 3.1. */
export type Document = {
  openapi: string
  info: { title: string; version: string; description: string; license: JsonSchema }
  servers: { url: string }[]
  tags: { name: string }[]
  paths: Record<string, Record<string, Operation>>
  components: {
    schemas: Record<string, JsonSchema>
    responses: Record<string, Reply>
    headers: JsonSchema
    securitySchemes: JsonSchema
  }
}

const FAULTS: Record<number, string> = {
  400: 'The input is not valid; every field that is wrong is named',
  401: 'The credentials are missing, wrong or expired',
  403: 'The caller may not do this',
  404: 'There is no such thing',
  405: 'The method is not possible here',
  409: 'It exists already, or its state does not allow this',
  412: 'It has been changed since it was read',
  413: 'The body is too large',
  415: 'The body is not JSON in UTF-8',
  429: 'The rate limit is exceeded',
  500: 'The service failed unexpectedly',
  503: 'Something behind the service is not reachable at the moment',
}

const OPERATION = 'Operation'
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

const INTRODUCTION = `Durable workflow automation: graphs of nodes over HTTP, each run carried by Temporal.

**Credentials**: the session cookie that \`POST /api/auth/login\` sets, or \`Authorization: Bearer sdk_...\` with an SDK
token of a team. **Roles** in a team, each including those before it: VIEWER (SDK tokens only), OPERATOR, BUILDER, ADMIN.
**Errors** all have the body \`{status, error, message, timestamp, path}\`; 400 adds \`errors\`, one entry for each wrong
field. What belongs to a team that the caller is not in answers 403. **Ids** are UUIDs, **times** ISO 8601 in UTC.
**Rate limits** count requests by the clock minute; every answer tells them in its headers.`

/** The document of all routes that have a rule, from the very schemas that check their requests. */
export function describeApi(routes: RouterRoute[], version: string): Document {
  const { convert, components } = createConverter()
  const paths: Document['paths'] = {}
  const tags = new Set<string>()
  for (const { method, path, handler } of routes) {
    const rule = findRule(handler)
    if (!rule) continue
    tags.add(rule.tag)
    const at = path.replace(/:(\w+)/g, '{$1}')
    paths[at] ??= {}
    for (const verb of method === 'ALL' ? METHODS : [method]) {
      const id = method === 'ALL' ? `${rule.id}By${verb[0]}${verb.slice(1).toLowerCase()}` : rule.id
      paths[at][verb.toLowerCase()] = describeRoute(rule, verb, path, id)
    }
  }

  function describeRoute(rule: Rule, method: string, path: string, operationId: string): Operation {
    const parameters = [
      ...describeParameters('path', rule.params),
      ...describeParameters('query', rule.query),
      ...Object.entries(rule.headers ?? {}).map(([name, { description, ...more }]) => ({
        name,
        in: 'header',
        description,
        schema: { type: 'string', ...more },
      })),
    ]
    const body = rule.json && convert(rule.json)
    const example = rule.example ?? (body && sample(body, components))
    const described = Object.entries(rule.responses).map(([status, answer]) => [
      status,
      describeAnswer(answer),
    ])
    const faults = findFaults(rule, method, path).filter((status) => !(status in rule.responses))
    return {
      operationId,
      tags: [rule.tag],
      summary: rule.summary,
      description: [rule.description, describeRole(rule.role)].filter(Boolean).join('\n\n'),
      security: findSecurity(rule.role),
      'x-roles': findRoles(rule.role),
      ...(parameters.length > 0 ? { parameters } : {}),
      ...(body
        ? {
            requestBody: {
              required: Array.isArray(resolve(body, components).required),
              content: { 'application/json': { schema: body, example } },
            },
          }
        : {}),
      ...(rule.anyBody && method !== 'GET'
        ? { requestBody: { required: false, content: { '*/*': {} } } }
        : {}),
      responses: {
        ...Object.fromEntries(described),
        ...Object.fromEntries(faults.map((status) => [status, { $ref: `#/components/responses/${status}` }])),
      },
    }
  }

  function describeParameters(where: 'path' | 'query', schema: Rule['query']): JsonSchema[] {
    if (!schema) return []
    const { properties = {}, required = [] } = convert(schema) as {
      properties?: Record<string, JsonSchema>
      required?: string[]
    }
    return Object.entries(properties).map(([name, { description, ...shape }]) => ({
      name,
      in: where,
      required: where === 'path' || required.includes(name),
      ...(description ? { description } : {}),
      schema: shape,
    }))
  }

  function describeAnswer({ description, schema, type, texts = [], headers = {}, links }: Answer): Reply {
    const shape = schema && convert(schema)
    const told = Object.entries(headers).map(([name, text]) => [
      name,
      { description: text, required: true, schema: { type: 'string' } },
    ])
    const media = type ?? 'application/json'
    const json = shape && media === 'application/json'
    const others = Object.fromEntries(texts.map((text) => [text, { schema: { type: 'string' } }]))
    return {
      description,
      headers: { ...COMMON, ...Object.fromEntries(told) },
      ...(shape
        ? {
            content: {
              [media]: { schema: shape, ...(json ? { example: sample(shape, components) } : {}) },
              ...others,
            },
          }
        : type
          ? { content: { [media]: UNTOLD.includes(type) ? {} : { schema: { type: 'string' } } } }
          : {}),
      ...(links
        ? {
            links: Object.fromEntries(
              Object.entries(links).map(([id, link]) => [id, { operationId: id, ...link }]),
            ),
          }
        : {}),
    }
  }

  function describeFault(status: number): Reply {
    const retry = status === 429 || status === 503
    const headers = retry ? { ...COMMON, 'Retry-After': RETRY_AFTER } : COMMON
    const schema = convert(status === 400 ? InputErrorAnswer : ErrorAnswer)
    return { description: FAULTS[status]!, headers, content: { 'application/json': { schema } } }
  }

  const responses = Object.fromEntries(
    Object.keys(FAULTS).map((status) => [status, describeFault(Number(status))]),
  )
  return {
    openapi: '3.1.0',
    info: {
      title: 'Perdure',
      version,
      description: INTRODUCTION,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    // What operators need comes last for those who build something.
    tags: [...tags]
      .sort((a, b) => Number(a === OPERATION) - Number(b === OPERATION))
      .map((name) => ({ name })),
    paths,
    components: {
      schemas: Object.fromEntries(Object.entries(components).sort(([a], [b]) => (a < b ? -1 : 1))),
      responses,
      headers: HEADERS,
      securitySchemes: {
        session: { type: 'apiKey', in: 'cookie', name: COOKIE },
        sdkToken: { type: 'http', scheme: 'bearer', bearerFormat: 'sdk_...' },
      },
    },
  }
}

/** The answer itself, behind a reference. */
export function resolveReply(reply: Reply | Reference, { components }: Document): Reply {
  return '$ref' in reply ? components.responses[reply.$ref.split('/').pop()!]! : reply
}

/** The error answers of a route, by what its rule asks for. */
export function findFaults(rule: Rule, method: string, path: string): number[] {
  const { role, params, query, json, headers, anyBody, faults = [] } = rule
  const inTeam = isInTeam(role)
  const write = method !== 'GET' && path.startsWith('/api/')
  const found = new Set<number>(faults)
  if (params || query || json || headers) found.add(400)
  if (role !== 'public') found.add(401)
  // A write with a cookie from a page of another origin is refused, whoever asks.
  if (inTeam || role === 'session' || role === 'instance' || write) found.add(403)
  if (params || inTeam) found.add(404)
  if (json) found.add(415)
  if (json || anyBody) found.add(413)
  if (path !== '/healthz') {
    for (const status of [429, 500, 503]) found.add(status)
  }
  return [...found].sort((a, b) => a - b)
}

/** What no schema is told of: any type, and a stream of events, whose parts are none of JSON Schema's. */
const UNTOLD = ['*/*', 'text/event-stream']

const RETRY_AFTER = { $ref: '#/components/headers/Retry-After' }

const HEADERS: JsonSchema = {
  'X-Request-Id': {
    description: "Names the request in the service's logs; the one sent, if it is fit for that",
    required: true,
    schema: { type: 'string' },
  },
  'X-RateLimit-Limit': {
    description: 'Requests allowed in a minute',
    required: true,
    schema: { type: 'integer', minimum: 0 },
  },
  'X-RateLimit-Remaining': {
    description: 'Requests left in this minute',
    required: true,
    schema: { type: 'integer', minimum: 0 },
  },
  'X-RateLimit-Reset': {
    description: 'When the next minute begins, in Unix seconds',
    required: true,
    schema: { type: 'integer', minimum: 0 },
  },
  'Retry-After': { description: 'Seconds to wait', required: true, schema: { type: 'integer', minimum: 1 } },
}

const COMMON = Object.fromEntries(
  Object.keys(HEADERS)
    .filter((name) => name !== 'Retry-After')
    .map((name) => [name, { $ref: `#/components/headers/${name}` }]),
)
