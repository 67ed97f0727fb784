import { isDeeper } from '../db/depth.ts'

// Deeper values overflow the stack of whoever serialises them next.
const MAX_DEPTH = 500

/**
 * An answer's body as a value. responseType json: JSON or a fault; text: a text; absent: JSON where the content
 * type says so and it parses, else a text. No bytes are null. `fault` goes on as "a body that ...".
 */
export function readAnswer(
  body: Uint8Array,
  contentType: string | undefined,
  responseType: unknown,
): { value: unknown } | { fault: string } {
  if (body.length === 0) return { value: null }
  const text = readText(body, contentType)
  const isJson = /^\s*(?:application|text)\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(contentType ?? '')
  if (responseType === 'text' || (responseType !== 'json' && !isJson)) return { value: text }
  const fault = isDeeper(text, MAX_DEPTH) ? `is nested deeper than ${MAX_DEPTH}` : null
  if (!fault) {
    try {
      return { value: JSON.parse(text) }
    } catch {
      // Falls through: what is no JSON is a text, unless JSON was promised.
    }
  }
  return responseType === 'json' ? { fault: fault ?? 'is no valid JSON' } : { value: text }
}

/** Decodes by the content type's charset (UTF-8 unless a known one is named); what is invalid becomes U+FFFD. */
export function readText(body: Uint8Array, contentType: string | undefined): string {
  const charset = /;\s*charset\s*=\s*"?([\w.:-]{1,40})/i.exec(contentType ?? '')?.[1] ?? 'utf-8'
  try {
    return new TextDecoder(charset).decode(body)
  } catch {
    return new TextDecoder().decode(body)
  }
}
