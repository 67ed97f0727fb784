import { Context } from 'hono'
import * as v from 'valibot'
import { findStartHook } from '../../../db/executions/starts/startnode.ts'
import { listWebhooksAt, type Webhook } from '../../../db/executions/starts/webhooks.ts'
import { Fault, invalid } from '../../../db/fault.ts'
import type { Scope } from '../../../db/scope.ts'
import { type Problem, quoteShort } from '../../../workflows/problem.ts'
import type { BodyReader } from '../../bodies/away.ts'
import type { ApiDeps, AppEnv } from '../../env.ts'
import { boundedString, documentAs, objectField } from '../../http/fields.ts'
import { makePathItem } from '../../workflows/graph.ts'
import { createCallReader, type ReadCall } from './hookcall.ts'
import { writeRequestBody } from './requestbody.ts'

type Scalar = string | number | boolean

/** An object whose values are texts, or lists of them; also numbers and booleans, which are written as texts. */
const textsField = v.pipe(
  objectField,
  v.rawCheck(({ dataset, addIssue }) => {
    for (const [key, value] of Object.entries(Object(dataset.value))) {
      const isFine = Array.isArray(value) ? value.every(isScalar) : isScalar(value)
      const message = 'must be a string, a number, a boolean, or an array of them'
      if (!isFine) addIssue({ message, path: [makePathItem(key)] })
    }
  }),
  v.transform((given) => given as Record<string, Scalar | Scalar[]>),
  documentAs<Record<string, Scalar | Scalar[]>>({ type: 'object', additionalProperties: true }),
)

function isScalar(value: unknown): boolean {
  return ['string', 'number', 'boolean'].includes(typeof value)
}

/** A call of a webhook, as it would come over HTTP. */
export const requestSchema = v.object({
  method: v.pipe(
    v.optional(boundedString(20)),
    v.description('The method; by default that of the trigger'),
    v.examples(['POST']),
  ),
  headers: v.pipe(
    v.optional(textsField),
    v.description('By name, in any case; a list is a header that comes several times'),
  ),
  query: v.pipe(v.optional(textsField), v.description('By name; a list is a name that comes several times')),
  body: v.pipe(
    v.optional(v.unknown()),
    v.description(
      'The body. A text is sent as it is, and `{base64}` as these bytes. Any other value is written as the ' +
        'Content-Type says: as JSON, which is also the default, or as a form, where a file is ' +
        '`{filename, contentType, base64}`',
    ),
  ),
})
type AskedRequest = v.InferOutput<typeof requestSchema>

type Asked = Parameters<typeof findStartHook>[2] & { request: AskedRequest }

/**
 * Reads what a caller describes as a call of a webhook, by the code that reads real ones. The caller has shown who they
 * are, so neither secret nor signature is asked for. Throws as findStartHook does, and INVALID for what the webhook would
 * refuse.
 */
export function createRequestReader(deps: ApiDeps, readAway: BodyReader) {
  const readCall = createCallReader(deps, readAway)
  return async (scope: Scope, workflowId: string, asked: Asked): Promise<ReadCall & { hook: Webhook }> => {
    const hook = await findStartHook(scope, workflowId, asked)
    const request = writeRequest(hook, asked.request, deps.publicUrl)
    const path = new URL(request.url).pathname
    // A request outside of the router has matched no route.
    const c = new Context<AppEnv>(request, { path, env: undefined, matchResult: [[]] as never })
    return { hook, ...(await readCall(c, hook, undefined).catch(rethrowRefused)) }
  }
}

/** The request as it would come from a client of HTTP. Throws INVALID with all problems. */
function writeRequest(hook: Webhook, asked: AskedRequest, publicUrl: string): Request {
  const problems: Problem[] = []
  const method = (asked.method ?? hook.method).toUpperCase()
  if (method !== hook.method) problems.push({ path: 'request.method', message: refuseMethod(hook, method) })
  const path = encodeURIComponent(String(hook.node.config.path))
  const url = new URL(`${publicUrl}/hooks/${hook.workflow.id}/${path}`)
  for (const [name, value] of listTexts(asked.query)) url.searchParams.append(name, value)
  const headers = new Headers()
  for (const [name, value] of listTexts(asked.headers)) {
    try {
      headers.append(name, value)
    } catch {
      problems.push({ path: `request.headers.${name}`, message: 'is not a header that can be sent' })
    }
  }
  if (!headers.has('host')) headers.set('host', url.host)
  const isBodiless = method === 'GET' || method === 'HEAD'
  const hasBody = asked.body !== undefined && asked.body !== null
  if (hasBody && isBodiless)
    problems.push({ path: 'request.body', message: `must be left out: a ${method} has no body` })
  const body = writeRequestBody(asked.body, headers)
  if (!isBodiless && body.problems) problems.push(...body.problems)
  if (problems.length > 0) throw invalid(problems)
  if (isBodiless || !body.bytes) return new Request(url, { method: hook.method, headers })
  if (!headers.has('transfer-encoding')) headers.set('content-length', String(body.bytes.length))
  return new Request(url, { method: hook.method, headers, body: body.bytes })
}

/** A header or a part of a query for each value, in the order in which they were given. */
function listTexts(given: Record<string, Scalar | Scalar[]> = {}): [name: string, value: string][] {
  return Object.entries(given).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((one): [string, string] => [name, String(one)]),
  )
}

function refuseMethod({ method, workflow, node }: Webhook, asked: string): string {
  const beside = listWebhooksAt(workflow, String(node.config.path))
  const sibling = beside.find((one) => one.method === asked)?.node
  const advice = sibling ? `; the trigger ${quoteShort(sibling.id)} does` : ''
  return `this webhook accepts ${method}, not ${quoteShort(asked)}${advice}`
}

/** What is wrong with the call is wrong in `request`. */
function rethrowRefused(error: unknown): never {
  if (!(error instanceof Fault)) throw error
  if (error.code === 'UNSUPPORTED_TYPE')
    throw invalid([{ path: 'request.headers.content-encoding', message: error.message }])
  if (error.code !== 'INVALID') throw error
  throw invalid(error.problems.map(({ path, ...problem }) => ({ path: `request.${path}`, ...problem })))
}

/**
 * A warning if the data with which a webhook's workflow is executed cannot be what a call gives: it has no `body`, so
 * conditions may take another branch than with a real call.
 */
export function warnBodiless(
  start: { id: string; type: string },
  data: Record<string, unknown> = {},
): Problem[] {
  if (start.type !== 'WEBHOOK_TRIGGER' || Object.hasOwn(data, 'body')) return []
  const message =
    `has no \`body\`, but calls of the webhook ${quoteShort(start.id)} give {body, query, headers, method}: ` +
    'with a real call, expressions and conditions get other values. Give `request` instead'
  return [{ path: 'data', message }]
}

type Inputs = { data?: unknown; request?: unknown; reuseFrom?: unknown }

/** Checks that the output of the trigger is described only once. */
export function checkOneInput<T extends Inputs>() {
  const isOne = ({ data, request, reuseFrom }: T) =>
    request === undefined || (data === undefined && reuseFrom === undefined)
  const message = 'cannot be given together with `data` or `reuseFrom`: each is the output of the trigger'
  return v.forward(v.check<T, string>(isOne, message), ['request'] as never)
}
