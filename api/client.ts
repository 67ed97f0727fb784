import type { Hono } from 'hono'
import { type ApplyGlobalResponse, hc } from 'hono/client'
import type { BlankEnv, ExtractSchema } from 'hono/types'
import type { App } from './app.ts'
import type { ErrorBody } from './errors.ts'

/** What a handler answers without naming a status is 200: `answer.ok` then tells it from the errors. */
type Settle<R> = R extends { status: infer S } ? (400 extends S ? Omit<R, 'status'> & { status: 200 } : R) : R
type SettleAll<S> = { [P in keyof S]: { [M in keyof S[P]]: Settle<S[P][M]> } }
type Settled = Hono<BlankEnv, SettleAll<ExtractSchema<App>>, '/'>

type Failure = { json: ErrorBody }

/** The API as a client sees it: each route's own answers, and the error body with every other status. */
type Api = ApplyGlobalResponse<
  Settled,
  {
    400: Failure
    401: Failure
    403: Failure
    404: Failure
    405: Failure
    409: Failure
    412: Failure
    413: Failure
    415: Failure
    429: Failure
    500: Failure
    503: Failure
  }
>

/**
 * The API of the service at `address`, typed end to end: `api.api.workflows[':id'].execute.$post({ param, json })`.
 * With an SDK `token`, or with a `fetch` of one's own (cookies, retries, tests).
 */
export function createClient(address: string, options: { token?: string; fetch?: typeof fetch } = {}) {
  const { token, fetch } = options
  return hc<Api>(address, {
    ...(token ? { headers: { authorization: `Bearer ${token}` } } : {}),
    ...(fetch ? { fetch } : {}),
  })
}
