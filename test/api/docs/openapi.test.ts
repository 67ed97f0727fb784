import { Validator } from '@seriousme/openapi-schema-validator'
import { expect, test } from 'vitest'
import { findFaultStatuses } from '../../../api/docs/faults.ts'
import { type ApiDocument, resolveResponse } from '../../../api/docs/openapi.ts'
import { findRule } from '../../../api/http/accept.ts'
import type { ResponseLink } from '../../../api/http/responses.ts'
import { NODES } from '../../../workflows/nodes/nodes.ts'
import { checkResponse } from '../../support/contract.ts'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

const service = await keep(startService())
const response = await service.request('/api/openapi.json')
const document = (await response.json()) as ApiDocument
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ at: `${method} ${path}`, operation })),
)

test('the document is valid OpenAPI 3.1', async () => {
  const { valid, errors } = await new Validator().validate(JSON.parse(JSON.stringify(document)))
  expect({ valid, errors }).toEqual({ valid: true, errors: undefined })
})

test('the document has every route with a rule, and nothing else', () => {
  const ruled = service.app.routes.flatMap(({ method, path, handler }) => {
    const rule = findRule(handler)
    const at = path.replace(/:(\w+)/g, '{$1}')
    if (!rule) return []
    const methods = method === 'ALL' ? ['get', 'post', 'put', 'patch', 'delete'] : [method.toLowerCase()]
    return methods.map((verb) => `${verb} ${at}`)
  })
  expect(operations.map(({ at }) => at).sort()).toEqual(ruled.sort())
})

test('every tag says what it is about', () => {
  expect(document.tags.length).toBeGreaterThan(5)
  for (const { name, description } of document.tags)
    expect([name, description?.length > 10]).toEqual([name, true])
})

/** What the page tells by which a browser comes back from an authorization server. */
const TOLD = ['401', '403', '404', '409']

test('every operation says what it does, for whom, and how it responds', () => {
  const ids = operations.map(({ operation }) => operation.operationId)
  expect(new Set(ids).size).toBe(ids.length)
  for (const { at, operation } of operations) {
    const { summary, description, tags, responses, requestBody } = operation
    expect([at, summary.length > 3, description.length > 10, tags.length]).toEqual([at, true, true, 1])
    // Every operation has one successful response. Streams, webhooks, waits, polls, dry runs, downloads and the sign-up
    // have another one beside it.
    const choices = ['post /api/workflows/import', 'post /api/workflows/{id}/execute']
    const others: Record<string, string> = {
      'post /api/auth/register': '202',
      'get /api/executions/{id}': '304',
      'post /api/mcp': '202',
    }
    // A page of a form may lead on at once.
    const leads = /^get \/form(-progress)?\//.test(at) ? '303' : undefined
    const chosen =
      leads ?? (choices.includes(at) ? '200' : at.endsWith('/files/{fileId}') ? '206' : (others[at] ?? ''))
    const beside = /\/hooks(-test)?\//.test(at) ? 'default' : /\/(events|stream)$/.test(at) ? '204' : chosen
    const replies = Object.entries(responses)
      .filter(([status]) => status !== beside)
      .map(([status, reply]) => [status, resolveResponse(reply, document)] as const)
    expect([at, replies.filter(([status]) => Number(status) < 400).length]).toEqual([at, 1])
    for (const [status, { content, headers }] of replies) {
      const bodiless =
        ['204', '303'].includes(status) || (at === 'post /api/executions/{id}/cancel' && status === '200')
      const type = {
        'get /api/docs': 'text/html',
        'get /api/docs/guide': 'text/html',
        'get /api/docs/guide/{chapter}': 'text/html',
        'get /api/docs/guide/images/{image}': 'image/png',
        'get /api/audit/team/{teamId}/export': 'application/x-ndjson',
        'get /api/oauth2/callback': 'text/html',
        'get /metrics': 'text/plain',
        'get /api/tables/{id}/csv': 'text/csv',
        'get /api/executions/{id}/events': 'text/event-stream',
        'get /api/workflows/{workflowId}/batch-eval/{runId}/events': 'text/event-stream',
        'post /api/agent-chat/sessions/{id}/messages': 'text/event-stream',
        'post /api/public/widgets/{key}/messages': 'text/event-stream',
        'get /widget/{key}': 'text/html',
        'get /mail/{token}': 'text/html',
        'get /mail/{token}/{choice}': 'text/html',
        'post /mail/{token}/{choice}': 'text/html',
        'get /api/agent-chat/sessions/{id}/messages/{messageId}/stream': 'text/event-stream',
      }[at]
      // A browser shows what the page of the callback, or of a mail's link, says: it has got there by itself.
      const told =
        (at === 'get /api/oauth2/callback' && TOLD.includes(status)) ||
        (at.includes(' /mail/') && status === '404')
      // Whatever goes wrong with a form is said on a page, but for a wrong host, which is refused before.
      const isForm = / \/form(s|s-test|-progress)?\//.test(at) && status !== '421'
      const media = isForm ? 'text/html' : (Number(status) < 400 || told) && type ? type : 'application/json'
      const also = {
        'get /api/executions/team/{teamId}/export': 'text/csv',
        'get /api/monitoring/teams/{teamId}/export': 'text/csv',
        'get /api/workflows/{workflowId}/batch-eval/{runId}/export': 'text/csv',
        'get /api/audit/team/{teamId}/reports/{id}/download': 'text/html',
        'get /api/audit/team/{teamId}/siem': 'text/plain',
        'get /api/docs/guide/{chapter}': 'text/markdown',
        'get /api/executions/{id}/files/{fileId}': '*/*',
        'post /api/mcp': '*/*',
      }[at]
      // OTLP answers in the encoding of its request, errors too. A wrong host is refused before that is known.
      const otlp =
        at === 'post /api/telemetry/v1/traces' && status !== '421' ? ['application/x-protobuf'] : []
      // What the protocol itself refuses is no error of this API.
      const isProtocols = at === 'post /api/mcp' && ['400', 'default'].includes(status)
      const texts = also && (status === '200' || isProtocols) ? [also] : otlp
      const types = bodiless ? [] : [media, ...texts]
      expect([at, status, Object.keys(content ?? {})]).toEqual([at, status, types])
      expect(Object.keys(headers ?? {})).toContain('X-RateLimit-Limit')
    }
    const body = requestBody?.content['application/json']
    if (body) expect([at, typeof body.example]).toEqual([at, 'object'])
  }
})

test('roles and credentials follow the rule', () => {
  const find = (id: string) => operations.find(({ operation }) => operation.operationId === id)!.operation
  expect(find('executeWorkflow')['x-roles']).toEqual(['OPERATOR', 'BUILDER', 'ADMIN'])
  expect(find('executeWorkflow').description).toContain('Needs the role OPERATOR or higher.')
  expect(find('executeWorkflow').security).toEqual([{ session: [] }, { sdkToken: [] }])
  expect(find('listWorkflows')['x-roles']).toEqual(['VIEWER', 'OPERATOR', 'BUILDER', 'ADMIN'])
  expect(find('signIn').security).toEqual([])
  expect(find('openVisitorSession').security).toEqual([{}, { visitor: [] }])
  expect(find('postVisitorMessage').security).toEqual([{ visitor: [] }])
  expect(find('createTeam').security).toEqual([{ session: [] }])
})

type NodeShape = { required: string[]; properties: { type: { const: string }; config?: object } }

test('the document describes inputs as they are checked', () => {
  const operation = document.paths['/api/workflows']!.get!
  const shapes = Object.fromEntries(
    operation.parameters!.map(({ name, schema, required }) => [name, { schema, required }]),
  )
  expect(shapes).toEqual({
    teamId: { required: true, schema: { type: 'string', format: 'uuid' } },
    page: { required: false, schema: { type: 'integer', minimum: 0, maximum: 1_000_000, default: 0 } },
    size: { required: false, schema: { type: 'integer', minimum: 1, maximum: 100, default: 20 } },
    search: {
      required: false,
      schema: { type: 'string', minLength: 0, maxLength: 200, pattern: '^[^\\u0000]*$' },
    },
    active: { required: false, schema: { type: 'string', enum: ['true', 'false'] } },
    agent: { required: false, schema: { type: 'string', enum: ['true', 'false'] } },
  })
  // Each type of node has a schema of its own, which only nodes of this type match.
  const { schemas } = document.components
  const node = schemas.Node as { oneOf: { $ref: string }[] }
  const types = node.oneOf.map(({ $ref }) => schemas[$ref.split('/').pop()!] as NodeShape)
  expect(types.map(({ properties }) => properties.type.const)).toEqual(Object.keys(NODES))
  expect(
    types.filter(({ required, properties }) => !required.includes('type') || !properties.config),
  ).toEqual([])
  expect(JSON.stringify(document)).not.toContain('"shown"')
})

test('every link leads to an operation, and uses only parameters that it has', () => {
  const links = operations.flatMap(({ operation }) =>
    Object.values(operation.responses).flatMap((reply) =>
      Object.values(
        (resolveResponse(reply, document).links ?? {}) as Record<
          string,
          ResponseLink & { operationId: string }
        >,
      ),
    ),
  )
  expect(links.length).toBeGreaterThan(10)
  for (const { operationId, parameters } of links) {
    const target = operations.find(({ operation }) => operation.operationId === operationId)
    const names = target?.operation.parameters?.map(({ name }) => name) ?? []
    expect([operationId, target !== undefined]).toEqual([operationId, true])
    expect(names).toEqual(expect.arrayContaining(Object.keys(parameters)))
  }
})

test('every reference in the document leads somewhere', () => {
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)].map(([, path]) => path!)
  expect(references.length).toBeGreaterThan(100)
  const find = (path: string) =>
    path.split('/').reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], document)
  expect([...new Set(references)].filter((path) => find(path) === undefined)).toEqual([])
})

test('the error responses of a route follow from its rule', () => {
  const rule = { id: 'x', tag: 'X', summary: 'x', responses: {} }
  expect(findFaultStatuses({ ...rule, role: 'public' }, 'GET', '/healthz')).toEqual([])
  expect(findFaultStatuses({ ...rule, role: 'user' }, 'GET', '/api/x')).toEqual([401, 421, 429, 500, 503])
  expect(findFaultStatuses({ ...rule, role: 'ADMIN', faults: [409] }, 'POST', '/api/x')).toEqual([
    401, 403, 404, 409, 421, 429, 500, 503,
  ])
})

test('a response that contradicts the document fails the suite', async () => {
  const { routes } = service.app
  const real = await service.request('/api/node-types', { as: service.admin })
  const types = (await real.json()) as Record<string, unknown>[]
  const check = (body: unknown, init: ResponseInit = {}) =>
    checkResponse(
      routes,
      { method: 'GET', path: '/api/node-types' },
      Response.json(body, { headers: real.headers, ...init }),
    )
  await check(types)
  await expect(check([{ ...types[0], extra: 1 }])).rejects.toThrow('must NOT have additional properties')
  await expect(check([{ ...types[0], kind: 'other' }])).rejects.toThrow('/0/kind must be equal to one of')
  await expect(check(types, { status: 201 })).rejects.toThrow('does not declare this status')
  await expect(check(types, { headers: {} })).rejects.toThrow('the header X-Request-Id is missing')
  const unknown = { method: 'GET', path: '/api/nothing' }
  await expect(
    checkResponse(routes, unknown, Response.json({ status: 404 }, { status: 404 })),
  ).rejects.toThrow('required')
})
