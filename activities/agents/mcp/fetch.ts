import type { HttpPass } from '../../credentials/authorize.ts'
import type { HttpClient } from '../../http/http.ts'
import { createQuoter } from '../../reading/largestream.ts'

/** The most bytes of one answer of a server. */
const MAX_BYTES = 2 * 1024 * 1024

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
 * Makes a `fetch` that follows the rules of the guarded client. It sends POST and DELETE; the stream on which a server
 * could send what nobody asked for is never opened. The library follows redirects itself, within their origin.
 */
export function createGuardedFetch(
  http: HttpClient,
  { pass, signal, timeoutMs }: { pass: HttpPass | undefined; signal: AbortSignal; timeoutMs: number },
): GuardedFetch {
  let fault: unknown
  const quoters: ReturnType<typeof createQuoter>[] = []
  async function send(url: string, init: RequestInit): Promise<Response> {
    const method = init.method ?? 'GET'
    if (method !== 'POST' && method !== 'DELETE') return new Response(null, { status: 405 })
    const own = init.signal ? AbortSignal.any([signal, init.signal]) : signal
    fault = undefined
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
          saveBytes: MAX_BYTES,
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
              for await (const chunk of bytes) enqueue(stream, quoter ? quoter.push(chunk) : chunk)
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

/** What the library sends is its own JSON. */
const callsTool = (body: unknown) =>
  typeof body === 'string' && (JSON.parse(body) as { method?: unknown }).method === 'tools/call'

function enqueue(stream: ReadableStreamDefaultController<Uint8Array> | undefined, chunk: Uint8Array): void {
  // One that nobody reads any more takes no chunks.
  if (stream && stream.desiredSize !== null && chunk.length > 0) stream.enqueue(chunk)
}

function fail(stream: ReadableStreamDefaultController<Uint8Array> | undefined, error: unknown): void {
  try {
    stream?.error(error)
  } catch {
    // It is closed.
  }
}
