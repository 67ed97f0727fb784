import type { Hono } from 'hono'
import { type ApplyGlobalResponse, hc } from 'hono/client'
import type { BlankEnv, ExtractSchema } from 'hono/types'
import type { App } from './app.ts'
import type { ErrorBody } from './http/responses.ts'

/**
 * Hono types a response without an explicit status as any status. Here it becomes 200, so that `response.ok`
 * tells it from the errors.
 */
type Settle<R> = R extends { status: infer S } ? (400 extends S ? Omit<R, 'status'> & { status: 200 } : R) : R
type SettleAll<S> = { [P in keyof S]: { [M in keyof S[P]]: Settle<S[P][M]> } }
type Settled = Hono<BlankEnv, SettleAll<ExtractSchema<App>>, '/'>

type ErrorResponse = { json: ErrorBody }

/** The API as a client sees it: each route's own responses, and the error body for every error status. */
type Api = ApplyGlobalResponse<
  Settled,
  {
    400: ErrorResponse
    401: ErrorResponse
    403: ErrorResponse
    404: ErrorResponse
    405: ErrorResponse
    409: ErrorResponse
    412: ErrorResponse
    413: ErrorResponse
    415: ErrorResponse
    429: ErrorResponse
    500: ErrorResponse
    503: ErrorResponse
  }
>

/**
 * A typed client of the service at `address`: `api.api.workflows[':id'].execute.$post({ param, json })`. Pass
 * an SDK `token`, or a `fetch` of your own (for cookies, retries or tests).
 */
export function createClient(address: string, options: { token?: string; fetch?: typeof fetch } = {}) {
  const { token, fetch } = options
  return hc<Api>(address, {
    ...(token ? { headers: { authorization: `Bearer ${token}` } } : {}),
    ...(fetch ? { fetch } : {}),
  })
}
