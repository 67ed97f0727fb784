import { CONNECT_TIMEOUT_MS } from '../egress/egress.ts'

export type HttpErrorKind =
  /** The address behind the URL, or behind a redirect, is not allowed. */
  | 'refused-address'
  /** The credential of the request must not be sent to this host. */
  | 'refused-host'
  /** No complete response within timeoutMs, or no connection within 10 s. */
  | 'timeout'
  /** Unknown host, connection refused or reset, TLS error, invalid HTTP or an invalid content encoding. */
  | 'network'
  /** The response's body has more than maxBytes. */
  | 'too-large'
  /** The URL does not parse, or is neither http nor https. */
  | 'bad-url'
  /** A method or header that cannot be sent. */
  | 'bad-request'
  /** `signal` was aborted. */
  | 'aborted'
  /** Too many redirects, or one to a bad URL or from https to http. */
  | 'redirect'

/** A request that failed so is not made again: it would fail again until a setting is changed. */
export const FINAL_KINDS: ReadonlySet<HttpErrorKind> = new Set<HttpErrorKind>([
  'refused-address',
  'refused-host',
  'bad-url',
  'bad-request',
  'redirect',
])

/** The HTTP client's error. Its `message`, fit for users, names the host, never path, query or headers. */
export class HttpError extends Error {
  readonly kind: HttpErrorKind
  /** A server has answered before with a redirect: it may have done what it was asked. */
  followed = false

  constructor(kind: HttpErrorKind, message: string, cause?: unknown) {
    super(message, cause === undefined ? {} : { cause })
    this.name = 'HttpError'
    this.kind = kind
  }
}

/** The error for a response body of more than `max` bytes. */
export function bodyTooLarge(host: string, max: number): HttpError {
  return new HttpError('too-large', `the response from ${host} has more than ${max} bytes`)
}

const REASONS: Record<string, string> = {
  ENOTFOUND: 'host not found',
  EAI_AGAIN: 'the name server did not respond',
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  EPIPE: 'connection reset',
  EHOSTUNREACH: 'host unreachable',
  ENETUNREACH: 'network unreachable',
  UND_ERR_SOCKET: 'connection closed before the response was complete',
  UND_ERR_DESTROYED: 'the client is closed',
  UND_ERR_CLOSED: 'the client is closed',
  UND_ERR_HEADERS_OVERFLOW: 'too many headers',
}

/** An HttpError for an error of undici, of the egress rules or of the socket. */
export function toHttpError(error: unknown, host: string): HttpError {
  if (error instanceof HttpError) return error
  const { code = '', message = '' } = error as { code?: string; message?: string }
  if (code === 'EGRESS_REFUSED') return new HttpError('refused-address', message)
  if (code === 'UND_ERR_CONNECT_TIMEOUT' || code === 'ETIMEDOUT') {
    return new HttpError('timeout', `no connection to ${host} within ${CONNECT_TIMEOUT_MS} ms`, error)
  }
  if (code === 'UND_ERR_INVALID_ARG')
    return new HttpError('bad-request', 'this request cannot be sent', error)
  const reason = code.startsWith('HPE_') ? 'the response is not valid HTTP' : REASONS[code] || message || code
  return new HttpError('network', `${host}: ${reason || 'network error'}`, error)
}
