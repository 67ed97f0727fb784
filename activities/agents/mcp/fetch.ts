import type { HttpPass } from '../../credentials/authorize.ts'
import type { HttpClient } from '../../http/http.ts'
import { NodeFailure } from '../../nodes/kit/failure.ts'
import { createQuoter } from '../../reading/largestream.ts'

/** The most bytes of one answer of a server. */
const MAX_BYTES = 2 * 1024 * 1024

/** The most bytes of all answers of one session, and the most requests that a server can bring about by asking back. */
const MAX_SESSION_BYTES = 2 * MAX_BYTES
const MAX_REQUESTS = 100

/** The headers of an answer at which the library looks. */
const SHOWN = ['content-type', 'mcp-session-id', 'location', 'www-authenticate']

/** Statuses whose answers have no body. */
const BODILESS = new Set([204, 205, 304])

/**
 * A `fetch` for the library that goes through the guarded client. `fault` is why its last request failed, `large` how many
 * numbers of tools' results were too large to be held: the library gets the texts of their digits.
 */
export type GuardedFetch = { fetch: typeof globalThis.fetch; fault(): unknown; large(): number }

/**
 * Makes a `fetch` that follows the rules of the guarded client. It sends POST and DELETE; the stream on which a
 * server could send unasked messages is never opened. The library follows redirects itself, within their origin.
 */
export function createGuardedFetch(
  http: HttpClient,
  { pass, signal, timeoutMs }: { pass: HttpPass | undefined; signal: AbortSignal; timeoutMs: number },
): GuardedFetch {
  let fault: unknown
  let requests = 0
  let left = MAX_SESSION_BYTES
  const quoters: ReturnType<typeof createQuoter>[] = []
  async function send(url: string, init: RequestInit): Promise<Response> {
    const method = init.method ?? 'GET'
    if (method !== 'POST' && method !== 'DELETE') return new Response(null, { status: 405 })
    const own = init.signal ? AbortSignal.any([signal, init.signal]) : signal
    fault = undefined
    if (++requests > MAX_REQUESTS && method === 'POST') {
      fault = new NodeFailure(`The server has brought about more than ${MAX_REQUESTS} requests`, BROKEN)
      throw fault
    }
    const watchDepth = createDepthWatch()
    return await new Promise<Response>((resolve, reject) => {
      let stream: ReadableStreamDefaultController<Uint8Array> | undefined
      http
        .request({
          method,
          url,
          headers: Object.fromEntries(new Headers(init.headers)),
          ...(typeof init.body === 'string' ? { body: init.body } : {}),
          signal: own,
          timeoutMs,
          redirects: 'none',
          saveBytes: Math.min(MAX_BYTES, left),
          ...pass,
          save: ({ status, headers }) => {
            const shown = SHOWN.flatMap((name) =>
              headers[name] === undefined ? [] : [[name, headers[name]]],
            )
            const head = { status, headers: Object.fromEntries(shown) as Record<string, string> }
            const body = new ReadableStream<Uint8Array>({
              start(given) {
                stream = given
              },
            })
            resolve(new Response(BODILESS.has(status) ? null : body, head))
            // In the schemas of tools, large numbers are limits.
            const quoter = callsTool(init.body) ? createQuoter() : undefined
            if (quoter) quoters.push(quoter)
            return async (bytes) => {
              for await (const chunk of bytes) {
                left = Math.max(1, left - chunk.length)
                watchDepth(chunk)
                enqueue(stream, quoter ? quoter.push(chunk) : chunk)
              }
              if (quoter) enqueue(stream, quoter.end())
            }
          },
        })
        .then(() => stream?.close())
        .catch((error) => {
          fault = error
          reject(error)
          fail(stream, error)
        })
    })
  }
  return {
    fetch: (input, init) => send(String(input), init ?? {}),
    fault: () => fault,
    large: () => quoters.reduce((sum, { count }) => sum + count(), 0),
  }
}

/** How a server fails that does not keep to the protocol. */
const BROKEN = { type: 'InvalidResponse' } as const

/** Deeper values than these would exhaust the stack of those who read them. */
const MAX_DEPTH = 500
const [QUOTE, BACKSLASH, NEWLINE, BRACKET, BRACE] = [0x22, 0x5c, 0x0a, 0x5b, 0x7b]

/** Throws for JSON that is nested too deeply, as its bytes come. Between events a line ends what looks like a text. */
function createDepthWatch(): (chunk: Uint8Array) => void {
  let depth = 0
  let isText = false
  let isEscaped = false
  return (chunk) => {
    for (const byte of chunk) {
      if (byte === NEWLINE) isText = false
      else if (isText) {
        if (isEscaped) isEscaped = false
        else if (byte === BACKSLASH) isEscaped = true
        else if (byte === QUOTE) isText = false
      } else if (byte === QUOTE) isText = true
      else if (byte === BRACKET || byte === BRACE) {
        if (++depth > MAX_DEPTH)
          throw new NodeFailure(`The answer of the server is nested deeper than ${MAX_DEPTH}`, BROKEN)
      } else if (byte === BRACKET + 2 || byte === BRACE + 2) depth = Math.max(0, depth - 1)
    }
  }
}

/** What the library sends is its own JSON. */
const callsTool = (body: unknown) =>
  typeof body === 'string' && (JSON.parse(body) as { method?: unknown }).method === 'tools/call'

function enqueue(stream: ReadableStreamDefaultController<Uint8Array> | undefined, chunk: Uint8Array): void {
  // A stream that has been cancelled takes no chunks.
  if (stream && stream.desiredSize !== null && chunk.length > 0) stream.enqueue(chunk)
}

function fail(stream: ReadableStreamDefaultController<Uint8Array> | undefined, error: unknown): void {
  try {
    stream?.error(error)
  } catch {
    // It is closed.
  }
}
