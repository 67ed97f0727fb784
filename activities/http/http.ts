import { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { CALL_MARK } from '../../db/operation/callmark.ts'
import { unlessAborted } from '../abort.ts'
import { createEgress, type Egress, type EgressOptions } from '../egress/egress.ts'
import { type Agents, createAgents } from './agents.ts'
import {
  type Authority,
  type Authorize,
  type AuthorizedHop,
  createAuthority,
  demandHost,
} from './authority.ts'
import { boundBody, decompress, readResponseBytes } from './decompress.ts'
import { type ResponseHeaders, readHeaders, type ShownHeaders, showHeaders } from './headers.ts'
import { findRequestHeaderFault, readRequest, redirect } from './hop.ts'
import { HttpError, toHttpError } from './httperror.ts'
import { isStreamed, readDecoded, type SaveBody, type StreamedBody } from './streams.ts'

export type HttpRequest = {
  method: string
  /** http or https. A `user:password@` in it becomes a Basic Authorization header. */
  url: string
  headers?: Record<string, string>
  body?: string | Uint8Array | StreamedBody
  /** For everything: name lookup, connecting, redirects, the whole response. Default 60,000. */
  timeoutMs?: number
  signal?: AbortSignal
  /** The largest response body, before and after decompression. Default 8 MiB. */
  maxBytes?: number
  /** `none`: a redirect is a response like any other. Default: at most 5 are followed. */
  redirects?: 'follow' | 'none'
  /** Told the most bytes that the body can have, once the headers say so, and again when it has been read. */
  onBound?: (bytes: number) => void
  /** The most bytes of a body that is saved; `maxBytes` is for the others. */
  saveBytes?: number
  /**
   * Told the head of the response that is not followed: what it returns takes the body as it comes, and the response's
   * own body is then empty. What that throws, the request throws.
   */
  save?: (head: { status: number; headers: Record<string, string>; url: URL }) => SaveBody | undefined
  watch?: HttpWatch
  /**
   * Says what a credential adds to a request: asked for the first one, and for each redirect that stays at its
   * origin. To another origin nothing of it goes.
   */
  authorize?: Authorize
  /**
   * Called once, if a response to a request that `authorize` has added to has the status 401. Resolves to whether it
   * adds something else now: then the request is sent once more.
   */
  renew?: () => Promise<boolean>
  /** Its line in the record of the attempt, from 0, if it is not the next one. */
  line?: number
  /** The only hosts that the request and its redirects may lead to; see demandHost. */
  allowedHosts?: readonly string[]
}

/**
 * Is told what really goes out and comes in, redirects included, but for what `authorize` has added: that is
 * masked. Header names are in lower case.
 */
type HttpWatch = {
  sent(request: {
    method: string
    url: string
    headers: Record<string, string>
    body: Uint8Array | null
    /** The size of a body that is not held in memory. */
    bytes?: number | undefined
  }): void
  received(head: { status: number; statusText: string; headers: ShownHeaders }): void
}

/** `body` is decompressed. `url` is where it came from, once redirects were followed. */
export type HttpResponse = { status: number; body: Uint8Array; url?: string } & ResponseHeaders

export type HttpClient = {
  /**
   * Sends a request and follows redirects. Throws only HttpError, and what `authorize` and `renew` throw; no response
   * status is an error.
   */
  request(req: HttpRequest): Promise<HttpResponse>
  /** Closes every connection; requests under way fail. */
  close(): Promise<void>
}

const MAX_REDIRECTS = 5
const MAX_BYTES = 8 * 1024 * 1024
const TIMEOUT_MS = 60_000
const REDIRECTS = new Set([301, 302, 303, 307, 308])

/**
 * The one HTTP client for all requests whose target a user can choose. Its connections follow the egress
 * rules (activities/egress/egress.ts) and are kept alive and pooled per origin. It follows at most 5 redirects
 * itself, without credentials to another origin, and uses no proxy from the environment. `findEgress` returns the
 * rules that hold at the moment, if they are not always those of the options.
 */
export function createHttpClient(
  options: EgressOptions,
  findEgress: () => Egress = keepEgress(options),
): HttpClient {
  const bases = (options.own?.() ?? []).flatMap(({ base }) => base ?? [])
  const agents = createAgents(findEgress, bases)
  return { request: (req) => request(agents, req, options.mark), close: agents.close }
}

function keepEgress(options: EgressOptions): () => Egress {
  const egress = createEgress(options)
  return () => egress
}

async function request(agents: Agents, req: HttpRequest, mark?: string): Promise<HttpResponse> {
  const hop = readRequest(req)
  if (mark) hop.headers.set(CALL_MARK, mark)
  const maxBytes = req.maxBytes ?? MAX_BYTES
  const timeoutMs = req.timeoutMs ?? TIMEOUT_MS
  const authority = createAuthority(req.authorize)
  const renewal = createRenewal(req)
  const stop = new AbortController()
  const onAbort = () => stop.abort(new HttpError('aborted', `the request to ${hop.url.host} was aborted`))
  const timer = setTimeout(() => {
    stop.abort(new HttpError('timeout', `no complete response from ${hop.url.host} within ${timeoutMs} ms`))
  }, timeoutMs)
  if (req.signal?.aborted) onAbort()
  else req.signal?.addEventListener('abort', onAbort, { once: true })
  let unsaved: { error: unknown } | undefined
  let followed = false
  try {
    for (let hops = 0; ; hops++) {
      demandHost(req.allowedHosts, hop.url)
      const plain = { ...hop, headers: Object.fromEntries(hop.headers) }
      const { sent, shown } = await authority.apply(plain)
      demandSendable(authority, sent)
      req.watch?.sent({ ...shown, url: shown.url.href, ...describeBody(shown.body) })
      const response = await send(agents, sent, stop.signal)
      // A body that is given up emits an error, which would be unhandled.
      response.body.on('error', () => {})
      const read = readHeaders(response.headers)
      const { headers } = read
      const { statusCode: status, statusText } = response
      req.watch?.received({ status, statusText, headers: showHeaders(read) })
      const follows = req.redirects !== 'none' && REDIRECTS.has(status)
      if (follows && response.headers.location !== undefined) {
        if (hops === MAX_REDIRECTS) {
          response.body.destroy()
          throw new HttpError(
            'redirect',
            `more than ${MAX_REDIRECTS} redirects, the last from ${hop.url.host}`,
          )
        }
        // Reading a short body to its end keeps the connection usable.
        await response.body.dump({ limit: 16_384 })
        followed = true
        redirect(hop, authority, status, headers.location!)
        continue
      }
      if (status === 401 && sent !== plain && (await renewal.isWorth(response.body, stop.signal))) {
        hops--
        continue
      }
      const save = req.save?.({ status, headers, url: hop.url })
      if (save) {
        const most = req.saveBytes ?? maxBytes
        const decoded = readDecoded(response.body, headers['content-encoding'] ?? '', most, hop.url.host)
        await save(decoded).catch((error) => {
          if (!stop.signal.aborted) unsaved = { error }
          throw error
        })
        return { status, ...read, body: new Uint8Array(), url: hop.url.href }
      }
      req.onBound?.(boundBody(hop.method, headers, maxBytes))
      const raw = await readResponseBytes(response.body, maxBytes, hop.url.host)
      const body = await decompress(raw, headers['content-encoding'] ?? '', maxBytes, hop.url.host)
      req.onBound?.(body.length)
      return { status, ...read, body, url: hop.url.href }
    }
  } catch (error) {
    if (renewal.threw(error)) throw error
    if (unsaved) throw unsaved.error
    const failure = stop.signal.aborted ? stop.signal.reason : toHttpError(error, hop.url.host)
    throw Object.assign(failure, { followed })
  } finally {
    clearTimeout(timer)
    req.signal?.removeEventListener('abort', onAbort)
  }
}

/** Asks once whether the credential of a request that was refused can be renewed; if so, the body is given up. */
function createRenewal({ renew }: HttpRequest) {
  let asked = false
  let thrown: { error: unknown } | undefined
  return {
    async isWorth(body: Dispatcher.ResponseData['body'], signal: AbortSignal): Promise<boolean> {
      if (!renew || asked) return false
      asked = true
      const renewed = await unlessAborted(
        renew().catch((error) => {
          thrown = { error }
          throw error
        }),
        signal,
      ).catch((error) => {
        body.destroy()
        throw error
      })
      // Reading a short body to its end keeps the connection usable.
      if (renewed) await body.dump({ limit: 16_384 })
      return renewed
    },
    threw: (error: unknown) => thrown !== undefined && thrown.error === error,
  }
}

function describeBody(body: AuthorizedHop['body']): Pick<Parameters<HttpWatch['sent']>[0], 'body' | 'bytes'> {
  return isStreamed(body) ? { body: null, bytes: body.bytes } : { body }
}

function demandSendable(authority: Authority, { headers }: AuthorizedHop): void {
  for (const name of authority.names()) {
    const fault = findRequestHeaderFault(name, headers[name] ?? '')
    if (fault) throw new HttpError('bad-request', `the header of the credential ${fault}`)
  }
}

async function send(
  agents: Agents,
  hop: AuthorizedHop,
  signal: AbortSignal,
): Promise<Dispatcher.ResponseData> {
  signal.throwIfAborted()
  const sent = agents.choose(hop.url).request({
    origin: hop.url.origin,
    path: hop.url.pathname + hop.url.search,
    method: hop.method as Dispatcher.HttpMethod,
    headers: isStreamed(hop.body)
      ? { ...hop.headers, 'content-length': String(hop.body.bytes) }
      : hop.headers,
    body: isStreamed(hop.body) ? Readable.from(hop.body.open()) : hop.body,
    signal,
  })
  // undici notices an abort only once it is connected, so a slow name server would delay it.
  return unlessAborted(sent, signal)
}
