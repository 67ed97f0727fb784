import { CALL_MARK } from '../../db/operation/callmark.ts'
import { isSecretName } from '../../workflows/secrets/secretnames.ts'
import { decodeUriPart } from '../../workflows/texts.ts'
import type { Authority } from './authority.ts'
import { HttpError } from './httperror.ts'
import { isStreamed, type StreamedBody } from './streams.ts'

const METHOD = /^[A-Z][A-Z-]{0,30}$/
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
// Headers that frame a message, control the connection or mark our calls are set by the client only.
const FRAMING = new Set(
  `${CALL_MARK} connection content-length expect host http2-settings keep-alive proxy-connection te trailer transfer-encoding upgrade`.split(
    ' ',
  ),
)

/** A request as it is wanted; see HttpRequest. */
type HopRequest = {
  method: string
  url: string
  headers?: Record<string, string>
  body?: string | Uint8Array | StreamedBody
}

/** The next request to be sent. */
type Hop = { method: string; url: URL; headers: Map<string, string>; body: Buffer | StreamedBody | null }

/** The first request. Throws an HttpError for one that cannot be sent. */
export function readRequest(req: HopRequest): Hop {
  const method = req.method.toUpperCase()
  if (!METHOD.test(method) || method === 'CONNECT' || method === 'TRACE') {
    throw new HttpError('bad-request', 'the method must be a word such as GET, and not CONNECT or TRACE')
  }
  const headers = new Map<string, string>()
  for (const [name, value] of Object.entries(req.headers ?? {})) {
    const fault = findRequestHeaderFault(name, value)
    if (fault) throw new HttpError('bad-request', `a header ${fault}`)
    headers.set(name.toLowerCase(), value)
  }
  const hop: Hop = {
    method,
    url: readUrl(req.url, headers),
    headers,
    body: req.body === undefined ? null : isStreamed(req.body) ? req.body : Buffer.from(req.body as string),
  }
  if (!headers.has('user-agent')) headers.set('user-agent', 'Perdure')
  if (!headers.has('accept')) headers.set('accept', '*/*')
  if (!headers.has('accept-encoding')) headers.set('accept-encoding', 'gzip, br')
  return hop
}

/** The fault of a header that a user gave, as words that follow its name; null without a fault. */
export function findRequestHeaderFault(name: string, value: string): string | null {
  if (!TOKEN.test(name)) return 'has a name that is not a valid HTTP header name'
  if (FRAMING.has(name.toLowerCase())) return 'is set by the HTTP client itself and cannot be changed'
  if (/[\r\n\0]/.test(value)) return 'must not contain a line break or NUL'
  if (/[^\t\x20-\x7e\x80-\xff]/.test(value)) return 'must contain only Latin-1 characters'
  return null
}

function readUrl(text: string, headers: Map<string, string>, base?: URL): URL {
  const url = URL.parse(text, base?.href)
  if (!url) throw new HttpError('bad-url', 'the URL does not parse')
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new HttpError('bad-url', `the URL must begin with http:// or https://, not ${url.protocol}`)
  }
  if (url.username || url.password) {
    const plain = `${decodeUriPart(url.username)}:${decodeUriPart(url.password)}`
    if (!headers.has('authorization')) {
      headers.set('authorization', `Basic ${Buffer.from(plain).toString('base64')}`)
    }
    url.username = ''
    url.password = ''
  }
  return url
}

/** Changes `hop` into the next request. As in browsers, 303 leads to a GET, and 301 and 302 after a POST. */
export function redirect(hop: Hop, authority: Authority, status: number, location: string): void {
  const from = hop.url
  let to: URL
  try {
    // undici decodes headers as Latin-1, but raw UTF-8 is common. Credentials in a location are dropped.
    to = readUrl(Buffer.from(location, 'latin1').toString(), new Map(), from)
  } catch (error) {
    throw new HttpError('redirect', `a redirect from ${from.host} is not valid: ${(error as Error).message}`)
  }
  if (from.protocol === 'https:' && to.protocol === 'http:') {
    throw new HttpError('redirect', `a redirect from ${from.host} leads from https to http`)
  }
  if (to.origin !== from.origin) {
    const added = new Set(authority.names())
    for (const name of [...hop.headers.keys()]) {
      if (isSecretName(name) || added.has(name)) hop.headers.delete(name)
    }
  }
  const post = hop.method === 'POST' && (status === 301 || status === 302)
  if (post || (status === 303 && hop.method !== 'HEAD' && hop.method !== 'GET')) {
    hop.method = 'GET'
    hop.body = null
    for (const name of [...hop.headers.keys()]) {
      if (name.startsWith('content-')) hop.headers.delete(name)
    }
  }
  hop.url = authority.leave(from, to)
}
