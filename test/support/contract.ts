import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { TrieRouter } from 'hono/router/trie-router'
import type { RouterRoute } from 'hono/types'
import {
  type ApiDocument,
  type DescribedResponse,
  describeApi,
  type Operation,
  resolveResponse,
} from '../../api/docs/openapi.ts'

type Schema = Record<string, unknown>

let contract: ReturnType<typeof createContract> | undefined

/**
 * Checks a response against the API's OpenAPI document: the operation must declare its status, the required
 * headers must be there, and its JSON must fit the schema and have no other fields. Throws an error that
 * lists what is wrong.
 */
export async function checkResponse(
  routes: RouterRoute[],
  request: { method: string; path: string },
  response: Response,
): Promise<void> {
  contract ??= createContract(routes)
  const faults = await contract(request, response)
  if (faults.length > 0) {
    const { method, path } = request
    throw new Error(
      `${method} ${path}: the ${response.status} response does not fit the OpenAPI document: ${faults.join('; ')}`,
    )
  }
}

function createContract(routes: RouterRoute[]) {
  const document = describeApi(routes, '0')
  const router = new TrieRouter<Operation>()
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      router.add(method.toUpperCase(), path.replace(/\{(\w+)\}/g, ':$1'), operation)
    }
  }
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: true })
  formats.default(ajv)
  ajv.addSchema({ $id: 'document', components: close(document.components) })
  const compiled = new Map<object, ValidateFunction>()
  const compile = (schema: Schema) => {
    const known = compiled.get(schema)
    if (known) return known
    const made = ajv.compile(refer(close(schema)) as Schema)
    compiled.set(schema, made)
    return made
  }

  return async (
    { method, path }: { method: string; path: string },
    response: Response,
  ): Promise<string[]> => {
    const { status } = response
    const operation = router.match(method === 'HEAD' ? 'GET' : method, path.split('?')[0]!)[0][0]?.[0]
    const json = response.headers.get('content-type')?.startsWith('application/json')
    const body = json && method !== 'HEAD' ? await response.clone().json() : undefined
    if (!operation) return status < 400 ? [] : checkBody(compile({ $ref: ERROR }), body)
    const named = operation.responses[status] ?? operation.responses.default
    if (!named) return [`${operation.operationId} does not declare this status`]
    const reply = resolveResponse(named, document)
    const missing = headersOf(document, reply).filter((name) => !response.headers.has(name))
    const faults = missing.map((name) => `the header ${name} is missing`)
    if (method === 'HEAD') return faults
    const given = response.headers.get('content-type') ?? ''
    const described = Object.entries(reply.content ?? {})
    if (described.some(([type]) => type === '*/*')) return faults
    const [media, content] = described.find(([type]) => given.startsWith(type)) ?? described[0] ?? []
    if (!media) return [...faults, ...((await response.clone().text()) ? ['there should be no body'] : [])]
    if (!given.startsWith(media)) return [...faults, `the body is not ${media}`]
    return json && content?.schema ? [...faults, ...checkBody(compile(content.schema), body)] : faults
  }
}

const ERROR = '#/components/schemas/InputError'

function checkBody(validate: ValidateFunction, body: unknown): string[] {
  if (validate(body)) return []
  return (validate.errors ?? []).map(
    ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
  )
}

function headersOf(document: ApiDocument, reply: DescribedResponse): string[] {
  const headers = Object.entries(reply.headers ?? {}) as [string, Schema][]
  return headers
    .filter(
      ([name, header]) => (header.$ref ? (document.components.headers[name] as Schema) : header).required,
    )
    .map(([name]) => name)
}

/** Closes all object schemas: clients must accept unknown fields, but our own responses may not have any. */
function close(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(close)
  if (typeof value !== 'object' || value === null) return value
  const closed = Object.fromEntries(Object.entries(value).map(([key, item]) => [key, close(item)]))
  const open = closed.type === 'object' && closed.properties && closed.additionalProperties === undefined
  return open ? { ...closed, additionalProperties: false } : closed
}

function refer(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(refer)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, key === '$ref' ? `document${item}` : refer(item)]),
  )
}
