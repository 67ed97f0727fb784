import { isDeeper } from '../../db/executions/records/depth.ts'
import type { LargeNumbers } from '../../workflows/nodes/fields.ts'
import { decodeText, findByteOrderMark, findCharset, openDecoder } from '../reading/charset.ts'
import { describeLarge, readJson } from '../reading/json.ts'

// Deeper values overflow the stack when they are serialised again.
const MAX_DEPTH = 500

/**
 * A response's body as a value. responseType `json`: the JSON value or a fault; `text`: a string; absent: the
 * JSON value if the content type says so and the body parses, else a string. An empty body is null. `fault`
 * continues the words "a body that ...". `warnings` say what could not be kept.
 */
export function parseResponseBody(
  body: Uint8Array,
  contentType: string | undefined,
  { responseType, largeNumbers }: { responseType?: unknown; largeNumbers?: LargeNumbers | undefined },
): { value: unknown; warnings: string[] } | { fault: string } {
  if (body.length === 0) return { value: null, warnings: [] }
  const text = decodeText(body, contentType)
  const unknown = describeUnknownCharset(body, contentType)
  const warnings = unknown ? [unknown] : []
  const isJson = isJsonType(contentType)
  if (responseType === 'text' || (responseType !== 'json' && !isJson)) return { value: text, warnings }
  const fault = isDeeper(text, MAX_DEPTH) ? `is nested deeper than ${MAX_DEPTH}` : null
  if (!fault) {
    try {
      const read = readJson(text, largeNumbers)
      const large = describeLarge(read, largeNumbers)
      return { value: read.value, warnings: large ? [...warnings, large] : warnings }
    } catch {
      // Falls through: invalid JSON is a string, unless JSON is required.
    }
  }
  return responseType === 'json' ? { fault: fault ?? 'is not valid JSON' } : { value: text, warnings }
}

export const isJsonType = (contentType: string | undefined): boolean =>
  /^\s*(?:application|text)\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(contentType ?? '')

/** The warning for a body that was read as UTF-8 because the charset that is declared is not known. */
export function describeUnknownCharset(
  body: Uint8Array,
  contentType: string | undefined,
): string | undefined {
  const charset = findCharset(contentType)
  if (charset === undefined || findByteOrderMark(body) || openDecoder(charset)) return undefined
  return `the answer declares the charset ${charset}, which is not known: it was read as UTF-8`
}
