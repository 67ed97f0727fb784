import type { OpenedCredential } from '../../db/credentials/open.ts'
import { authorizeWith } from '../credentials/authorize.ts'
import { decodeText } from '../http/body.ts'
import { HttpError } from '../http/httperror.ts'
import type { NodeFailure } from '../nodes/kit/failure.ts'
import { invalidConfig } from '../nodes/kit/failure.ts'
import type { NodeContext } from '../nodes/kit/node.ts'
import { isUnsent, refusedBy, silentFor, unreached, uselessAnswer, type Vendor } from './failures.ts'
import type { ModelCallNote } from './note.ts'

const MAX_REQUEST_BYTES = 8 * 1024 * 1024
/** What may come over the wire: each piece of a text has its JSON around it, of many times its size. */
const MAX_STREAM_BYTES = 128 * 1024 * 1024
/** One event of the stream, which is parsed at once. */
const MAX_EVENT_BYTES = 4 * 1024 * 1024
const MAX_ERROR_BYTES = 1024 * 1024
/** No limit: the node has one. */
const TIMEOUT_MS = 24 * 3_600_000

/** The headers by which libraries sign in, and those that the HTTP client sets. */
const OWN = ['authorization', 'x-api-key', 'api-key', 'x-goog-api-key', 'user-agent', 'content-length']

/** The one request to a vendor that a call of a model makes, through the guarded HTTP client. */
export type ModelLine = {
  /** For a vendor's library. It sends one request; a second one is refused. */
  fetch: typeof globalThis.fetch
  /** Why the request failed, whatever the library made of it; undefined if it did not. */
  fault(): unknown
  /** Gives up what is still to come. */
  close(): void
}

/**
 * Opens the line of one call. The credential goes only to its own hosts, redirects are not followed, the request has
 * at most 8 MiB, and a vendor that sends nothing for `silenceMs` is given up. `note` is begun before anything is sent.
 */
export async function openLine(
  { http, credentials, signal }: NodeContext,
  opened: OpenedCredential,
  { vendor, note, silenceMs }: { vendor: Vendor; note: ModelCallNote; silenceMs: number },
): Promise<ModelLine> {
  if (!credentials) throw invalidConfig('credentialId', 'can only be used by an attempt of its own')
  const pass = await authorizeWith(opened, credentials)
  const stop = new AbortController()
  const either = AbortSignal.any([signal, stop.signal])
  let timer: NodeJS.Timeout | undefined
  let used = false
  let fault: { error: unknown } | undefined
  const fail = (error: unknown) => {
    fault ??= { error }
    return fault.error
  }
  const awaitByte = () => {
    clearTimeout(timer)
    timer = setTimeout(() => {
      fail(silentFor(vendor, silenceMs))
      stop.abort()
    }, silenceMs)
  }

  async function send(url: string, init: RequestInit): Promise<Response> {
    if (used) throw new Error('a call of a model makes one request')
    used = true
    const { body } = init
    if (typeof body !== 'string') throw new Error('a request to a model has a text as its body')
    const bytes = Buffer.byteLength(body)
    if (bytes > MAX_REQUEST_BYTES)
      throw invalidConfig(
        'prompt',
        `makes a request of ${bytes} bytes; at most ${MAX_REQUEST_BYTES} can be sent to a model`,
      )
    const headers = new Headers(init.headers)
    for (const name of OWN) headers.delete(name)
    // Compressed, a stream would come in blocks.
    headers.set('accept-encoding', 'identity')
    signal.throwIfAborted()
    await note.begin()
    if (signal.aborted) {
      note.refuse()
      throw signal.reason
    }
    awaitByte()
    return await new Promise<Response>((resolve, reject) => {
      let head: { status: number; headers: Record<string, string> } | undefined
      let stream: ReadableStreamDefaultController<Uint8Array> | undefined
      const request = {
        method: 'POST',
        url,
        headers: Object.fromEntries(headers),
        body,
        signal: either,
        redirects: 'none' as const,
        timeoutMs: TIMEOUT_MS,
        maxBytes: MAX_ERROR_BYTES,
        saveBytes: MAX_STREAM_BYTES,
        ...pass,
      }
      const refuse = (error: unknown) => {
        clearTimeout(timer)
        const why = fail(signal.aborted ? signal.reason : judge(error))
        if (stream) stream.error(why)
        else reject(why)
      }
      const judge = (error: unknown) => {
        if (!(error instanceof HttpError)) return error
        if (head && head.status >= 300) return refusedBy(vendor, { ...head, text: '' })
        if (isUnsent(error)) note.refuse()
        return unreached(vendor, error)
      }
      http
        .request({
          ...request,
          save(answered) {
            awaitByte()
            head = answered
            if (answered.status >= 300) {
              note.refuse()
              return undefined
            }
            return async (body) => {
              const flow = openFlow(vendor)
              stream = flow.controller
              resolve(
                new Response(flow.stream, {
                  status: answered.status,
                  headers: pickHeaders(answered.headers),
                }),
              )
              for await (const chunk of body) {
                awaitByte()
                if (!(await flow.push(chunk))) return
              }
            }
          },
        })
        .then(({ status, headers, body }) => {
          clearTimeout(timer)
          if (stream) return closeFlow(stream)
          if (status >= 300) {
            const text = decodeText(body, headers['content-type'])
            throw refusedBy(vendor, { status, headers, text })
          }
        })
        .catch(refuse)
    })
  }

  return {
    fetch: (input, init) => send(String(input), init ?? {}),
    fault: () => fault?.error,
    close() {
      clearTimeout(timer)
      stop.abort()
    },
  }
}

/** Libraries look at the type only; other headers may be such as a Response cannot have. */
function pickHeaders({ 'content-type': type }: Record<string, string>): Record<string, string> {
  return { 'content-type': type && /^[\x20-\x7e]*$/.test(type) ? type : 'text/event-stream' }
}

/** A stream that is read as fast as its reader takes it, and no event of which is too long. */
function openFlow(vendor: Vendor) {
  let controller!: ReadableStreamDefaultController<Uint8Array>
  let wanted = () => {}
  let isOpen = true
  let eventBytes = 0
  const stream = new ReadableStream<Uint8Array>({
    start: (given) => void (controller = given),
    pull: () => wanted(),
    cancel() {
      isOpen = false
      wanted()
    },
  })
  return {
    stream,
    controller,
    /** Resolves once more is wanted; to false if nothing is any more. */
    async push(chunk: Uint8Array): Promise<boolean> {
      const last = chunk.lastIndexOf(0x0a)
      eventBytes = last < 0 ? eventBytes + chunk.length : chunk.length - last - 1
      if (eventBytes > MAX_EVENT_BYTES) throw tooLong(vendor)
      if (!isOpen) return false
      controller.enqueue(chunk)
      if ((controller.desiredSize ?? 0) <= 0)
        await new Promise<void>((resolve) => {
          wanted = resolve
        })
      return isOpen
    },
  }
}

function closeFlow(controller: ReadableStreamDefaultController<Uint8Array>): void {
  try {
    controller.close()
  } catch {
    // Nobody reads it any more.
  }
}

function tooLong(vendor: Vendor): NodeFailure {
  return uselessAnswer(vendor, `has an event of more than ${MAX_EVENT_BYTES} bytes`, false)
}
