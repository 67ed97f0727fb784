import type { Context, NotFoundHandler } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { TrieRouter } from 'hono/router/trie-router'
import type { RouterRoute } from 'hono/types'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { v7 as uuid } from 'uuid'
import { isDatabaseAway } from '../../db/connection.ts'
import { Fault, type FaultCode } from '../../db/fault.ts'
import { isReadOnly } from '../../db/operation/outage.ts'
import type { Problem } from '../../workflows/problem.ts'
import type { AppEnv } from '../env.ts'
import { findRoute } from './observe.ts'
import { putLimitHeaders } from './ratelimit.ts'
import type { ErrorBody } from './responses.ts'
import { createStaticPaths } from './staticpaths.ts'

/** The HTTP status of each Fault code. */
const STATUS = {
  INVALID: 400,
  UNAUTHENTICATED: 401,
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  CONFLICT: 409,
  PRECONDITION_FAILED: 412,
  TOO_LARGE: 413,
  UNSUPPORTED_TYPE: 415,
  MISDIRECTED: 421,
  UNPROCESSABLE: 422,
  THROTTLED: 429,
  UNAVAILABLE: 503,
  AUDIT_CHAIN_BROKEN: 503,
} as const satisfies Record<FaultCode, ContentfulStatusCode>

const PHRASE: Record<number, string> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  409: 'Conflict',
  412: 'Precondition Failed',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  421: 'Misdirected Request',
  422: 'Unprocessable Content',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
}

/** Faults that share their status with others, and are told apart by the `code` in the body. */
const CODED: FaultCode[] = ['AUDIT_CHAIN_BROKEN']

export function describeError(path: string, status: number, message: string, errors?: Problem[]): ErrorBody {
  const body = {
    status,
    error: PHRASE[status] ?? 'Error',
    message,
    timestamp: new Date().toISOString(),
    path,
  }
  return errors ? { ...body, errors } : body
}

/** The response to anything thrown. Errors that are not Faults are logged, and their details not revealed. */
export function respondWithError(c: Context<AppEnv>, thrown: unknown): Response {
  const fault = readFault(thrown)
  if (!fault) {
    c.get('log').error({ err: thrown, method: c.req.method, route: findRoute(c) }, 'request failed')
    return show(c, describeError(c.req.path, 500, 'The service failed unexpectedly'))
  }
  if (fault !== thrown)
    c.get('log').warn({ err: thrown, method: c.req.method, route: findRoute(c) }, fault.message)
  const status = STATUS[fault.code]
  if (fault.retryAfter !== undefined)
    c.header('Retry-After', String(Math.max(1, Math.ceil(fault.retryAfter))))
  // The rest of the body may still be arriving, so no other request should follow on this connection.
  if (status === 413) c.header('Connection', 'close')
  if (status === 401) c.header('WWW-Authenticate', 'Bearer')
  const body = describeError(c.req.path, status, fault.message, status === 400 ? fault.problems : undefined)
  return show(c, CODED.includes(fault.code) ? { ...body, code: fault.code } : body)
}

function show(c: Context<AppEnv>, body: ErrorBody): Response {
  return c.get('rule')?.showError?.(c, body) ?? c.json(body, body.status as ContentfulStatusCode)
}

/**
 * For requests without a route: 405 with Allow if the path takes other methods (204 for OPTIONS), else 404.
 */
export function createNotFoundHandler(routes: RouterRoute[]): NotFoundHandler<AppEnv> {
  const router = new TrieRouter<string>()
  const methods = new Set<string>()
  for (const { method, path } of routes) {
    // ALL marks middleware, and routes that check the method themselves.
    if (method === 'ALL') continue
    router.add(method, path, method)
    methods.add(method)
  }
  const findStatic = createStaticPaths(routes)

  function matchMethods(path: string): Set<string> {
    return new Set([...methods].filter((method) => router.match(method, path)[0].length > 0))
  }

  return async (c) => {
    try {
      await c.get('countRequest')()
    } catch (error) {
      // A 404 or 405 needs no database, so it is sent even when the request cannot be counted.
      if (!isDatabaseAway(error)) return respondWithError(c, error)
    }
    const allowed = [...(findStatic(c.req.path) ?? matchMethods(c.req.path))]
    if (allowed.length === 0)
      return respondWithError(c, new Fault('NOT_FOUND', 'There is nothing at this address'))
    if (allowed.includes('GET')) allowed.push('HEAD')
    c.header('Allow', [...allowed, 'OPTIONS'].join(', '))
    if (c.req.method === 'OPTIONS') return c.body(null, 204)
    return respondWithError(
      c,
      new Fault('METHOD_NOT_ALLOWED', `This address does not take ${c.req.method} requests`),
    )
  }
}

/** The response to bytes that are not an HTTP request, with the body and headers that other errors have. */
export function describeRefusal(path: string, status: 400 | 408 | 431 | 500, message: string) {
  const body = JSON.stringify(describeError(path, status, message))
  const headers: Record<string, string> = {
    'Content-Type': 'application/json',
    'X-Request-Id': uuid(),
    'X-Content-Type-Options': 'nosniff',
    'Cache-Control': 'no-store',
    Connection: 'close',
  }
  putLimitHeaders((name, value) => {
    headers[name] = value
  })
  return { body, headers }
}

/** Conflicts and lock_not_available, after the many tries of `db/change.ts`. */
const CONTENDED = /^(40...|55P03)$/

/** The Fault that something thrown is, or means; undefined for a fault of the service itself. */
export function readFault(thrown: unknown): Fault | undefined {
  if (thrown instanceof Fault) return thrown
  if (thrown instanceof HTTPException && thrown.status < 500)
    return new Fault('INVALID', 'The request is malformed')
  // From decodeURIComponent, if a path or query is not UTF-8.
  if (thrown instanceof URIError)
    return new Fault('INVALID', 'The address is not valid percent-encoded UTF-8')
  const code = String((thrown as { code?: unknown } | null | undefined)?.code)
  if (isReadOnly(thrown))
    return new Fault('UNAVAILABLE', 'The database takes no changes at the moment', { retryAfter: 5 })
  if (CONTENDED.test(code))
    return new Fault('UNAVAILABLE', 'Others are changing the same things: try again', { retryAfter: 1 })
  if (isDatabaseAway(thrown))
    return new Fault('UNAVAILABLE', 'The database is not reachable at the moment', { retryAfter: 5 })
  // PostgreSQL cannot hold the string, and no schema rejected it.
  if (code === '22021' || code === '22P05')
    return new Fault('INVALID', 'A string contains a character that cannot be stored')
  return undefined
}
