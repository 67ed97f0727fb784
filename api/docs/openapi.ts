import type { RouterRoute } from 'hono/types'
import { findRule, type Rule } from '../http/accept.ts'
import { ErrorSchema, InputErrorSchema, type ResponseSpec, UnavailableSchema } from '../http/responses.ts'
import { HOST_COOKIE, SESSION_COOKIE } from '../people/session.ts'
import { FAULTS, findFaultStatuses } from './faults.ts'
import {
  createSchemaConverter,
  type JsonSchema,
  makeSample,
  resolveSchema,
  type SchemaConverter,
} from './jsonschema.ts'
import { describeRole, findRoles, findSecurity, type Security } from './roles.ts'

export type Operation = {
  operationId: string
  tags: string[]
  summary: string
  description: string
  security: Security
  'x-roles': string[]
  parameters?: JsonSchema[]
  requestBody?: { description?: string; required: boolean; content: MediaContent }
  responses: Record<string, DescribedResponse | ResponseReference>
}

type MediaContent = Record<string, { schema?: JsonSchema; example?: unknown }>

/** A response. Error responses are in `components.responses`, and operations refer to them. */
export type DescribedResponse = {
  description: string
  headers?: JsonSchema
  content?: MediaContent
  links?: JsonSchema
}
export type ResponseReference = { $ref: string }

/** An OpenAPI 3.1 document, as far as this service uses it. */
export type ApiDocument = {
  openapi: string
  info: { title: string; version: string; description: string; license: JsonSchema }
  servers: { url: string }[]
  tags: { name: string; description: string }[]
  paths: Record<string, Record<string, Operation>>
  components: {
    schemas: Record<string, JsonSchema>
    responses: Record<string, DescribedResponse>
    headers: JsonSchema
    securitySchemes: JsonSchema
  }
}

const OPERATION = 'Operation'
const DOCUMENTED_METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

/** The subjects of the operations under each tag. */
const TAGS: Record<string, string> = {
  Authentication: 'Accounts, and the sessions of the people who have them',
  Teams: 'Teams and their members',
  'SDK tokens': 'The credentials of programs',
  Workflows: 'Graphs of nodes, their versions, schedules and settings, and how to execute them',
  Executions: 'What has been executed: to read, follow, cancel and repeat',
  Webhooks: 'Addresses that start or resume executions without credentials of this service',
  'Agent chat': 'Conversations with AI agent workflows, and their replies as they are written',
  Widgets: "Chats on other people's pages",
  Approvals: 'What people are asked to decide',
  Expressions: 'Trying expressions out',
  Guardrails: 'Checking texts for what should not be in them',
  Variables: "A team's values for expressions",
  Credentials: 'What nodes sign in elsewhere with: sealed, and never read out again',
  Monitoring: 'What calls to models take and cost',
  Evaluation: 'How good the outputs of workflows are, as a model judges them',
  Audit: 'What was done, by whom and from where, and the proof that nobody has altered it',
  [OPERATION]: 'Health, metrics and documentation of the service, and what its operator decides',
}

const INTRODUCTION = `Durable workflow automation: create workflows, which are graphs of nodes, and execute them
over HTTP. Temporal carries each execution.

**Signing in**: send the session cookie that \`POST /api/auth/login\` sets, or an SDK token of a team as
\`Authorization: Bearer sdk_...\`.

**Roles** in a team, each including the rights of those before it: VIEWER (SDK tokens only), OPERATOR,
BUILDER, ADMIN.

**Errors** all have the body \`{status, error, message, timestamp, path}\`. A 400 adds \`errors\`,
with one entry for each invalid field. A request about a team that the caller is not a member of is 403.

**Ids** are UUIDs, and **times** are ISO 8601 in UTC.

**Rate limits** count the requests of each clock minute. The headers of every response show the
limit and what is left.`

/** The OpenAPI document of all routes with a rule, made from the same schemas that check their requests. */
export function describeApi(routes: RouterRoute[], version: string): ApiDocument {
  const converter = createSchemaConverter()
  const paths: ApiDocument['paths'] = {}
  const tags = new Set<string>()
  for (const { method, path, handler } of routes) {
    const rule = findRule(handler)
    if (!rule) continue
    tags.add(rule.tag)
    const at = path.replace(/:(\w+)/g, '{$1}')
    paths[at] ??= {}
    for (const verb of method === 'ALL' ? DOCUMENTED_METHODS : [method]) {
      const id = method === 'ALL' ? `${rule.id}By${verb[0]}${verb.slice(1).toLowerCase()}` : rule.id
      paths[at][verb.toLowerCase()] = describeOperation(converter, rule, verb, path, id)
    }
  }
  const responses = Object.fromEntries(
    Object.keys(FAULTS).map((status) => [status, describeFault(converter, Number(status))]),
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
    // The routes for operators of the service come last.
    tags: [...tags]
      .sort((a, b) => Number(a === OPERATION) - Number(b === OPERATION))
      .map((name) => ({ name, description: TAGS[name]! })),
    paths,
    components: {
      schemas: Object.fromEntries(Object.entries(converter.components).sort(([a], [b]) => (a < b ? -1 : 1))),
      responses,
      headers: HEADERS,
      securitySchemes: {
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: SESSION_COOKIE,
          description: `Over https its name is ${HOST_COOKIE}`,
        },
        sdkToken: { type: 'http', scheme: 'bearer', bearerFormat: 'sdk_...' },
        visitor: {
          type: 'http',
          scheme: 'bearer',
          description: "The token of a visitor's session with a widget, from openVisitorSession",
        },
      },
    },
  }
}

function describeOperation(
  converter: SchemaConverter,
  rule: Rule,
  method: string,
  path: string,
  operationId: string,
): Operation {
  const parameters = [
    ...describeParameters(converter, 'path', rule.params),
    ...describeParameters(converter, 'query', rule.query),
    ...describeHeaders(rule.headers),
  ]
  const described = Object.entries(rule.responses).map(([status, response]) => [
    status,
    describeResponse(converter, response),
  ])
  const faults = findFaultStatuses(rule, method, path).filter((status) => !(status in rule.responses))
  return {
    operationId,
    tags: [rule.tag],
    summary: rule.summary,
    description: [rule.description, describeRole(rule)].filter(Boolean).join('\n\n'),
    security: findSecurity(rule),
    'x-roles': findRoles(rule.role),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...describeBody(converter, rule, method),
    responses: {
      ...Object.fromEntries(described),
      ...Object.fromEntries(faults.map((status) => [status, { $ref: `#/components/responses/${status}` }])),
    },
  }
}

function describeParameters(
  { convert }: SchemaConverter,
  where: 'path' | 'query',
  schema: Rule['query'],
): JsonSchema[] {
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

function describeHeaders(headers: Rule['headers'] = {}): JsonSchema[] {
  return Object.entries(headers).map(([name, { description, ...shape }]) => ({
    name,
    in: 'header',
    description,
    schema: { type: 'string', ...shape },
  }))
}

function describeBody(
  { convert, components }: SchemaConverter,
  rule: Rule,
  method: string,
): Pick<Operation, 'requestBody'> {
  if (rule.json) {
    const schema = convert(rule.json)
    const example = rule.example ?? makeSample(schema, components)
    const required = Array.isArray(resolveSchema(schema, components).required)
    return { requestBody: { required, content: { 'application/json': { schema, example } } } }
  }
  if (rule.ownBody) {
    const content = Object.entries(rule.ownBody).map(([type, schema]) => {
      const shape = convert(schema)
      const isJson = type === 'application/json'
      return [
        type,
        { schema: shape, ...(isJson ? { example: rule.example ?? makeSample(shape, components) } : {}) },
      ]
    })
    return { requestBody: { required: true, content: Object.fromEntries(content) } }
  }
  if (rule.anyBody && method !== 'GET') return { requestBody: ANY_BODY }
  return {}
}

function describeResponse(converter: SchemaConverter, spec: ResponseSpec): DescribedResponse {
  const { description, headers = {}, links } = spec
  const own = Object.entries(headers).map(([name, text]) => [
    name,
    { description: text, required: true, schema: { type: 'string' } },
  ])
  const content = describeContent(converter, spec)
  const operations = Object.entries(links ?? {}).map(([id, link]) => [id, { operationId: id, ...link }])
  return {
    description,
    headers: { ...COMMON_HEADERS, ...Object.fromEntries(own) },
    ...(content ? { content } : {}),
    ...(links ? { links: Object.fromEntries(operations) } : {}),
  }
}

function describeContent(
  { convert, components }: SchemaConverter,
  { schema, type, texts = [] }: ResponseSpec,
): MediaContent | undefined {
  const others = Object.fromEntries(texts.map((text) => [text, TEXT]))
  if (type === '*/*') return { 'application/json': { schema: {} }, '*/*': {} }
  if (!schema) return type ? { [type]: UNDESCRIBED.includes(type) ? {} : TEXT, ...others } : undefined
  const shape = convert(schema)
  const media = type ?? 'application/json'
  const example = media === 'application/json' ? { example: makeSample(shape, components) } : {}
  return { [media]: { schema: shape, ...example }, ...others }
}

/** The statuses whose bodies say more than others. */
const ERROR_SCHEMAS: Record<number, Parameters<SchemaConverter['convert']>[0]> = {
  400: InputErrorSchema,
  503: UnavailableSchema,
}

function describeFault({ convert }: SchemaConverter, status: number): DescribedResponse {
  const retry = status === 429 || status === 503
  const headers = retry ? { ...COMMON_HEADERS, 'Retry-After': RETRY_AFTER } : COMMON_HEADERS
  const schema = convert(ERROR_SCHEMAS[status] ?? ErrorSchema)
  return { description: FAULTS[status]!, headers, content: { 'application/json': { schema } } }
}

/** The response itself, or the component that it refers to. */
export function resolveResponse(
  response: DescribedResponse | ResponseReference,
  { components }: ApiDocument,
): DescribedResponse {
  return '$ref' in response ? components.responses[response.$ref.split('/').pop()!]! : response
}

/** Media types without a schema: bytes, and an event stream. */
const UNDESCRIBED = ['image/png', 'text/event-stream']

/**
 * A body of any type. The document shows JSON of any value: generators leave out an operation whose body has no
 * schema, and cannot tell any value from a file.
 */
const ANY_BODY: Operation['requestBody'] = {
  description: 'JSON, or a body of any other media type',
  required: false,
  content: { 'application/json': { schema: {}, example: { amount: 12.5 } } },
}

const TEXT = { schema: { type: 'string' } }

const RETRY_AFTER = { $ref: '#/components/headers/Retry-After' }

const HEADERS: JsonSchema = {
  'X-Request-Id': {
    description:
      "The request's id in the service's logs: the one sent, if it has 1 to 128 of the characters A-Z a-z 0-9 _.:-",
    required: true,
    schema: { type: 'string' },
  },
  'X-RateLimit-Limit': {
    description: 'How many requests are allowed in a minute',
    required: true,
    schema: { type: 'integer', minimum: 0 },
  },
  'X-RateLimit-Remaining': {
    description: 'How many requests are left in this minute',
    required: true,
    schema: { type: 'integer', minimum: 0 },
  },
  'X-RateLimit-Reset': {
    description: 'When the next minute begins, as a Unix time in seconds',
    required: true,
    schema: { type: 'integer', minimum: 0 },
  },
  'Retry-After': {
    description: 'Seconds to wait before trying again',
    required: true,
    schema: { type: 'integer', minimum: 1 },
  },
}

/** The headers of every response. */
const COMMON_HEADERS = Object.fromEntries(
  Object.keys(HEADERS)
    .filter((name) => name !== 'Retry-After')
    .map((name) => [name, { $ref: `#/components/headers/${name}` }]),
)
