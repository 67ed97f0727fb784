import type { OpenedCredential } from '../../db/credentials/open.ts'
import { authorizeWith } from '../credentials/authorize.ts'
import type { HttpRequest, HttpResponse } from '../http/http.ts'
import { HttpError } from '../http/httperror.ts'
import { invalidConfig } from '../nodes/kit/failure.ts'
import type { NodeContext } from '../nodes/kit/node.ts'
import { decodeText } from '../reading/charset.ts'
import { isUnsent, noStream, refusedBy, silentFor, unreached, type Vendor } from './failures.ts'
import { type AnswerFlow, openFlow } from './flow.ts'
import type { ModelCallNote } from './note.ts'

const MAX_REQUEST_BYTES = 8 * 1024 * 1024
/** The bytes that may come over the wire: each piece of a text has JSON of many times its size around it. */
const MAX_STREAM_BYTES = 128 * 1024 * 1024
const MAX_ERROR_BYTES = 1024 * 1024
const END_MS = 500
/** No limit of its own: the node has one. */
const TIMEOUT_MS = 24 * 3_600_000

/** A server that does not know how to stream, or is no model's. */
const NO_STREAM = /^\s*(?:application\/json|text\/html)\s*(?:;|$)/i

/** The headers by which libraries sign in, and those that the HTTP client sets. */
const LEFT_OUT = ['authorization', 'x-api-key', 'api-key', 'x-goog-api-key', 'user-agent', 'content-length']

type Head = Omit<HttpResponse, 'body'>

/** The one request to a vendor that a call of a model makes, through the guarded HTTP client. */
export type ModelLine = {
  /** For a vendor's library. It sends one request; a second one is refused. */
  fetch: typeof globalThis.fetch
  /** Why the request failed, whatever the library made of it; undefined if it did not. */
  fault(): unknown
  /** Gives up what is still to come. */
  close(): void
}

/** The state of one call's line. */
type Line = {
  http: NodeContext['http']
  /** The node's; and either that or the line's own end. */
  signal: AbortSignal
  either: AbortSignal
  stop: AbortController
  vendor: Vendor
  note: ModelCallNote
  silenceMs: number
  /** Ends the line when the vendor is silent, or does not end the connection. */
  timer: NodeJS.Timeout | undefined
  /** Why the request failed: the first reason counts. */
  fault: { error: unknown } | undefined
}

/**
 * Opens the line of one call. The credential goes only to its own hosts, redirects are not followed, the request has
 * at most 8 MiB, and a vendor that sends nothing for `silenceMs` is given up. `note` is begun before anything is sent.
 */
export async function openModelLine(
  context: Pick<NodeContext, 'credentials' | 'http' | 'signal'>,
  opened: OpenedCredential,
  { vendor, note, silenceMs }: { vendor: Vendor; note: ModelCallNote; silenceMs: number },
): Promise<ModelLine> {
  const { http, credentials, signal } = context
  if (!credentials) throw invalidConfig('credentialId', 'can only be used by an attempt of its own')
  const pass = await authorizeWith(opened, credentials)
  const stop = new AbortController()
  const either = AbortSignal.any([signal, stop.signal])
  const line: Line = {
    ...{ http, signal, either, stop, vendor, note, silenceMs },
    ...{ timer: undefined, fault: undefined },
  }
  let used = false
  return {
    async fetch(input, init) {
      if (used) throw new Error('a call of a model makes one request')
      used = true
      try {
        const request = writeRequest(String(input), init)
        await beginCall(line)
        return await sendRequest(line, { ...request, signal: either, ...pass })
      } catch (error) {
        throw noteFault(line, error)
      }
    },
    fault: () => line.fault?.error,
    close() {
      clearTimeout(line.timer)
      stop.abort()
    },
  }
}

/** The first reason why the request failed. */
function noteFault(line: Line, error: unknown): unknown {
  line.fault ??= { error }
  return line.fault.error
}

function awaitByte(line: Line): void {
  clearTimeout(line.timer)
  line.timer = setTimeout(() => {
    noteFault(line, silentFor(line.vendor, line.silenceMs))
    line.stop.abort()
  }, line.silenceMs)
}

/** What comes after the whole answer does not matter: only whether the connection can be used again. */
function awaitEnd(line: Line, flow: AnswerFlow): void {
  clearTimeout(line.timer)
  line.timer = setTimeout(() => {
    flow.close()
    line.stop.abort()
  }, END_MS)
}

async function beginCall(line: Line): Promise<void> {
  const { signal, note } = line
  signal.throwIfAborted()
  await note.begin()
  if (!signal.aborted) return awaitByte(line)
  note.refuse()
  throw signal.reason
}

/** Sends it; resolves once the vendor begins to answer. */
function sendRequest(line: Line, request: HttpRequest): Promise<Response> {
  const { http, vendor, note, signal } = line
  const { promise, resolve, reject } = Promise.withResolvers<Response>()
  let head: Head | undefined
  let flow: AnswerFlow | undefined
  http
    .request({
      ...request,
      save({ status, headers }) {
        awaitByte(line)
        head = { status, headers }
        if (status >= 300) {
          note.refuse()
          return undefined
        }
        if (NO_STREAM.test(headers['content-type'] ?? '')) return undefined
        return async (body) => {
          flow = openFlow(vendor)
          resolve(new Response(flow.stream, { status, headers: pickHeaders(headers) }))
          await pushBody(line, flow, body)
        }
      },
    })
    .then(({ status, headers, body }) => {
      if (flow) return flow.close()
      const text = decodeText(body, headers['content-type'])
      throw status >= 300 ? refusedBy(vendor, { status, headers, text }) : noStream(vendor, text)
    })
    .catch((error) => {
      if (error instanceof HttpError && !head && isUnsent(error)) note.refuse()
      const why = noteFault(line, signal.aborted ? signal.reason : judgeRequest(vendor, error, head))
      if (flow) flow.close({ error: why })
      else reject(why)
    })
    .finally(() => clearTimeout(line.timer))
  return promise
}

/** Hands what comes to the flow, until that takes no more. */
async function pushBody(line: Line, flow: AnswerFlow, body: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const chunk of body) {
    awaitByte(line)
    if (!(await flow.push(chunk))) return
    if (flow.isWhole()) awaitEnd(line, flow)
  }
}

function writeRequest(url: string, { body, headers: given }: RequestInit = {}): HttpRequest {
  if (typeof body !== 'string') throw new Error('a request to a model has a text as its body')
  const bytes = Buffer.byteLength(body)
  if (bytes > MAX_REQUEST_BYTES)
    throw invalidConfig(
      'prompt',
      `makes a request of ${bytes} bytes; at most ${MAX_REQUEST_BYTES} can be sent to a model`,
    )
  const headers = new Headers(given)
  for (const name of LEFT_OUT) headers.delete(name)
  // Compressed, a stream would come in blocks.
  headers.set('accept-encoding', 'identity')
  return {
    method: 'POST',
    url,
    headers: Object.fromEntries(headers),
    body,
    redirects: 'none',
    timeoutMs: TIMEOUT_MS,
    maxBytes: MAX_ERROR_BYTES,
    saveBytes: MAX_STREAM_BYTES,
  }
}

/** Why a request failed. The body of a refusal may be too long to be read, or break off. */
function judgeRequest(vendor: Vendor, error: unknown, head: Head | undefined): unknown {
  if (!(error instanceof HttpError)) return error
  return head && head.status >= 300 ? refusedBy(vendor, { ...head, text: '' }) : unreached(vendor, error)
}

/** Libraries look at the type only; other headers may be such as a Response cannot have. */
function pickHeaders({ 'content-type': type }: Record<string, string>): Record<string, string> {
  return { 'content-type': type && /^[\x20-\x7e]*$/.test(type) ? type : 'text/event-stream' }
}
