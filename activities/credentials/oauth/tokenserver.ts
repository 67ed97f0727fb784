import type { Tokens } from '../../../db/credentials/oauth.ts'
import { getOwn, isObject } from '../../../workflows/json.ts'
import type { HttpClient, HttpResponse } from '../../http/http.ts'
import { FINAL_KINDS, HttpError } from '../../http/httperror.ts'
import { readRetryAfter } from '../../nodes/kit/retryafter.ts'
import { decodeText } from '../../reading/charset.ts'

/** A request to a token server: the fields of its form, and how the client proves itself, if it has to. */
export type TokenRequest = {
  url: string
  form: Record<string, string>
  client?: { id: string; secret: string; authentication: 'header' | 'body' }
}

/**
 * The reason why there are no tokens, in words that follow the name of the party that wanted them. It contains
 * nothing that the server wrote, which may repeat secrets. 'ended': only a person can mend it, by new keys or by
 * connecting anew. 'refused': asking again is of no use, but the keys may be right. 'later': it may succeed later.
 */
export type TokenRefusal = {
  refused: string
  how: 'ended' | 'refused' | 'later'
  retryAfterMs?: number | undefined
  /** How many seconds the server's clock is ahead of this machine's, if it said what time it is. */
  aheadS?: number | undefined
}

/** How long a token server may take. A claim to renew a token lasts longer. */
export const TOKEN_TIMEOUT_MS = 15_000

const MAX_BYTES = 256 * 1024
const MAX_TOKEN = 16_384

/** The errors of RFC 6749 and OpenID Connect that no other attempt mends, and what they mean. */
const ERRORS: Record<string, { how: 'ended' | 'refused'; means: string }> = {
  invalid_grant: { how: 'ended', means: 'what it was shown has expired, was revoked or was used before' },
  invalid_client: { how: 'ended', means: 'it does not know this client, or not with this secret' },
  unauthorized_client: { how: 'ended', means: 'this client may not get tokens in this way' },
  invalid_request: { how: 'refused', means: 'it misses something in the request' },
  invalid_scope: { how: 'refused', means: 'it does not give this scope' },
  invalid_target: { how: 'refused', means: 'it does not give tokens for this audience' },
  unsupported_grant_type: { how: 'refused', means: 'it does not give tokens in this way' },
  access_denied: { how: 'refused', means: 'it denies the access' },
}

/** Asks a token server for tokens (RFC 6749), by the egress rules. Throws nothing but what is no HttpError. */
export async function askTokenServer(
  http: HttpClient,
  { url, form, client }: TokenRequest,
  signal?: AbortSignal,
): Promise<Tokens | TokenRefusal> {
  const fields = new URLSearchParams(form)
  const headers: Record<string, string> = {
    'content-type': 'application/x-www-form-urlencoded',
    accept: 'application/json',
  }
  if (client?.authentication === 'body') {
    fields.set('client_id', client.id)
    fields.set('client_secret', client.secret)
  } else if (client) {
    // Both are encoded as in a form before they are joined: section 2.3.1.
    const pair = `${encodeField(client.id)}:${encodeField(client.secret)}`
    headers.authorization = `Basic ${Buffer.from(pair).toString('base64')}`
  }
  const host = URL.parse(url)?.host ?? 'the token server'
  let response: HttpResponse
  try {
    response = await http.request({
      method: 'POST',
      url,
      headers,
      body: fields.toString(),
      timeoutMs: TOKEN_TIMEOUT_MS,
      maxBytes: MAX_BYTES,
      redirects: 'none',
      ...(signal ? { signal } : {}),
    })
  } catch (error) {
    if (!(error instanceof HttpError)) throw error
    return {
      refused: `cannot ask ${host}: ${error.message}`,
      how: FINAL_KINDS.has(error.kind) ? 'refused' : 'later',
    }
  }
  return readTokens(response, host)
}

function encodeField(text: string): string {
  return new URLSearchParams({ a: text }).toString().slice(2)
}

function readTokens({ status, headers, body }: HttpResponse, host: string): Tokens | TokenRefusal {
  const said = readFields(decodeText(body, headers['content-type']), headers['content-type'])
  const error = said && getOwn(said, 'error')
  // Some servers tell an error with the status 200.
  if (typeof error === 'string' && Object.hasOwn(ERRORS, error)) {
    const { how, means } = ERRORS[error]!
    const aheadS = readClock(headers.date)
    return {
      refused: `got ${error} from ${host}: ${means}`,
      how,
      ...(aheadS === undefined ? {} : { aheadS }),
    }
  }
  if (status < 200 || status > 299 || error !== undefined) {
    const retryAfterMs = readRetryAfter(headers['retry-after'], Date.now())
    const what =
      status < 300 && error !== undefined ? 'an error that it does not know' : `the status ${status}`
    return { refused: `got ${what} from ${host}`, how: 'later', retryAfterMs }
  }
  const accessToken = said && readToken(getOwn(said, 'access_token'))
  if (!accessToken) return { refused: `got no access token from ${host}`, how: 'later' }
  const type = getOwn(said, 'token_type')
  if (typeof type === 'string' && type.toLowerCase() !== 'bearer')
    return { refused: `got a token from ${host} that is no bearer token`, how: 'refused' }
  return {
    accessToken,
    refreshToken: readToken(getOwn(said, 'refresh_token')) ?? null,
    expiresInS: readSeconds(getOwn(said, 'expires_in')),
  }
}

/** The fields of an answer: an object of JSON or, as some servers send it, a form. Undefined if it is neither. */
function readFields(text: string, type = ''): Record<string, unknown> | undefined {
  if (/^application\/x-www-form-urlencoded/i.test(type)) return Object.fromEntries(new URLSearchParams(text))
  try {
    const value = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** A token that can be sent in a header, and stored; undefined for any other value. */
function readToken(value: unknown): string | undefined {
  return typeof value === 'string' && value.length <= MAX_TOKEN && /^[\x21-\x7e]+$/.test(value)
    ? value
    : undefined
}

/** Seconds of `expires_in`, also as a text; null if it says none. */
function readSeconds(value: unknown): number | null {
  const seconds = typeof value === 'string' && /^\d+(\.\d+)?$/.test(value) ? Number(value) : value
  return typeof seconds === 'number' && Number.isFinite(seconds) && seconds > 0 ? seconds : null
}

function readClock(date: string | undefined): number | undefined {
  const time = Date.parse(date ?? '')
  return Number.isNaN(time) ? undefined : Math.round((time - Date.now()) / 1_000)
}
