import { isDeeper } from '../../db/records/depth.ts'
import { decodeText } from '../reading/charset.ts'

// Deeper values overflow the stack when they are serialised again.
const MAX_DEPTH = 500

/**
 * A response's body as a value. responseType `json`: the JSON value or a fault; `text`: a string; absent: the
 * JSON value if the content type says so and the body parses, else a string. An empty body is null. `fault`
 * continues the words "a body that ...".
 */
export function parseResponseBody(
  body: Uint8Array,
  contentType: string | undefined,
  responseType: unknown,
): { value: unknown } | { fault: string } {
  if (body.length === 0) return { value: null }
  const text = decodeText(body, contentType)
  const isJson = /^\s*(?:application|text)\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(contentType ?? '')
  if (responseType === 'text' || (responseType !== 'json' && !isJson)) return { value: text }
  const fault = isDeeper(text, MAX_DEPTH) ? `is nested deeper than ${MAX_DEPTH}` : null
  if (!fault) {
    try {
      return { value: JSON.parse(text) }
    } catch {
      // Falls through: invalid JSON is a string, unless JSON is required.
    }
  }
  return responseType === 'json' ? { fault: fault ?? 'is not valid JSON' } : { value: text }
}
