import { Agent, type Dispatcher } from 'undici'
import { isSecretName } from '../db/redact.ts'
import { createEgress, type EgressOptions } from './egress.ts'
import { explain, HttpError } from './httperror.ts'
import { decompress, readBody } from './inflate.ts'

export type HttpRequest = {
  method: string
  /** http or https. A `user:password@` in it becomes a Basic Authorization header. */
  url: string
  headers?: Record<string, string>
  body?: string | Uint8Array
  /** For everything: names, connecting, redirects, the whole answer. Default 60,000. */
  timeoutMs?: number
  signal?: AbortSignal
  /** Of the body, before and after decompression. Default 8 MiB. */
  maxBytes?: number
}

/** Header names are lower case, repeated ones joined by ', '. `body` is decompressed. */
export type HttpResponse = { status: number; headers: Record<string, string>; body: Uint8Array }

export type HttpClient = {
  /** Throws HttpError only. Every status is an answer, no error; redirects are followed. */
  request(req: HttpRequest): Promise<HttpResponse>
  /** Ends every connection; requests under way fail. */
  close(): Promise<void>
}

const MAX_REDIRECTS = 5
const MAX_BYTES = 8 * 1024 * 1024
const TIMEOUT_MS = 60_000
const REDIRECTS = new Set([301, 302, 303, 307, 308])
const METHOD = /^[A-Z][A-Z-]{0,30}$/
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
// What frames a message or steers the connection is the client's to say.
const FRAMING = new Set(
  'connection content-length expect host http2-settings keep-alive proxy-connection te trailer transfer-encoding upgrade'.split(
    ' ',
  ),
)

/**
 * The one HTTP client for whatever a user can aim: guarded connections (activities/egress.ts), kept alive
 * and pooled per origin; redirects (at most 5) followed by hand, without credentials on another origin.
 * Takes no proxy from the environment.
 */
export function createHttpClient(options: EgressOptions): HttpClient {
  const agent = new Agent({
    connect: createEgress(options).connect,
    allowH2: false,
    // One deadline over everything stands in `request`.
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: 64 * 1024,
  })
  return { request: (req) => request(agent, req), close: () => agent.destroy() }
}

async function request(agent: Agent, req: HttpRequest): Promise<HttpResponse> {
  const hop = readRequest(req)
  const maxBytes = req.maxBytes ?? MAX_BYTES
  const timeoutMs = req.timeoutMs ?? TIMEOUT_MS
  const stop = new AbortController()
  const onAbort = () => stop.abort(new HttpError('aborted', `the request to ${hop.url.host} was aborted`))
  const timer = setTimeout(() => {
    stop.abort(new HttpError('timeout', `no complete answer from ${hop.url.host} within ${timeoutMs} ms`))
  }, timeoutMs)
  if (req.signal?.aborted) onAbort()
  else req.signal?.addEventListener('abort', onAbort, { once: true })
  try {
    for (let hops = 0; ; hops++) {
      const answer = await send(agent, hop, stop.signal)
      // A body given up emits an error that nobody else would hear.
      answer.body.on('error', () => {})
      if (REDIRECTS.has(answer.statusCode) && answer.headers.location !== undefined) {
        if (hops === MAX_REDIRECTS) {
          answer.body.destroy()
          throw new HttpError(
            'redirect',
            `more than ${MAX_REDIRECTS} redirects, the last from ${hop.url.host}`,
          )
        }
        // A short rest is read so that the connection lives on.
        await answer.body.dump({ limit: 16_384 })
        redirect(hop, answer.statusCode, join(answer.headers.location))
        continue
      }
      const raw = await readBody(answer.body, maxBytes, hop.url.host)
      const body = await decompress(
        raw,
        join(answer.headers['content-encoding'] ?? ''),
        maxBytes,
        hop.url.host,
      )
      const headers = Object.entries(answer.headers).map(([name, value]) => [name, join(value ?? '')])
      return { status: answer.statusCode, headers: Object.fromEntries(headers), body }
    }
  } catch (error) {
    throw stop.signal.aborted ? stop.signal.reason : explain(error, hop.url.host)
  } finally {
    clearTimeout(timer)
    req.signal?.removeEventListener('abort', onAbort)
  }
}

type Hop = { method: string; url: URL; headers: Map<string, string>; body: Buffer | null }

function readRequest(req: HttpRequest): Hop {
  const method = req.method.toUpperCase()
  if (!METHOD.test(method) || method === 'CONNECT' || method === 'TRACE') {
    throw new HttpError('bad-request', 'this method cannot be sent')
  }
  const headers = new Map<string, string>()
  for (const [name, value] of Object.entries(req.headers ?? {})) {
    const fault = findHeaderFault(name, value)
    if (fault) throw new HttpError('bad-request', `a header ${fault}`)
    headers.set(name.toLowerCase(), value)
  }
  const hop: Hop = {
    method,
    url: readUrl(req.url, headers),
    headers,
    body: req.body === undefined ? null : Buffer.from(req.body as string),
  }
  if (!headers.has('user-agent')) headers.set('user-agent', 'Perdure')
  if (!headers.has('accept')) headers.set('accept', '*/*')
  if (!headers.has('accept-encoding')) headers.set('accept-encoding', 'gzip, br')
  return hop
}

/** What is wrong with a header that a user gave (`must not hold a line break` ...), or null. */
export function findHeaderFault(name: string, value: string): string | null {
  if (!TOKEN.test(name)) return 'has a name that is no HTTP header name'
  if (FRAMING.has(name.toLowerCase())) return 'is set by the client itself and cannot be given'
  if (/[\r\n\0]/.test(value)) return 'must not hold a line break or NUL'
  if (/[^\t\x20-\x7e\x80-\xff]/.test(value)) return 'must hold Latin-1 characters only'
  return null
}

function readUrl(text: string, headers: Map<string, string>, base?: URL): URL {
  const url = URL.parse(text, base?.href)
  if (!url) throw new HttpError('bad-url', 'the URL does not parse')
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new HttpError('bad-url', `the URL must begin with http:// or https://, not ${url.protocol}`)
  }
  if (url.username || url.password) {
    const plain = `${decode(url.username)}:${decode(url.password)}`
    if (!headers.has('authorization')) {
      headers.set('authorization', `Basic ${Buffer.from(plain).toString('base64')}`)
    }
    url.username = ''
    url.password = ''
  }
  return url
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

async function send(agent: Agent, hop: Hop, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
  signal.throwIfAborted()
  const sent = agent.request({
    origin: hop.url.origin,
    path: hop.url.pathname + hop.url.search,
    method: hop.method as Dispatcher.HttpMethod,
    headers: Object.fromEntries(hop.headers),
    body: hop.body,
    signal,
  })
  // undici hears of an abort only once it is connected: a slow name server must not hold us up.
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason)
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
    sent.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}

/** Turns `hop` into the next one, as browsers do it: 303 becomes GET, so do 301 and 302 after a POST. */
function redirect(hop: Hop, status: number, location: string): void {
  const from = hop.url
  let to: URL
  try {
    // undici gives header bytes as Latin-1; a raw UTF-8 path is common. Credentials in it are not taken up.
    to = readUrl(Buffer.from(location, 'latin1').toString(), new Map(), from)
  } catch (error) {
    throw new HttpError('redirect', `a redirect from ${from.host} leads nowhere: ${(error as Error).message}`)
  }
  if (from.protocol === 'https:' && to.protocol === 'http:') {
    throw new HttpError('redirect', `a redirect from ${from.host} leads from https to http`)
  }
  if (to.origin !== from.origin) {
    for (const name of [...hop.headers.keys()]) {
      if (isSecretName(name)) hop.headers.delete(name)
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
  hop.url = to
}

function join(value: string | string[]): string {
  return Array.isArray(value) ? value.join(', ') : value
}
