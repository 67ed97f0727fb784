import type { StartedAttempt } from '../../db/executions/records/attempts.ts'
import { type BodyStart, type Exchange, MAX_READ_BYTES } from '../../db/executions/requests/exchange.ts'
import { decodeText } from '../reading/charset.ts'
import type { HttpClient, HttpRequest } from './http.ts'

const NO_BODY: BodyStart = { text: null, bytes: 0, isCut: false }

/** The most requests of one attempt that are noted. */
export const MAX_REQUESTS = 100

/**
 * An HTTP client that has `note` told of every request of an attempt as it is sent, and again when it has ended. Of the
 * pages beyond those that are noted, the one that fails is noted at its end.
 */
export function noteExchanges(
  http: HttpClient,
  { executionId, nodeId, iteration, attempt }: StartedAttempt,
  note: (exchange: Exchange) => void,
): HttpClient {
  let count = 0
  let toldQuiet = false
  return {
    close: http.close,
    async request(req) {
      const number = req.line ?? count++
      const isQuiet = number >= MAX_REQUESTS
      if (isQuiet && (req.line === undefined || toldQuiet)) return http.request(req)
      let exchange: Exchange | undefined
      const watch: HttpRequest['watch'] = {
        sent({ method, url, headers, body, bytes = 0 }) {
          if (exchange) {
            const status = exchange.response?.status ?? 0
            exchange.redirects.push({ status, method, url })
            exchange.response = null
            return
          }
          exchange = {
            ...{ executionId, nodeId, iteration, attempt, number, startedAt: Date.now(), endedAt: null },
            ...{ method, url, headers, body: body ? startOf(body, headers) : { ...NO_BODY, bytes } },
            ...{ redirects: [], response: null, error: null },
          }
          if (!isQuiet) note(exchange)
        },
        received({ status, statusText, headers }) {
          if (exchange) exchange.response = { status, statusText, headers, body: NO_BODY }
        },
      }
      const end = (more: Partial<Exchange>) => {
        if (!exchange) return
        const ended = { ...exchange, ...more, endedAt: Date.now() }
        const hasFailed = ended.error !== null || Number(ended.response?.status) >= 400
        if (isQuiet && !hasFailed) return
        toldQuiet ||= isQuiet
        note(ended)
      }
      try {
        let saved = 0
        const answer = await http.request({ ...req, watch, ...countSaved(req, (bytes) => (saved += bytes)) })
        const body = { ...startOf(answer.body, answer.headers), ...(saved > 0 ? { bytes: saved } : {}) }
        end(exchange?.response ? { response: { ...exchange.response, body } } : {})
        return answer
      } catch (error) {
        end({ error: describe(error, req.signal) })
        throw error
      }
    },
  }
}

/** Tells how many bytes of the response's body are taken by `save`. */
function countSaved({ save }: HttpRequest, add: (bytes: number) => void): Pick<HttpRequest, 'save'> {
  if (!save) return {}
  return {
    save(head) {
      const taken = save(head)
      return taken && ((body) => taken(count(body, add)))
    },
  }
}

async function* count(body: AsyncIterable<Uint8Array>, add: (bytes: number) => void) {
  for await (const chunk of body) {
    add(chunk.length)
    yield chunk
  }
}

/** Why a request was broken off, or what is wrong. */
function describe(error: unknown, signal: AbortSignal | undefined): string {
  const why = signal?.aborted && signal.reason instanceof Error ? signal.reason : error
  return why instanceof Error ? why.message : String(why)
}

function startOf(body: Uint8Array, headers: Record<string, string>): BodyStart {
  const bytes = body.length
  const start = body.subarray(0, MAX_READ_BYTES)
  return { text: readText(start, headers['content-type']), bytes, isCut: bytes > start.length }
}

/** The text of a body; null if it has none, because it is empty, an image or anything else that is not text. */
function readText(start: Uint8Array, type: string | undefined): string | null {
  if (start.length === 0 || start.includes(0)) return null
  try {
    // As a stream: the end may stand in the middle of a character.
    return new TextDecoder('utf-8', { fatal: true }).decode(start, { stream: true })
  } catch {
    return /charset/i.test(type ?? '') ? decodeText(start, type) : null
  }
}
